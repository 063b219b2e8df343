//! Outputs of S3 and CloudWatch Logs become Wharf's.

use super::block::{Block, is_on};
use super::pattern;
use super::shared::{duration, engine, instead, left_over, name, size};
use super::yaml::Map;

const TUNING: &str = "connections are made, kept and timed by Wharf: see aws.connect_timeout and aws.request_timeout.";
const REPEAT: &str = "what fails is tried again with back-off until retry.max_age.";

/// Translates an output, or remarks that there is no such. `tags` are those of the inputs.
pub(super) fn translate(block: &Block, tags: &[String], outputs: &mut Map) {
    let kind: fn(&Block, &mut Map) = match block.plugin.as_str() {
        "s3" => s3,
        "cloudwatch_logs" => cloudwatch_logs,
        "cloudwatch" => {
            outputs.remark(format!("{}: the output cloudwatch is of another program (written in Go); its options are near those of cloudwatch_logs.", block.place));
            return;
        }
        other => {
            outputs.remark(format!(
                "{}: the output {other} is not built in; it can be a plugin (docs/plugins/).",
                block.place
            ));
            return;
        }
    };
    let name = name(block, outputs);
    let mut map = Map::default();
    map.text("plugin", &block.plugin);
    matched(block, tags, &mut map);
    workers(block, &mut map);
    aws(block, &mut map);
    kind(block, &mut map);
    retry(block, &mut map);
    network(block, &mut map);
    engine(block, &mut map);
    left_over(block, &mut map);
    outputs.map(&name, map);
}

fn matched(block: &Block, tags: &[String], map: &mut Map) {
    if let Some(glob) = block.take("match") {
        map.text("match", glob);
        if glob.contains('?') {
            map.remark(format!("Match {glob}: a ? is any one character here."));
        }
        let _ = block.take("match_regex");
    } else if let Some(text) = block.take("match_regex") {
        let regex = regex::Regex::new(&pattern::translated(text)).ok();
        let wanted: Vec<&str> = tags
            .iter()
            .map(String::as_str)
            .filter(|tag| regex.as_ref().is_some_and(|regex| regex.is_match(tag)))
            .collect();
        map.remark(format!(
            "Match_Regex {text}: there are only * and ?; these are the tags of this file that it matches."
        ));
        map.text("match", &if wanted.is_empty() { "none-yet".to_owned() } else { wanted.join(" ") });
    }
}

fn workers(block: &Block, map: &mut Map) {
    match block.take("workers").map(str::trim) {
        None | Some("1") => {}
        Some("0") => map.remark("Workers 0: an output has one worker at least."),
        Some(workers) => map.plain("workers", workers),
    }
}

fn aws(block: &Block, map: &mut Map) {
    for key in ["region", "role_arn", "external_id", "profile"] {
        if let Some(text) = block.take(key) {
            map.within("aws").text(key, text);
        }
    }
    let (port, tls) = (block.take("port"), block.take("tls").is_none_or(is_on));
    for key in ["endpoint", "sts_endpoint"] {
        if let Some(text) = block.take(key) {
            let scheme = if tls || key == "sts_endpoint" { "https" } else { "http" };
            let with_scheme = if text.contains("://") { text.to_owned() } else { format!("{scheme}://{text}") };
            let port = port.filter(|_| key == "endpoint").map(|port| format!(":{port}")).unwrap_or_default();
            map.within("aws").text(key, &format!("{}{port}", with_scheme.trim_end_matches('/')));
        }
    }
}

/// `Retry_Limit` counts attempts, which are over within seconds; here time does.
fn retry(block: &Block, map: &mut Map) {
    let Some(text) = block.take("retry_limit") else { return };
    let for_ever = ["false", "no_limits", "off"].iter().any(|word| text.eq_ignore_ascii_case(word));
    match (for_ever, block.plugin.as_str()) {
        (true, _) => map.within("retry").plain("max_age", "3650d"),
        (false, _) => map.remark(format!("Retry_Limit {text}: retries are limited by time, retry.max_age (24h); then records become dead letters, which can be replayed.")),
    }
}

fn network(block: &Block, map: &mut Map) {
    if let Some(text) = block.take("net.connect_timeout") {
        map.within("aws").plain("connect_timeout", duration(text));
    }
    const TLS: &str =
        "certificates are always checked, with the system's authorities; an endpoint with http:// has no TLS.";
    instead(
        block,
        map,
        &[("tls.verify", TLS), ("tls.ca_file", TLS), ("tls.ca_path", TLS), ("tls.debug", TLS), ("tls.vhost", TLS)],
    );
    let keys: Vec<&str> = block
        .rest()
        .map(|option| option.key.as_str())
        .filter(|key| key.to_ascii_lowercase().starts_with("net."))
        .collect();
    for key in keys {
        instead(block, map, &[(key, TUNING)]);
    }
    instead(
        block,
        map,
        &[
            (
                "storage.total_limit_size",
                "write queue: { max_size: …, when_full: drop_oldest } to drop the oldest past a size.",
            ),
            ("auto_retry_requests", REPEAT),
        ],
    );
}

fn s3(block: &Block, map: &mut Map) {
    map.within("batch").plain("max_bytes", block.take("total_file_size").map_or("100MB".to_owned(), size));
    map.within("batch").plain("max_age", block.take("upload_timeout").map_or("10m".to_owned(), duration));
    let mut config = Map::default();
    if let Some(bucket) = block.take("bucket") {
        config.text("bucket", bucket);
    }
    key(block, &mut config);
    body(block, &mut config);
    for (theirs, ours) in [("canned_acl", "acl"), ("storage_class", "storage_class")] {
        if let Some(text) = block.take(theirs) {
            config.text(ours, text);
        }
    }
    if let Some(text) = block.take("upload_chunk_size") {
        config.plain("part_size", size(text).replace("5242880", "5MiB"));
    }
    map.map("config", config);
    if let Some(text) = block.take("store_dir_limit_size").filter(|text| *text != "0") {
        map.within("queue").plain("max_size", size(text));
        map.remark("store_dir_limit_size: a full queue makes sources wait (when_full: block); drop_oldest or drop_newest drop and count.");
    }
    const JOURNAL: &str = "records wait in the journal under data_dir, and nowhere else.";
    const ORDER: &str = "batches are delivered as they are closed, those that fail are tried again beside the others.";
    const DEAD: &str = "what cannot be delivered becomes dead letters under data_dir: `wharf dead-letter list`.";
    const BLOB: &str = "there are no blob events.";
    const SIZE: &str = "an object of up to multipart_threshold (8MiB) goes in one request, a larger one in parts.";
    instead(
        block,
        map,
        &[
            ("store_dir", JOURNAL),
            ("preserve_data_ordering", ORDER),
            ("retry_exhausted_action", DEAD),
            ("quarantine_dir_limit_size", DEAD),
            ("use_put_object", SIZE),
            ("send_content_md5", "each object has a checksum of its own: config.checksum (crc32c)."),
            ("blob_database_file", BLOB),
            ("part_size", BLOB),
            ("file_delivery_attempt_limit", BLOB),
            ("part_delivery_attempt_limit", BLOB),
            ("upload_parts_timeout", BLOB),
            ("upload_part_freshness_limit", BLOB),
            ("authorization_endpoint_url", BLOB),
        ],
    );
    // A name and a secret, that are shown nowhere.
    for key in
        ["authorization_endpoint_username", "authorization_endpoint_password", "authorization_endpoint_bearer_token"]
    {
        if block.take(key).is_some() {
            map.remark(format!("{key}: {BLOB}"));
        }
    }
}

fn key(block: &Block, config: &mut Map) {
    let format = block.take("s3_key_format").unwrap_or("/fluent-bit-logs/$TAG/%Y/%m/%d/%H/%M/%S");
    if format.contains("$INDEX") {
        config.remark("$INDEX begins at 0, or at index_start: set that above what is in the bucket. It never goes back here, and no object is ever overwritten.");
    } else if !format.contains("$UUID") && !block.take_switch("static_file_path").unwrap_or(false) {
        config.remark("Wharf puts -$UUID before the key's extension, where Fluent Bit puts -object and random characters behind it.");
    }
    if format.contains("$TAG") {
        config.remark("A / in a tag becomes _ in the key here.");
    }
    config.text("key_format", format);
    if let Some(text) = block.take("s3_key_format_tag_delimiters") {
        config.text("tag_delimiters", text);
    }
    if block.take_switch("static_file_path") == Some(true) {
        config.plain("static_file_path", true);
    }
}

fn body(block: &Block, config: &mut Map) {
    match block.take("format").map(str::to_ascii_lowercase).as_deref() {
        None | Some("json_lines" | "json") => {}
        Some(other) => config.remark(format!("format {other}: there are json_lines and text.")),
    }
    match block.take("compression").map(str::to_ascii_lowercase).as_deref() {
        None | Some("none") => {}
        Some(known @ ("gzip" | "zstd")) => {
            config.text("compression", known);
            config.say("An object is one compressed stream, and says so (content_encoding), as Fluent Bit's do.");
        }
        Some(other) => config.remark(format!("compression {other}: there are gzip and zstd.")),
    }
    if let Some(text) = block.take("content_type") {
        config.text("content_type", text);
    }
    match block.take("json_date_key") {
        None => {}
        Some(text) if text.eq_ignore_ascii_case("false") => config.plain("date_key", false),
        Some(text) => config.text("date_key", text),
    }
    if let Some(text) = block.take("json_date_format") {
        config.text("date_format", text);
    }
    if let Some(key) = block.take("log_key") {
        config.text("log_key", key);
        config.remark("log_key: a record without the key becomes a dead letter, where Fluent Bit leaves it out.");
    }
}

fn cloudwatch_logs(block: &Block, map: &mut Map) {
    let mut config = Map::default();
    let texts = [
        "log_group_name",
        "log_stream_name",
        "log_stream_prefix",
        "log_group_template",
        "log_stream_template",
        "log_key",
        "log_format",
    ];
    for key in texts {
        if let Some(text) = block.take(key) {
            config.text(key, text);
        }
    }
    if config.has("log_group_template") || config.has("log_stream_template") {
        config.remark(
            "Templates: $key-rest is ambiguous here; write $(key)-rest. docs/outputs/cloudwatch_logs.md, Names.",
        );
    }
    let makes_groups = block.take_switch("auto_create_group").unwrap_or(false);
    if makes_groups {
        config.plain("auto_create_group", true);
    }
    for (key, none) in [("log_retention_days", "0"), ("log_group_class", "")] {
        match block.take(key).filter(|text| *text != none) {
            Some(text) if makes_groups && key == "log_retention_days" => config.plain(key, text),
            Some(text) if makes_groups => config.text(key, text),
            Some(text) => config.remark(format!("{key} {text}: only for groups that Wharf makes (auto_create_group).")),
            None => {}
        }
    }
    map.map("config", config);
    const METRICS: &str = "records are logs; with log_format: json/emf CloudWatch takes metrics out of them.";
    instead(
        block,
        map,
        &[
            ("metric_namespace", METRICS),
            ("metric_dimensions", METRICS),
            ("add_entity", "see config.entity in docs/outputs/cloudwatch_logs.md."),
            ("extra_user_agent", "requests name Wharf."),
        ],
    );
}
