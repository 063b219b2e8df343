//! `wharf plugin run`.

use std::io::Read as _;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Ended, print};
use crate::author::desk_cache;
use crate::author::trial::{Grant, Once, OnceError, is_json, once};
use crate::config::AwsConfig;
use crate::plugin::{PluginSource, builtin};

const EXAMPLES: &str = "\
Examples:
  echo hello | wharf plugin run dist/my.wasm --config config.yaml --grant http=https://a.example
  wharf plugin run dist/my.wasm --config '{\"url\": \"http://127.0.0.1:8080\"}' --grant all lines.txt
  wharf dev-aws &    then
  wharf plugin run s3 --config '{\"bucket\": \"my-bucket\"}' \\
    --aws-endpoint http://127.0.0.1:4566 lines.txt

One real run, each batch tried once, to the real destination: what was asked of it, and how each
batch ended. Exit codes: 0 every record is delivered, 1 not.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The component, or the name of a built-in one
    #[arg(value_name = "FILE")]
    plugin: String,
    /// What it is given, a record a line; standard input where there is none. JSON lines where its name ends in .ndjson, .jsonl or .json
    #[arg(value_name = "RECORDS")]
    records: Option<PathBuf>,
    /// Its configuration: a YAML file, or JSON
    #[arg(long, value_name = "FILE|JSON", default_value = "{}")]
    config: String,
    /// What it may touch: s3=BUCKET/PREFIX, cloudwatch_logs=GROUP, http=https://HOST, credential=NAME, or all that it asks for; may be repeated
    #[arg(long = "grant", value_name = "GRANT")]
    grants: Vec<String>,
    /// A file with credentials: as in a configuration
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
    /// An endpoint for all AWS services, such as that of `wharf dev-aws`
    #[arg(long, value_name = "URL")]
    aws_endpoint: Option<String>,
    /// The AWS region; AWS_REGION where it is left out
    #[arg(long, value_name = "NAME")]
    aws_region: Option<String>,
    /// The records are JSON lines
    #[arg(long)]
    json: bool,
    /// The records' tag
    #[arg(long, value_name = "TAG", default_value = "test")]
    tag: String,
    /// Records of a batch; all where it is left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_records: Option<u64>,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let built_in = builtin::names().contains(&args.plugin.as_str());
    let plugin = match built_in {
        true => PluginSource::BuiltIn(args.plugin.clone()),
        false => PluginSource::File(args.plugin.clone().into()),
    };
    // A built-in component is granted what its configuration names, as in an output.
    let all = args.grants.iter().any(|grant| grant == "all") || (built_in && args.grants.is_empty());
    let grants = match all {
        true => None,
        false => Some(args.grants.iter().map(|text| granted(text)).collect::<Result<_, _>>()?),
    };
    let aws =
        AwsConfig { endpoint: args.aws_endpoint.clone(), region: args.aws_region.clone(), ..AwsConfig::default() };
    let run = Once {
        plugin,
        config: args.config.clone(),
        grants,
        credentials: args.credentials.clone(),
        aws,
        records: records(args)?,
        json: args.json || args.records.as_deref().is_some_and(is_json),
        tag: args.tag.clone(),
        max_records: args.max_records,
        cache: desk_cache(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match runtime.block_on(once(&run)) {
        Ok(ran) => {
            print(&format!("{}\n{}", ran.told(), ran.summary()))?;
            if ran.is_delivered() { Ok(()) } else { Err(Ended::Failed(undelivered(&ran.missing_grants()))) }
        }
        Err(OnceError::Config(faults)) => Err(Ended::Config(faults)),
        Err(error) => Err(error.into()),
    }
}

fn granted(text: &str) -> Result<Grant, Ended> {
    text.parse().map_err(|what| Ended::Failed(format!("--grant {text}: {what}")))
}

fn undelivered(missing: &[String]) -> String {
    let failed = "not everything was delivered";
    match missing {
        [] => failed.to_owned(),
        missing => format!("{failed}\n    help: give {}, or --grant all for what it asks for", missing.join(" ")),
    }
}

fn records(args: &Args) -> Result<Vec<u8>, Ended> {
    let failed = |what: &str, cause: std::io::Error| Ended::Failed(format!("{what} cannot be read: {cause}"));
    match &args.records {
        Some(path) => std::fs::read(path).map_err(|cause| failed(&path.display().to_string(), cause)),
        None => {
            let mut bytes = vec![];
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map(|_| bytes).map_err(|cause| failed("standard input", cause))
        }
    }
}
