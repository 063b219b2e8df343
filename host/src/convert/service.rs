//! `[SERVICE]` becomes what stands at the top level.

use super::block::Block;
use super::shared::{duration, instead, left_over};
use super::yaml::Map;

/// What Fluent Bit's log levels are called here.
const LEVELS: [(&str, &str); 6] =
    [("off", "off"), ("error", "error"), ("warn", "warn"), ("warning", "warn"), ("info", "info"), ("debug", "debug")];

pub(super) fn translate(block: &Block, top: &mut Map) {
    if let Some(path) = block.take("storage.path") {
        top.remark(format!("storage.path {path}: of another format; records that are in it are delivered by Fluent Bit, before it is stopped for good."));
        top.text("data_dir", "/var/lib/wharf");
    }
    if let Some(text) = block.take("grace").filter(|text| !text.starts_with('-')) {
        top.plain("grace", duration(text));
    }
    if let Some(level) = block.take("log_level") {
        let known = LEVELS.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(level));
        top.within("log").plain("level", known.map_or("trace", |(_, ours)| ours));
    }
    let (address, port) = (block.take("http_listen").unwrap_or("0.0.0.0"), block.take("http_port").unwrap_or("2020"));
    if block.take_switch("http_server").unwrap_or(false) {
        let address = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
        top.say("/health, /ready and /metrics; what they are called and say is in docs/operations.md.");
        top.within("admin").text("listen", &format!("{address}:{port}"));
    }
    const JOURNAL: &str =
        "the journal is written and synced before anything is acknowledged; see \"journal\" for its limits.";
    const RETRY: &str = "each output has \"retry\": { initial, max, max_age }.";
    const HEALTH: &str = "/health says how each output does.";
    instead(
        block,
        top,
        &[
            ("flush", "an output's batches close by \"batch\": { max_bytes, max_records, max_age }."),
            ("daemon", "leave that to what starts it, for example systemd."),
            ("log_file", "logs go to the standard error."),
            ("plugins_file", "plugins are WebAssembly components: see docs/plugins/."),
            ("streams_file", "there is no stream processor."),
            ("hc_errors_count", HEALTH),
            ("hc_retry_failure_count", HEALTH),
            ("hc_period", HEALTH),
            ("health_check", HEALTH),
            ("storage.sync", JOURNAL),
            ("storage.checksum", JOURNAL),
            ("storage.max_chunks_up", JOURNAL),
            ("storage.backlog.mem_limit", JOURNAL),
            ("storage.backlog.flush_on_shutdown", JOURNAL),
            ("storage.metrics", "/metrics has the journal's."),
            (
                "storage.delete_irrecoverable_chunks",
                "damaged stretches are set aside in data_dir/quarantine, and counted.",
            ),
            ("scheduler.base", RETRY),
            ("scheduler.cap", RETRY),
            ("hot_reload", "see \"Reload\" in docs/operations.md."),
            ("json.convert_nan_to_null", "what JSON cannot hold is written as docs/sources.md says."),
        ],
    );
    left_over(block, top);
}
