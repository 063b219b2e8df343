//! Floods and forgeries in the log and in metrics.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_lines_is_left_out_and_counted() {
    let stage = Stage::new().await;
    stage.is_harmless("flood_log").await;
    // 500 at once, and 100 in each second that it took; what passed is not counted, whether anybody listens or not.
    let left_out = stage.count("log_left_out_lines", "");
    let bytes = stage.count("log_left_out_bytes", "");
    assert!((1..=19_500).contains(&left_out), "{left_out}");
    assert!(bytes >= left_out * "line 0".len() as u64, "{bytes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_megabytes_are_cut() {
    let stage = Stage::new().await;
    let death = stage.dies("long_lines_and_trap", DeathCause::Trap).await;
    assert!(death.last_log.iter().all(|line| line.len() < 64 << 10), "a line of the log is longer");
    assert!(death.last_log.len() <= 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_cannot_pretend_to_be_another() {
    let death = Stage::new().await.dies("forge_log_lines", DeathCause::Trap).await;
    let forged = death.last_log.iter().find(|line| line.contains("forged")).unwrap();
    assert!(!forged.contains(['\n', '\r', '\u{1b}']), "{forged:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_cannot_pretend_to_be_a_line_of_the_log() {
    let told = Stage::new().await.told("failure_with_forged_lines", GUEST_ERROR).await;
    assert!(!told.contains(['\n', '\u{1b}']), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_series_ends_at_their_limit() {
    let stage = Stage::with(&[(Limit::MetricSeries, 7)]).await;
    stage.is_harmless("flood_metrics").await;
    let text = stage.hostile.metrics.render();
    assert_eq!(text.lines().filter(|line| line.starts_with("wharf_plugin_flood_total{")).count(), 7);
    assert_eq!(stage.count("limits_reached", ",limit=\"metric_series\""), 9_993);
}

#[tokio::test(flavor = "multi_thread")]
async fn series_of_the_host_and_of_others_cannot_be_forged() {
    let stage = Stage::new().await;
    stage.is_harmless("forge_metrics").await;
    let text = stage.hostile.metrics.render();
    assert!(!text.contains("forged") && !text.contains("other") && !text.contains("NaN"), "{text}");
    let (tenant, output) = stage.hostile.output.split_once('/').unwrap();
    let own = format!("wharf_plugin_metric_changes_dropped_total{{output=\"{output}\",tenant=\"{tenant}\"}} 6");
    assert!(text.lines().any(|line| line == own), "{text}");
}
