//! What delivery needs of the host, for one batch: a seam, so that the logic runs in native tests against a small S3 in memory.

use wharf_plugin::s3::{self, Attributes, Error, Head, Part, Upload};
use wharf_plugin::{Batch, Body, Encoder, Encoding, HostError, Selection, records, sequence, storage};

use crate::object::Target;
use crate::template::Facts;

/// The host, as one batch's delivery sees it.
pub trait World {
    /// Encoded bytes that stay in the host.
    type Body: Bytes;
    /// Gives encoded bytes piece by piece.
    type Pieces: Pieces<Body = Self::Body>;
    /// A part on its way.
    type Pending: Pending;

    /// What of the batch goes into its key.
    fn facts(&self) -> &Facts;
    /// How many records it has.
    fn count(&self) -> u32;
    /// Starts encoding records.
    fn encode(&self, selection: &Selection, encoding: &Encoding) -> Result<Self::Pieces, HostError>;

    /// Writes an object.
    fn put(&self, key: &str, body: &Self::Body, with: &Attributes, only_if_absent: bool) -> Result<(), Error>;
    /// Asks about an object.
    fn head(&self, key: &str) -> Result<Option<Head>, Error>;
    /// Begins an upload.
    fn create(&self, key: &str, with: &Attributes) -> Result<String, Error>;
    /// Starts sending a part.
    fn send_part(&self, key: &str, upload_id: &str, number: u16, body: &Self::Body) -> Result<Self::Pending, Error>;
    /// Makes the parts one object.
    fn complete(&self, key: &str, upload_id: &str, parts: &[Part], only_if_absent: bool) -> Result<(), Error>;
    /// Gives an upload up.
    fn abort(&self, bucket: &str, key: &str, upload_id: &str) -> Result<(), Error>;
    /// Unfinished uploads.
    fn uploads(&self, key_prefix: &str) -> Result<Vec<Upload>, Error>;

    /// The batch's number.
    fn assign(&self, counter: &str, start: u64) -> Result<u64, HostError>;
    /// The batch's next number.
    fn reassign(&self, counter: &str, taken: u64) -> Result<u64, HostError>;
    /// Whether a batch is still held.
    fn is_open(&self, batch_id: &str) -> bool;

    /// A row of the batch.
    fn progress(&self, row: &str) -> Result<Option<Vec<u8>>, HostError>;
    /// Rows of the batch.
    fn progress_rows(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, HostError>;
    /// Sets or deletes a row of the batch.
    fn set_progress(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError>;
    /// A row of the output.
    fn stored(&self, row: &str) -> Result<Option<Vec<u8>>, HostError>;
    /// Rows of the output, at most 1,000, behind one.
    fn stored_rows(&self, prefix: &str, after: Option<&str>) -> Result<Vec<(String, Vec<u8>)>, HostError>;
    /// Sets or deletes a row of the output.
    fn store(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError>;
}

/// Encoded bytes.
pub trait Bytes: Sized {
    /// How many.
    fn size(&self) -> u64;
    /// Their checksum.
    fn crc32c(&self) -> u32;
    /// Some of them.
    fn slice(&self, offset: u64, length: u64) -> Result<Self, HostError>;
}

/// Encoded bytes, piece by piece.
pub trait Pieces {
    /// A piece.
    type Body;
    /// The next piece of that size, or the last, shorter one.
    fn next(&mut self, size: u64) -> Result<Option<Self::Body>, HostError>;
    /// Whether everything was given out.
    fn finished(&self) -> bool;
    /// Records that gave no bytes, at most the first 10,000.
    fn skipped(&self) -> Vec<u32>;
}

/// A part on its way.
pub trait Pending {
    /// Waits for its end.
    fn wait(&self) -> Result<Part, Error>;
}

/// The real host.
#[derive(Debug)]
pub struct Live<'a> {
    batch: &'a Batch<'a>,
    target: &'a Target,
    facts: Facts,
}

impl<'a> Live<'a> {
    /// For a batch and where it goes.
    pub fn new(batch: &'a Batch<'a>, target: &'a Target) -> Self {
        let facts = Facts { id: batch.id(), tag: batch.tag(), time: batch.first_time() };
        Self { batch, target, facts }
    }
}

impl World for Live<'_> {
    type Body = Body;
    type Pieces = Encoder;
    type Pending = s3::PendingPart;

    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn count(&self) -> u32 {
        self.batch.count()
    }
    fn encode(&self, selection: &Selection, encoding: &Encoding) -> Result<Encoder, HostError> {
        self.batch.encode(encoding).only(selection).pieces()
    }

    fn put(&self, key: &str, body: &Body, with: &Attributes, only_if_absent: bool) -> Result<(), Error> {
        s3::put_object(&self.target.bucket, key, body, with, only_if_absent).map(drop)
    }
    fn head(&self, key: &str) -> Result<Option<Head>, Error> {
        s3::head_object(&self.target.bucket, key, self.target.owner())
    }
    fn create(&self, key: &str, with: &Attributes) -> Result<String, Error> {
        s3::create_multipart_upload(&self.target.bucket, key, with)
    }
    fn send_part(&self, key: &str, upload_id: &str, number: u16, body: &Body) -> Result<s3::PendingPart, Error> {
        let Target { bucket, .. } = self.target;
        s3::upload_part(bucket, key, upload_id, number, body, self.target.checksum(), self.target.owner())
    }
    fn complete(&self, key: &str, upload_id: &str, parts: &[Part], only_if_absent: bool) -> Result<(), Error> {
        let Target { bucket, .. } = self.target;
        let (checksum, owner) = (self.target.checksum(), self.target.owner());
        s3::complete_multipart_upload(bucket, key, upload_id, parts, checksum, owner, only_if_absent).map(drop)
    }
    fn abort(&self, bucket: &str, key: &str, upload_id: &str) -> Result<(), Error> {
        s3::abort_multipart_upload(bucket, key, upload_id, self.target.owner())
    }
    fn uploads(&self, key_prefix: &str) -> Result<Vec<Upload>, Error> {
        s3::list_multipart_uploads(&self.target.bucket, key_prefix, self.target.owner())
    }

    fn assign(&self, counter: &str, start: u64) -> Result<u64, HostError> {
        sequence::assign(counter, self.batch, start)
    }
    fn reassign(&self, counter: &str, taken: u64) -> Result<u64, HostError> {
        sequence::reassign(counter, self.batch, taken)
    }
    fn is_open(&self, batch_id: &str) -> bool {
        records::is_open(batch_id)
    }

    fn progress(&self, row: &str) -> Result<Option<Vec<u8>>, HostError> {
        self.batch.progress().get(row)
    }
    fn progress_rows(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, HostError> {
        self.batch.progress().list(prefix)
    }
    fn set_progress(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError> {
        match value {
            Some(value) => self.batch.progress().set(row, value),
            None => self.batch.progress().delete(row),
        }
    }
    fn stored(&self, row: &str) -> Result<Option<Vec<u8>>, HostError> {
        storage::get(row)
    }
    fn stored_rows(&self, prefix: &str, after: Option<&str>) -> Result<Vec<(String, Vec<u8>)>, HostError> {
        storage::list(prefix, after, 1000)
    }
    fn store(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError> {
        match value {
            Some(value) => storage::set(row, value),
            None => storage::delete(row),
        }
    }
}

impl Bytes for Body {
    fn size(&self) -> u64 {
        Body::size(self)
    }
    fn crc32c(&self) -> u32 {
        Body::crc32c(self)
    }
    fn slice(&self, offset: u64, length: u64) -> Result<Self, HostError> {
        Body::slice(self, offset, length)
    }
}

impl Pieces for Encoder {
    type Body = Body;
    fn next(&mut self, size: u64) -> Result<Option<Body>, HostError> {
        Encoder::next(self, size)
    }
    fn finished(&self) -> bool {
        Encoder::finished(self)
    }
    fn skipped(&self) -> Vec<u32> {
        Encoder::skipped(self)
    }
}

impl Pending for s3::PendingPart {
    fn wait(&self) -> Result<Part, Error> {
        s3::PendingPart::wait(self)
    }
}
