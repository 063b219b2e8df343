//! Delivers batches as numbered parts of a stream, to an archive that takes parts piece by piece over HTTP.
//!
//! What it shows: `storage` for what is asked once and remembered for ever, `sequence` for numbers without gaps that never repeat,
//! a batch's `progress` for going on where an attempt broke off, and keys that make it harmless to send something twice.
//!
//! The archive's rules:
//!
//! - `POST /streams` with `{"name": …}` makes a stream, and answers `{"id": …}`.
//! - `PUT /streams/ID/parts/NUMBER?offset=N` adds bytes to a part that has N bytes by then. The header `part-owner` tells whose part it is.
//! - 409 means that the part is somebody else's. Bytes that are there already, under the same `idempotency-key`, are taken as said once.
//! - `POST /streams/ID/parts/NUMBER/seal` ends a part.

use wharf_plugin::http::{self, Response};
use wharf_plugin::prelude::*;
use wharf_plugin::units::Size;
use wharf_plugin::{sequence, storage};

/// Options under `config`.
#[derive(Deserialize, JsonSchema)]
struct Config {
    /// The archive, such as https://archive.example.com.
    url: String,
    /// The credential to send requests with, by its name under `credentials`.
    credential: Option<String>,
    /// Bytes of one request, from 64KiB to 64MiB: 1MiB where nothing is said.
    piece: Option<Size>,
}

struct Archive {
    url: String,
    credential: Option<String>,
    piece_bytes: u64,
    /// The name under which the archive knows this output.
    name: String,
}

/// The key of the stream's id in the output's storage.
const STREAM: &str = "stream";
/// The key of what was sent of a batch, bytes, in its progress.
const SENT: &str = "sent";

#[derive(Deserialize)]
struct Stream {
    id: String,
}

impl Output for Archive {
    type Config = Config;

    fn configure(config: Config, context: &Context) -> Result<(Self, Plan), Faults> {
        let mut faults = Faults::default();
        let destination = faults.note("url", http::destination(&config.url), String::new());
        let piece_bytes = faults.note("piece", config.piece.map_or(Ok(1 << 20), |size| size.bytes()), 1 << 20);
        if !(64 << 10..=64 << 20).contains(&piece_bytes) {
            faults.add("piece", "write a size from 64KiB to 64MiB");
        }
        faults.finish()?;

        let plan = Plan {
            http: vec![destination],
            credentials: config.credential.iter().cloned().collect(),
            // Numbers are assigned as batches come: in their order, the archive's parts are in the order of their records.
            in_order: true,
            max_bytes: Some(16 << 20),
            max_age_ms: Some(60_000),
            ..Plan::default()
        };
        let url = config.url.trim_end_matches('/').to_owned();
        Ok((Self { url, credential: config.credential, piece_bytes, name: context.output.clone() }, plan))
    }

    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
        let stream = self.stream()?;
        let mut number = sequence::assign(&stream, batch, 1)?;
        while !self.send_part(&stream, number, batch)? {
            warn!("part {} of stream {} is somebody else's: taking another number", number, stream);
            number = sequence::reassign(&stream, batch, number)?;
            // Nothing of the new part is there.
            batch.progress().delete(SENT)?;
        }
        Ok(Report::all_delivered())
    }
}

impl Archive {
    /// The stream's id: what storage remembers, or a new one. Where another worker was first, its stream is everyone's.
    fn stream(&self) -> Result<String, Failure> {
        if let Some(id) = storage::get(STREAM)? {
            return text(id);
        }
        // The same key in every attempt and every worker: whoever asks again is given the same stream.
        let made = self.request(http::post(format!("{}/streams", self.url)), &format!("stream-{}", self.name));
        let made: Stream = made.json(&serde_json::json!({ "name": self.name }))?.send()?.error_for_status()?.json()?;
        if storage::compare_and_set(STREAM, None, Some(made.id.as_bytes()))? {
            return Ok(made.id);
        }
        let first = storage::get(STREAM)?;
        text(first.ok_or_else(|| Failure::transient("the stream that another worker has remembered is gone"))?)
    }

    /// Sends what of the batch was not sent yet, and seals the part. False where the part is somebody else's.
    fn send_part(&self, stream: &str, number: u64, batch: &Batch) -> Result<bool, Failure> {
        let part = format!("{}/streams/{stream}/parts/{number}", self.url);
        let sent = sent(batch)?;
        let mut offset = 0;
        let mut pieces = batch.encode(&Encoding::json_lines()).pieces()?;
        // The same batch is encoded to the same bytes, always: pieces that were sent are gone through, not sent again.
        while let Some(piece) = pieces.next(self.piece_bytes)? {
            if offset >= sent && piece.size() > 0 {
                let request = self.request(http::put(format!("{part}?offset={offset}")), &format!("{}-{offset}", batch.id()));
                if !taken(request.header("part-owner", batch.id()).body(&piece).send()?)? {
                    return Ok(false);
                }
                batch.progress().set(SENT, (offset + piece.size()).to_string().as_bytes())?;
            }
            offset += piece.size();
        }
        let seal = self.request(http::post(format!("{part}/seal")), &format!("{}-seal", batch.id()));
        taken(seal.header("part-owner", batch.id()).send()?)
    }

    fn request<'a>(&self, request: http::Request<'a>, key: &str) -> http::Request<'a> {
        request.header("idempotency-key", key).credential(self.credential.as_deref())
    }
}

/// Whether the archive took it; false where the part is somebody else's.
fn taken(answer: Response) -> Result<bool, Failure> {
    match answer.status() {
        409 => Ok(false),
        _ => answer.error_for_status().map(|_| true),
    }
}

/// How much of the batch an earlier attempt has sent, bytes.
fn sent(batch: &Batch) -> Result<u64, Failure> {
    match batch.progress().get(SENT)? {
        Some(number) => text(number)?.parse().or_transient("reading the batch's progress"),
        None => Ok(0),
    }
}

fn text(bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes).or_transient("reading what this output has stored")
}

wharf_plugin::export!(Archive);

#[cfg(test)]
mod tests {
    use wharf_plugin::FailureKind;

    use super::*;

    #[test]
    fn only_a_conflict_means_that_a_part_is_somebody_else_s() {
        assert_eq!(taken(Response::new(204, &[], "")), Ok(true));
        assert_eq!(taken(Response::new(409, &[], "")), Ok(false));
        assert_eq!(taken(Response::new(404, &[], "")).map_err(|failure| failure.kind), Err(FailureKind::Misconfigured));
        assert_eq!(taken(Response::new(503, &[], "")).map_err(|failure| failure.kind), Err(FailureKind::Transient));
    }
}
