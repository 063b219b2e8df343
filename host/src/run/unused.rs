//! Components from registries that no output of the configuration uses any more are removed: after the start, after each reload, and once a day.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::plugin::PluginSource;
use crate::registry::{Reference, Registry, Removed};

/// How often it is looked, where nothing changes: what is in use is marked as such, and the time of the rest passes.
const EVERY: Duration = Duration::from_secs(24 * 3600);

/// What the outputs of a configuration use.
pub(super) fn in_use(config: &Config) -> Vec<Reference> {
    let used = |source: &PluginSource| match source {
        PluginSource::Registry(reference) => Some(reference.clone()),
        PluginSource::BuiltIn(_) | PluginSource::File(_) | PluginSource::Named { .. } => None,
    };
    config.outputs.iter().filter_map(|output| used(&output.plugin_source)).collect()
}

/// Looks until it is told to stop.
pub(super) async fn run(registry: Registry, mut in_use: watch::Receiver<Vec<Reference>>, stop: CancellationToken) {
    loop {
        let used = in_use.borrow_and_update().clone();
        match registry.remove_unused(used).await {
            Ok(Removed { files: 0, .. }) => {}
            Ok(Removed { files, bytes }) => {
                tracing::info!(files, bytes, "components from registries that no output uses any more were removed");
            }
            Err(cause) => tracing::warn!(%cause, "components that no output uses any more could not be looked for"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            changed = in_use.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_of_the_operator_and_of_tenants_is_in_use() {
        let text = "outputs:\n  own: { plugin: s3, match: a }\n  one: { plugin: \"oci://r.example/one:1\", match: a }\n\
                    tenants:\n  acme: { outputs: { two: { plugin: \"oci://r.example/two:2\", match: \"*\" } } }\n";
        let config = Config::parse(text, "wharf.yaml".as_ref(), &|_| None).unwrap();
        let names: Vec<String> = in_use(&config).iter().map(ToString::to_string).collect();
        assert_eq!(names, ["oci://r.example/one:1", "oci://r.example/two:2"]);
    }
}
