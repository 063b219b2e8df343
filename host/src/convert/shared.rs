//! What inputs and outputs have in common: names, sizes, times, and what is left over.

use super::block::Block;
use super::yaml::Map;

/// A name for the map of sources or outputs: the alias, or the plugin's; with a number where it is taken. Names here have few characters.
pub(super) fn name(block: &Block, taken: &Map) -> String {
    let wanted = block.take("alias").filter(|alias| !alias.is_empty()).unwrap_or(&block.plugin);
    let fine = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    let mut base: String = wanted.chars().map(fine).take(56).collect();
    if base.is_empty() {
        base.push_str("unnamed");
    }
    let numbered = (2..).map(|n| format!("{base}_{n}"));
    std::iter::once(base.clone()).chain(numbered).find(|name| !taken.has(name)).unwrap_or(base)
}

/// A size as Fluent Bit writes it (`50M` is 50,000,000), with a unit that can only mean one thing. What is none is kept for `wharf validate` to tell.
pub(super) fn size(text: &str) -> String {
    let text = text.trim();
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    match text.get(number.len()..).unwrap_or_default().to_ascii_uppercase().as_str() {
        "K" | "KB" => format!("{number}KB"),
        "M" | "MB" => format!("{number}MB"),
        "G" | "GB" => format!("{number}GB"),
        _ => text.to_owned(),
    }
}

/// A time as Fluent Bit writes it: seconds, or with one of the units s, m, h, d.
pub(super) fn duration(text: &str) -> String {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return format!("{text}s");
    }
    text.to_ascii_lowercase()
}

/// What a list with commas holds.
pub(super) fn listed(texts: &[&str]) -> Vec<String> {
    texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned).collect()
}

/// Names options that mean something else here, each that is there, with what is here in its place.
pub(super) fn instead(block: &Block, map: &mut Map, options: &[(&str, &str)]) {
    for (key, why) in options {
        if let Some(value) = block.take(key) {
            map.remark(format!("{key} {}: {why}", shown(value)));
        }
    }
}

/// Names what nothing has dealt with.
pub(super) fn left_over(block: &Block, map: &mut Map) {
    for option in block.rest() {
        map.remark(format!("{} {}: has no counterpart here.", option.key, shown(&option.value)));
    }
}

/// A value in a comment: on one line, not too long, and nothing that may be a secret.
fn shown(value: &str) -> String {
    let line: String = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.chars().count() > 80 { line.chars().take(77).chain("...".chars()).collect() } else { line }
}

/// Options of the engine that every input and output has.
pub(super) fn engine(block: &Block, map: &mut Map) {
    const JOURNAL: &str = "every record goes to the journal on disk first; there is nothing to choose.";
    const OWN: &str = "each source and output has its own workers; there is nothing to choose.";
    instead(
        block,
        map,
        &[
            ("mem_buf_limit", JOURNAL),
            ("storage.type", JOURNAL),
            ("storage.pause_on_chunks_overlimit", JOURNAL),
            ("threaded", OWN),
            ("thread.ring_buffer.capacity", OWN),
            ("log_level", "there is one level, and a filter: see \"log\" at the top level."),
        ],
    );
}
