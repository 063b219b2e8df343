//! `wharf validate`: everything that can be known of a configuration without touching disk, network or destinations.

use std::collections::HashMap;
use std::sync::Arc;

use clap::Args as ClapArgs;

use super::table::table;
use super::{ConfigFile, Ended, counted, print};
use crate::capability::Services;
use crate::config::units::{format_duration, format_size};
use crate::config::{
    Config, Fault, Faults, OutputConfig, S3Grant, SourceKind, check_plugin_config, fault_at, fault_at_plugin,
};
use crate::plugin::{HostOptions, LoadError, Plan, Plugin, PluginHost, PluginSource, StartError, WorkerContext};

const EXAMPLES: &str = "\
Examples:
  wharf validate -c wharf.yaml
  BUCKET=test wharf validate -c wharf.yaml    what ${BUCKET} in the file reads

Nothing is made, opened for writing, or asked over the network. Each output's component is loaded and asked whether
it likes its configuration. Exit codes: 0 valid, 78 faults (all of them on standard error, each with
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
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let plans = runtime.block_on(async {
        let host = PluginHost::new(HostOptions {
            cache_dir: None,
            max_memory_bytes: config.plugins.max_memory_bytes,
            cpu_per_call: config.plugins.cpu_per_call,
            deliver_timeout: config.plugins.deliver_timeout,
            workers: 1,
        })?;
        check_outputs(&config, &host).await.map_err(Ended::Config)
    })?;
    print(&summary(&args.file.config.display().to_string(), &config, &plans))
}

/// Loads every output's component and lets it check its configuration; a component that several outputs use is loaded once. Gives each output's plan.
///
/// # Errors
/// Every fault of every output, with its place.
pub async fn check_outputs(config: &Config, host: &PluginHost) -> Result<Vec<Plan>, Faults> {
    let mut loaded: HashMap<String, Result<Plugin, (String, Option<String>)>> = HashMap::new();
    let mut faults = vec![];
    let mut plans = vec![];
    for output in &config.outputs {
        if !loaded.contains_key(&output.plugin) {
            let plugin = host.load(&output.plugin_source()).await.map_err(|e| explained(&e));
            loaded.insert(output.plugin.clone(), plugin);
        }
        match loaded.get(&output.plugin) {
            Some(Ok(plugin)) => match check_output(output, plugin).await {
                Ok(plan) => plans.push(plan),
                Err(found) => faults.extend(found),
            },
            Some(Err((message, help))) => faults.push(fault_at_plugin(output, message.clone(), help.clone())),
            None => {}
        }
    }
    match Faults::of(faults) {
        None => Ok(plans),
        Some(faults) => Err(faults),
    }
}

async fn check_output(output: &OutputConfig, plugin: &Plugin) -> Result<Plan, Vec<Fault>> {
    let faults = check_plugin_config(output, &plugin.descriptor().config_schema);
    if !faults.is_empty() {
        return Err(faults);
    }
    let context = WorkerContext {
        output: output.name.clone(),
        worker: 0,
        hostname: hostname(),
        config: output.config.to_string().into(),
        services: Services::detached(output.name.clone()),
    };
    match plugin.start(context).await {
        Ok((worker, plan)) => {
            worker.close().await;
            let faults = ungranted(output, &plan.s3);
            if faults.is_empty() { Ok(plan) } else { Err(faults) }
        }
        Err(StartError::Config { faults, .. }) => {
            Err(faults.into_iter().map(|f| fault_at(output, &f.path, f.message)).collect())
        }
        Err(error @ StartError::Died { .. }) => Err(vec![fault_at_plugin(output, error.to_string(), None)]),
    }
}

fn explained(error: &LoadError) -> (String, Option<String>) {
    let help = match error {
        LoadError::Read { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => {
            Some("a relative path begins at the working directory".to_owned())
        }
        _ => None,
    };
    (error.to_string(), help)
}

/// A built-in component is granted what its configuration names; another one needs it in `grants`.
fn ungranted(output: &OutputConfig, wanted: &[S3Grant]) -> Vec<Fault> {
    if matches!(output.plugin_source(), PluginSource::BuiltIn(_)) {
        return vec![];
    }
    let missing = output.grants.missing(wanted);
    let fault = |scope: &&S3Grant| {
        let message = format!(
            "the plugin wants to write to s3 bucket {:?}, keys {:?}…, and has no grant for it",
            scope.bucket, scope.key_prefix
        );
        let help = format!(
            "if it may, add to the output: grants: {{ s3: [{{ bucket: {:?}, key_prefix: {:?} }}] }}",
            scope.bucket, scope.key_prefix
        );
        fault_at_plugin(output, message, Some(help))
    };
    missing.iter().map(fault).collect()
}

fn hostname() -> Arc<str> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".into() } else { name.into() }
}

fn summary(file: &str, config: &Config, plans: &[Plan]) -> String {
    let sources: Vec<Vec<String>> = config
        .sources
        .iter()
        .map(|s| {
            let (kind, what) = match &s.kind {
                SourceKind::Tail(tail) => ("tail", tail.paths.join(" ")),
                SourceKind::Stdin => ("stdin", String::new()),
                SourceKind::Http(http) => ("http", http.listen.to_string()),
                SourceKind::Generate(g) => {
                    ("generate", g.rate.map_or_else(|| "as fast as it goes".into(), |r| format!("{r}/s")))
                }
            };
            vec![s.name.to_string(), kind.into(), s.tag.to_string(), what]
        })
        .collect();
    let outputs: Vec<Vec<String>> = config
        .outputs
        .iter()
        .zip(plans)
        .map(|(o, plan)| {
            let bytes = o.batch.max_bytes.or(plan.max_bytes).map_or_else(String::new, format_size);
            let age = o.batch.max_age.or(plan.max_age).map_or_else(String::new, format_duration);
            let to: Vec<String> = plan.s3.iter().map(|s| format!("s3://{}/{}", s.bucket, s.key_prefix)).collect();
            let batch = [bytes, age].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(" or ");
            vec![o.name.to_string(), o.plugin.clone(), o.matches.join(" "), o.workers.to_string(), batch, to.join(" ")]
        })
        .collect();
    format!(
        "{file} is valid: {}, {}\n\n{}\n{}",
        counted(sources.len(), "source", "sources"),
        counted(outputs.len(), "output", "outputs"),
        table(&["SOURCE", "TYPE", "TAG", "FROM"], &sources),
        table(&["OUTPUT", "PLUGIN", "MATCH", "WORKERS", "BATCH", "TO"], &outputs),
    )
}
