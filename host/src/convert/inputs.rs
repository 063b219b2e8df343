//! Inputs become sources.

use super::block::{Block, is_on};
use super::parsers;
use super::shared::{duration, engine, instead, left_over, listed, name, size};
use super::yaml::Map;

/// Translates an input into a source, or into a remark where Wharf has no such. `number` is how many inputs of any type are before it; `tags`
/// gets the tag of its records, where it is known.
pub(super) fn translate(block: &Block, number: usize, parsers: &[&Block], sources: &mut Map, tags: &mut Vec<String>) {
    let kind: fn(&Block, &mut Map) = match block.plugin.as_str() {
        "tail" => tail,
        "stdin" => stdin,
        "http" => http,
        "forward" => forward,
        "dummy" => dummy,
        "opentelemetry" => opentelemetry,
        "syslog" => syslog,
        other => {
            sources.remark(format!("{}: the input {other} is not translated.", block.place));
            return;
        }
    };
    let name = name(block, sources);
    let mut map = Map::default();
    kind(block, &mut map);
    if matches!(&*block.plugin, "tail" | "stdin") {
        parsers::of_input(block, parsers, &mut map);
    }
    tag(block, number, &name, &mut map, tags);
    engine(block, &mut map);
    left_over(block, &mut map);
    sources.map(&name, map);
}

/// The tag that Fluent Bit's opentelemetry makes of the path of logs, unless `tag_from_uri` is off; then a `Tag` is not asked.
const OF_LOGS: &str = "v1_logs";

fn tag(block: &Block, number: usize, name: &str, map: &mut Map, tags: &mut Vec<String>) {
    let given = block.take("tag").filter(|tag| !tag.is_empty());
    if block.plugin == "opentelemetry" && block.take_switch("tag_from_uri") != Some(false) {
        if let Some(tag) = given {
            map.remark(format!("Tag {tag}: Fluent Bit takes the path's, {OF_LOGS}, where tag_from_uri is not off."));
        }
        map.text("tag", OF_LOGS);
        tags.push(OF_LOGS.to_owned());
        return;
    }
    let Some(tag) = given else {
        // Those of forward come with the records.
        if block.plugin != "forward" {
            // What Fluent Bit calls them by itself: it has one row of numbers for inputs of all types (`instance_id` of its src/flb_input.c).
            let own = format!("{}.{number}", block.plugin);
            map.text("tag", &own);
            tags.push(own);
        }
        return;
    };
    let plain = tag.replace('*', "");
    let plain = plain.trim_matches('.');
    let own = if plain.is_empty() { name } else { plain };
    if tag.contains('*') {
        map.remark(format!(
            "Tag {tag}: Fluent Bit puts the file's path in place of the *; here all files of a source have one tag."
        ));
    }
    map.text("tag", own);
    tags.push(own.to_owned());
}

fn tail(block: &Block, map: &mut Map) {
    map.plain("type", "tail");
    map.list("paths", listed(&block.take_all("path")));
    let exclude = listed(&block.take_all("exclude_path"));
    if !exclude.is_empty() {
        map.list("exclude", exclude);
    }
    if !block.take_switch("read_from_head").unwrap_or(false) {
        map.plain("read_from", "end");
    }
    if let Some(text) = block.take("refresh_interval") {
        map.plain("refresh_interval", duration(text));
    }
    if let Some(text) = block.take("rotate_wait") {
        map.plain("rotate_wait", duration(text));
    }
    if let Some(text) = block.take("ignore_older") {
        map.plain("ignore_older", duration(text));
    }
    if let Some(key) = block.take("path_key") {
        map.text("path_key", key);
    }
    if block.take_switch("skip_long_lines") == Some(true) {
        map.plain("long_lines", "skip");
    }
    if let Some(name) = block.take("generic.encoding").or(block.take("unicode.encoding")) {
        map.text("encoding", &name.to_ascii_lowercase());
    }
    if let Some(key) = block.take("key").filter(|key| *key != "log") {
        map.remark(format!("Key {key}: a line's text is the key \"log\" in what is delivered."));
    }
    const POSITIONS: &str = "positions are kept in data_dir, in one commit with the records.";
    const LINES: &str = "a line longer than max_line_size (1 MiB) is cut there and counted; it never stops its file.";
    const EACH: &str =
        "lines are joined by \"multiline\" (docs/sources.md); without it every line is a record by itself.";
    const READING: &str = "files are read in turn, at most 1 MiB each time; there is nothing to choose.";
    instead(
        block,
        map,
        &[
            ("db", POSITIONS),
            ("db.sync", POSITIONS),
            ("db.locking", POSITIONS),
            ("db.journal_mode", POSITIONS),
            ("db.compare_filename", "a file is known by device, inode and a fingerprint of its beginning."),
            ("truncate_long_lines", LINES),
            ("buffer_max_size", LINES),
            ("buffer_chunk_size", READING),
            ("static_batch_size", READING),
            ("event_batch_size", READING),
            ("progress_check_interval", READING),
            ("progress_check_interval_nsec", READING),
            ("watcher_interval", READING),
            ("inotify_watcher", "inotify is used where it works, and files are looked at besides."),
            ("file_cache_advise", READING),
            ("parser_firstline", EACH),
            ("multiline", EACH),
            ("multiline_flush", EACH),
            ("docker_mode", EACH),
            ("docker_mode_flush", EACH),
            ("skip_empty_lines", "an empty line is an empty record."),
            ("read_newly_discovered_files_from_head", "files that appear later are always read whole."),
            ("tag_regex", "all files of a source have one tag."),
        ],
    );
}

fn stdin(block: &Block, map: &mut Map) {
    map.plain("type", "stdin");
    instead(
        block,
        map,
        &[("parser", "a line is delivered as it is."), ("buffer_size", "lines of up to 1 MiB are taken whole.")],
    );
}

/// `listen` and `port`, with the defaults that they have in Fluent Bit.
fn listen(block: &Block, port: &str) -> String {
    let host = block.take("listen").unwrap_or("0.0.0.0");
    let port = block.take("port").unwrap_or(port);
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn http(block: &Block, map: &mut Map) {
    map.plain("type", "http");
    map.text("listen", &listen(block, "9880"));
    // Also where there is a Tag: that is for requests to / alone, there and here.
    map.remark("A path makes the tag. Fluent Bit writes _ for what is no letter, digit, _ or . (/app/web has app_web); here a / is a dot (app.web), and the rest stays.");
    map.plain("tag_from", "path");
    if let Some(text) = block.take("buffer_max_size") {
        map.plain("max_body_size", size(text));
    }
    tls(block, map);
    const STATUS: &str = "200 says that the records are on the disk.";
    instead(
        block,
        map,
        &[
            (
                "tag_key",
                "a tag is of a request's path, or of its header (tag_from: header), and not of a record's key.",
            ),
            ("buffer_chunk_size", "buffers grow as they must, to max_body_size."),
            ("successful_response_code", STATUS),
            ("success_header", STATUS),
            ("http2", "requests are HTTP/1."),
        ],
    );
}

fn forward(block: &Block, map: &mut Map) {
    map.plain("type", "forward");
    let unix = block.take("unix_path");
    if let Some(path) = unix {
        map.text("unix_path", path);
        if let Some(permissions) = block.take("unix_perm") {
            map.plain("unix_perm", format!("{permissions:?}"));
        }
        // Fluent Bit listens on one of both.
        for key in ["listen", "port"] {
            let _ = block.take(key);
        }
    } else {
        map.text("listen", &listen(block, "24224"));
    }
    if let Some(prefix) = block.take("tag_prefix") {
        map.text("tag_prefix", prefix);
    }
    if let Some(name) = block.take("self_hostname") {
        map.text("self_hostname", name);
    }
    if let Some(key) = block.take("shared_key") {
        map.text("shared_key", key);
    }
    let _ = block.take("empty_shared_key");
    users(block, map);
    if let Some(text) = block.take("buffer_max_size") {
        map.plain("max_message_size", size(text));
    }
    tls(block, map);
    instead(
        block,
        map,
        &[
            ("buffer_chunk_size", "buffers grow as they must, to max_message_size."),
            ("workers", "one for each connection."),
        ],
    );
}

/// `security.users NAME PASSWORD`.
fn users(block: &Block, map: &mut Map) {
    let users = block.take_all("security.users");
    let users: Vec<String> = users
        .iter()
        .map(|text| {
            let (name, password) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            let quoted = |text: &str| serde_json::Value::from(text).to_string();
            format!("{{ username: {}, password: {} }}", quoted(name.trim()), quoted(password.trim()))
        })
        .collect();
    if !users.is_empty() {
        map.plain("users", format!("[{}]", users.join(", ")));
    }
}

fn tls(block: &Block, map: &mut Map) {
    let on = block.take_switch("tls").unwrap_or(false);
    let (cert, key) = (block.take("tls.crt_file"), block.take("tls.key_file"));
    let (ca, asks) = (block.take("tls.ca_file"), block.take("tls.verify_client_cert").is_some_and(is_on));
    instead(
        block,
        map,
        &[
            ("tls.verify", "clients are asked for a certificate where client_ca_file is there."),
            ("tls.debug", "see \"log\" at the top level."),
            ("tls.min_version", "TLS 1.2 and 1.3."),
            ("tls.max_version", "TLS 1.2 and 1.3."),
        ],
    );
    if !on {
        return;
    }
    let tls = map.within("tls");
    for (key, file) in [("cert_file", cert), ("key_file", key), ("client_ca_file", ca.filter(|_| asks))] {
        if let Some(file) = file {
            tls.text(key, file);
        }
    }
}

fn dummy(block: &Block, map: &mut Map) {
    map.plain("type", "generate");
    map.remark("dummy: records are made up, and are lines of text.");
    map.plain("rate", block.take("rate").unwrap_or("1"));
    if let Some(count) = block.take("samples") {
        map.plain("count", count);
    }
    instead(
        block,
        map,
        &[("dummy", "what is made up cannot be chosen."), ("metadata", "what is made up cannot be chosen.")],
    );
}

fn opentelemetry(block: &Block, map: &mut Map) {
    map.plain("type", "otlp");
    map.remark("Fluent Bit takes OTLP/gRPC and OTLP/HTTP on one port; here each has its own. Logs alone are taken, no metrics and traces.");
    let address = listen(block, "4318");
    map.within("http").text("listen", &address);
    if let Some(text) = block.take("buffer_max_size") {
        map.plain("max_body_size", size(text));
    }
    tls(block, map);
    const STATUS: &str = "200 says that the records are on the disk.";
    instead(
        block,
        map,
        &[
            ("buffer_chunk_size", "buffers grow as they must, to max_body_size."),
            ("successful_response_code", STATUS),
            ("logs_body_key", "how a record looks is in docs/sources.md; format: otlp_json is OTLP/JSON itself."),
            ("logs_metadata_key", "how a record looks is in docs/sources.md; format: otlp_json is OTLP/JSON itself."),
        ],
    );
}

fn syslog(block: &Block, map: &mut Map) {
    map.plain("type", "syslog");
    // Fluent Bit's default is a Unix socket.
    match block.take("mode").unwrap_or("unix_udp").to_ascii_lowercase().as_str() {
        mode @ ("tcp" | "udp") => {
            let address = listen(block, "5140");
            map.within(mode).text("listen", &address);
        }
        mode => {
            if mode == "unix_tcp" {
                map.remark("Mode unix_tcp: a Unix socket takes datagrams here.");
            }
            if let Some(path) = block.take("path") {
                map.text("unix_path", path);
            }
        }
    }
    if let Some(text) = block.take("buffer_max_size") {
        map.plain("max_message_size", size(text));
    }
    tls(block, map);
    instead(
        block,
        map,
        &[
            ("parser", "RFC 5424 and RFC 3164 are told apart and read by themselves."),
            ("buffer_chunk_size", "buffers grow as they must, to max_message_size."),
            ("receive_buffer_size", "the system's."),
            ("unix_perm", "the socket has the permissions that the process's mask leaves."),
        ],
    );
}
