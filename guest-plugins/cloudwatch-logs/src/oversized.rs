//! Events that are larger than CloudWatch Logs takes: cut where nothing is damaged.
//!
//! A cut never lies within a character, nor within an escape of JSON (`\n`, `\u00e9`, the pair `\ud83d\ude00`): many messages are JSON,
//! or hold JSON, and half an escape makes readers refuse what is otherwise readable.

use wharf_plugin::HostError;
use wharf_plugin::cloudwatch_logs::Piece;

use crate::calls::MAX_CALL;
use crate::settings::{EVENT_OVERHEAD, Oversized};
use crate::world::Events;

/// The largest message: it fills a call alone. (An event may have 1 MB, and a call 1,048,576 bytes with 26 for each event.)
pub const MAX_MESSAGE: u32 = MAX_CALL - EVENT_OVERHEAD;
/// The longest escape: a surrogate pair.
const LONGEST_ESCAPE: u32 = 12;
/// Bytes looked at before a cut, where they tell enough.
const LOOK_BACK: u32 = 256;

/// The events that one that is too large becomes.
///
/// # Errors
/// Where the host cannot give the message.
pub fn parts<E: Events>(events: &E, event: u32, size: u32, choice: Oversized) -> Result<Vec<Piece>, HostError> {
    match choice {
        Oversized::DeadLetter => Ok(Vec::new()),
        Oversized::Truncate => truncate(events, event, size).map(|piece| vec![piece]),
        Oversized::Split => split(events, event, size),
    }
}

fn truncate<E: Events>(events: &E, event: u32, size: u32) -> Result<Piece, HostError> {
    let mark = |cut: u32| format!(" [truncated: {cut} bytes cut off]");
    let length = cut(events, event, 0, MAX_MESSAGE - length(&mark(size)), size)?;
    Ok(Piece { event, offset: 0, length, before: String::new(), after: mark(size - length) })
}

fn split<E: Events>(events: &E, event: u32, size: u32) -> Result<Vec<Piece>, HostError> {
    let mark = |part: usize, of: usize| format!("[part {part}/{of}] ");
    // How many parts there are depends on how long their marks are, which depends on how many there are.
    let mut expected = 9;
    loop {
        let room = MAX_MESSAGE - length(&mark(expected, expected));
        let mut ends = Vec::new();
        let mut from = 0;
        while from < size {
            from = cut(events, event, from, from.saturating_add(room), size)?;
            ends.push(from);
        }
        if ends.len() > expected {
            expected = expected * 10 + 9;
            continue;
        }
        let of = ends.len();
        let mut offset = 0;
        let pieces = ends.iter().enumerate().map(|(n, end)| {
            let piece = Piece { event, offset, length: end - offset, before: mark(n + 1, of), after: String::new() };
            offset = *end;
            piece
        });
        return Ok(pieces.collect());
    }
}

fn length(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

/// The last place up to `at` where the message can be cut; `from` is one.
fn cut<E: Events>(events: &E, event: u32, from: u32, at: u32, size: u32) -> Result<u32, HostError> {
    if at >= size {
        return Ok(size);
    }
    let mut look_back = LOOK_BACK;
    loop {
        let begin = at.saturating_sub(look_back).max(from);
        let text = events.read(event, begin, at - begin + LONGEST_ESCAPE)?;
        if let Some(place) = place(&text, (at - begin) as usize, begin == from) {
            let place = begin + u32::try_from(place).unwrap_or(0);
            // Nothing is so long that it could not be passed.
            return Ok(if place > from { place } else { at });
        }
        look_back = look_back.saturating_mul(16);
    }
}

/// The last place up to `at` that is within nothing. `whole`: the text begins where something begins. None where backslashes reach back to
/// a beginning that is no such place: whether the last one begins an escape depends on how many there are.
fn place(text: &[u8], at: usize, whole: bool) -> Option<usize> {
    let continues = |place: usize| text.get(place).is_some_and(|byte| byte & 0xc0 == 0x80);
    let mut cut = at.min(text.len());
    while cut > 0 && continues(cut) {
        cut -= 1;
    }
    for start in cut.saturating_sub(LONGEST_ESCAPE as usize - 1)..cut {
        let rest = text.get(start..).unwrap_or_default();
        if rest.first() != Some(&b'\\') || start + escape_length(rest) <= cut {
            continue;
        }
        let before = text.get(..start).unwrap_or_default().iter().rev().take_while(|byte| **byte == b'\\').count();
        if before == start && !whole {
            return None;
        }
        if before % 2 == 0 {
            return Some(start);
        }
    }
    Some(cut)
}

/// Bytes of the escape that begins here.
fn escape_length(text: &[u8]) -> usize {
    match unit(text) {
        Some(0xd800..=0xdbff) if matches!(text.get(6..).and_then(unit), Some(0xdc00..=0xdfff)) => 12,
        Some(_) => 6,
        None => 2,
    }
}

/// The UTF-16 unit of `\uXXXX`.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(text.strip_prefix(b"\\u")?.get(..4)?).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
