//! A chunk as bytes. Numbers are little-endian; a *text* is its length in bytes (u32) and then its bytes.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4 | magic, `WCHK` |
//! | 4 | 2 | format version: 2 where a route has some of the records only, else 1 |
//! | 6 | 1 | kind of the bodies: 0 text, 1 JSON |
//! | 7 | 1 | record times: 0 one for each record, 1 one for all |
//! | 8 | 4 | length of the header, from the magic to the end of the header's checksum |
//! | 12 | 4 | CRC-32C of all that is behind the header |
//! | 16 | 4 | number of records, at least 1 |
//! | 20 | 4 | length of the bodies, separators included |
//! | 24 | 8 | arrival, nanoseconds since 1970 UTC |
//! | 32 | 8 | earliest record time |
//! | 40 | 8 | latest record time |
//! | 48 | … | tag, a UTF-8 text |
//! | | 4 | number of routes, then of each: output and partition, two UTF-8 texts; in version 2 also which records, a text as in [`super::record_set`], empty for all of them; where it is not empty also three numbers of 8 bytes, bytes of their bodies, earliest and latest record time, and 4 bytes, CRC-32C of columns and bodies that a chunk of these records alone has |
//! | | 4 | number of positions, then of each: source and key, two UTF-8 texts, and the value, a text of any bytes |
//! | | 4 | CRC-32C of the header up to here |
//!
//! Behind the header come, without gaps:
//!
//! | bytes | what |
//! |---|---|
//! | 8 × records, or 8 | record times, nanoseconds since 1970 UTC |
//! | 4 × records | where each body ends, counted from the beginning of the bodies, its separator not included |
//! | as said at 20 | the bodies, each followed by one line feed |
//!
//! The next body begins one byte behind the end of the one before. The header has a checksum of its own so that metadata can be
//! trusted without reading the bodies, and it covers the content's checksum.

use std::ops::Range;

use crc_fast::{CrcAlgorithm, Digest};

use super::chunk::{BodyKind, ChunkError, ChunkMeta, Position, Route};
use super::portion::Part;
use super::record_set::RecordSet;

const MAGIC: u32 = u32::from_le_bytes(*b"WCHK");
/// Every route takes all records.
const VERSION_OF_WHOLES: u16 = 1;
const VERSION: u16 = 2;
const CRC_BYTES: usize = 4;
/// The header without tag, routes and positions: what has a fixed place, two counts, the tag's length, the checksum.
const LEAST_HEADER: usize = 48 + 3 * 4 + CRC_BYTES;

/// CRC-32C of the parts as if they were one.
pub(super) fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    // A 32-bit checksum in a type made for those of 64 bits: nothing is cut off.
    digest.finalize() as u32
}

/// A header, understood, and where everything behind it lies.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) meta: ChunkMeta,
    pub(super) one_time: bool,
    pub(super) content_crc: u32,
    header_bytes: usize,
    bodies_bytes: u32,
}

impl Header {
    /// Times and ends, counted from the beginning of the chunk.
    pub(super) fn columns(&self) -> Range<u64> {
        let start = self.header_bytes as u64;
        start..start + times_bytes(self.one_time, self.meta.records) + u64::from(self.meta.records) * 4
    }
    /// Length of the whole chunk.
    pub(super) fn chunk_bytes(&self) -> u64 {
        self.columns().end + u64::from(self.bodies_bytes)
    }
}

/// Length of the column of record times.
pub(super) fn times_bytes(one_time: bool, records: u32) -> u64 {
    8 * if one_time { 1 } else { u64::from(records) }
}

fn version(meta: &ChunkMeta) -> u16 {
    if meta.routes.iter().any(|route| route.part.is_some()) { VERSION } else { VERSION_OF_WHOLES }
}

/// Length of the header that [`write_header`] gives.
pub(super) fn header_bytes(meta: &ChunkMeta) -> usize {
    let parts = version(meta) != VERSION_OF_WHOLES;
    let part_bytes = |part: Option<&Part>| 4 + part.map_or(0, |part| part.records.as_bytes().len() + 28);
    let route_bytes = |route: &Route| {
        8 + route.output.len() + route.partition.len() + if parts { part_bytes(route.part.as_ref()) } else { 0 }
    };
    LEAST_HEADER
        + meta.tag.len()
        + meta.routes.iter().map(route_bytes).sum::<usize>()
        + meta.positions.iter().map(|p| 12 + p.source.len() + p.key.len() + p.value.len()).sum::<usize>()
}

/// The header, with room behind it for `more` bytes.
pub(super) fn write_header(meta: &ChunkMeta, one_time: bool, content_crc: u32, more: usize) -> Vec<u8> {
    let length = header_bytes(meta);
    let mut out = Vec::with_capacity(length + more);
    out.extend_from_slice(&MAGIC.to_le_bytes());
    let version = version(meta);
    out.extend_from_slice(&version.to_le_bytes());
    out.push(match meta.kind {
        BodyKind::Text => 0,
        BodyKind::Json => 1,
    });
    out.push(u8::from(one_time));
    put_length(&mut out, length);
    out.extend_from_slice(&content_crc.to_le_bytes());
    out.extend_from_slice(&meta.records.to_le_bytes());
    // The builder keeps this below 4 GiB.
    let bodies = meta.body_bytes.saturating_add(u64::from(meta.records));
    out.extend_from_slice(&u32::try_from(bodies).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&meta.arrival_ns.to_le_bytes());
    out.extend_from_slice(&meta.first_ns.to_le_bytes());
    out.extend_from_slice(&meta.last_ns.to_le_bytes());
    put_text(&mut out, meta.tag.as_bytes());
    put_length(&mut out, meta.routes.len());
    for route in &meta.routes {
        put_text(&mut out, route.output.as_bytes());
        put_text(&mut out, route.partition.as_bytes());
        if version != VERSION_OF_WHOLES {
            put_part(&mut out, route.part.as_ref());
        }
    }
    put_length(&mut out, meta.positions.len());
    for position in &meta.positions {
        put_text(&mut out, position.source.as_bytes());
        put_text(&mut out, position.key.as_bytes());
        put_text(&mut out, &position.value);
    }
    let crc = crc32c(&[&out]);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    // Names and positions of 4 GiB do not exist; if they did, reading would say so instead of misreading.
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_length(out, text.len());
    out.extend_from_slice(text);
}

fn put_part(out: &mut Vec<u8>, part: Option<&Part>) {
    let Some(part) = part else { return put_text(out, &[]) };
    put_text(out, part.records.as_bytes());
    out.extend_from_slice(&part.body_bytes.to_le_bytes());
    out.extend_from_slice(&part.first_ns.to_le_bytes());
    out.extend_from_slice(&part.last_ns.to_le_bytes());
    out.extend_from_slice(&part.crc.to_le_bytes());
}

/// Bytes up to the header's length.
pub(super) const START_BYTES: usize = 12;

/// What must be known to find the columns, where the header was verified before: whether all records have one time, and the header's length.
pub(super) fn read_start(bytes: &[u8]) -> Option<(bool, usize)> {
    let mut start = Reader(bytes);
    let magic = start.u32("magic").ok()?;
    let [_, _, _, times] = start.array("version").ok()?;
    let length = start.u32("header length").ok()?;
    (magic == MAGIC).then_some((times == 1, length as usize))
}

/// Reads and verifies the header at the beginning of `bytes`.
pub(super) fn read_header(bytes: &[u8]) -> Result<Header, ChunkError> {
    let short = |needed: usize| ChunkError::Short { needed: needed as u64, found: bytes.len() as u64 };
    let mut start = Reader(bytes);
    let magic = start.u32("magic").map_err(|_| short(LEAST_HEADER))?;
    if magic != MAGIC {
        return Err(ChunkError::Magic { found: magic });
    }
    let version = u16::from_le_bytes(start.array("version").map_err(|_| short(LEAST_HEADER))?);
    if !(VERSION_OF_WHOLES..=VERSION).contains(&version) {
        return Err(ChunkError::Version { found: version, known: VERSION });
    }
    let [kind, times] = start.array("kind").map_err(|_| short(LEAST_HEADER))?;
    let length = start.u32("header length").map_err(|_| short(LEAST_HEADER))? as usize;
    let signed = length.checked_sub(CRC_BYTES).filter(|_| length >= LEAST_HEADER);
    let signed = signed.ok_or(ChunkError::Field("header length"))?;
    let header = bytes.get(..signed).ok_or_else(|| short(length))?;
    let crc = bytes.get(signed..).and_then(|rest| rest.first_chunk()).ok_or_else(|| short(length))?;
    let recorded = u32::from_le_bytes(*crc);
    let actual = crc32c(&[header]);
    if recorded != actual {
        return Err(ChunkError::Crc { part: "header", recorded, actual });
    }

    let mut fields = Reader(header.get(12..).unwrap_or_default());
    let content_crc = fields.u32("content checksum")?;
    let records = fields.u32("number of records")?;
    let bodies_bytes = fields.u32("length of bodies")?;
    let meta = ChunkMeta {
        kind: match kind {
            0 => BodyKind::Text,
            1 => BodyKind::Json,
            _ => return Err(ChunkError::Field("kind")),
        },
        arrival_ns: fields.i64("arrival")?,
        first_ns: fields.i64("earliest time")?,
        last_ns: fields.i64("latest time")?,
        tag: fields.name("tag")?,
        routes: fields.list("routes", |fields| {
            let (output, partition) = (fields.name("output name")?, fields.name("partition")?);
            let part = if version == VERSION_OF_WHOLES { None } else { fields.part(records)? };
            Ok(Route { output, partition, part })
        })?,
        positions: fields.list("positions", |fields| {
            Ok(Position {
                source: fields.name("source name")?,
                key: fields.name("position key")?,
                value: fields.text("position")?.to_vec(),
            })
        })?,
        records,
        // Each body has its separator, so there are at least as many bytes as records.
        body_bytes: u64::from(bodies_bytes.checked_sub(records).ok_or(ChunkError::Field("length of bodies"))?),
    };
    if !fields.0.is_empty() {
        return Err(ChunkError::Field("header length"));
    }
    if records == 0 {
        return Err(ChunkError::Field("number of records"));
    }
    let one_time = match times {
        0 => false,
        1 => true,
        _ => return Err(ChunkError::Field("form of record times")),
    };
    Ok(Header { meta, one_time, content_crc, header_bytes: length, bodies_bytes })
}

/// Whether times, ends and bodies belong together as the header says.
pub(super) fn check_columns(meta: &ChunkMeta, times: &[u8], ends: &[u8], bodies: &[u8]) -> Result<(), ChunkError> {
    let (first, last) = i64s(times).fold((i64::MAX, i64::MIN), |(low, high), time| (low.min(time), high.max(time)));
    if (first, last) != (meta.first_ns, meta.last_ns) {
        return Err(ChunkError::Field("range of record times"));
    }
    let mut start = 0;
    for end in u32s(ends) {
        let end = end as usize;
        if end < start || bodies.get(end) != Some(&b'\n') {
            return Err(ChunkError::Field("column of record ends"));
        }
        start = end + 1;
    }
    if start == bodies.len() { Ok(()) } else { Err(ChunkError::Field("column of record ends")) }
}

/// The numbers of a column of ends.
pub(super) fn u32s(column: &[u8]) -> impl ExactSizeIterator<Item = u32> {
    column.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
}

/// The numbers of a column of times.
pub(super) fn i64s(column: &[u8]) -> impl ExactSizeIterator<Item = i64> {
    column.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes))
}

/// What is left of a header. Whatever reaches past its end is an impossible field.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], ChunkError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(ChunkError::Field(what))?;
        self.0 = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ChunkError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(ChunkError::Field(what))?;
        self.0 = rest;
        Ok(*taken)
    }
    fn u32(&mut self, what: &'static str) -> Result<u32, ChunkError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }
    fn i64(&mut self, what: &'static str) -> Result<i64, ChunkError> {
        Ok(i64::from_le_bytes(self.array(what)?))
    }
    fn text(&mut self, what: &'static str) -> Result<&'a [u8], ChunkError> {
        let length = self.u32(what)? as usize;
        self.bytes(length, what)
    }
    fn name<T: From<&'a str>>(&mut self, what: &'static str) -> Result<T, ChunkError> {
        let text = self.text(what)?;
        std::str::from_utf8(text).map(T::from).map_err(|_| ChunkError::Field(what))
    }
    /// What a route takes of so many records; whether that is true, the columns tell.
    fn part(&mut self, records: u32) -> Result<Option<Part>, ChunkError> {
        const WHAT: &str = "part that a route takes";
        let set = self.text(WHAT)?;
        if set.is_empty() {
            return Ok(None);
        }
        let records = RecordSet::decode(set, records).ok_or(ChunkError::Field(WHAT))?;
        let body_bytes = u64::from_le_bytes(self.array(WHAT)?);
        let (first_ns, last_ns) = (self.i64(WHAT)?, self.i64(WHAT)?);
        Ok(Some(Part { records, body_bytes, first_ns, last_ns, crc: self.u32(WHAT)? }))
    }
    fn list<T>(
        &mut self,
        what: &'static str,
        one: impl Fn(&mut Self) -> Result<T, ChunkError>,
    ) -> Result<Vec<T>, ChunkError> {
        // Nothing is reserved by the count: each element takes bytes that must be there.
        (0..self.u32(what)?).map(|_| one(self)).collect()
    }
}
