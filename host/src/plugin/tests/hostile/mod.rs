//! A component that attacks its host and its neighbours: one test for each attack. After each the class is right, the next batch of the same
//! output is delivered, and so is one of a neighbour that was at work all the time, in another tenant, on the same engine.
//!
//! docs/plugins/limits.md has them in a table, and a test here holds it against what there is.

mod answers;
mod execution;
mod memory;
mod network;
mod objects;
mod state;
mod telemetry;

use std::net::{IpAddr, Ipv4Addr};

use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use super::*;
use crate::capability::http::{Credentials, Lookup, Network};
use crate::config::{HttpConfig, Level};
use crate::plugin::{Death, DeathCause, StartError};

/// Class of a failure of the component's own.
const GUEST_ERROR: &str = crate::plugin::GUEST_ERROR;
/// Class of one where something was asked for that was not granted.
const REFUSED: &str = crate::plugin::REFUSED;

/// One host for all attacks, with the attacker and an honest component loaded.
async fn host() -> &'static (PluginHost, Plugin, Plugin) {
    static LOADED: OnceCell<(PluginHost, Plugin, Plugin)> = OnceCell::const_new();
    let load = async || {
        let options = options().with(Limit::Memory, 96 << 20);
        let host = PluginHost::new(HostOptions { workers: 64, ..options }).unwrap();
        let hostile = host.load(&PluginSource::File(component().with_file_name("hostile.wasm"))).await.unwrap();
        let honest = host.load(&PluginSource::File(component().to_owned())).await.unwrap();
        (host, hostile, honest)
    };
    LOADED.get_or_init(load).await
}

/// A hostile output of one tenant, and an honest one of another.
struct Stage {
    hostile: Bench,
    neighbour: Bench,
}

/// An output's services, granted nothing yet.
fn services(bench: &Bench, output: &str, limits: Limits, aws: AwsConfig) -> Arc<Services> {
    let credentials = aws_credential_types::Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
    let aws = Connection::with_credentials(aws, credentials);
    // Names of these tests lead inside.
    let credentials = Credentials::new(vec![], Arc::clone(&aws));
    let wire = Network::looking_up_with(HttpConfig::default(), credentials, Arc::new(Inside));
    Services::over_within(output.into(), limits, aws, wire, bench.state.clone(), bench.metrics.clone())
}

/// Every name leads to this machine, and to the cloud's metadata: whoever owns a name lets it lead where he wants, and elsewhere a moment later.
#[derive(Debug)]
struct Inside;

impl Lookup for Inside {
    fn look_up(&self, _: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let addresses = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(169, 254, 169, 254)];
        Box::pin(async move { Ok(addresses.map(IpAddr::from).to_vec()) })
    }
}

fn usual() -> Limits {
    let limits = Limits::default().with(Limit::Memory, MEMORY, Level::Output);
    // The host's own work in a debug build counts as well.
    limits.with(Limit::CpuPerCall, 30_000, Level::Output)
}

impl Stage {
    async fn new() -> Self {
        Self::with(&[]).await
    }

    /// With these limits for the hostile output, as if each were said there.
    async fn with(limits: &[(Limit, u64)]) -> Self {
        Self::reaching(limits, AwsConfig::default()).await
    }

    async fn reaching(limits: &[(Limit, u64)], aws: AwsConfig) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let (_, hostile, honest) = host().await;
        let rooms = Bench::with_plugin(honest.clone(), AwsConfig::default()).await;
        // Tenants share what they have by their name: each stage has two of its own.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let limits = limits.iter().fold(usual(), |limits, (limit, amount)| limits.with(*limit, *amount, Level::Output));
        let attacker = services(&rooms, &format!("evil{number}/hostile"), limits, aws);
        let other = services(&rooms, &format!("good{number}/fine"), usual(), AwsConfig::default());
        other.grant(GrantsConfig { s3: vec![grant("others", "")], ..GrantsConfig::default() });
        let stage =
            Self { hostile: rooms.beside(attacker, hostile.clone()), neighbour: rooms.beside(other, honest.clone()) };
        stage.grant(GrantsConfig::default());
        stage
    }

    /// What the hostile output may touch, beside its own place in a bucket.
    fn grant(&self, grants: GrantsConfig) {
        self.hostile.services.grant(GrantsConfig { s3: vec![grant("bucket", "logs/")], ..grants });
    }

    async fn start(&self, config: &str) -> Result<Worker, StartError> {
        self.hostile.plugin.start(self.hostile.context(config)).await.map(|(worker, _)| worker)
    }

    async fn worker(&self) -> Worker {
        self.start("{}").await.unwrap()
    }

    /// What becomes of a batch that tells the hostile component to do this.
    async fn attack(&self, what: &str) -> Outcome {
        let witness = self.witness().await;
        let batch = self.hostile.batch(what, &["a", "b", "c"]).await;
        let (outcome, worker) = self.worker().await.deliver(batch).await;
        assert_eq!(worker.is_none(), matches!(outcome, Outcome::Died(_)), "{outcome:?}");
        self.all_is_well(worker, witness).await;
        outcome
    }

    /// It ends its store, for this reason.
    async fn dies(&self, what: &str, cause: DeathCause) -> Death {
        let Outcome::Died(death) = self.attack(what).await else { panic!("{what}: it lives") };
        assert_eq!(death.cause, cause, "{}", death.message);
        assert_eq!(self.failures(cause.as_str()), 1);
        death
    }

    /// It is told no, and lives: what it was told.
    async fn told(&self, what: &str, class: &str) -> String {
        let outcome = self.attack(what).await;
        let Outcome::Failed(failure) = outcome else { panic!("{what}: {outcome:?}") };
        assert_eq!(self.failures(class), 1, "{}", failure.message);
        failure.message
    }

    /// It has no effect, and is not punished.
    async fn is_harmless(&self, what: &str) {
        assert_eq!(self.attack(what).await, Outcome::Delivered { rejected: vec![] }, "{what}");
    }

    /// A worker of the neighbour, which is at work before the attack.
    async fn witness(&self) -> Worker {
        let context = self.neighbour.context("{}");
        self.neighbour.plugin.start(context).await.unwrap().0
    }

    /// The next batch of the same output is delivered, on the same store if it lives, and one of the neighbour.
    async fn all_is_well(&self, worker: Option<Worker>, witness: Worker) {
        let next = match worker {
            Some(worker) => worker,
            None => self.worker().await,
        };
        for (bench, worker) in [(&self.hostile, next), (&self.neighbour, witness)] {
            let (after, worker) = worker.deliver(bench.batch("ok", &["a"]).await).await;
            assert_eq!(after, Outcome::Delivered { rejected: vec![] }, "{}", bench.output);
            worker.unwrap().close().await;
        }
    }

    /// Failures of the hostile output of this class.
    fn failures(&self, class: &str) -> u64 {
        self.count("plugin_failures", &format!(",class=\"{class}\""))
    }

    fn count(&self, metric: &str, labels: &str) -> u64 {
        let (tenant, output) = self.hostile.output.split_once('/').unwrap();
        let begins = format!("wharf_output_{metric}_total{{output=\"{output}\",tenant=\"{tenant}\"{labels}}} ");
        let text = self.hostile.metrics.render();
        text.lines().find_map(|line| line.strip_prefix(&begins)).map_or(0, |value| value.parse().unwrap())
    }

    /// Where the hostile output's own limits are said.
    fn place(&self, limit: Limit) -> String {
        self.hostile.services.limits().place(limit, &self.hostile.output)
    }
}

/// Every test of these files is in the table of docs/plugins/limits.md, and nothing else is.
#[test]
fn the_documentation_has_every_attack() {
    let files = [
        include_str!("answers.rs"),
        include_str!("execution.rs"),
        include_str!("memory.rs"),
        include_str!("network.rs"),
        include_str!("objects.rs"),
        include_str!("state.rs"),
        include_str!("telemetry.rs"),
    ];
    let tests =
        files.iter().flat_map(|text| text.split("async fn ").skip(1)).filter_map(|rest| rest.split_once("() {"));
    let tests: std::collections::BTreeSet<&str> = tests.map(|(name, _)| name).collect();
    let text = include_str!("../../../../../docs/plugins/limits.md");
    let (_, attacks) = text.split_once("\n## Attacks\n").unwrap();
    let told = attacks.lines().filter_map(|line| line.strip_suffix("` |")?.rsplit_once('`')).map(|(_, name)| name);
    assert_eq!(told.collect::<std::collections::BTreeSet<_>>(), tests);
    assert!(tests.len() >= 40, "{}", tests.len());
}
