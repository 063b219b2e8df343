//! `wharf plugin inspect`.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::super::{Ended, print};
use super::registry;
use crate::author::inspect::Inspection;
use crate::config::{Level, Limit, Limits};
use crate::plugin::{HostOptions, PluginHost, PluginSource};
use crate::registry::Reference;

const EXAMPLES: &str = "\
Examples:
  wharf plugin inspect ./my-output.wasm
  wharf plugin inspect s3                          a built-in
  wharf plugin inspect my-output --dir plugins     plugins/my-output.wasm
  wharf plugin inspect ./my-output.wasm --json | jq -r .sha256
  wharf plugin inspect oci://registry.example.com/team/my-output:1.2.0
  wharf plugin inspect ./my-output.wasm --against wharf.yaml --output live

The component is taken apart, and asked to describe itself; it reaches no file, no network and no
destination. One that this Wharf cannot use is shown as far as it can be read, with what is wrong
and what mends it. Exit codes: 0 this Wharf can use it, 1 it cannot.

--against configures it as an output of that file would, and shows side by side what it asks for
and what the output grants. Exit codes then: 0 all that it asks for is granted, 1 something is
missing, 78 the configuration is wrong.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct Args {
    /// A component's file, or the name of a built-in one or of one in --dir
    #[arg(value_name = "FILE|NAME")]
    plugin: String,
    /// A folder in which a name is looked for; may be repeated
    #[arg(long = "dir", value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// One JSON object
    #[arg(long, conflicts_with = "against")]
    json: bool,
    /// Hold it against an output of this configuration
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Which output; may be left out where one alone has this component
    #[arg(long, value_name = "NAME", requires = "against")]
    output: Option<String>,
    #[command(flatten)]
    registry: registry::RegistryArgs,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let source = source(&args.plugin, &args.dirs)?;
    if let Some(against) = &args.against {
        return super::against::run(&source, against, args.output.as_deref());
    }
    let limits = Limits::default().with(Limit::DeliverTimeout, 60_000, Level::Plugins);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let inspection = runtime.block_on(async {
        let host = PluginHost::new(HostOptions::new(crate::author::desk_cache(), limits, 1))?
            .with_registry(args.registry.registry());
        Inspection::of(&source, &host).await
    })?;
    match args.json {
        true => print(&format!("{}\n", inspection.to_json()))?,
        false => print(&inspection.to_string())?,
    }
    match inspection.problem() {
        None => Ok(()),
        Some(_) => Err(Ended::Failed(format!("this Wharf cannot use {}", args.plugin))),
    }
}

/// A file of this name that is there is meant, whatever its name looks like; but not in a built-in's place.
fn source(written: &str, dirs: &[PathBuf]) -> Result<PluginSource, Ended> {
    if Reference::is_meant(written) {
        return registry::reference(written).map(PluginSource::Registry);
    }
    Ok(match PluginSource::of(written, Path::new(""), dirs) {
        PluginSource::Named { .. } if Path::new(written).is_file() => PluginSource::File(written.into()),
        source => source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_in_the_folders_and_a_file_is_a_file() {
        let dirs = [PathBuf::from("plugins")];
        for (written, expected) in [
            ("s3", PluginSource::BuiltIn("s3".into())),
            ("./s3", PluginSource::File("./s3".into())),
            ("own.wasm", PluginSource::File("own.wasm".into())),
            ("own", PluginSource::Named { name: "own".into(), dirs: dirs.to_vec() }),
            // This crate's own manifest, where the tests run.
            ("Cargo.toml", PluginSource::File("Cargo.toml".into())),
        ] {
            assert_eq!(source(written, &dirs).unwrap(), expected, "{written}");
        }
    }
}
