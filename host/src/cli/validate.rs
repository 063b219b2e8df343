//! `wharf validate`: everything that can be known of a configuration without touching disk, network or destinations.

use clap::Args as ClapArgs;

use super::table::table;
use super::{ConfigFile, Ended, counted, print};
use crate::config::units::{format_duration, format_size};
use crate::config::{Config, Draft, Faults, ForwardTag, HttpTag, SourceKind, TenantConfig, TenantLimits};
use crate::plugin::{HostOptions, PluginHost};
use crate::run::{CheckedOutput, all_faults, check_outputs, identity_warnings, shadowed_plugins, unwanted_sources};

const EXAMPLES: &str = "\
Examples:
  wharf validate -c wharf.yaml
  BUCKET=test wharf validate -c wharf.yaml    what ${BUCKET} in the file reads

Nothing is made, opened for writing, or asked over the network, but for a component in a registry
that was not pulled yet. Each output's component is loaded and asked whether it likes its
configuration. Exit codes: 0 valid, 78 faults (all of them on standard error, each with
file:line:column).";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    file: ConfigFile,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let config = super::load(&args.file)?;
    let checked = runtime()?.block_on(async {
        let host = host(&config)?;
        check_outputs(&config, &host).await.map_err(Ended::Config)
    })?;
    print(&summary(&args.file.config.display().to_string(), &config, &checked))
}

/// The end of a configuration with faults: all of them, also those that only components can tell.
pub(super) fn faulty(draft: Draft) -> Ended {
    let all = draft.config().map(|config| -> Result<_, Ended> {
        runtime()?.block_on(async { Ok(all_faults(&draft, &host(config)?).await) })
    });
    // Where no component can be asked, the file's own faults are what there is to tell.
    let faults = match all {
        Some(Ok(faults)) => Faults::of(faults),
        _ => None,
    };
    match faults.map_or_else(|| draft.finish(), Err) {
        Err(faults) => Ended::Config(faults),
        Ok(_) => Ended::Failed("the configuration could not be checked".into()),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// A host that leaves nothing behind.
fn host(config: &Config) -> Result<PluginHost, Ended> {
    Ok(PluginHost::new(HostOptions::of(config, None, 1))?
        .with_registry(crate::run::registry(config).with_store(&crate::run::registry_store(config), false)))
}

fn summary(file: &str, config: &Config, checked: &[CheckedOutput]) -> String {
    let sources: Vec<Vec<String>> = config
        .sources
        .iter()
        .map(|s| {
            let (kind, what) = match &s.kind {
                SourceKind::Tail(tail) => ("tail", tail.paths.join(" ")),
                SourceKind::Stdin => ("stdin", String::new()),
                SourceKind::Http(http) if http.tokens.is_empty() => ("http", http.listen.to_string()),
                SourceKind::Http(http) => {
                    ("http", format!("{}, {}", http.listen, counted(http.tokens.len(), "token", "tokens")))
                }
                SourceKind::Forward(forward) => {
                    let address = forward.listen.map(|listen| listen.to_string());
                    let socket = forward.unix_path.as_ref().map(|path| path.display().to_string());
                    ("forward", [address, socket].into_iter().flatten().collect::<Vec<_>>().join(" "))
                }
                SourceKind::Otlp(otlp) => {
                    let grpc = otlp.grpc.map(|listen| format!("grpc {listen}"));
                    let http = otlp.http.map(|listen| format!("http {listen}"));
                    ("otlp", [grpc, http].into_iter().flatten().collect::<Vec<_>>().join(" "))
                }
                SourceKind::Syslog(syslog) => {
                    let tcp = syslog.tcp.map(|listen| format!("tcp {listen}"));
                    let udp = syslog.udp.map(|listen| format!("udp {listen}"));
                    let socket = syslog.unix_path.as_ref().map(|path| path.display().to_string());
                    ("syslog", [tcp, udp, socket].into_iter().flatten().collect::<Vec<_>>().join(" "))
                }
                SourceKind::Generate(g) => {
                    ("generate", g.rate.map_or_else(|| "as fast as it goes".into(), |r| format!("{r}/s")))
                }
            };
            let sent = match &s.kind {
                SourceKind::Forward(forward) => match &forward.tag {
                    ForwardTag::Sent { prefix } => Some(format!("{prefix}(as sent)")),
                    ForwardTag::OfSource => None,
                },
                SourceKind::Http(http) => match &http.tag {
                    HttpTag::OfSource => None,
                    HttpTag::Path { prefix } => Some(format!("{prefix}(by path)")),
                    HttpTag::Header { name, prefix } => Some(format!("{prefix}(by header {name})")),
                },
                SourceKind::Otlp(otlp) => otlp.tag_from.as_ref().map(|name| format!("(by {name})")),
                _ => None,
            };
            let tag = sent.unwrap_or_else(|| s.tag.to_string());
            vec![s.name.to_string(), kind.into(), tag, what]
        })
        .collect();
    let outputs: Vec<Vec<String>> = config
        .outputs
        .iter()
        .zip(checked)
        .map(|(o, CheckedOutput { plan, .. })| {
            let bytes = o.batch.max_bytes.or(plan.max_bytes).map_or_else(String::new, format_size);
            let age = o.batch.max_age.or(plan.max_age).map_or_else(String::new, format_duration);
            let s3 = plan.s3.iter().map(|s| format!("s3://{}/{}", s.bucket, s.key_prefix));
            let log_groups = plan.log_groups.iter().map(|name| format!("log group {name}"));
            let to: Vec<String> = s3.chain(log_groups).chain(plan.http.iter().cloned()).collect();
            let batch = [bytes, age].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(" or ");
            vec![o.name.to_string(), o.plugin.clone(), o.matches.join(" "), o.workers.to_string(), batch, to.join(", ")]
        })
        .collect();
    let shadowed: String = shadowed_plugins(config)
        .iter()
        .map(|file| format!("\nwarning: plugins.dir has {file}, and the name of a built-in always means the built-in: to use the file, write its path\n"))
        .collect();
    let unwanted: String = unwanted_sources(config)
        .iter()
        .map(|source| format!("\nwarning: no output's `match` wants the tag of source {source}{}: {} records would be counted as dropped\n", of_some(config, source), if of_some(config, source).is_empty() { "its" } else { "their" }))
        .collect();
    let identities: String =
        identity_warnings(config, checked).iter().map(|warning| format!("\nwarning: {warning}\n")).collect();
    let (mut tenants, mut tenants_table) = (String::new(), String::new());
    if !config.tenants.is_empty() {
        tenants = format!(", {}", counted(config.tenants.len(), "tenant", "tenants"));
        let rows: Vec<Vec<String>> = config.tenants.iter().map(|tenant| tenant_row(config, tenant)).collect();
        let headings = ["TENANT", "SHARE", "TAGS", "SOURCES", "OUTPUTS", "AWS IDENTITY", "LIMITS"];
        tenants_table = format!("\n{}", table(&headings, &rows));
    }
    format!(
        "{file} is valid: {}, {}{tenants}\n\n{}\n{}{tenants_table}{unwanted}{shadowed}{identities}",
        counted(sources.len(), "source", "sources"),
        counted(outputs.len(), "output", "outputs"),
        table(&["SOURCE", "TYPE", "TAG", "FROM"], &sources),
        table(&["OUTPUT", "PLUGIN", "MATCH", "WORKERS", "BATCH", "TO"], &outputs),
    )
}

/// Of whom, where a source takes in records of several.
fn of_some(config: &Config, source: &str) -> &'static str {
    let found = config.sources.iter().find(|it| *it.name == *source);
    if found.is_some_and(|source| source.senders().len() > 1) { " for some of its senders" } else { "" }
}

fn tenant_row(config: &Config, tenant: &TenantConfig) -> Vec<String> {
    let name = &tenant.name;
    // Its own, and those of the operator that it sends to.
    let sends = config.sources.iter().filter(|source| source.senders().contains(&Some(name)));
    let sources: Vec<&str> = sends.map(|source| &*source.name).collect();
    let outputs = config.outputs.iter().filter(|output| output.tenant.as_ref() == Some(name)).count();
    let identity = match (&tenant.aws.role_arn, &tenant.aws.profile) {
        _ if !tenant.own_identity => "the host's".to_owned(),
        (Some(role), _) if tenant.aws.external_id.is_some() => format!("{role} with external id"),
        (Some(role), _) => role.clone(),
        (None, Some(profile)) => format!("profile {profile}"),
        (None, None) => String::new(),
    };
    vec![
        name.to_string(),
        tenant.share.to_string(),
        tenant.tags.join(" "),
        sources.join(" "),
        outputs.to_string(),
        identity,
        limits(&tenant.limits),
    ]
}

fn limits(limits: &TenantLimits) -> String {
    let TenantLimits { journal_bytes, ingest, outputs, sources, workers } = limits;
    let mut shown: Vec<String> = vec![];
    shown.extend(journal_bytes.map(|bytes| format!("journal {}", format_size(bytes))));
    shown.extend(ingest.bytes_per_second.map(|bytes| format!("{}/s", format_size(bytes))));
    shown.extend(ingest.records_per_second.map(|records| format!("{records} records/s")));
    for (what, most) in [("outputs", outputs), ("sources", sources), ("workers", workers)] {
        shown.extend(most.map(|most| format!("{most} {what}")));
    }
    shown.join(", ")
}
