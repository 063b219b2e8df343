//! Reads what a `tail` source may have besides its files: what becomes of long lines.

use super::model::LongLines;
use super::reader::Section;

/// `long_lines`
pub(crate) fn long_lines(section: &mut Section<'_>) -> LongLines {
    let choices = [("truncate", LongLines::Truncate), ("split", LongLines::Split), ("skip", LongLines::Skip)];
    section.one_of("long_lines", &choices).unwrap_or_default()
}
