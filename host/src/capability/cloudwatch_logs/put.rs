//! One call of PutLogEvents: what is asked is checked, then written.
//!
//! What the service judges by the content (times, an empty message) stays its own to say. What is checked here keeps the host's work for one call
//! bounded: as many events and bytes as the service takes.

use super::body::PutBody;
use super::events::{Events, Reader, no_message};
use super::grant::check_stream_name;
use crate::capability::bindings::cloudwatch_logs::{Entity, Piece, Put};
use crate::capability::bindings::types::HostError;
use crate::capability::escape::one_line;
use crate::capability::records::unreadable;
use crate::record::encode::Message;

/// Most events of a call, most bytes, and what each event counts on top of its message:
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>.
const MAX_EVENTS: usize = 10_000;
const MAX_BYTES: u64 = 1_048_576;
const EVENT_BYTES: u64 = 26;
/// Bytes of names and values of an entity. The service takes 14 pairs at most, each under 1,300 bytes.
const ENTITY_BYTES: usize = 32 << 10;
/// Longest value of `x-amzn-logs-format`.
const FORMAT_BYTES: usize = 64;
/// Bytes around a message, and most that are taken ahead for a request.
const FRAME_BYTES: u64 = 48;
const MAX_AHEAD: u64 = 2 << 20;

/// Finds what needs no record to be read.
pub(super) fn check(events: &Events, what: &Put) -> Result<(), HostError> {
    check_stream_name(&what.log_stream)?;
    if what.order.is_empty() || what.order.len() > MAX_EVENTS {
        return Err(HostError::Invalid(format!(
            "{} events are to be sent; a call takes 1 to {MAX_EVENTS}",
            what.order.len()
        )));
    }
    let count = events.count();
    let (most, pieces) = (u64::from(count) + what.pieces.len() as u64, what.pieces.len());
    if let Some(wrong) = what.order.iter().find(|number| u64::from(**number) >= most) {
        return Err(HostError::Invalid(format!(
            "order names {wrong}, and there are {count} events and behind them {pieces} pieces"
        )));
    }
    if let Some(piece) = what.pieces.iter().find(|piece| piece.event >= count) {
        return Err(events.no_event(piece.event));
    }
    if let Some(format) = &what.log_format
        && (format.is_empty() || format.len() > FORMAT_BYTES || !format.bytes().all(|b| b.is_ascii_graphic()))
    {
        return Err(HostError::Invalid(format!("log-format {:?} cannot be a header's value", one_line(format, 64))));
    }
    what.entity.as_ref().map_or(Ok(()), check_entity)
}

fn check_entity(entity: &Entity) -> Result<(), HostError> {
    let pairs = entity.key_attributes.iter().chain(&entity.attributes);
    let bytes: usize = pairs.map(|(name, value)| name.len() + value.len()).sum();
    if bytes > ENTITY_BYTES {
        return Err(HostError::Invalid(format!(
            "the entity's attributes have {bytes} bytes; {ENTITY_BYTES} is the limit, and the service's own is less"
        )));
    }
    Ok(())
}

/// Writes the request's content. Blocks on the disk.
pub(super) fn body(events: &Events, what: &Put) -> Result<Vec<u8>, HostError> {
    let usual = events.usual_bytes();
    let each = usual.saturating_add(usual / 4).saturating_add(FRAME_BYTES);
    let ahead = each.saturating_mul(what.order.len() as u64).saturating_add(1024).min(MAX_AHEAD);
    let mut writer = Writer {
        body: PutBody::new(&what.log_group, &what.log_stream, usize::try_from(ahead).unwrap_or(0)),
        reader: events.reader(),
        bytes: 0,
        made: Vec::new(),
        cut: None,
    };
    let count = events.count();
    for number in &what.order {
        match number.checked_sub(count) {
            None => writer.event(events, *number)?,
            Some(piece) => match what.pieces.get(piece as usize) {
                Some(piece) => writer.piece(events, piece)?,
                None => return Err(events.no_event(*number)),
            },
        }
    }
    let entity = what.entity.as_ref();
    Ok(writer.body.finish(entity.map(|entity| (entity.key_attributes.as_slice(), entity.attributes.as_slice()))))
}

struct Writer<'a> {
    body: PutBody,
    reader: Reader<'a>,
    /// As the service counts them.
    bytes: u64,
    made: Vec<u8>,
    /// The event that the last piece is of: its time and its message, which mostly gives several pieces.
    cut: Option<(u32, i64, String)>,
}

impl Writer<'_> {
    fn event(&mut self, events: &Events, number: u32) -> Result<(), HostError> {
        let event = self.reader.event(number).map_err(|error| unreadable(&error))?;
        let event = event.ok_or_else(|| events.no_event(number))?;
        let message = event.message(&mut self.made).ok_or_else(|| no_message(number))?;
        count(&mut self.bytes, message.len())?;
        self.body.event(event.time_ms(), |out| message.write_json(out));
        Ok(())
    }

    fn piece(&mut self, events: &Events, piece: &Piece) -> Result<(), HostError> {
        let (time_ms, message) = match &self.cut {
            Some((event, time_ms, message)) if *event == piece.event => (*time_ms, message),
            _ => {
                let event = self.reader.event(piece.event).map_err(|error| unreadable(&error))?;
                let event = event.ok_or_else(|| events.no_event(piece.event))?;
                let message = event.message(&mut self.made).ok_or_else(|| no_message(piece.event))?;
                let (_, time_ms, message) =
                    self.cut.insert((piece.event, event.time_ms(), message.text().into_owned()));
                (*time_ms, &*message)
            }
        };
        let (from, length) = (piece.offset as usize, piece.length as usize);
        let part = from.checked_add(length).and_then(|end| message.get(from..end)).ok_or_else(|| {
            HostError::Invalid(format!(
                "{length} bytes from {from} of event {} lie outside its message, which has {}, or end inside a character",
                piece.event,
                message.len()
            ))
        })?;
        count(&mut self.bytes, piece.before.len() + part.len() + piece.after.len())?;
        self.body.event(time_ms, |out| {
            for text in [&piece.before, part, &piece.after] {
                Message::Text(text).write_json(out);
            }
        });
        Ok(())
    }
}

/// Counts a message before it is written.
fn count(bytes: &mut u64, message: usize) -> Result<(), HostError> {
    *bytes = bytes.saturating_add(message as u64).saturating_add(EVENT_BYTES);
    if *bytes > MAX_BYTES {
        return Err(HostError::Invalid(format!(
            "the events have {bytes} bytes or more, {EVENT_BYTES} for each counted in, and a call takes at most {MAX_BYTES}: \
             send them in several calls, or parts of a long one as pieces"
        )));
    }
    Ok(())
}
