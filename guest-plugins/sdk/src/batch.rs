//! A batch, its records, and the bytes that the host makes of them.

use crate::bindings::wharf::output::records as wit;
use crate::storage::Progress;
use crate::{Failure, HostError};

/// Records that belong together, fixed for ever: the same id always means the same records in the same order, in every
/// attempt and after every restart.
#[derive(Debug)]
pub struct Batch<'a>(&'a wit::Batch);

impl<'a> Batch<'a> {
    pub(crate) fn new(batch: &'a wit::Batch) -> Self {
        Self(batch)
    }
    pub(crate) fn wit(&self) -> &wit::Batch {
        self.0
    }

    /// 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> String {
        self.0.id()
    }
    /// 1 the first time.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.0.attempt()
    }
    /// The tag, where every record has the same one (always so when the plan partitions by tag); else the first record's.
    #[must_use]
    pub fn tag(&self) -> String {
        self.0.tag()
    }
    /// What all records have in common: for each of the plan's [`partition_by`](crate::Plan::partition_by), in its order, the tag or the
    /// field's value: a string as it is, anything else as JSON; none where records have no such field.
    #[must_use]
    pub fn partition(&self) -> Vec<Option<String>> {
        self.0.partition()
    }
    /// How many records.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.count()
    }
    /// Bytes of all bodies, without separators.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size()
    }
    /// Earliest record time, nanoseconds since 1970 UTC.
    #[must_use]
    pub fn first_time(&self) -> i64 {
        self.0.first_time()
    }
    /// Latest record time, nanoseconds since 1970 UTC.
    #[must_use]
    pub fn last_time(&self) -> i64 {
        self.0.last_time()
    }
    /// Durable progress of this batch.
    #[must_use]
    pub fn progress(&self) -> Progress<'_> {
        Progress(self)
    }

    /// Starts writing all records as bytes, natively in the host.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where the host does not know the encoding.
    pub fn encode(&self, encoding: &Encoding) -> Result<Encoder, HostError> {
        self.encode_only(&Selection::All, encoding)
    }
    /// Starts writing some of the records as bytes.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where the host does not know the encoding, or the selection is outside the batch.
    pub fn encode_only(&self, selection: &Selection, encoding: &Encoding) -> Result<Encoder, HostError> {
        Ok(Encoder(self.0.encode(&selection.to_wit(), &encoding.to_wit())?))
    }

    /// The records one by one. Bodies come out of the host in windows, so that a large batch never lies in the
    /// plugin's memory whole.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records { batch: self.0, count: self.0.count(), next: 0, window: Window::default(), in_window: 0, offset: 0 }
    }
}

/// What a record's body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text: any bytes.
    Text,
    /// One JSON object.
    Json,
}

/// One record, borrowed from the window that it came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number in the batch, from 0.
    pub number: u32,
    /// Nanoseconds since 1970 UTC.
    pub time: i64,
    /// What the body is.
    pub kind: Kind,
    /// The body.
    pub body: &'a [u8],
}

/// Some records' bodies, packed, and what describes them.
#[derive(Debug, Default)]
struct Window {
    times: Vec<i64>,
    sizes: Vec<u32>,
    kinds: Vec<u8>,
    bodies: Vec<u8>,
}

/// Goes through a batch's records. A lending iterator: each record lives until the next one is asked for.
#[derive(Debug)]
pub struct Records<'a> {
    batch: &'a wit::Batch,
    count: u32,
    next: u32,
    window: Window,
    in_window: usize,
    offset: usize,
}

/// Bytes of bodies taken out of the host at once: crossing costs most when windows are small, and memory when they are large.
const WINDOW_BYTES: u64 = 128 * 1024;
/// Records looked at to find a window's end.
const WINDOW_RECORDS: u32 = 4096;

impl Records<'_> {
    /// The next record; none after the last.
    ///
    /// # Errors
    /// Where the host cannot read the bodies.
    #[expect(clippy::should_implement_trait, reason = "it lends and it fails: Iterator::next can do neither")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Failure> {
        if self.next >= self.count {
            return Ok(None);
        }
        if self.in_window >= self.window.sizes.len() {
            self.fill()?;
        }
        let short = || Failure::transient("the host gave fewer bytes than the records have");
        let size = *self.window.sizes.get(self.in_window).ok_or_else(short)? as usize;
        let body = self.window.bodies.get(self.offset..self.offset + size).ok_or_else(short)?;
        let record = Record {
            number: self.next,
            time: self.window.times.get(self.in_window).copied().unwrap_or_default(),
            kind: if self.window.kinds.get(self.in_window) == Some(&1) { Kind::Json } else { Kind::Text },
            body,
        };
        self.next += 1;
        self.in_window += 1;
        self.offset += size;
        Ok(Some(record))
    }

    fn fill(&mut self) -> Result<(), HostError> {
        let mut sizes = self.batch.sizes(self.next, WINDOW_RECORDS);
        sizes.truncate(records_within(&sizes, WINDOW_BYTES));
        let count = u32::try_from(sizes.len()).unwrap_or(WINDOW_RECORDS);
        self.window = Window {
            times: self.batch.times(self.next, count),
            kinds: self.batch.kinds(self.next, count),
            bodies: self.batch.read(self.next, count)?,
            sizes,
        };
        self.in_window = 0;
        self.offset = 0;
        Ok(())
    }
}

/// How many of the first records fit into so many bytes; at least one, where there is one.
fn records_within(sizes: &[u32], bytes: u64) -> usize {
    let mut sum = 0;
    let fitting = sizes
        .iter()
        .take_while(|size| {
            sum += u64::from(**size);
            sum <= bytes
        })
        .count();
    fitting.max(sizes.len().min(1))
}

/// Which records of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All.
    All,
    /// So many from the first.
    Range {
        /// First record's number.
        first: u32,
        /// How many.
        count: u32,
    },
    /// Record numbers, ascending, each once.
    Numbers(Vec<u32>),
}

impl Selection {
    pub(crate) fn to_wit(&self) -> wit::Selection {
        match self {
            Self::All => wit::Selection::All,
            Self::Range { first, count } => wit::Selection::Range((*first, *count)),
            Self::Numbers(numbers) => wit::Selection::Indexes(numbers.clone()),
        }
    }
}

/// How records become bytes. Names are the host's: a later host can know more of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoding {
    format: String,
    date_key: Option<String>,
    date_format: String,
    log_key: Option<String>,
    compression: String,
    level: Option<i32>,
}

impl Encoding {
    /// By format name.
    pub fn new(format: impl Into<String>) -> Self {
        Self {
            format: format.into(),
            date_key: Some("date".into()),
            date_format: "iso8601".into(),
            log_key: None,
            compression: "none".into(),
            level: None,
        }
    }
    /// One JSON object a line, with the record's time under `date`.
    #[must_use]
    pub fn json_lines() -> Self {
        Self::new("json_lines")
    }
    /// The text and a line feed.
    #[must_use]
    pub fn text() -> Self {
        Self::new("text")
    }
    /// The key that carries the record's time; none leaves it out.
    #[must_use]
    pub fn date_key(mut self, key: Option<String>) -> Self {
        self.date_key = key;
        self
    }
    /// `iso8601`, `iso8601_nanos`, `double`, `epoch`, `epoch_ms`, or `java_sql_timestamp`.
    #[must_use]
    pub fn date_format(mut self, format: impl Into<String>) -> Self {
        self.date_format = format.into();
        self
    }
    /// Write only this key's value.
    #[must_use]
    pub fn log_key(mut self, key: Option<String>) -> Self {
        self.log_key = key;
        self
    }
    /// `none`, `gzip` or `zstd`; the level is the host's where none is given.
    #[must_use]
    pub fn compression(mut self, name: impl Into<String>, level: Option<i32>) -> Self {
        self.compression = name.into();
        self.level = level;
        self
    }

    fn to_wit(&self) -> wit::Encoding {
        wit::Encoding {
            format: self.format.clone(),
            date_key: self.date_key.clone(),
            date_format: self.date_format.clone(),
            log_key: self.log_key.clone(),
            compression: self.compression.clone(),
            level: self.level,
        }
    }
}

/// Encoded bytes, made piece by piece so that a large batch never lies in memory whole.
#[derive(Debug)]
pub struct Encoder(wit::Encoder);

impl Encoder {
    /// The next piece: exactly `max_bytes` long (64 KiB to 64 MiB), or shorter at the end; none after the end.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn next(&mut self, max_bytes: u64) -> Result<Option<Body>, HostError> {
        Ok(self.0.next(max_bytes)?.map(Body))
    }
    /// Whether everything has been given out.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.0.finished()
    }
    /// Records that gave no bytes because they lack the `log_key`; known when finished. At most the first 10,000.
    #[must_use]
    pub fn skipped(&self) -> Vec<u32> {
        self.0.skipped()
    }
}

/// Bytes that stay in the host, for calls to send.
#[derive(Debug)]
pub struct Body(wit::Body);

impl Body {
    pub(crate) fn wit(&self) -> &wit::Body {
        &self.0
    }
    /// Bytes of the plugin's own.
    ///
    /// # Errors
    /// [`HostError::Limit`] where the worker's bodies would hold too much; drop those that are done. So in all functions here.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HostError> {
        Ok(Self(wit::Body::from_bytes(bytes)?))
    }
    /// These bytes with others before and behind them: an envelope around an encoded batch.
    ///
    /// # Errors
    /// See [`from_bytes`](Self::from_bytes).
    pub fn wrap(&self, before: impl AsRef<[u8]>, after: impl AsRef<[u8]>) -> Result<Self, HostError> {
        Ok(Self(self.0.wrap(before.as_ref(), after.as_ref())?))
    }
    /// These bytes compressed, natively in the host: `gzip` or `zstd`, with the compressor's level or the host's default.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where the host knows no such compression; see also [`from_bytes`](Self::from_bytes).
    pub fn compress(&self, compression: &str, level: Option<i32>) -> Result<Self, HostError> {
        Ok(Self(self.0.compress(compression, level)?))
    }
    /// Bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size()
    }
    /// A part of it, without copying.
    ///
    /// # Errors
    /// [`HostError::Invalid`] outside of the body.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Self, HostError> {
        Ok(Self(self.0.slice(offset, length)?))
    }
    /// CRC-32C of the bytes, to recognise a piece again after a restart.
    #[must_use]
    pub fn crc32c(&self) -> u32 {
        self.0.crc32c()
    }
}

#[cfg(test)]
mod tests {
    use super::records_within;

    #[test]
    fn a_window_holds_what_fits_and_never_less_than_one_record() {
        assert_eq!(records_within(&[10, 10, 10], 25), 2);
        assert_eq!(records_within(&[10, 10, 10], 30), 3);
        assert_eq!(records_within(&[100, 1], 25), 1);
        assert_eq!(records_within(&[], 25), 0);
    }
}
