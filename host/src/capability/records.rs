//! `records`: batches, encoders, bodies.
//!
//! A guest gets a batch handle only from the host, for the length of one call, so there is nothing to grant here: what it may read
//! is what it was handed. What is bounded is what this costs the host: bodies (256 MiB a store), a `read` (1 MiB), and the lists of
//! times and sizes. Reading and encoding happen on threads that may block.

use bytes::Bytes;
use wasmtime::component::Resource;

use super::batch::{Batch, BatchChunks, BodiesError, Lines};
use super::bindings::records::{self, Encoding, Selection, Window};
use super::bindings::types::HostError;
use super::body::Body;
use super::{Caller, LimitReached, Reached, blocking, cut, encoding, on_disk};
use crate::config::Unit;
use crate::journal::ReadError;
use crate::record::encode::{Compression, EncodeError, Encoder};
use crate::state::BatchId;

/// Records that one `times`, `sizes` or `kinds` may give. The list is 32 MiB at most, half of what a guest's memory holds by default.
const MAX_LISTED: u32 = 4 << 20;
/// Most bytes of its own that a guest may make a body of, or put around one, in one call.
pub(crate) const OWN_BODY_BYTES: usize = 8 << 20;
/// Smallest and largest piece of an encoder.
const PIECE_BYTES: std::ops::RangeInclusive<u64> = (64 << 10)..=(64 << 20);

/// An encoder that a guest has a handle of; nothing while a piece is being made, and after one could not be.
pub struct OpenEncoder {
    encoder: Option<Encoder<BatchChunks>>,
}

impl records::Host for Caller {
    async fn is_open(&mut self, batch_id: String) -> wasmtime::Result<bool> {
        // In doubt a batch is open: what it left outside must not be swept up.
        let Ok(work) = self.work() else { return Ok(true) };
        let mut id = [0; 16];
        if hex::decode_to_slice(&batch_id, &mut id).is_err() {
            return Ok(false);
        }
        let (state, output) = (work.state.clone(), self.services.output().clone());
        Ok(on_disk(&output.clone(), move || state.is_open(&output, BatchId(id))).await?.unwrap_or(true))
    }
}

impl records::HostBatch for Caller {
    async fn id(&mut self, batch: Resource<Batch>) -> wasmtime::Result<String> {
        Ok(self.table.get(&batch)?.id().to_string())
    }

    async fn attempt(&mut self, batch: Resource<Batch>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&batch)?.attempt())
    }

    async fn tag(&mut self, batch: Resource<Batch>) -> wasmtime::Result<String> {
        Ok(self.table.get(&batch)?.tag().to_owned())
    }

    async fn partition(&mut self, batch: Resource<Batch>) -> wasmtime::Result<Vec<Option<String>>> {
        let batch = self.table.get(&batch)?.clone();
        Ok(blocking(move || batch.partition()).await??)
    }

    async fn count(&mut self, batch: Resource<Batch>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&batch)?.count())
    }

    async fn size(&mut self, batch: Resource<Batch>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&batch)?.size())
    }

    async fn first_time(&mut self, batch: Resource<Batch>) -> wasmtime::Result<i64> {
        Ok(self.table.get(&batch)?.first_time())
    }

    async fn last_time(&mut self, batch: Resource<Batch>) -> wasmtime::Result<i64> {
        Ok(self.table.get(&batch)?.last_time())
    }

    async fn times(&mut self, batch: Resource<Batch>, first: u32, count: u32) -> wasmtime::Result<Vec<i64>> {
        let batch = self.listed(&batch, first, count)?;
        if batch.at_hand(first, count) {
            return Ok(batch.times(first, count)?);
        }
        Ok(blocking(move || batch.times(first, count)).await??)
    }

    async fn sizes(&mut self, batch: Resource<Batch>, first: u32, count: u32) -> wasmtime::Result<Vec<u32>> {
        let batch = self.listed(&batch, first, count)?;
        if batch.at_hand(first, count) {
            return Ok(batch.sizes(first, count)?);
        }
        Ok(blocking(move || batch.sizes(first, count)).await??)
    }

    async fn kinds(&mut self, batch: Resource<Batch>, first: u32, count: u32) -> wasmtime::Result<Vec<u8>> {
        Ok(self.listed(&batch, first, count)?.kinds(first, count))
    }

    async fn tags(&mut self, batch: Resource<Batch>, first: u32, count: u32) -> wasmtime::Result<Vec<(String, u32)>> {
        Ok(self.listed(&batch, first, count)?.tags(first, count))
    }

    async fn read(
        &mut self,
        batch: Resource<Batch>,
        first: u32,
        count: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, HostError>> {
        let batch = self.table.get(&batch)?.clone();
        let bodies = if batch.at_hand(first, count) {
            batch.bodies(first, count)
        } else {
            blocking(move || batch.bodies(first, count)).await?
        };
        Ok(bodies.map_err(|error| match error {
            BodiesError::Journal(error) => unreadable(&error),
            BodiesError::TooMuch { bytes, most } => {
                let reached = Reached::fixed("what one read gives", Unit::Bytes, most, bytes);
                reached.refusal_with(&format!("take a smaller window than {count} records"))
            }
        }))
    }

    async fn read_window(
        &mut self,
        batch: Resource<Batch>,
        first: u32,
        max_bytes: u32,
    ) -> wasmtime::Result<Result<Window, HostError>> {
        let batch = self.table.get(&batch)?.clone();
        let lines = match batch.lines_at_hand(first, max_bytes) {
            Some(lines) => Ok(lines),
            None => blocking(move || batch.lines(first, max_bytes)).await?,
        };
        Ok(lines.map(|Lines { sizes, lines }| Window { sizes, lines }).map_err(|error| unreadable(&error)))
    }

    async fn encode(
        &mut self,
        batch: Resource<Batch>,
        select: Selection,
        options: Encoding,
    ) -> wasmtime::Result<Result<Resource<OpenEncoder>, HostError>> {
        let batch = self.table.get(&batch)?;
        let opened = encoding::selection(select, batch.count()).and_then(|selection| {
            let options = encoding::options(options)?;
            Ok(OpenEncoder { encoder: Some(Encoder::new(batch.chunks(), selection, options)) })
        });
        Ok(opened.and_then(|encoder| self.hand_out(encoder)))
    }

    async fn drop(&mut self, batch: Resource<Batch>) -> wasmtime::Result<()> {
        self.table.delete(batch)?;
        Ok(())
    }
}

impl records::HostEncoder for Caller {
    async fn next(
        &mut self,
        handle: Resource<OpenEncoder>,
        max_bytes: u64,
    ) -> wasmtime::Result<Result<Option<Resource<Body>>, HostError>> {
        let (Some(max), true) = (usize::try_from(max_bytes).ok(), PIECE_BYTES.contains(&max_bytes)) else {
            return Ok(Err(HostError::Invalid(format!(
                "max-bytes is {max_bytes}; it must be {} to {}",
                PIECE_BYTES.start(),
                PIECE_BYTES.end()
            ))));
        };
        let charge = match self.reserve(max_bytes) {
            Ok(charge) => charge,
            Err(error) => return Ok(Err(error)),
        };
        let Some(mut encoder) = self.table.get_mut(&handle)?.encoder.take() else {
            return Ok(Err(HostError::Unavailable("this encoder failed before: start a new one".into())));
        };
        let (encoder, piece) = blocking(move || {
            let piece = encoder.next(max);
            (encoder, piece)
        })
        .await?;
        match piece {
            Ok(piece) => {
                self.table.get_mut(&handle)?.encoder = Some(encoder);
                Ok(piece.map(|bytes| self.hand_out(Body::new(bytes, charge))).transpose())
            }
            Err(EncodeError::Chunk(error)) => Ok(Err(unreadable(&error))),
            Err(error @ EncodeError::Compress(_)) => Ok(Err(HostError::Unavailable(error.to_string()))),
        }
    }

    async fn finished(&mut self, handle: Resource<OpenEncoder>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&handle)?.encoder.as_ref().is_some_and(Encoder::finished))
    }

    async fn skipped(&mut self, handle: Resource<OpenEncoder>) -> wasmtime::Result<Vec<u32>> {
        Ok(self.table.get(&handle)?.encoder.as_ref().map_or_else(Vec::new, |encoder| encoder.skipped().1.to_vec()))
    }

    async fn drop(&mut self, handle: Resource<OpenEncoder>) -> wasmtime::Result<()> {
        self.table.delete(handle)?;
        Ok(())
    }
}

impl records::HostBody for Caller {
    async fn from_bytes(&mut self, bytes: Vec<u8>) -> wasmtime::Result<Result<Resource<Body>, HostError>> {
        let charge = own_bytes(bytes.len()).and_then(|()| self.reserve(bytes.len() as u64));
        Ok(charge.and_then(|charge| self.hand_out(Body::new(bytes.into(), charge))))
    }

    async fn size(&mut self, body: Resource<Body>) -> wasmtime::Result<u64> {
        Ok(self.table.get(&body)?.bytes.len() as u64)
    }

    async fn slice(
        &mut self,
        body: Resource<Body>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Result<Resource<Body>, HostError>> {
        let part = self.table.get(&body)?.slice(offset, length);
        Ok(part.and_then(|part| self.hand_out(part)))
    }

    async fn crc32c(&mut self, body: Resource<Body>) -> wasmtime::Result<u32> {
        let bytes = self.table.get(&body)?.bytes.clone();
        let crc = blocking(move || crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes)).await?;
        // A CRC-32 has 32 bits, in whatever it is carried.
        Ok(crc as u32)
    }

    async fn wrap(
        &mut self,
        body: Resource<Body>,
        before: Vec<u8>,
        after: Vec<u8>,
    ) -> wasmtime::Result<Result<Resource<Body>, HostError>> {
        if let Err(error) = own_bytes(before.len() + after.len()) {
            return Ok(Err(error));
        }
        let bytes = self.table.get(&body)?.bytes.clone();
        let parts = [Bytes::from(before), bytes, Bytes::from(after)];
        let charge = match self.reserve(parts.iter().map(|part| part.len() as u64).sum()) {
            Ok(charge) => charge,
            Err(error) => return Ok(Err(error)),
        };
        let joined = blocking(move || parts.concat()).await?;
        Ok(self.hand_out(Body::new(joined.into(), charge)))
    }

    async fn compress(
        &mut self,
        body: Resource<Body>,
        compression: String,
        level: Option<i32>,
    ) -> wasmtime::Result<Result<Resource<Body>, HostError>> {
        let bytes = self.table.get(&body)?.bytes.clone();
        let compression = Compression::parse(cut(&compression, 64), level).map_err(HostError::Invalid);
        // What cannot be compressed gets longer, by far less than this.
        let most = bytes.len() as u64 + bytes.len() as u64 / 64 + 4096;
        let (compression, charge) = match compression.and_then(|it| Ok((it, self.reserve(most)?))) {
            Ok(set_up) => set_up,
            Err(error) => return Ok(Err(error)),
        };
        match blocking(move || compression.compress(&bytes)).await? {
            Ok(compressed) => Ok(self.hand_out(Body::new(compressed.into(), charge))),
            Err(error) => Ok(Err(HostError::Unavailable(format!("compressing a body: {error}")))),
        }
    }

    async fn drop(&mut self, body: Resource<Body>) -> wasmtime::Result<()> {
        self.table.delete(body)?;
        Ok(())
    }
}

impl Caller {
    /// The batch, where so many of its records may be listed in one call.
    fn listed(&self, batch: &Resource<Batch>, first: u32, count: u32) -> wasmtime::Result<Batch> {
        let batch = self.table.get(batch)?.clone();
        match too_many_listed(first, count, batch.count()) {
            Some(too_many) => Err(LimitReached(too_many).into()),
            None => Ok(batch),
        }
    }
}

/// Whether a guest may hand over so many bytes of its own in one call.
fn own_bytes(bytes: usize) -> Result<(), HostError> {
    if bytes <= OWN_BODY_BYTES {
        return Ok(());
    }
    let reached = Reached::fixed(
        "what a plugin hands over of its own in one call",
        Unit::Bytes,
        OWN_BODY_BYTES as u64,
        bytes as u64,
    );
    Err(reached.refusal_with("send it in parts, or let the host encode the records"))
}

/// Says so, where `count` of `all` from `first` are more than one call may list.
pub(super) fn too_many_listed(first: u32, count: u32, all: u32) -> Option<Reached> {
    let listed = count.min(all.saturating_sub(first));
    let reached = |listed: u32| {
        Reached::fixed(
            "what one call of times, sizes or kinds lists",
            Unit::Count("records"),
            MAX_LISTED.into(),
            listed.into(),
        )
    };
    (listed > MAX_LISTED).then(|| reached(listed))
}

/// The host tries the batch again without a chunk that is gone for good, so this is worth another attempt.
pub(super) fn unreadable(error: &ReadError) -> HostError {
    HostError::Unavailable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_own_bytes_are_bounded_with_the_numbers_and_what_to_do() {
        assert!(own_bytes(8 << 20).is_ok());
        let Err(HostError::Limit(told)) = own_bytes((8 << 20) + 1) else { panic!("it is taken") };
        assert!(told.contains("8388608") && told.contains("8388609") && told.contains("in parts"), "{told}");
    }
}
