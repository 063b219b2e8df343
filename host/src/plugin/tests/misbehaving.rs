//! Each way to misbehave has its class, costs no more than its store, and leaves the next batch alone.

use super::*;
use crate::plugin::{Death, DeathCause, Failure, FailureKind, LoadError, StartError};

async fn death(tag: &str) -> Death {
    match Bench::new().await.outcome(tag).await {
        Outcome::Died(death) => death,
        other => panic!("{tag} did not die: {other:?}"),
    }
}

async fn failure(tag: &str) -> Failure {
    match Bench::new().await.outcome(tag).await {
        Outcome::Failed(failure) => failure,
        other => panic!("{tag} did not fail: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_says_what_it_is_and_what_it_needs() {
    let bench = Bench::new().await;
    assert_eq!(bench.plugin.descriptor().name, "misbehaving");
    assert_eq!(bench.plugin.descriptor().config_schema["type"], "object");
    assert_eq!(bench.plugin.digest().len(), 64);
    let (_, plan) = bench.plugin.start(bench.context("{}")).await.unwrap();
    assert_eq!(plan.s3, [grant("bucket", "logs/")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_costs_the_store_and_tells_what_the_guest_said_last() {
    let death = death("trap").await;
    assert_eq!(death.cause, DeathCause::Trap);
    assert!(death.message.contains("unreachable"), "{}", death.message);
    assert_eq!(death.in_short, "wasm trap: wasm `unreachable` instruction executed");
    assert!(death.last_log.iter().any(|line| line.contains("on purpose, in deliver")), "{:?}", death.last_log);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_never_ends_is_ended() {
    let death = death("spin").await;
    assert_eq!(death.cause, DeathCause::CpuLimit);
    assert!(death.message.contains("plugins.limits.cpu_per_call is 500 ms, and "), "{}", death.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_recursion_is_a_trap() {
    assert_eq!(death("recurse").await.cause, DeathCause::Trap);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_eats_memory_dies_with_the_numbers() {
    let death = death("eat_memory").await;
    assert_eq!(death.cause, DeathCause::OutOfMemory);
    assert!(death.message.contains(&MEMORY.to_string()), "{}", death.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_lies_is_worth_nothing() {
    for lie in ["reject_twice", "reject_outside"] {
        assert_eq!(death(lie).await.cause, DeathCause::InvalidReport, "{lie}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_is_too_large_is_a_limit_of_the_host() {
    let bench = Bench::with(options().with(Limit::Memory, 64 << 20), AwsConfig::default()).await;
    let Outcome::Died(death) = bench.outcome("reject_everything_with_long_reasons").await else { panic!("it lives") };
    assert_eq!(death.cause, DeathCause::HostLimit, "{}", death.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_records_come_out_with_their_reasons() {
    let outcome = Bench::new().await.outcome("reject_first").await;
    assert_eq!(outcome, Outcome::Delivered { rejected: vec![(0, "because".into())] });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_may_reject_each_of_very_many_records() {
    let bench = Bench::with(options().with(Limit::Memory, 64 << 20), AwsConfig::default()).await;
    let lines = vec!["x"; 10_000];
    let delivery = bench.batch_of("reject_all", &[lines.as_slice(); 40]).await;
    let (outcome, _) = bench.worker().await.deliver(delivery).await;
    let Outcome::Delivered { rejected } = outcome else { panic!("{outcome:?}") };
    assert!(rejected.iter().map(|(record, _)| *record).eq(0..400_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_failure_comes_out_as_it_is_and_keeps_the_worker() {
    for (tag, kind) in [
        ("throttled", FailureKind::Throttled),
        ("transient", FailureKind::Transient),
        ("auth", FailureKind::Auth),
        ("misconfigured", FailureKind::Misconfigured),
        ("rejected", FailureKind::Rejected),
    ] {
        let failure = failure(tag).await;
        assert_eq!(failure.kind, kind);
        assert!(failure.message.len() <= 4096);
        assert_eq!(failure.retry_after.is_some(), tag == "throttled");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_call_that_never_ends_runs_into_the_wall_clock() {
    // It takes connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let aws = AwsConfig {
        endpoint: Some(format!("http://{}", silent.local_addr().unwrap())),
        region: Some("us-east-1".into()),
        ..AwsConfig::default()
    };
    let bench = Bench::with(options().with(Limit::DeliverTimeout, 300), aws).await;
    let Outcome::Died(death) = bench.outcome("put").await else { panic!("it lives") };
    assert_eq!(death.cause, DeathCause::Timeout);
}

#[tokio::test(flavor = "multi_thread")]
async fn hoarding_host_objects_is_refused_and_not_punished() {
    let failure = failure("hoard").await;
    assert!(failure.message.contains("256 host objects"), "{}", failure.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_granted_is_denied_by_name() {
    for (tag, object) in [("put_elsewhere", "s3://bucket/private/x"), ("put_in_another_bucket", "s3://other/logs/x")] {
        let failure = failure(tag).await;
        assert_eq!(failure.kind, FailureKind::Misconfigured);
        assert!(
            failure.message.contains(object) && failure.message.contains("s3://bucket/logs/*"),
            "{}",
            failure.message
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_log_lines_neither_fails_nor_ends_the_guest() {
    assert_eq!(Bench::new().await.outcome("flood_log").await, Outcome::Delivered { rejected: vec![] });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_has_at_most_a_hundred_series() {
    let bench = Bench::new().await;
    assert_eq!(bench.outcome("too_many_series").await, Outcome::Delivered { rejected: vec![] });
    let text = bench.metrics.render();
    assert_eq!(text.lines().filter(|line| line.starts_with("wharf_plugin_flood_total{")).count(), 100);
    // And one more, that it counts when it closes.
    assert!(text.contains("wharf_plugin_metric_changes_dropped_total{output=\"archive\"} 101"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_several_chunks_reads_as_one() {
    let bench = Bench::new().await;
    let delivery = bench.batch_of("read", &[&["a", ""], &["ccc"], &["dd", "e"]]).await;
    let (outcome, _) = bench.worker().await.deliver(delivery).await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.message, "5 records, 7 bytes, attempt 1: 1000=a 1001= 1002=ccc 1003=dd 1004=e");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_record_of_a_mixed_batch_tells_its_own_tag() {
    let bench = Bench::new().await;
    let (first, second) = (bench.batch_of("read", &[&["a"], &["b"]]).await, bench.batch_of("x", &[&["c", "d"]]).await);
    let last = bench.batch_of("read", &[&["e"]]).await;
    let portions = [&first.portions[..], &second.portions, &last.portions].concat();
    let (outcome, _) = bench.worker().await.deliver(Delivery { portions: portions.into(), ..first }).await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    let read = "5 records, 5 bytes, attempt 1: 1000=a 1001=b 1000=c of x 1001=d of x 1000=e";
    assert_eq!(failure.message, read);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_sees_the_portions_of_its_batch_as_if_there_were_nothing_else_in_their_chunks() {
    let bench = Bench::new().await;
    let keys = [
        PartitionKey::Field(vec!["pod".into()]),
        PartitionKey::Tag,
        PartitionKey::Field(vec!["no".into(), "way".into()]),
    ];
    let chunks: [&[&str]; 2] = [&[r#"{"pod":"x"}"#, r#"{"pod":7}"#, r#"{"pod":"x","n":2}"#], &[r#"{"pod":"\u0078"}"#]];
    let told = |outcome| match outcome {
        Outcome::Failed(failure) => failure.message,
        other => panic!("{other:?}"),
    };
    let worker = bench.worker().await;
    let (outcome, worker) = worker.deliver(bench.partition("read", &chunks, &keys, 0).await).await;
    let read = r#"3 records, 44 bytes, attempt 1: 1000={"pod":"x"} 1002={"pod":"x","n":2} 1003={"pod":"\u0078"}"#;
    assert_eq!(told(outcome), read);
    let partition = |pod: &str| format!("{:?}", [Some(pod), Some("partition"), None]);
    let (outcome, worker) = worker.unwrap().deliver(bench.partition("partition", &chunks, &keys, 0).await).await;
    assert_eq!(told(outcome), partition("x"));
    let (outcome, worker) = worker.unwrap().deliver(bench.partition("partition", &chunks, &keys, 1).await).await;
    assert_eq!(told(outcome), partition("7"));
    let (outcome, _) = worker.unwrap().deliver(bench.batch("partition", &["a"]).await).await;
    assert_eq!(told(outcome), r#"[Some("partition")]"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_that_is_gone_is_told_as_a_failure_that_passes_and_the_worker_lives() {
    let bench = Bench::new().await;
    let delivery = bench.batch_of("read", &[&["a"]]).await;
    bench.journal.release(&[delivery.portions[0].id]);
    let (outcome, worker) = bench.worker().await.deliver(delivery).await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.kind, FailureKind::Transient);
    assert!(failure.message.contains("not in the journal"), "{}", failure.message);
    assert!(worker.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_batch_keeps_its_number_over_attempts_and_stores() {
    let bench = Bench::new().await;
    let delivery = bench.batch("index", &["a"]).await;
    let message = |outcome| match outcome {
        Outcome::Failed(Failure { message, .. }) => message,
        other => panic!("{other:?}"),
    };
    let (first, worker) = bench.worker().await.deliver(delivery.clone()).await;
    assert_eq!(message(first), "index 7");
    let (again, _) = worker.unwrap().deliver(Delivery { attempt: 2, ..delivery }).await;
    assert_eq!(message(again), "index 7");
    let (next, _) = bench.worker().await.deliver(bench.batch("index", &["b"]).await).await;
    assert_eq!(message(next), "index 8");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_belongs_to_its_batch_and_the_batch_is_open() {
    let failure = failure("progress").await;
    assert_eq!(failure.message, r#"[("upload", [105, 100])] open true"#);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_configuration_is_told_with_all_its_faults() {
    let bench = Bench::new().await;
    let Err(StartError::Config { faults, .. }) = bench.plugin.start(bench.context(r#"{"configure":"refuse"}"#)).await
    else {
        panic!("accepted")
    };
    let told: Vec<(&str, &str)> = faults.iter().map(|fault| (fault.path.as_str(), fault.message.as_str())).collect();
    assert_eq!(told, [("/a", "is wrong"), ("/b", "is wrong too")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn configure_may_ask_for_nothing_even_where_the_output_is_at_work() {
    let bench = Bench::new().await;
    let Err(StartError::Config { faults, .. }) = bench.plugin.start(bench.context(r#"{"configure":"ask"}"#)).await
    else {
        panic!("accepted")
    };
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults.iter().all(|fault| fault.message.contains("wharf validate")), "{faults:?}");
    assert_eq!(bench.state.get("archive", "k").unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn dying_in_configure_is_told_with_its_cause() {
    let bench = Bench::new().await;
    for (configure, cause) in [("trap", DeathCause::Trap), ("spin", DeathCause::CpuLimit)] {
        let config = format!(r#"{{"configure":"{configure}"}}"#);
        let Err(StartError::Died { death, .. }) = bench.plugin.start(bench.context(&config)).await else {
            panic!("{configure} lives")
        };
        assert_eq!(death.cause, cause);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_in_abandon_costs_the_store_alone() {
    let bench = Bench::new().await;
    assert!(bench.worker().await.abandon(bench.batch("trap", &["a"]).await).await.is_none());
    assert!(bench.worker().await.abandon(bench.batch("ok", &["a"]).await).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_guest_lets_others_run_on_the_same_thread() {
    let bench = Bench::new().await;
    let spinning = bench.batch("spin", &["a"]).await;
    let worker = bench.worker().await;
    let mut turns = 0u64;
    let others = async {
        loop {
            turns += 1;
            tokio::task::yield_now().await;
        }
    };
    // Both futures are polled by this one task: the second gets its turns only where the first gives them.
    let outcome = tokio::select! {
        biased;
        (outcome, _) = worker.deliver(spinning) => outcome,
        () = others => unreachable!(),
    };
    assert!(matches!(outcome, Outcome::Died(Death { cause: DeathCause::CpuLimit, .. })));
    // 500 ms of CPU are 50 ticks; a few are enough to show it.
    assert!(turns > 5, "{turns}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cpu_time_of_a_worker_is_counted() {
    let bench = Bench::new().await;
    bench.outcome("spin").await;
    let text = bench.metrics.render();
    let line = text.lines().find(|line| line.starts_with("wharf_worker_cpu_seconds_total{")).unwrap();
    let seconds: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(seconds >= 0.5, "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_the_same_component_again_gives_the_same_plugin() {
    let host = PluginHost::new(options()).unwrap();
    let source = PluginSource::File(component().to_owned());
    let (a, b) = tokio::join!(host.load(&source), host.load(&source));
    assert_eq!(a.unwrap().digest(), b.unwrap().digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_plugin_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let host = PluginHost::new(HostOptions { cache_dir: None, ..options() }).unwrap();
    let load = async |bytes: &[u8]| {
        let path = dir.path().join("plugin.wasm");
        std::fs::write(&path, bytes).unwrap();
        host.load(&PluginSource::File(path)).await.unwrap_err().to_string()
    };
    let core = load(b"\0asm\x01\0\0\0").await;
    assert!(core.contains("plugin.wasm") && core.contains("wharf plugin new"), "{core}");
    assert!(load(b"hello").await.contains("not WebAssembly"));
    let empty = load(b"\0asm\x0d\0\x01\0").await;
    assert!(empty.contains("does not export wharf:output/output@0.1.0"), "{empty}");
    let garbage = load(b"\0asm\x0d\0\x01\0\xff\xff\xff").await;
    assert!(garbage.starts_with("plugin "), "{garbage}");

    let missing = host.load(&PluginSource::File(dir.path().join("nowhere.wasm"))).await;
    assert!(matches!(missing, Err(LoadError::Read { .. })), "{missing:?}");
    let unknown = host.load(&PluginSource::BuiltIn("gcs".into())).await.unwrap_err().to_string();
    assert!(unknown.contains("built in are s3"), "{unknown}");
}
