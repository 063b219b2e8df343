//! What a configuration makes: outputs, sources, and the routes between them. All else of a running Wharf is [`Ground`], which stays as long as
//! the process.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::capability::Services;
use crate::config::{Config, OutputConfig, SourceConfig, SourceKind, tenant_in};
use crate::intake::{Intake, Routing};
use crate::output::{Destinations, Output, OutputHandle};
use crate::plugin::PluginHost;
use crate::queue::Queue;
use crate::registry::Reference;
use crate::source::{self, Running, SourceEnded, SourceError};
use crate::telemetry::Metrics;

use super::status::Board;
use super::watch::Watched;
use super::{CheckedOutput, Rooms, outputs};

/// What lives as long as the process, whatever the configuration says.
pub(super) struct Ground {
    /// The configuration's file, where it is one.
    pub(super) file: Option<PathBuf>,
    pub(super) host: PluginHost,
    /// Workers that the host has room for, old ones beside new ones.
    pub(super) most_workers: u32,
    pub(super) rooms: Rooms,
    pub(super) metrics: Metrics,
    pub(super) board: Arc<Board>,
    pub(super) intake: Intake,
    pub(super) destinations: Mutex<Destinations>,
    /// Components from registries that the configuration at work uses.
    pub(super) components: watch::Sender<Vec<Reference>>,
    pub(super) watched: Watched,
}

/// What a configuration makes. The outputs are in its order.
pub(super) struct Fleet {
    pub(super) config: Config,
    pub(super) outputs: Vec<Placed>,
    pub(super) sources: Vec<Fed>,
}

/// An output at work.
pub(super) struct Placed {
    pub(super) settings: OutputConfig,
    pub(super) checked: CheckedOutput,
    pub(super) queue: Queue,
    pub(super) output: Output,
}

/// A source at work.
pub(super) struct Fed {
    pub(super) settings: SourceConfig,
    /// Of the files that it read when it started.
    files: [u8; 32],
    stop: CancellationToken,
    pub(super) running: Running,
}

impl Ground {
    /// An output's workers-to-be.
    pub(super) fn setup(
        &self,
        settings: &OutputConfig,
        checked: &CheckedOutput,
        services: Arc<Services>,
        queue: &Queue,
    ) -> crate::output::OutputSetup {
        let mut destinations = self.destinations.lock().unwrap_or_else(PoisonError::into_inner);
        outputs::setup(settings, checked, services, queue, &mut destinations, &self.rooms, &self.metrics)
    }

    /// Starts a source at the place where it, or one of its name, was. It takes nothing in before `opened`.
    pub(super) async fn feed(&self, settings: &SourceConfig, opened: CancellationToken) -> Result<Fed, String> {
        self.intake
            .find_positions(&settings.name)
            .await
            .map_err(|cause| format!("source {}: where it was could not be read: {cause}", settings.name))?;
        Fed::start(settings, &self.intake.opened_by(opened)).map_err(|cause| cause.to_string())
    }
}

impl Fed {
    pub(super) fn start(settings: &SourceConfig, intake: &Intake) -> Result<Self, SourceError> {
        let stop = CancellationToken::new();
        let files = files_of(settings);
        let running = source::spawn(settings.clone(), intake.for_source(&settings.name), stop.clone())?;
        Ok(Self { settings: settings.clone(), files, stop, running })
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.settings.name
    }

    /// From now on it takes nothing new in.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// What of it is another, where it is to be as `new` says; also where it failed, and may be better when it begins anew.
    pub(super) fn differs(&self, new: &SourceConfig) -> Vec<&'static str> {
        let mut keys = super::difference::of_source(&self.settings, new);
        if keys.is_empty() && self.files != files_of(new) {
            keys.push("tls");
        }
        if matches!(self.running.ended_now(), Some(SourceEnded::Failed(_))) {
            keys.push("failed before");
        }
        keys
    }

    /// Whether both cannot listen at the same time.
    pub(super) fn is_in_the_way_of(&self, new: &SourceConfig) -> bool {
        let unix = |kind: &SourceKind| match kind {
            SourceKind::Forward(forward) => forward.unix_path.clone(),
            SourceKind::Syslog(syslog) => syslog.unix_path.clone(),
            _ => None,
        };
        let ports = |kind: &SourceKind| -> HashSet<u16> {
            let udp = match kind {
                SourceKind::Syslog(syslog) => syslog.udp,
                _ => None,
            };
            let all = kind.listens().into_iter().map(|(_, address)| address).chain(udp);
            all.map(|address| address.port()).filter(|port| *port != 0).collect()
        };
        let (old, new) = (&self.settings.kind, &new.kind);
        !ports(old).is_disjoint(&ports(new)) || (unix(old).is_some() && unix(old) == unix(new))
    }
}

/// A digest of the files that a source reads when it starts.
fn files_of(settings: &SourceConfig) -> [u8; 32] {
    let mut digest = Sha256::new();
    let tls = match &settings.kind {
        SourceKind::Forward(forward) => forward.tls.as_ref(),
        SourceKind::Otlp(otlp) => otlp.tls.as_ref(),
        SourceKind::Syslog(syslog) => syslog.tls.as_ref(),
        _ => None,
    };
    if let Some(tls) = tls {
        for file in [Some(&tls.cert_file), Some(&tls.key_file), tls.client_ca_file.as_ref()].into_iter().flatten() {
            digest.update(std::fs::read(file).unwrap_or_default());
        }
    }
    digest.finalize().into()
}

impl Fleet {
    pub(super) fn handles(&self) -> Vec<OutputHandle> {
        self.outputs.iter().map(|placed| placed.output.handle()).collect()
    }

    /// The routes that a configuration makes to these queues, which are in its outputs' order.
    pub(super) fn routing(config: &Config, queues: Vec<Queue>) -> Routing {
        Routing::of(config, queues)
    }
}

/// Whether `--discard` with these names means this output: `archive` and `acme/archive` are outputs, `acme/` is a tenant with all of its outputs. An
/// output of the operator and a tenant may have one name, so a tenant's alone is none.
pub(super) fn is_discarded(discard: &[String], output: &str) -> bool {
    let means = |name: &String| match name.strip_suffix('/') {
        Some(tenant) => tenant_in(output) == Some(tenant),
        None => name == output,
    };
    discard.iter().any(means)
}

/// What somebody may have meant with a name that means none of these outputs.
pub(super) fn meant<'a>(name: &str, outputs: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let is_tenant = outputs.into_iter().any(|output| tenant_in(output) == Some(name));
    is_tenant.then(|| format!("{name} is a tenant: write --discard {name}/ for all of its outputs"))
}

/// Says that what is to be dropped is configured, where one of these outputs is meant.
pub(super) fn is_configured<'a>(discard: &[String], outputs: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let meant = outputs.into_iter().find(|output| is_discarded(discard, output))?;
    Some(format!("output {meant} is configured, and its records are delivered; remove it from the configuration first"))
}

/// Those of the names that mean none of these outputs.
pub(super) fn mean_nothing<'a>(discard: &'a [String], outputs: &HashSet<String>) -> Vec<&'a String> {
    let means = |name: &&String| outputs.iter().any(|output| is_discarded(std::slice::from_ref(*name), output));
    discard.iter().filter(|name| !means(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_configured_is_not_discarded_and_that_is_said() {
        let configured = ["archive", "globex/live"];
        let told = |name: &str| is_configured(&[name.to_owned()], configured);
        let of = |name: &str| {
            format!(
                "output {name} is configured, and its records are delivered; remove it from the configuration first"
            )
        };
        assert_eq!(
            (told("globex/"), told("archive"), told("gone/")),
            (Some(of("globex/live")), Some(of("archive")), None)
        );
    }

    #[test]
    fn an_output_is_discarded_by_its_name_and_a_tenants_are_by_the_tenants_name_with_a_slash() {
        let outputs = ["acme", "archive", "acme/archive", "acme/live", "globex/archive"];
        for (name, discarded) in [
            ("acme", &["acme"][..]),
            ("acme/", &["acme/archive", "acme/live"]),
            ("archive", &["archive"]),
            ("acme/archive", &["acme/archive"]),
            ("globex", &[]),
            ("globex/", &["globex/archive"]),
            ("/", &[]),
            ("", &[]),
            ("acme/archive/", &[]),
            ("acm", &[]),
        ] {
            let asked = [name.to_owned()];
            let found: Vec<&str> = outputs.into_iter().filter(|output| is_discarded(&asked, output)).collect();
            assert_eq!(found, discarded, "{name}");
            let nothing = mean_nothing(&asked, &outputs.map(str::to_owned).into());
            assert_eq!(nothing.is_empty(), !discarded.is_empty(), "{name}");
        }
        let meant = |name| meant(name, outputs);
        assert_eq!(
            meant("globex").as_deref(),
            Some("globex is a tenant: write --discard globex/ for all of its outputs")
        );
        assert_eq!((meant("archive"), meant("nobody")), (None, None));
    }
}
