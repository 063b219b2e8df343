//! A batch, its records, and the bytes that the host makes of them.

use std::ops::Range;

use crate::HostError;
use crate::bindings::wharf::output::records as wit;
use crate::encoding::{Encode, Encoding};
use crate::record::{Parts, Records};
use crate::source::Source;
use crate::storage::Progress;

/// Records that belong together, fixed for ever: the same id always means the same records in the same order, in every
/// attempt and after every restart.
#[derive(Debug)]
pub struct Batch<'a>(Source<'a>);

impl<'a> Batch<'a> {
    pub(crate) fn new(source: Source<'a>) -> Self {
        Self(source)
    }
    pub(crate) fn wit(&self) -> &wit::Batch {
        self.0.wit()
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

    /// Starts writing records as bytes, natively in the host, where they stay: what is sent need not come into the plugin's memory.
    ///
    /// ```no_run
    /// # fn f(batch: &wharf_plugin::Batch) -> Result<(), wharf_plugin::Failure> {
    /// use wharf_plugin::Encoding;
    ///
    /// let body = batch.encode(&Encoding::json_array().gzip()).body()?;
    /// let first = batch.encode(&Encoding::json_lines()).only(0..500).body()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn encode<'b>(&'b self, encoding: &'b Encoding) -> Encode<'b> {
        Encode::new(self.0.clone(), encoding)
    }

    /// The records one by one. Bodies come out of the host in windows, so that a large batch never lies in the plugin's memory whole.
    ///
    /// ```
    /// # use wharf_plugin::{Failure, Report, testing};
    /// # let batch = testing::batch(["one", "two"]);
    /// for record in batch.records() {
    ///     let record = record?;
    ///     println!("{} {}", record.time(), record.text());
    /// }
    /// # Ok::<(), Failure>(())
    /// ```
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        self.records_in(0..u32::MAX)
    }
    /// Some of the records: those of these numbers that the batch has.
    #[must_use]
    pub fn records_in(&self, numbers: Range<u32>) -> Records<'_> {
        let end = numbers.end.min(self.count());
        Records::new(self.0.clone(), numbers.start, end)
    }

    /// The batch in parts of at most so many records and bytes of bodies, for a destination that takes no more in one request: numbers of
    /// records, for [`records_in`](Self::records_in) and [`Encode::only`]. A record that is larger by itself is a part by itself.
    ///
    /// ```
    /// # let batch = wharf_plugin::testing::batch(["aa", "bb", "cccccc", "d", "e"]);
    /// assert_eq!(batch.parts(2, 5).collect::<Vec<_>>(), [0..2, 2..3, 3..5]);
    /// ```
    #[must_use]
    pub fn parts(&self, max_records: u32, max_bytes: u64) -> Parts<'_> {
        Parts::new(self.0.clone(), max_records, max_bytes)
    }
}

/// The host takes no more of a plugin's own bytes in one call; of far more it does not even look at the call, and ends the worker.
const OWN_BYTES: usize = 8 << 20;

fn own(bytes: usize) -> Result<(), HostError> {
    if bytes <= OWN_BYTES {
        return Ok(());
    }
    Err(HostError::Limit(format!(
        "a plugin hands over at most {OWN_BYTES} bytes of its own in one call, and these are {bytes}: send them in parts, or let the host encode the records"
    )))
}

/// Bytes that stay in the host, for calls to send.
#[derive(Debug)]
pub struct Body(wit::Body);

impl Body {
    pub(crate) fn new(body: wit::Body) -> Self {
        Self(body)
    }
    pub(crate) fn wit(&self) -> &wit::Body {
        &self.0
    }
    /// Bytes of the plugin's own, at most 8 MiB.
    ///
    /// # Errors
    /// [`HostError::Limit`] where there are more, or the worker's bodies would hold too much; drop those that are done. So in all functions here.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HostError> {
        own(bytes.len())?;
        Ok(Self(wit::Body::from_bytes(bytes)?))
    }
    /// These bytes with others before and behind them: an envelope around an encoded batch.
    ///
    /// # Errors
    /// See [`from_bytes`](Self::from_bytes).
    pub fn wrap(&self, before: impl AsRef<[u8]>, after: impl AsRef<[u8]>) -> Result<Self, HostError> {
        own(before.as_ref().len() + after.as_ref().len())?;
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
