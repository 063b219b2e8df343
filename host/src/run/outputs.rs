//! Outputs at start: load and check every plugin, build the queues, start the workers.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::capability::s3::no_name_at_amazon;
use crate::capability::{Services, check_environment, may_name_an_endpoint};
use crate::config::{
    AwsConfig, Config, Credential, Draft, Fault, Faults, GrantsConfig, HttpDestination, LogGroupGrant, OutputConfig,
    check_plugin_config, fault_at_pin, fault_at_plugin, nearest, where_credentials_are_defined,
};
use crate::journal::Recovery;
use crate::output::{Destinations, Output, OutputSetup, STORE_IDLE};
use crate::plugin::{
    LoadError, Plan, Plugin, PluginHost, PluginSource, Requirements, StartError, WorkerContext, builtin,
};
use crate::queue::{BatchLimits, Ledger, Queue, QueueOptions};
use crate::record::Position;
use crate::state::{State, StateError};
use crate::telemetry::Metrics;

use super::fleet::Placed;
use super::{Rooms, imports};

/// When neither the operator nor the plugin says when a batch closes.
const DEFAULT_MAX_BYTES: u64 = 100_000_000;
const DEFAULT_MAX_AGE: Duration = Duration::from_secs(600);

/// An output whose component is loaded and likes its configuration.
#[derive(Debug, Clone)]
pub struct CheckedOutput {
    /// The component.
    pub plugin: Plugin,
    /// What it needs.
    pub plan: Plan,
    /// What it is configured with: the output's `config`, values from the environment with the types that the component wants.
    pub config: Arc<str>,
}

/// Loads every output's component and lets it check its configuration; a component that several outputs use is loaded once. Touches no disk, no
/// network and no destination beyond the component files.
///
/// # Errors
/// Every fault of every output, with its place.
pub async fn check_outputs(config: &Config, host: &PluginHost) -> Result<Vec<CheckedOutput>, Faults> {
    let (checked, faults) = look(config, &[], host).await;
    match Faults::of(faults) {
        None => Ok(checked),
        Some(faults) => Err(faults),
    }
}

/// Every fault of a configuration that has some: those of the file, and those of its outputs' components as far as it could be read.
pub async fn all_faults(draft: &Draft, host: &PluginHost) -> Vec<Fault> {
    let mut faults = draft.faults().to_vec();
    if let Some(config) = draft.config() {
        faults.extend(look(config, draft.faults(), host).await.1);
    }
    faults
}

/// Asks every output's component. `known` are the faults of the file itself.
async fn look(config: &Config, known: &[Fault], host: &PluginHost) -> (Vec<CheckedOutput>, Vec<Fault>) {
    let mut loaded: HashMap<(&PluginSource, Requirements<'_>), Result<Plugin, LoadError>> = HashMap::new();
    let mut faults = vec![];
    let mut checked = vec![];
    // All outputs share the environment.
    if let (Err(what), Some(first)) = (check_environment(), config.outputs.first()) {
        faults.push(fault_at_plugin(first, what, None));
    }
    for output in &config.outputs {
        let required = config.requirements_of(output);
        let plugin = match loaded.entry((&output.plugin_source, required)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(host.load_required(&output.plugin_source, &required).await),
        };
        match plugin {
            Ok(plugin) => {
                let section = output.section();
                let is_whole = !known.iter().any(|fault| fault.is_in(&section));
                // Of one that is faulty, nothing is known here.
                let defined =
                    output.tenant.as_ref().map_or("credentials".to_owned(), |it| format!("tenants.{it}.credentials"));
                let are_whole = !known.iter().any(|fault| fault.is_in(&defined));
                let credentials = are_whole.then(|| config.credentials_of(output));
                match check_output(output, plugin, is_whole, credentials).await {
                    Ok(it) => checked.extend(it),
                    Err(found) => faults.extend(found),
                }
            }
            Err(error) => faults.push(not_loaded(output, error, &config.plugins.dirs)),
        }
    }
    (checked, faults)
}

/// What a component asks for where it is an output's.
#[derive(Debug)]
pub(crate) struct AsksFor {
    pub(crate) plan: Plan,
    /// Interfaces that it imports.
    pub(crate) imports: Vec<String>,
}

/// What a component would ask for in an output's place, configured as the output is. What is not granted is no fault here.
pub(crate) async fn asked_of(
    config: &Config,
    output: &OutputConfig,
    source: &PluginSource,
    host: &PluginHost,
) -> Result<AsksFor, Faults> {
    let one = |fault: Fault| Faults::one(fault);
    // Whoever looks at it has not trusted it yet.
    let pull = config.requirements_of(output).pull;
    let loaded = host.load_required(source, &Requirements { pull, ..Requirements::default() }).await;
    let plugin = loaded.map_err(|error| one(not_loaded(output, &error, &config.plugins.dirs)))?;
    let check = check_plugin_config(output, &plugin.descriptor().config_schema);
    if let Some(faults) = Faults::of(check.faults.clone()) {
        return Err(faults);
    }
    let written: Arc<str> = check.config().unwrap_or(&output.config).to_string().into();
    match plugin.start(context(output, &written, Services::detached(output.name.clone()))).await {
        Ok((worker, plan)) => {
            worker.close().await;
            Ok(AsksFor { plan, imports: plugin.imports() })
        }
        Err(StartError::Config { faults, .. }) => {
            let told = faults.into_iter().filter_map(|f| check.fault_of_component(output, &f.path, f.message));
            Err(Faults::of(told.collect())
                .unwrap_or_else(|| one(fault_at_plugin(output, "the plugin refuses its configuration", None))))
        }
        Err(error) => Err(one(fault_at_plugin(output, error.to_string(), None))),
    }
}

/// Asks an output's component about its configuration, or about what is left of it without what its schema refuses. None where nothing is
/// wrong with what could be asked, but that was not all. `is_whole`: the output is as it is written. `credentials`: all that are defined.
async fn check_output(
    output: &OutputConfig,
    plugin: &Plugin,
    is_whole: bool,
    credentials: Option<&[Credential]>,
) -> Result<Option<CheckedOutput>, Vec<Fault>> {
    let check = check_plugin_config(output, &plugin.descriptor().config_schema);
    let mut faults = check.faults.clone();
    let Some(config) = check.config() else { return if faults.is_empty() { Ok(None) } else { Err(faults) } };
    let config: Arc<str> = config.to_string().into();
    let is_whole = is_whole && check.is_whole();
    match plugin.start(context(output, &config, Services::detached_for(output))).await {
        Ok((worker, plan)) => {
            worker.close().await;
            if is_whole {
                let elsewhere = output.aws.endpoint.is_some() || may_name_an_endpoint();
                faults.extend(no_buckets(output, &plan, elsewhere).into_iter().filter_map(|message| {
                    // The option of the built-in component; of others only the host's view is known.
                    if built_in(output) {
                        check.fault_of_component(output, "/bucket", message)
                    } else {
                        Some(fault_at_plugin(output, message, None))
                    }
                }));
                faults.extend(ungranted(output, &plan, credentials));
                if faults.is_empty() {
                    faults.extend(imports::ungranted(output, plugin));
                }
            }
            match (faults.is_empty(), is_whole) {
                (true, true) => Ok(Some(CheckedOutput { plugin: plugin.clone(), plan, config })),
                (true, false) => Ok(None),
                (false, _) => Err(faults),
            }
        }
        Err(StartError::Config { faults: found, .. }) => {
            faults.extend(found.into_iter().filter_map(|f| check.fault_of_component(output, &f.path, f.message)));
            if faults.is_empty() { Ok(None) } else { Err(faults) }
        }
        Err(error @ StartError::Died { .. }) => {
            // It may have died of what was left out.
            if check.is_whole() {
                let message = match output.config_spans.shown_in(&error.to_string(), None, "") {
                    None => error.to_string(),
                    Some(hidden) => format!(
                        "the plugin of output {} died while it was configured, with words that would show what {} holds",
                        output.name,
                        hidden.named()
                    ),
                };
                faults.push(fault_at_plugin(output, message, None));
            }
            if faults.is_empty() { Ok(None) } else { Err(faults) }
        }
    }
}

pub(super) fn context(output: &OutputConfig, config: &Arc<str>, services: Arc<Services>) -> WorkerContext {
    WorkerContext { output: output.name.clone(), worker: 0, hostname: hostname(), config: config.clone(), services }
}

/// A component that cannot be used. Its name is not shown where it came from the environment. `dirs` are those of `plugins.dir`.
fn not_loaded(output: &OutputConfig, error: &LoadError, dirs: &[PathBuf]) -> Fault {
    let (hidden, pin_hidden) = (output.config_spans.plugin_hidden(), output.config_spans.pin_hidden());
    if let LoadError::OtherDigest { found, .. } = error {
        // A digest is no secret, but what the environment holds is not shown, whatever it is.
        let (message, help) = match hidden.is_empty() && pin_hidden.is_empty() {
            true => (error.headline(), error.help()),
            false => (
                format!("the plugin is pinned to another SHA-256 than that of what is there, which is {found}"),
                Some("put the component that was meant back, or pin this one".into()),
            ),
        };
        return fault_at_pin(output, message, help);
    }
    if hidden.is_empty() {
        return fault_at_plugin(output, error.headline(), not_found(output, error, dirs).or_else(|| error.help()));
    }
    // Where a name was looked for, and what it is like, would show it.
    let (cause, help) = match error {
        LoadError::Unknown { .. } => ("there is none of this name".to_owned(), None),
        LoadError::Untrusted { .. } => ("it is not signed by a trusted key".to_owned(), None),
        LoadError::Registry { .. } => ("it could not be had from its registry".to_owned(), None),
        _ => (error.cause(), error.help()),
    };
    fault_at_plugin(output, format!("the plugin that {} names: {cause}", hidden.named()), help)
}

/// What a path that leads nowhere may have meant, and where a relative one begins.
fn not_found(output: &OutputConfig, error: &LoadError, dirs: &[PathBuf]) -> Option<String> {
    let (LoadError::Read { cause, .. }, PluginSource::File(path)) = (error, &output.plugin_source) else { return None };
    let written = Path::new(&output.plugin);
    if cause.kind() != std::io::ErrorKind::NotFound || written.is_absolute() {
        return None;
    }
    // A built-in's name would mean the built-in.
    if let (Some(file), Some(name)) = (written.file_name(), written.file_stem().and_then(|name| name.to_str()))
        && written.extension().is_some_and(|extension| extension == "wasm")
        && !builtin::names().contains(&name)
        && dirs.iter().any(|dir| dir.join(file).is_file())
    {
        return Some(format!("what lies in plugins.dir is named without .wasm: write plugin: {name}"));
    }
    let begins = "a relative path begins at the configuration file's folder";
    if path != written && written.is_file() {
        let there = std::path::absolute(written).unwrap_or_else(|_| written.to_owned());
        return Some(format!("{begins}; the working directory has one: {}", there.display()));
    }
    Some(begins.to_owned())
}

fn built_in(output: &OutputConfig) -> bool {
    matches!(output.plugin_source, PluginSource::BuiltIn(_))
}

/// Why buckets of the plan cannot be Amazon's, where they would be. `elsewhere`: they may be on another server.
fn no_buckets(output: &OutputConfig, plan: &Plan, elsewhere: bool) -> Vec<String> {
    let region = output.aws.region.as_deref();
    let wrong = plan.s3.iter().filter(|_| !elsewhere).filter_map(|scope| no_name_at_amazon(&scope.bucket, region));
    wrong
        .map(|why| format!("the bucket's name {why}; if it is on another server, name that: aws: {{ endpoint: … }}"))
        .collect()
}

/// What the plan asks for and the configuration does not grant. `credentials` are all that are defined, where that is known.
fn ungranted(output: &OutputConfig, plan: &Plan, credentials: Option<&[Credential]>) -> Vec<Fault> {
    if built_in(output) {
        return vec![];
    }
    let s3 = output.grants.missing(&plan.s3).into_iter().map(|scope| {
        (
            format!("write to s3 bucket {:?}, keys {:?}…", scope.bucket, scope.key_prefix),
            format!("s3: [{{ bucket: {:?}, key_prefix: {:?} }}]", scope.bucket, scope.key_prefix),
        )
    });
    let log_groups =
        output.grants.missing_log_groups(&plan.log_groups).into_iter().map(|name| {
            (format!("write to log group {name:?}"), format!("cloudwatch_logs: [{{ log_group: {name:?} }}]"))
        });
    let http = output
        .grants
        .missing_http(&plan.http)
        .into_iter()
        .map(|destination| (format!("send requests to {destination:?}"), format!("http: [{destination:?}]")));
    let (undefined, defined): (Vec<String>, Vec<String>) = output
        .grants
        .missing_credentials(&plan.credentials)
        .into_iter()
        .map(|name| name.to_string())
        .partition(|name| credentials.is_some_and(|all| !all.iter().any(|credential| *credential.name == **name)));
    // A grant could name a faulty one, and does not come here with it.
    let defined = defined
        .into_iter()
        .filter(|_| credentials.is_some())
        .map(|name| (format!("use the credential {name:?}"), format!("credentials: [{name:?}]")));
    let undefined = undefined.into_iter().map(|name| not_defined(output, &name, credentials.unwrap_or_default()));
    let fault = |(what, grant): (String, String)| {
        let known = "write to s3 bucket, keys; log group; send requests to http https; use the credential";
        if let Some(hidden) = output.config_spans.shown_in(&what, None, known) {
            let message =
                format!("the plugin wants to reach something that {} names, and has no grant for it", hidden.named());
            let help = "if it may, add to the output: grants: { s3: [{ bucket: \"${…}\" }] }, { cloudwatch_logs: [{ log_group: \"${…}\" }] } or { http: [\"${…}\"] }";
            return fault_at_plugin(output, message, Some(help.into()));
        }
        let message = format!("the plugin wants to {what}, and has no grant for it");
        fault_at_plugin(output, message, Some(format!("if it may, add to the output: grants: {{ {grant} }}")))
    };
    s3.chain(log_groups).chain(http).chain(defined).map(fault).chain(undefined).collect()
}

/// A credential that a plan names, and the configuration does not define.
fn not_defined(output: &OutputConfig, name: &str, defined: &[Credential]) -> Fault {
    let what = format!("the plugin wants to use the credential {name:?}, and there is none of this name");
    let defined_where = where_credentials_are_defined(output.tenant.as_deref());
    let help = format!("{defined_where}, and add to the output: grants: {{ credentials: [{name:?}] }}");
    if let Some(hidden) = output.config_spans.shown_in(name, None, "") {
        let message = format!(
            "the plugin wants to use the credential that {} names, and there is none of this name",
            hidden.named()
        );
        let help = format!("{defined_where}, and add to the output: grants: {{ credentials: [\"${{…}}\"] }}");
        return fault_at_plugin(output, message, Some(help));
    }
    let names: Vec<&str> = defined.iter().map(|credential| &*credential.name).collect();
    let guess = nearest(name, &names).map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
    fault_at_plugin(output, format!("{what}{guess}"), Some(help))
}

/// A built-in component is granted what its configuration names; another one needs it in `grants`.
fn grants(output: &OutputConfig, plan: &Plan) -> GrantsConfig {
    if !built_in(output) {
        return output.grants.clone();
    }
    let group = |name: &String| LogGroupGrant { log_group: name.clone() };
    GrantsConfig {
        s3: plan.s3.clone(),
        cloudwatch_logs: plan.log_groups.iter().map(group).collect(),
        ..GrantsConfig::default()
    }
}

fn hostname() -> Arc<str> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".into() } else { name.into() }
}

/// Every output's queue, restored, in the configuration's order; and the sources' positions.
pub(super) fn queues(
    config: &Config,
    checked: &[CheckedOutput],
    ledger: &Ledger,
    recovery: &Recovery,
) -> Result<(Vec<Queue>, Vec<Position>), StateError> {
    let options = config.outputs.iter().zip(checked).map(|(output, checked)| queue_options(output, &checked.plan));
    ledger.restore(recovery, options.collect())
}

/// Sources whose records no output wants: they would be counted as dropped. Of one that takes in records of several tenants, those of one of
/// them are enough.
#[must_use]
pub fn unwanted_sources(config: &Config) -> Vec<Arc<str>> {
    let is_wanted_by = |tenant: Option<&str>, tag: &str| {
        let mut outputs = config.outputs.iter().filter(|output| output.tenant.as_deref() == tenant);
        outputs.any(|output| crate::intake::wants(&output.matches, tag))
    };
    let unwanted = |source: &&crate::config::SourceConfig| {
        // Which tags will be sent is not known.
        !source.kind.has_tags_of_its_own()
            && source.senders().into_iter().any(|sender| {
                let tenant = sender.or_else(|| crate::intake::claimant(config, &source.tag));
                !is_wanted_by(tenant, &source.tag)
            })
    };
    config.sources.iter().filter(unwanted).map(|source| source.name.clone()).collect()
}

/// Files in `plugins.dir` that no output can name, since a built-in has their name: `s3.wasm`.
#[must_use]
pub fn shadowed_plugins(config: &Config) -> Vec<String> {
    let files = builtin::names().iter().map(|name| format!("{name}.wasm"));
    files.filter(|file| config.plugins.dirs.iter().any(|dir| dir.join(file).is_file())).collect()
}

pub(super) fn queue_options(output: &OutputConfig, plan: &Plan) -> QueueOptions {
    let batch = &output.batch;
    QueueOptions {
        output: output.name.clone(),
        partition_by: plan.partition_by.clone(),
        in_order: plan.in_order,
        limits: BatchLimits {
            max_bytes: batch.max_bytes.or(plan.max_bytes).unwrap_or(DEFAULT_MAX_BYTES),
            max_records: batch.max_records.or(plan.max_records).unwrap_or(u64::from(u32::MAX)),
            max_age: batch.max_age.or(plan.max_age).unwrap_or(DEFAULT_MAX_AGE),
            record_overhead: plan.record_overhead,
        },
        max_bytes: output.queue.max_bytes,
        when_full: output.queue.when_full,
    }
}

/// What an output's component may call, and what it is granted.
pub(super) async fn services(
    output: &OutputConfig,
    config: &Config,
    checked: &CheckedOutput,
    state: &State,
    metrics: &Metrics,
) -> Result<Arc<Services>, String> {
    let services = Services::new(output, config, state.clone(), metrics.clone()).await?;
    services.grant(grants(output, &checked.plan));
    Ok(services)
}

/// An output's workers-to-be.
pub(super) fn setup(
    output: &OutputConfig,
    checked: &CheckedOutput,
    services: Arc<Services>,
    queue: &Queue,
    destinations: &mut Destinations,
    rooms: &Rooms,
    metrics: &Metrics,
) -> OutputSetup {
    OutputSetup {
        plugin: checked.plugin.clone(),
        context: context(output, &checked.config, services),
        workers: output.workers,
        queue: queue.clone(),
        retry: output.retry.clone(),
        quarantines: rooms.quarantines.clone(),
        on_quarantine: output.on_quarantine,
        destination: destinations.get(output.tenant.as_deref(), &destination_name(output, &checked.plan)),
        journal: rooms.journal.clone(),
        dead_letters: rooms.dead_letters.clone(),
        metrics: metrics.clone(),
        store_idle: STORE_IDLE,
    }
}

/// Starts every output's workers.
pub(super) async fn start(
    config: &Config,
    checked: Vec<CheckedOutput>,
    queues: &[Queue],
    destinations: &mut Destinations,
    rooms: &Rooms,
    metrics: &Metrics,
) -> Result<Vec<Placed>, String> {
    let mut outputs = vec![];
    for ((output, checked), queue) in config.outputs.iter().zip(checked).zip(queues) {
        let services = services(output, config, &checked, &rooms.state, metrics).await?;
        let at_work = Output::start(setup(output, &checked, services, queue, destinations, rooms, metrics));
        outputs.push(Placed { settings: output.clone(), checked, queue: queue.clone(), output: at_work });
    }
    Ok(outputs)
}

/// Outputs with the same name here share their back-off: a bucket at an endpoint throttles, not an output; CloudWatch Logs throttles an
/// account in a region, whichever log groups are written to.
///
/// Tenants share none: one that names another's bucket, or the same server, would hold up the other with its own failures.
fn destination_name(output: &OutputConfig, plan: &Plan) -> String {
    match &output.tenant {
        None => own_destination_name(output, plan),
        Some(tenant) => format!("{tenant}: {}", own_destination_name(output, plan)),
    }
}

fn own_destination_name(output: &OutputConfig, plan: &Plan) -> String {
    let AwsConfig { endpoint, region, role_arn, profile, .. } = &output.aws;
    let place = endpoint.as_deref().or(region.as_deref()).unwrap_or("aws");
    if let Some(scope) = plan.s3.first() {
        return format!("s3://{}@{place}", scope.bucket);
    }
    if !plan.log_groups.is_empty() {
        // Which account that is, the credentials say; without a word about them it is the same one for all.
        let account = role_arn.as_deref().or(profile.as_deref()).unwrap_or("default");
        return format!("cloudwatch-logs://{account}@{place}");
    }
    if let Some(destination) = plan.http.first() {
        // Such services limit an account or a token, and the credential is what tells them apart here.
        let credential = plan.credentials.first().map_or("", String::as_str);
        let destination = HttpDestination::parse(destination).map_or_else(|_| destination.clone(), |it| it.to_string());
        return format!("http {credential}@{destination}");
    }
    format!("output {}", output.name)
}

#[cfg(test)]
mod tests;
