//! Configurations as Fluent Bit's documentation shows them, and what an operator gets of each.

use std::path::Path;

use super::{ConvertError, Converted, convert};
use crate::config::{Config, SourceKind};

/// Converts a file of this name and text, with others beside it.
fn converted(name: &str, text: &str, beside: &[(&str, &str)]) -> Result<Converted, ConvertError> {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in beside.iter().chain([&(name, text)]) {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    convert(&dir.path().join(name))
}

fn classic(text: &str) -> String {
    converted("fluent-bit.conf", text, &[]).unwrap().text
}

/// The text is a configuration of Wharf, as far as it can be known without its plugins.
fn read(text: &str) -> Config {
    Config::parse(text, Path::new("wharf.yaml"), &|_| Some("1".into()))
        .unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

const CLASSIC: &str = r"
# A usual one.
@SET bucket=my-logs
[SERVICE]
    Flush         5
    Grace         30
    Log_Level     warning
    HTTP_Server   On
    HTTP_Port     2021
    storage.path  /var/fluent-bit/state

[INPUT]
    Name              tail
    Tag               app.*
    Path              /var/log/app/*.log, /var/log/web/*.log
    Exclude_Path      *.gz,*.zip
    DB                /var/fluent-bit/tail.db
    Read_from_Head    On
    Refresh_Interval  10
    Mem_Buf_Limit     5MB
    multiline.parser  java

[FILTER]
    Name   grep
    Match  *
    Regex  log error

[OUTPUT]
    Name             s3
    Match            app*
    bucket           ${bucket}
    region           eu-central-1
    total_file_size  50M
    upload_timeout   10m
    s3_key_format    /logs/$TAG/%Y/%m/%d/$INDEX.json.gz
    compression      gzip
    Retry_Limit      5

[OUTPUT]
    Name               cloudwatch_logs
    Alias              Live Logs
    Match              *
    region             ${REGION}
    log_group_name     /app
    log_stream_prefix  from-
    auto_create_group  On
    log_retention_days 30
    Retry_Limit        no_limits
";

#[test]
fn a_usual_configuration_becomes_one_that_does_the_same_with_a_comment_at_each_difference() {
    let expected = r#"# Made of fluent-bit.conf by `wharf convert`. Check it with `wharf validate`.
# A variable that is not set is a fault here, and not an empty text: write ${NAME:-} where it may be missing.
# storage.path /var/fluent-bit/state: of another format; records that are in it are delivered by Fluent Bit, before it is stopped for good.
data_dir: /var/lib/wharf
grace: 30s
log:
  level: warn
# /health, /ready and /metrics; what they are called and say is in docs/operations.md.
admin:
  listen: "0.0.0.0:2021"
# flush 5: an output's batches close by "batch": { max_bytes, max_records, max_age }.
# fluent-bit.conf:23: the filter grep has no counterpart: records are delivered as they come in.
sources:
  tail:
    type: tail
    paths: ["/var/log/app/*.log", "/var/log/web/*.log"]
    exclude: ["*.gz", "*.zip"]
    refresh_interval: 10s
    # db /var/fluent-bit/tail.db: positions are kept in data_dir, in one commit with the records.
    multiline: [java]
    # Tag app.*: Fluent Bit puts the file's path in place of the *; here all files of a source have one tag.
    tag: app
    # mem_buf_limit 5MB: every record goes to the journal on disk first; there is nothing to choose.
outputs:
  s3:
    plugin: s3
    match: "app*"
    aws:
      region: eu-central-1
    batch:
      max_bytes: 50MB
      max_age: 10m
    config:
      bucket: "${bucket:-my-logs}"
      # $INDEX begins at 0, or at index_start: set that above what is in the bucket. It never goes back here, and no object is ever overwritten.
      # A / in a tag becomes _ in the key here.
      key_format: /logs/$TAG/%Y/%m/%d/$INDEX.json.gz
      compression: gzip
      # An object is one compressed stream, and says so (content_encoding), as Fluent Bit's do.
    # Retry_Limit 5: retries are limited by time, retry.max_age (24h); then records become dead letters, which can be replayed.
  live_logs:
    plugin: cloudwatch_logs
    match: "*"
    aws:
      region: "${REGION}"
    config:
      log_group_name: /app
      log_stream_prefix: from-
      auto_create_group: true
      log_retention_days: 30
    retry:
      max_age: 3650d
"#;
    assert_eq!(classic(CLASSIC), expected);
    let config = read(expected);
    assert_eq!((config.sources.len(), config.outputs.len()), (1, 2));
}

#[test]
fn the_yaml_format_says_the_same() {
    let yaml = r"
env: { bucket: my-logs }
service: { flush: 5, grace: 30, log_level: warning, http_server: on, http_port: 2021, storage.path: /var/fluent-bit/state }
pipeline:
  inputs:
    - name: tail
      tag: app.*
      path: [/var/log/app/*.log, /var/log/web/*.log]
      exclude_path: '*.gz,*.zip'
      db: /var/fluent-bit/tail.db
      read_from_head: true
      refresh_interval: 10
      mem_buf_limit: 5MB
      multiline.parser: java
  filters:
    - { name: grep, match: '*', regex: log error }
  outputs:
    - name: s3
      match: app*
      bucket: ${bucket}
      region: eu-central-1
      total_file_size: 50M
      upload_timeout: 10m
      s3_key_format: /logs/$TAG/%Y/%m/%d/$INDEX.json.gz
      compression: gzip
      retry_limit: 5
    - name: cloudwatch_logs
      alias: Live Logs
      match: '*'
      region: ${REGION}
      log_group_name: /app
      log_stream_prefix: from-
      auto_create_group: on
      log_retention_days: 30
      retry_limit: no_limits
";
    let text = converted("fluent-bit.yaml", yaml, &[]).unwrap().text;
    let places = |text: &str| {
        text.replace("fluent-bit.yaml:16", "fluent-bit.conf:23").replace("fluent-bit.yaml", "fluent-bit.conf")
    };
    assert_eq!(places(&text), classic(CLASSIC));
}

/// The options of Fluent Bit 5.1's documentation, but those that every plugin has.
#[test]
fn every_documented_option_of_what_wharf_has_is_translated_or_explained() {
    const TAIL: &str = "path exclude_path key parser multiline.parser read_from_head read_newly_discovered_files_from_head refresh_interval \
        watcher_interval progress_check_interval rotate_wait buffer_chunk_size buffer_max_size static_batch_size event_batch_size skip_long_lines \
        truncate_long_lines skip_empty_lines file_cache_advise inotify_watcher db db.sync db.locking db.journal_mode db.compare_filename \
        multiline docker_mode tag_regex ignore_older path_key mem_buf_limit storage.type threaded tag";
    const HTTP: &str = "listen port tag_key successful_response_code success_header buffer_max_size buffer_chunk_size http2 threaded tag";
    const FORWARD: &str = "listen port tag_prefix shared_key empty_shared_key self_hostname security.users buffer_chunk_size buffer_max_size workers \
        tls tls.crt_file tls.key_file tls.ca_file tls.verify_client_cert tls.verify threaded";
    const S3: &str = "match bucket region endpoint role_arn external_id sts_endpoint profile format compression content_type json_date_key json_date_format \
        log_key total_file_size upload_chunk_size upload_timeout use_put_object s3_key_format s3_key_format_tag_delimiters static_file_path store_dir \
        store_dir_limit_size preserve_data_ordering retry_exhausted_action quarantine_dir_limit_size auto_retry_requests send_content_md5 canned_acl \
        storage_class retry_limit workers blob_database_file part_size file_delivery_attempt_limit part_delivery_attempt_limit upload_parts_timeout \
        upload_part_freshness_limit authorization_endpoint_url authorization_endpoint_username authorization_endpoint_password \
        authorization_endpoint_bearer_token net.connect_timeout net.keepalive net.max_worker_connections tls tls.verify storage.total_limit_size";
    const LOGS: &str = "match region log_group_name log_stream_name log_stream_prefix log_group_template log_stream_template log_key log_format \
        metric_namespace metric_dimensions auto_create_group log_retention_days log_group_class add_entity extra_user_agent auto_retry_requests \
        role_arn external_id sts_endpoint profile endpoint port workers retry_limit net.connect_timeout";
    for (section, plugin, options) in [
        ("INPUT", "tail", TAIL),
        ("INPUT", "http", HTTP),
        ("INPUT", "forward", FORWARD),
        ("OUTPUT", "s3", S3),
        ("OUTPUT", "cloudwatch_logs", LOGS),
    ] {
        let lines: String = options.split_whitespace().map(|option| format!("    {option} 5\n")).collect();
        let text = classic(&format!("[{section}]\n    Name {plugin}\n{lines}"));
        assert!(!text.contains("has no counterpart here"), "{text}");
    }
    let other =
        classic("[INPUT]\n    Name tail\n    Path /x\n    Offset_Key o\n[OUTPUT]\n    Name kafka\n    Brokers b\n");
    assert!(other.contains("    # Offset_Key o: has no counterpart here.\n"), "{other}");
    assert!(other.contains("  # fluent-bit.conf:5: the output kafka is not built in"), "{other}");
}

#[test]
fn a_forward_input_keeps_its_users_its_key_and_its_certificates() {
    let text = classic(
        "[INPUT]\n  Name forward\n  Listen ::1\n  Port 24225\n  Tag_Prefix edge.\n  Shared_Key ${KEY}\n  Self_Hostname hub\n  Security.Users ann secret one\n  \
         Security.Users bob two\n  tls on\n  tls.crt_file /a.pem\n  tls.key_file /a.key\n  Buffer_Max_Size 6M\n[OUTPUT]\n  Name s3\n  Match *\n  bucket b\n",
    );
    let expected = "  forward:\n    type: forward\n    listen: \"[::1]:24225\"\n    tag_prefix: edge.\n    self_hostname: hub\n    shared_key: \"${KEY}\"\n    \
                    users: [{ username: \"ann\", password: \"secret one\" }, { username: \"bob\", password: \"two\" }]\n    max_message_size: 6MB\n    \
                    tls:\n      cert_file: /a.pem\n      key_file: /a.key\n";
    assert!(text.contains(expected), "{text}");
    let unix = classic(
        "[INPUT]\n  Name forward\n  unix_path /run/f.sock\n  unix_perm 0660\n[OUTPUT]\n  Name s3\n  Match *\n  bucket b\n",
    );
    assert!(unix.contains("    unix_path: /run/f.sock\n    unix_perm: \"0660\"\n"), "{unix}");
    assert!(matches!(&read(&unix).sources[0].kind, SourceKind::Forward(forward) if forward.unix_perm == Some(0o660)));
}

#[test]
fn a_regular_expression_over_tags_becomes_the_tags_that_it_matches() {
    let text = classic(
        "[INPUT]\n  Name stdin\n  Tag app.web\n[INPUT]\n  Name http\n  Port 9881\n  Tag other\n[OUTPUT]\n  Name s3\n  Match_Regex ^app\\.\n  bucket b\n",
    );
    assert!(text.contains("    match: app.web\n"), "{text}");
    read(&text);
}

#[test]
fn parsers_and_the_inputs_of_other_protocols_become_what_wharf_has() {
    let text = classic(
        "[PARSER]\n Name app\n Format regex\n Regex ^(?<time>[^ ]+) (?<level>\\w+) (?<log>.*)$\n Time_Key time\n Time_Format %Y-%m-%dT%H:%M:%S.%L\n Time_Keep On\n\
         [INPUT]\n Name tail\n Path /x\n Parser app\n multiline.parser cri, own\n Skip_Long_Lines On\n Path_Key file\n Ignore_Older 2h\n\
         [INPUT]\n Name opentelemetry\n Port 4319\n[INPUT]\n Name syslog\n Mode tcp\n[OUTPUT]\n Name s3\n Match *\n bucket b\n",
    );
    let expected = "    ignore_older: 2h\n    path_key: file\n    long_lines: skip\n    multiline: [cri]\n    \
                    # multiline.parser own: write multiline: { start: REGEX, continue: REGEX } (docs/sources.md).\n    parse:\n      format: regex\n      \
                    pattern: \"^(?<time>[^ ]+) (?<level>\\\\w+) (?<log>.*)$\"\n      time_key: time\n      time_format: rfc3339\n      \
                    keep_time_key: true\n";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("    type: otlp\n") && text.contains("    http:\n      listen: \"0.0.0.0:4319\"\n"),
        "{text}"
    );
    assert!(text.contains("    type: syslog\n    tcp:\n      listen: \"0.0.0.0:5140\"\n"), "{text}");
    assert_eq!(read(&text).sources.len(), 3);
}

/// Fluent Bit takes slashes around a pattern away, with options behind the last one (`str_to_regex` of its `src/flb_regex.c`); its own
/// `conf/parsers.conf` has none, but what comes from Fluentd does.
#[test]
fn a_pattern_between_slashes_is_one_without_them() {
    let text = classic(
        "[PARSER]\n Name app\n Format regex\n Regex /^(?<a>\\d+)$/i\n[INPUT]\n Name tail\n Path /x\n Parser app\n Tag app.web\n\
         [OUTPUT]\n Name s3\n Match_Regex /^APP\\./i\n bucket b\n",
    );
    assert!(text.contains("      pattern: \"(?i)^(?<a>\\\\d+)$\"\n"), "{text}");
    assert!(text.contains("    match: app.web\n"), "{text}");
    read(&text);
}

/// `instance_id` of Fluent Bit 5's `src/flb_input.c` counts inputs of all types in one row: with two inputs of others before it, the one that it
/// adds for its own storage is `storage_backlog.2` (<https://github.com/fluent/fluent-bit/issues/9115>).
#[test]
fn an_input_without_a_tag_has_its_type_and_its_number_among_all_inputs() {
    let text = classic(
        "[INPUT]\n Name tail\n Path /a\n[INPUT]\n Name tail\n Path /b\n[INPUT]\n Name cpu\n[INPUT]\n Name syslog\n Mode tcp\n\
         [INPUT]\n Name stdin\n Tag own\n[INPUT]\n Name tail\n Path /c\n[INPUT]\n Name http\n[OUTPUT]\n Name s3\n Match *\n bucket b\n",
    );
    let config = read(&text);
    let tags: Vec<&str> = config.sources.iter().map(|source| &*source.tag).collect();
    assert_eq!(tags, ["tail.0", "tail.1", "syslog.3", "own", "tail.5", "http.6"]);
}

/// "The tag for the HTTP input plugin is set by adding the tag to the end of the request URL", and "If you do not set the tag `http.0` is
/// automatically used" (<https://docs.fluentbit.io/manual/data-pipeline/inputs/http>). `http_prot_handle` of `plugins/in_http/http_prot.c` takes
/// the path also where there is a `Tag`, which is for requests to `/`, and writes `_` for all but letters, digits, `_` and `.`.
#[test]
fn an_http_input_takes_tags_of_paths_and_its_own_for_requests_to_the_root() {
    let text = classic(
        "[INPUT]\n Name http\n Port 8888\n tag_key k\n[INPUT]\n Name http\n Tag own\n tls on\n tls.crt_file /a.pem\n tls.key_file /a.key\n\
         [OUTPUT]\n Name s3\n Match *\n bucket b\n",
    );
    let expected = "    listen: \"0.0.0.0:8888\"\n    # A path makes the tag. Fluent Bit writes _ for what is no letter, digit, _ or . (/app/web has app_web); \
                    here a / is a dot (app.web), and the rest stays.\n    tag_from: path\n    # tag_key k: a tag is of a request's path, or of its \
                    header (tag_from: header), and not of a record's key.\n    tag: http.0\n";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("    tag_from: path\n    tls:\n      cert_file: /a.pem\n      key_file: /a.key\n    tag: own\n"),
        "{text}"
    );
    read(&text.replace("    tls:\n      cert_file: /a.pem\n      key_file: /a.key\n", ""));
}

/// "`tag_from_uri`: By default, the tag will be created from the URI. For example, `v1_metrics` from `/v1/metrics`", and it is on by itself
/// (<https://docs.fluentbit.io/manual/data-pipeline/inputs/opentelemetry>).
#[test]
fn an_opentelemetry_input_has_the_tag_of_the_path_of_logs_unless_that_is_off() {
    for (options, tag) in [
        ("", "v1_logs"),
        (" Tag own\n", "v1_logs"),
        (" tag_from_uri false\n", "opentelemetry.0"),
        (" tag_from_uri false\n Tag own\n", "own"),
    ] {
        let text =
            classic(&format!("[INPUT]\n Name opentelemetry\n{options}[OUTPUT]\n Name s3\n Match *\n bucket b\n"));
        assert_eq!(read(&text).sources.iter().map(|source| &*source.tag).collect::<Vec<_>>(), [tag], "{text}");
        assert_eq!(text.contains("# Tag own: Fluent Bit takes the path's, v1_logs"), options == " Tag own\n", "{text}");
    }
}

/// "Parsers_File: Path for a parsers configuration file. Multiple `Parsers_File` entries can be defined within the section"
/// (<https://docs.fluentbit.io/manual/administration/configuring-fluent-bit/classic-mode/configuration-file>); `flb_parser_conf_file` of
/// `src/flb_parser.c` reads it from the folder of the configuration on, and nothing but parsers of it.
#[test]
fn parsers_come_from_every_parsers_file_that_the_service_names() {
    let beside = [
        ("one.conf", "[PARSER]\n Name one\n Format json\n[INPUT]\n Name stdin\n"),
        (
            "two.yaml",
            "parsers:\n  - { name: two, format: regex, regex: '/^(?<a>.*)$/' }\nmultiline_parsers:\n  - { name: own, type: regex }\n",
        ),
    ];
    let one = "    parse:\n      format: json\n";
    let two = "    parse:\n      format: regex\n      pattern: \"^(?<a>.*)$\"\n";
    let text = converted(
        "f.conf",
        "[SERVICE]\n Parsers_File one.conf\n Parsers_File two.yaml\n[INPUT]\n Name tail\n Path /x\n Parser one\n\
         [INPUT]\n Name tail\n Path /y\n Parser two\n[OUTPUT]\n Name s3\n Match *\n bucket b\n",
        &beside,
    );
    let Converted { text, warnings, .. } = text.unwrap();
    assert!(text.contains(one) && text.contains(two), "{text}");
    assert!(text.contains("# two.yaml:4: [multiline_parsers] is not translated.\n"), "{text}");
    assert!(!text.to_ascii_lowercase().contains("parsers_file"), "{text}");
    assert_eq!((read(&text).sources.len(), warnings), (2, vec![]));
    for files in ["[one.conf, two.yaml]", "two.yaml"] {
        let yaml = format!(
            "service: {{ parsers_file: {files} }}\npipeline:\n  inputs: [{{ name: tail, path: /y, parser: two }}]\n  \
             outputs: [{{ name: s3, match: '*', bucket: b }}]\n"
        );
        let text = converted("f.yaml", &yaml, &beside).unwrap().text;
        assert!(text.contains(two), "{text}");
    }
}

#[test]
fn a_parsers_file_that_cannot_be_read_is_told_with_the_line_that_names_it() {
    let rest = "[INPUT]\n Name tail\n Path /x\n Parser app\n[OUTPUT]\n Name s3\n Match *\n bucket b\n";
    let told = |parsers: Option<&str>| {
        let text = format!("[SERVICE]\n Flush 1\n Parsers_File app.conf\n{rest}");
        let beside: Vec<(&str, &str)> = parsers.map(|text| ("app.conf", text)).into_iter().collect();
        let Converted { text, warnings, .. } = converted("f.conf", &text, &beside).unwrap();
        assert!(text.contains("# Parser app: it is defined elsewhere"), "{text}");
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert!(text.contains(&format!("# {warning}\n")), "{text}");
        warning.clone()
    };
    let missing = told(None);
    assert!(missing.starts_with("f.conf:3: Parsers_File app.conf: /"), "{missing}");
    assert!(
        missing.ends_with(
            "/app.conf cannot be read: No such file or directory (os error 2). Mend that and convert again, so that inputs have its parsers."
        ),
        "{missing}"
    );
    let broken = told(Some("[PARSER\n"));
    assert!(broken.contains("/app.conf:1: a section ends with a ]. Mend that"), "{broken}");
}

#[test]
fn names_are_made_such_that_they_are_names_and_each_is_there_once() {
    let text = classic(
        "[INPUT]\n Name stdin\n Alias Ünter/Grund\n[OUTPUT]\n Name s3\n Match a\n bucket b\n[OUTPUT]\n Name s3\n Match b\n bucket b\n",
    );
    let config = read(&text);
    assert_eq!(&*config.sources[0].name, "_nter_grund");
    assert_eq!(config.outputs.iter().map(|output| &*output.name).collect::<Vec<_>>(), ["s3", "s3_2"]);
}

#[test]
fn included_files_are_read_in_the_order_of_their_names() {
    let beside = [
        ("out-b.conf", "[OUTPUT]\n Name s3\n Alias b\n Match b\n bucket b\n"),
        ("out-a.conf", "[OUTPUT]\n Name s3\n Alias a\n Match a\n bucket b\n"),
    ];
    let text = converted("f.conf", "[INPUT]\n Name stdin\n@INCLUDE out-*.conf\n", &beside).unwrap().text;
    assert_eq!(read(&text).outputs.iter().map(|output| &*output.name).collect::<Vec<_>>(), ["a", "b"]);
    let beside = [("in.yaml", "pipeline: { inputs: [{ name: stdin }] }\n")];
    let text = converted(
        "f.yaml",
        "includes: [in.yaml]\npipeline: { outputs: [{ name: s3, match: '*', bucket: b }] }\n",
        &beside,
    )
    .unwrap()
    .text;
    assert_eq!(read(&text).sources.len(), 1);
}

#[test]
fn what_is_no_configuration_is_told_with_its_place() {
    let told = |name: &str, text: &str| {
        let error = converted(name, text, &[]).unwrap_err().to_string();
        error[error.find(name).unwrap()..].to_owned()
    };
    assert_eq!(told("f.conf", "Name s3\n"), "f.conf:1: expected a section such as [INPUT] before the first option");
    assert_eq!(told("f.conf", "[INPUT\n"), "f.conf:1: a section ends with a ]");
    assert_eq!(told("f.conf", "@SET x\n"), "f.conf:1: @SET wants NAME=VALUE behind it");
    assert_eq!(told("f.conf", "[SERVICE]\n  Flush 1\n"), "f.conf has neither an input nor an output");
    assert_eq!(
        told("f.conf", "@INCLUDE f.conf\n"),
        "f.conf:1: includes go deeper than 16 files: does one include itself?"
    );
    assert!(told("f.yaml", "pipeline: [\n").starts_with("f.yaml:"), "{}", told("f.yaml", "pipeline: [\n"));
}

#[test]
fn an_included_file_that_cannot_be_read_is_told_with_the_line_that_includes_it() {
    let includes = [
        ("f.conf", "[INPUT]\n Name stdin\n\n@INCLUDE missing\n", 4),
        ("f.yaml", "# One.\nincludes:\n  - missing\n", 3),
    ];
    for (name, text, line) in includes {
        let error = converted(name, text, &[]).unwrap_err().to_string();
        assert!(error.contains(&format!("/{name}:{line}: includes /")), "{error}");
        assert!(
            error.ends_with(
                "/missing, which cannot be read: No such file or directory (os error 2): correct its name, or take it out"
            ),
            "{error}"
        );
    }
    for name in ["missing.conf", "missing.yaml"] {
        let error = convert(Path::new(name)).unwrap_err().to_string();
        assert_eq!(error, format!("{name} cannot be read: No such file or directory (os error 2)"));
    }
}

/// "`name`: Name of the input plugin", without which Fluent Bit does not start
/// (<https://docs.fluentbit.io/manual/administration/configuring-fluent-bit/yaml/pipeline-section>).
#[test]
fn a_section_without_a_name_is_told_with_its_place() {
    let yaml = "pipeline:\n  inputs:\n    - tag: a\n    - name: stdin\n  filters:\n    - match: a\n  outputs:\n    - match: a\n";
    let Converted { text, warnings, .. } = converted("f.yaml", yaml, &[]).unwrap();
    let expected = [
        "f.yaml:3: an input without \"name\": say which it is, for example tail.",
        "f.yaml:6: a filter without \"name\": say which it is, for example grep.",
        "f.yaml:8: an output without \"name\": say which it is, for example s3.",
    ];
    assert_eq!(warnings, expected);
    assert!(expected.iter().all(|line| text.contains(&format!("# {line}\n"))), "{text}");
    let text = classic("[INPUT]\n Tag a\n[INPUT]\n Name stdin\n");
    assert!(text.contains("# fluent-bit.conf:1: an input without \"name\""), "{text}");
}

#[test]
fn passwords_of_what_has_no_counterpart_are_in_no_comment() {
    let text = classic(
        "[OUTPUT]\n Name s3\n Match *\n bucket b\n authorization_endpoint_password hush\n authorization_endpoint_bearer_token hush\n",
    );
    assert!(!text.contains("hush"), "{text}");
}

/// The page for operators shows a file and what becomes of it: both are true.
#[test]
fn the_documents_example_is_what_comes_out() {
    let page = include_str!("../../../docs/migrate-from-fluent-bit.md");
    let block = |begin: &str| {
        let (_, rest) = page.split_once(begin).unwrap();
        rest.split_once("```").unwrap().0.to_owned()
    };
    assert_eq!(classic(&block("```ini\n")), block("```yaml\n"));
}

/// `flb_parser_create` and `flb_parser_time_lookup` of Fluent Bit's `src/flb_parser.c`: no time is looked for without a format, its key is `time` where none is named,
/// and what is behind the time is left alone. The formats are those of its own `conf/parsers.conf`.
#[test]
fn the_time_of_a_parser_is_read_as_fluent_bit_reads_it() {
    for (options, lines, remark) in [
        (" Time_Key t\n", "", "Fluent Bit reads no time without a Time_Format."),
        (" Time_Format %Y-%m-%dT%H:%M:%S.%L\n", "      time_key: time\n      time_format: rfc3339\n", ""),
        (" Time_Key t\n Time_Format %Y-%m-%dT%H:%M:%S.%L%z\n", "      time_key: t\n      time_format: rfc3339\n", ""),
        (
            " Time_Key t\n Time_Format %d/%b/%Y:%H:%M:%S %z\n",
            "      time_key: t\n      time_format: \"%d/%b/%Y:%H:%M:%S %z\"\n",
            "",
        ),
        (
            " Time_Key t\n Time_Format %b %d %H:%M:%S\n",
            "      time_key: t\n      time_format: \"%b %d %H:%M:%S\"\n",
            "Parser p, Time_Format %b %d %H:%M:%S: it has no year",
        ),
    ] {
        let text = classic(&format!(
            "[PARSER]\n Name p\n Format json\n{options}[INPUT]\n Name tail\n Path /x\n Parser p\n[OUTPUT]\n Name s3\n Match *\n bucket b\n"
        ));
        assert!(text.contains(lines) && text.contains(remark), "{text}");
        assert_eq!(text.contains("time_key"), !lines.is_empty(), "{text}");
        read(&text);
    }
}
