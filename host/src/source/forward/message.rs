//! One message of the transport phase: its tag, its options and its events. Pure: bytes in, records out.
//!
//! The specification's "Message Modes" are told apart by the second value of the array: a time is Message, a list is Forward, a str or bin is
//! PackedForward, and CompressedPackedForward where the options say so.

use std::borrow::Cow;

use super::fault::Fault;
use super::json::{MAX_DEPTH, Records};
use super::msgpack::{Framer, Head, Reader};
use super::time::{self, EventTime};
use crate::source::compressed::{Compression, Unfit};
use crate::source::room::Held;

/// Lists around a record: the message, its entries, an entry.
const AROUND: usize = 3;

/// The longest tag, and the longest `chunk`: far more than any sender has, and little enough to keep many.
const LONGEST_NAME: usize = 4096;

/// Finds where messages of at most so many bytes end.
pub(crate) fn framer(most_bytes: usize) -> Framer {
    Framer::new(most_bytes, MAX_DEPTH + AROUND)
}

/// A message with its parts, nothing of the events read yet.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    /// As it was sent; what is no UTF-8 is replaced.
    pub(crate) tag: Cow<'a, str>,
    /// What the sender wants back when its events are durable: a whole MessagePack value.
    pub(crate) chunk: Option<&'a [u8]>,
    entries: Entries<'a>,
    metadata: Option<&'a [u8]>,
    compression: Option<Compression>,
}

#[derive(Debug)]
enum Entries<'a> {
    /// A time and a record.
    One(Reader<'a>),
    /// So many entries.
    List(u32, Reader<'a>),
    /// Entries one after another.
    Packed(&'a [u8]),
}

/// What an event is read into.
pub(crate) trait Events {
    /// Takes an event's time, none where it has none of its own, and its record as JSON.
    fn event(&mut self, time_ns: Option<i64>, record: &[u8]) -> Result<(), Fault>;
    /// Something that is no event was passed over.
    fn passed_over(&mut self);
}

impl<'a> Message<'a> {
    /// Takes a message apart. None is a heartbeat ("Client MAY send a msgpack nil value for heartbeat health check usage").
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Option<Self>, Fault> {
        let mut from = Reader::new(bytes);
        let values = match from.peek()? {
            Head::Nil => return Ok(None),
            Head::List(values) => values,
            Head::Unsigned(0x5b | 0x7b) => return Err(from.fault("this looks like JSON text; send MessagePack")),
            _ => return Err(from.fault("a message is an array (or nil); is something else speaking to this port?")),
        };
        from.head()?;
        if values < 2 {
            return Err(from.fault("a message has a tag and entries at least"));
        }
        let tag = from.text("a message begins with its tag, a str")?;
        if tag.len() > LONGEST_NAME {
            return Err(from.fault("the tag is longer than 4096 bytes"));
        }
        let (entries, before_options) = match from.peek()? {
            Head::List(count) => {
                let mut list = Reader::new(from.value(MAX_DEPTH + AROUND)?);
                list.head()?;
                (Entries::List(count, list), 2)
            }
            Head::Text(_) | Head::Binary(_) => (Entries::Packed(from.text("entries")?), 2),
            _ => {
                if values < 3 {
                    return Err(from.fault("a message of one event has a tag, a time and a record"));
                }
                let event = from.clone();
                time::read(&mut from)?;
                from.value(MAX_DEPTH)?;
                (Entries::One(event), 3)
            }
        };
        let mut message =
            Self { tag: String::from_utf8_lossy(tag), chunk: None, entries, metadata: None, compression: None };
        if values > before_options {
            message.read_options(&mut from)?;
        }
        Ok(Some(message))
    }

    /// "Option". What is not known there is left alone.
    fn read_options(&mut self, from: &mut Reader<'a>) -> Result<(), Fault> {
        let pairs = match from.head()? {
            Head::Map(pairs) => pairs,
            // Docker 18 sends it.
            Head::Nil => return Ok(()),
            _ => return Err(from.fault("the options are a map")),
        };
        for _ in 0..pairs {
            let key = match from.peek()? {
                Head::Text(_) | Head::Binary(_) => from.text("a key")?,
                _ => {
                    from.value(MAX_DEPTH)?;
                    b""
                }
            };
            let at = from.clone();
            let value = from.value(MAX_DEPTH)?;
            let mut inside = Reader::new(value);
            match key {
                b"chunk" => match inside.head()? {
                    Head::Nil => {}
                    Head::Text(length) | Head::Binary(length) if length as usize <= LONGEST_NAME => {
                        self.chunk = Some(value);
                    }
                    _ => return Err(at.fault("the option chunk is a str of at most 4096 bytes")),
                },
                b"compressed" => {
                    self.compression = match inside.head()? {
                        Head::Nil => None,
                        Head::Text(length) | Head::Binary(length) => compression(inside.take(length)?)?,
                        _ => return Err(at.fault("the option compressed is a str")),
                    }
                }
                b"fluent_signal" => match inside.head()? {
                    Head::Unsigned(0) | Head::Nil => {}
                    _ => {
                        let what = "these are no logs but metrics or traces (fluent_signal), which are not taken; \
                                    route only logs to this output of Fluent Bit";
                        return Err(Fault::Unsupported(what.to_owned()));
                    }
                },
                b"metadata" => self.metadata = Some(value),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether its events are to be decompressed first, which takes a while.
    pub(crate) fn is_compressed(&self) -> bool {
        self.compression.is_some() && matches!(self.entries, Entries::Packed(_))
    }

    /// Reads its events. What is decompressed is at most `limit` bytes and added to `held`.
    pub(crate) fn events(
        self,
        records: &Records,
        limit: usize,
        held: &mut Held,
        events: &mut impl Events,
    ) -> Result<(), Fault> {
        let mut record = Vec::new();
        match self.entries {
            Entries::One(mut event) => one(&mut event, None, self.metadata, records, &mut record, events),
            Entries::List(count, mut list) => {
                for _ in 0..count {
                    entry(&mut list, records, &mut record, events)?;
                }
                Ok(())
            }
            Entries::Packed(bytes) => match self.compression.filter(|_| !bytes.is_empty()) {
                None => packed(bytes, records, &mut record, events),
                Some(compression) => {
                    let undone = compression.undo(bytes, limit as u64, held).map_err(|unfit| match unfit {
                        Unfit::TooLarge => Fault::TooLargeDecompressed(limit),
                        Unfit::Broken(cause) => {
                            Fault::Compressed { encoding: compression.name(), cause: cause.to_string() }
                        }
                        Unfit::NoRoom => Fault::Busy,
                    })?;
                    packed(&undone, records, &mut record, events)
                }
            },
        }
    }
}

fn compression(name: &[u8]) -> Result<Option<Compression>, Fault> {
    match name {
        b"gzip" => Ok(Some(Compression::Gzip)),
        b"zstd" => Ok(Some(Compression::Zstd)),
        // How Fluentd says that it is not.
        b"text" | b"" => Ok(None),
        other => {
            let name = crate::capability::one_line(&String::from_utf8_lossy(other), 40);
            Err(Fault::Unsupported(format!("entries are compressed as {name:?}; send gzip, zstd, or none")))
        }
    }
}

fn packed(bytes: &[u8], records: &Records, record: &mut Vec<u8>, events: &mut impl Events) -> Result<(), Fault> {
    let mut from = Reader::new(bytes);
    while !from.is_empty() {
        entry(&mut from, records, record, events)?;
    }
    Ok(())
}

/// Reads entries one after another, as PackedForward has them; here a map may stand for a record that has no time. A fault comes with where its
/// entry begins.
pub(crate) fn entries(bytes: &[u8], records: &Records, events: &mut impl Events) -> Result<(), (usize, Fault)> {
    let (mut from, mut record) = (Reader::new(bytes), Vec::new());
    while !from.is_empty() {
        let begin = from.at();
        let mut next = || {
            if !matches!(from.peek()?, Head::Map(_)) {
                return entry(&mut from, records, &mut record, events);
            }
            records.write(&mut from, None, &mut record)?;
            events.event(None, &record)
        };
        next().map_err(|fault| (begin, fault))?;
    }
    Ok(())
}

/// "Entry": `[time, record]`, or `[[time, metadata], record]` since version 1.5.
fn entry(
    from: &mut Reader<'_>,
    records: &Records,
    record: &mut Vec<u8>,
    events: &mut impl Events,
) -> Result<(), Fault> {
    let at = from.clone();
    let values = match from.head()? {
        Head::List(values) if values >= 2 => values,
        _ => return Err(at.fault("an entry is [time, record]")),
    };
    let (mut metadata, mut time) = (None, None);
    if let Head::List(header) = from.peek()? {
        from.head()?;
        if header == 0 {
            return Err(at.fault("an entry is [[time, metadata], record]; there is no time"));
        }
        time = Some(time::read(from)?);
        for number in 1..header {
            let value = from.value(MAX_DEPTH)?;
            if number == 1 {
                metadata = Some(value);
            }
        }
    }
    one(from, time, metadata, records, record, events)?;
    for _ in 2..values {
        from.value(MAX_DEPTH)?;
    }
    Ok(())
}

fn one(
    from: &mut Reader<'_>,
    time: Option<EventTime>,
    metadata: Option<&[u8]>,
    records: &Records,
    record: &mut Vec<u8>,
    events: &mut impl Events,
) -> Result<(), Fault> {
    let time = match time {
        Some(time) => time,
        None => time::read(from)?,
    };
    let time_ns = match time {
        EventTime::At(time_ns) => Some(time_ns),
        EventTime::Arrival => None,
        EventTime::Group => {
            from.value(MAX_DEPTH)?;
            events.passed_over();
            return Ok(());
        }
    };
    records.write(from, metadata, record)?;
    events.event(time_ns, record)
}
