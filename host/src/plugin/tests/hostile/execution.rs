//! It does not end, or ends itself, in each of its exports.

use super::*;
use crate::plugin::LoadError;
use crate::plugin::tests::odd::{Handmade, handmade};

const QUICK: &[(Limit, u64)] = &[(Limit::CpuPerCall, 100)];

/// Loads a component by hand; what that comes to.
pub(super) async fn load(what: &Handmade<'_>) -> Result<Plugin, LoadError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("handmade.wasm");
    std::fs::write(&path, handmade(what)).unwrap();
    let (_, hostile, _) = host().await;
    let quick = options().with(Limit::CpuPerCall, 100);
    let host = PluginHost::new(HostOptions { cache_dir: None, ..quick }).unwrap();
    let loaded = host.load(&PluginSource::File(path)).await;
    // Whatever it did, the engine goes on.
    assert_eq!(hostile.descriptor().name, "hostile");
    loaded
}

fn refusal(loaded: Result<Plugin, LoadError>) -> String {
    loaded.unwrap_err().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn spinning_in_deliver_is_ended_by_its_cpu() {
    let stage = Stage::with(QUICK).await;
    let death = stage.dies("spin", DeathCause::CpuLimit).await;
    let limit = death.limit.unwrap();
    assert_eq!((limit.name, limit.limit), (stage.place(Limit::CpuPerCall), 100));
    assert!(limit.current >= 100, "{}", limit.current);
}

#[tokio::test(flavor = "multi_thread")]
async fn copying_memory_for_ever_is_ended_by_its_cpu() {
    Stage::with(QUICK).await.dies("copy_for_ever", DeathCause::CpuLimit).await;
}

async fn dies_while_it_is_configured(attack: &str, cause: DeathCause) {
    let stage = Stage::with(QUICK).await;
    let witness = stage.witness().await;
    let Err(StartError::Died { death, .. }) = stage.start(&format!(r#"{{"configure":"{attack}"}}"#)).await else {
        panic!("{attack}: it lives")
    };
    assert_eq!(death.cause, cause);
    stage.all_is_well(None, witness).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spinning_in_configure_is_ended_by_its_cpu() {
    dies_while_it_is_configured("spin", DeathCause::CpuLimit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_configure_is_told_and_starts_nothing() {
    dies_while_it_is_configured("trap", DeathCause::Trap).await;
}

/// What becomes of a batch that is given up.
async fn abandoned(attack: &str, class: &str) {
    let stage = Stage::with(QUICK).await;
    let witness = stage.witness().await;
    let worker = stage.worker().await.abandon(stage.hostile.batch(attack, &["a"]).await).await;
    assert!(worker.is_none());
    assert_eq!(stage.failures(class), 1);
    stage.all_is_well(None, witness).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spinning_in_abandon_is_ended_by_its_cpu() {
    abandoned("spin", "cpu_limit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_abandon_costs_its_store() {
    abandoned("trap", "trap").await;
}

async fn closed(attack: &str, class: &str) {
    let stage = Stage::with(QUICK).await;
    let witness = stage.witness().await;
    stage.start(&format!(r#"{{"close":"{attack}"}}"#)).await.unwrap().close().await;
    assert_eq!(stage.failures(class), 1);
    stage.all_is_well(None, witness).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn spinning_in_close_is_ended_by_its_cpu() {
    closed("spin", "cpu_limit").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_close_costs_its_store() {
    closed("trap", "trap").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_a_destructor_while_it_closes_costs_its_store() {
    closed("drop", "trap").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_deliver_tells_what_it_logged_last() {
    let death = Stage::new().await.dies("trap", DeathCause::Trap).await;
    assert!(death.last_log.iter().any(|line| line.contains("on purpose, in deliver")), "{:?}", death.last_log);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_a_destructor_costs_its_store() {
    Stage::new().await.dies("trap_in_a_destructor", DeathCause::Trap).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_recursion_ends_at_its_stack() {
    Stage::new().await.dies("recurse", DeathCause::Trap).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sleeping_in_a_host_call_runs_into_the_wall_clock() {
    // It takes connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let aws = AwsConfig { endpoint: Some(url), region: Some("us-east-1".into()), ..AwsConfig::default() };
    let stage = Stage::reaching(&[(Limit::DeliverTimeout, 300)], aws).await;
    let death = stage.dies("write_in_its_own_place", DeathCause::Timeout).await;
    assert_eq!(death.limit.unwrap().name, stage.place(Limit::DeliverTimeout));
}

#[tokio::test(flavor = "multi_thread")]
async fn spinning_in_describe_is_refused_at_load() {
    // loop br 0 end, unreachable
    let told =
        refusal(load(&Handmade { code: &[("describe", &[3, 0x40, 0x0c, 0, 0x0b, 0])], ..Handmade::default() }).await);
    assert!(told.contains("it died while it described itself (cpu_limit)"), "{told}");
    assert!(told.contains("plugins.limits.cpu_per_call is 100 ms"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_behind_the_answer_is_refused_at_load() {
    let told = refusal(load(&Handmade { after_describe: Some(&[0]), ..Handmade::default() }).await);
    assert!(told.contains("it died while it described itself (trap)"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_too_large_is_refused_before_it_is_compiled() {
    let limits = options().with(Limit::ComponentSize, 1000);
    let host = PluginHost::new(HostOptions { cache_dir: None, ..limits }).unwrap();
    let path = component().with_file_name("hostile.wasm");
    let bytes = std::fs::metadata(&path).unwrap().len();
    let told = host.load(&PluginSource::File(path)).await.unwrap_err().to_string();
    let reached = format!("plugins.limits.component_size is 1000 bytes, and {bytes} were wanted");
    assert!(told.contains(&reached), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_compiles_too_long_is_refused() {
    let limits = options().with(Limit::CompileTime, 0);
    let host = PluginHost::new(HostOptions { cache_dir: None, ..limits }).unwrap();
    let path = component().with_file_name("hostile.wasm");
    let told = host.load(&PluginSource::File(path)).await.unwrap_err().to_string();
    assert!(told.contains("it takes too long to compile: plugins.limits.compile_time is 0 ms"), "{told}");
}
