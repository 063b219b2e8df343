//! The built-in components, as the binary has them.

use super::*;
use crate::plugin::{StartError, builtin};

fn context(services: Arc<Services>, config: &str) -> WorkerContext {
    WorkerContext { output: "archive".into(), worker: 0, hostname: "host".into(), config: config.into(), services }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_built_in_plugin_loads_under_its_own_name() {
    let host = PluginHost::new(options().with(Limit::CpuPerCall, 10_000)).unwrap();
    for name in builtin::names() {
        let plugin = host.load(&PluginSource::BuiltIn((*name).into())).await.unwrap();
        assert_eq!(plugin.descriptor().name, *name);
        assert!(plugin.descriptor().config_schema["properties"].is_object());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_built_in_plugin_is_configured_in_the_least_memory_that_may_be_configured() {
    let least = options().with(Limit::Memory, crate::config::LEAST_MEMORY);
    let host = PluginHost::new(least.with(Limit::CpuPerCall, 10_000)).unwrap();
    for (name, config) in [
        ("s3", r#"{"bucket":"b","compression":"zstd"}"#.to_owned()),
        ("cloudwatch_logs", format!(r#"{{"log_group_name":"/app","log_stream_template":"$pod{}"}}"#, "x".repeat(400))),
    ] {
        let plugin = host.load(&PluginSource::BuiltIn(name.into())).await.unwrap();
        let (worker, _) = plugin.start(context(Services::detached("archive".into()), &config)).await.unwrap();
        worker.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_begins_with_too_much_memory_is_refused_with_the_setting() {
    let host = PluginHost::new(options().with(Limit::Memory, 1 << 20)).unwrap();
    let refused = host.load(&PluginSource::BuiltIn("s3".into())).await.unwrap_err().to_string();
    assert!(refused.contains("plugins.limits.max_memory") && !refused.contains("pooling"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_is_configured_without_disk_and_network_and_says_what_it_will_touch() {
    let host = PluginHost::new(options().with(Limit::CpuPerCall, 10_000)).unwrap();
    let plugin = host.load(&PluginSource::BuiltIn("s3".into())).await.unwrap();
    let services = Services::detached("archive".into());
    let config = r#"{"bucket":"my-bucket","key_format":"/logs/segment_$INDEX"}"#;
    let (worker, plan) = plugin.start(context(Arc::clone(&services), config)).await.unwrap();
    assert_eq!(plan.s3.first().map(|grant| grant.bucket.as_str()), Some("my-bucket"));
    worker.close().await;

    let Err(StartError::Config { faults, .. }) = plugin.start(context(services, "{}")).await else {
        panic!("accepted")
    };
    assert!(faults.iter().any(|fault| fault.message.contains("bucket")), "{faults:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn cloudwatch_logs_is_configured_without_disk_and_network_and_says_what_it_will_touch() {
    let host = PluginHost::new(options().with(Limit::CpuPerCall, 10_000)).unwrap();
    let plugin = host.load(&PluginSource::BuiltIn("cloudwatch_logs".into())).await.unwrap();
    let services = Services::detached("archive".into());
    let config = r#"{"log_group_name":"/app","log_group_template":"/k8s/$ns","log_stream_prefix":"host-"}"#;
    let (worker, plan) = plugin.start(context(Arc::clone(&services), config)).await.unwrap();
    assert_eq!(plan.log_groups, ["/k8s/*", "/app"]);
    assert!(plan.in_order);
    worker.close().await;

    let config = r#"{"log_group_name":"a b","log_stream_name":"x:y"}"#;
    let Err(StartError::Config { faults, .. }) = plugin.start(context(services, config)).await else {
        panic!("accepted")
    };
    assert_eq!(
        faults.iter().map(|fault| fault.path.as_str()).collect::<Vec<_>>(),
        ["/log_group_name", "/log_stream_name"]
    );
}
