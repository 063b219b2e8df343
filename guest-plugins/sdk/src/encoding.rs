//! Records as bytes, made natively in the host and kept there.

use std::ops::Range;

use crate::bindings::wharf::output::records as wit;
use crate::source::Source;
use crate::{Body, HostError};

/// Largest piece that the host makes.
const MAX_PIECE: u64 = 64 << 20;

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

/// `0..500`: the first 500.
impl From<Range<u32>> for Selection {
    fn from(range: Range<u32>) -> Self {
        Self::Range { first: range.start, count: range.end.saturating_sub(range.start) }
    }
}

impl From<Vec<u32>> for Selection {
    fn from(numbers: Vec<u32>) -> Self {
        Self::Numbers(numbers)
    }
}

impl From<&[u32]> for Selection {
    fn from(numbers: &[u32]) -> Self {
        Self::Numbers(numbers.to_vec())
    }
}

impl From<&Selection> for Selection {
    fn from(selection: &Self) -> Self {
        selection.clone()
    }
}

/// How records become bytes. Names are the host's: a later host can know more of them.
///
/// ```
/// use wharf_plugin::Encoding;
///
/// let encoding = Encoding::json_lines().date_format("epoch_ms").gzip();
/// ```
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
    /// One JSON object a line, with the record's time under `date`: of text `{"date": …, "log": text}`.
    #[must_use]
    pub fn json_lines() -> Self {
        Self::new("json_lines")
    }
    /// The same objects as one JSON array, on one line.
    #[must_use]
    pub fn json_array() -> Self {
        Self::new("json_array")
    }
    /// The text and a line feed.
    #[must_use]
    pub fn text() -> Self {
        Self::new("text")
    }
    /// The key that carries the record's time; none leaves it out. A record that has this key itself keeps its own.
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
    /// Write only this key's value. Records without it are left out, and are what [`Encoder::skipped`] tells.
    #[must_use]
    pub fn log_key(mut self, key: Option<String>) -> Self {
        self.log_key = key;
        self
    }
    /// Compressed with gzip, at the host's level.
    #[must_use]
    pub fn gzip(self) -> Self {
        self.compression("gzip", None)
    }
    /// Compressed with zstd, at the host's level.
    #[must_use]
    pub fn zstd(self) -> Self {
        self.compression("zstd", None)
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

/// Records on the way to bytes: [`Batch::encode`](crate::Batch::encode) begins it, [`body`](Self::body) or [`pieces`](Self::pieces) ends it.
#[derive(Debug)]
#[must_use = "nothing is encoded before `body` or `pieces`"]
pub struct Encode<'a> {
    source: Source<'a>,
    encoding: &'a Encoding,
    selection: Selection,
}

impl<'a> Encode<'a> {
    pub(crate) fn new(source: Source<'a>, encoding: &'a Encoding) -> Self {
        Self { source, encoding, selection: Selection::All }
    }

    /// Only these records: a range of numbers (`0..500`), a list of them, or a [`Selection`].
    pub fn only(mut self, selection: impl Into<Selection>) -> Self {
        self.selection = selection.into();
        self
    }
    /// All of it as one body.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where the host does not know the encoding or the batch does not have the records, [`HostError::Limit`] where
    /// it is more than 64 MiB: take pieces then, or make smaller batches ([`Plan::max_bytes`](crate::Plan::max_bytes)).
    pub fn body(self) -> Result<Body, HostError> {
        let mut pieces = self.pieces()?;
        let body = pieces.next(MAX_PIECE)?;
        match body {
            Some(body) if pieces.finished() => Ok(body),
            Some(_) => Err(HostError::Limit(format!(
                "the records encode to more than {MAX_PIECE} bytes, which one body may have: take them in pieces, or lower `max_bytes`"
            ))),
            None => Err(HostError::Unavailable("the host encoded the records to nothing at all".into())),
        }
    }
    /// Piece by piece, so that a large batch never lies in memory whole.
    ///
    /// # Errors
    /// [`HostError::Invalid`] where the host does not know the encoding, or the batch does not have the records.
    pub fn pieces(self) -> Result<Encoder, HostError> {
        Ok(Encoder(self.source.encode(&self.selection.to_wit(), &self.encoding.to_wit())?))
    }
}

/// Encoded bytes, made piece by piece.
#[derive(Debug)]
pub struct Encoder(wit::Encoder);

impl Encoder {
    /// The next piece: exactly `max_bytes` long (64 KiB to 64 MiB), or shorter at the end; none after the end.
    ///
    /// # Errors
    /// See [`HostError`].
    pub fn next(&mut self, max_bytes: u64) -> Result<Option<Body>, HostError> {
        Ok(self.0.next(max_bytes)?.map(Body::new))
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
