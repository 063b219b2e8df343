//! `wharf validate`: everything that can be known of a configuration without touching disk, network or destinations.

use clap::Args as ClapArgs;

use super::table::table;
use super::{ConfigFile, Ended, counted, print};
use crate::config::units::{format_duration, format_size};
use crate::config::{Config, Draft, Faults, ForwardTag, SourceKind};
use crate::plugin::{HostOptions, PluginHost};
use crate::run::{CheckedOutput, all_faults, check_outputs, shadowed_plugins, unwanted_sources};

const EXAMPLES: &str = "\
Examples:
  wharf validate -c wharf.yaml
  BUCKET=test wharf validate -c wharf.yaml    what ${BUCKET} in the file reads

Nothing is made, opened for writing, or asked over the network, but for a component in a registry
that was not pulled yet. Each output's component is loaded and asked whether it likes its configuration. Exit codes: 0 valid, 78 faults (all of
them on standard error, each with file:line:column).";

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
    Ok(PluginHost::new(HostOptions {
        cache_dir: None,
        max_memory_bytes: config.plugins.max_memory_bytes,
        cpu_per_call: config.plugins.cpu_per_call,
        deliver_timeout: config.plugins.deliver_timeout,
        workers: 1,
    })?
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
                SourceKind::Http(http) => ("http", http.listen.to_string()),
                SourceKind::Forward(forward) => {
                    let address = forward.listen.map(|listen| listen.to_string());
                    let socket = forward.unix_path.as_ref().map(|path| path.display().to_string());
                    ("forward", [address, socket].into_iter().flatten().collect::<Vec<_>>().join(" "))
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
        .map(|source| format!("\nwarning: no output's `match` wants the tag of source {source}: its records would be counted as dropped\n"))
        .collect();
    format!(
        "{file} is valid: {}, {}\n\n{}\n{}{unwanted}{shadowed}",
        counted(sources.len(), "source", "sources"),
        counted(outputs.len(), "output", "outputs"),
        table(&["SOURCE", "TYPE", "TAG", "FROM"], &sources),
        table(&["OUTPUT", "PLUGIN", "MATCH", "WORKERS", "BATCH", "TO"], &outputs),
    )
}
