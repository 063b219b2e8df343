//! Parsers of lines become `parse`, those that join lines `multiline`.

use super::block::Block;
use super::pattern;
use super::shared::listed;
use super::yaml::Map;

/// What joins lines, by the names that both know.
const JOINING: [&str; 5] = ["docker", "cri", "java", "python", "go"];

/// Translates an input's `Parser` and `multiline.parser`. `parsers` are those that the configuration defines.
pub(super) fn of_input(block: &Block, parsers: &[&Block], map: &mut Map) {
    multiline(block, map);
    let Some(wanted) = block.take("parser") else { return };
    let named =
        |parser: &&&Block| parser.options.iter().any(|it| it.key.eq_ignore_ascii_case("name") && it.value == wanted);
    match (parsers.iter().find(named), wanted) {
        (Some(parser), _) => defined(parser, wanted, map),
        // Those of the file that Fluent Bit comes with.
        (None, "json" | "docker") => map.within("parse").plain("format", "json"),
        (None, "cri" | "logfmt") => map.within("parse").plain("format", wanted),
        (None, _) => map.remark(format!(
            "Parser {wanted}: it is defined elsewhere; write parse: {{ format: regex, pattern: …, time_key: …, time_format: … }} (docs/sources.md)."
        )),
    }
}

fn defined(parser: &Block, wanted: &str, map: &mut Map) {
    let format = parser.take("format").unwrap_or_default().to_ascii_lowercase();
    if !matches!(&*format, "json" | "regex" | "logfmt") {
        map.remark(format!("Parser {wanted}: there is no format {format}; a line is delivered as it is."));
        return;
    }
    let parse = map.within("parse");
    parse.plain("format", format);
    if let Some(text) = parser.take("regex") {
        parse.text("pattern", &pattern::translated(text));
    }
    let (key, written) = (parser.take("time_key"), parser.take("time_format"));
    let keep = parser.take_switch("time_keep");
    match written {
        // Fluent Bit's key where none is named (flb_parser.c).
        Some(written) => {
            parse.text("time_key", key.unwrap_or("time"));
            parse.text("time_format", &time_format(written));
            if keep == Some(true) {
                parse.plain("keep_time_key", true);
            }
            if !has_year(written) {
                map.remark(format!(
                    "Parser {wanted}, Time_Format {written}: it has no year, so the key stays as it is, and the record's time is that of reading."
                ));
            }
        }
        None if key.is_some() => {
            map.remark(format!("Parser {wanted}: Fluent Bit reads no time without a Time_Format."))
        }
        None => {}
    }
    for key in [
        "types",
        "decode_field",
        "decode_field_as",
        "time_offset",
        "time_strict",
        "skip_empty_values",
        "time_system_timezone",
    ] {
        if let Some(value) = parser.take(key) {
            map.remark(format!("Parser {wanted}, {key} {value}: has no counterpart here."));
        }
    }
}

/// Fluent Bit's `%L` is the fraction of the second, with its dot or comma before it. It asks for nothing behind the time: of ISO 8601, `Z` and offsets
/// with a colon, which are taken here by that name alone.
fn time_format(written: &str) -> String {
    let zoneless = written.trim_end_matches("%z").trim_end_matches('Z');
    match zoneless.trim_end_matches(".%L") {
        "%Y-%m-%dT%H:%M:%S" | "%Y-%m-%d %H:%M:%S" => "rfc3339".to_owned(),
        _ => written.replace(".%L", "%.f"),
    }
}

fn has_year(written: &str) -> bool {
    ["%Y", "%y", "%G", "%C", "%D", "%F", "%c", "%x", "%s"].iter().any(|it| written.contains(it))
}

fn multiline(block: &Block, map: &mut Map) {
    let wanted = listed(&block.take_all("multiline.parser"));
    let (known, others): (Vec<String>, Vec<String>) =
        wanted.into_iter().partition(|name| JOINING.contains(&name.as_str()));
    if !known.is_empty() {
        map.list("multiline", known);
    }
    for name in others {
        map.remark(format!(
            "multiline.parser {name}: write multiline: {{ start: REGEX, continue: REGEX }} (docs/sources.md)."
        ));
    }
}
