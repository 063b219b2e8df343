//! An object in parts: sent in parallel, gone on with after any failure or restart.
//!
//! What has arrived is written down ([`ledger`]). A later attempt encodes the same bytes again (they are a function of the batch)
//! and sends only the parts whose size or checksum is not on record.

use std::collections::VecDeque;

use wharf_plugin::s3::{Error, Part};
use wharf_plugin::{Failure, debug, metrics, warn};

use crate::conflict::{End, Whose, hint, is_taken, settle_taken, whose};
use crate::ledger::{self, Arrived, Known, Upload};
use crate::object::Target;
use crate::parts::Parts;
use crate::settings::Settings;
use crate::world::{Bytes, Pending, World};

/// Each takes a part's size of the host's memory.
const PARTS_IN_FLIGHT: usize = 2;
/// S3's limit.
const MAX_PARTS: u16 = 10_000;

/// How an upload ended, where nothing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is over.
    Ended(End),
    /// What was written down is no use any more (the upload is gone, or other bytes are in it): once more from the beginning.
    Anew,
}

/// Writes the object, unless the key is taken.
///
/// # Errors
/// What S3 answers instead. Parts that have arrived stay, for the next attempt.
pub fn upload<W: World>(
    world: &W,
    settings: &Settings,
    key: &str,
    parts: &mut Parts<W::Body, W::Pieces>,
) -> Result<Step, Failure> {
    Multipart { world, target: &settings.target, key }.run(parts)
}

struct Multipart<'a, W> {
    world: &'a W,
    target: &'a Target,
    key: &'a str,
}

/// What stopped the sending of parts.
enum Stop {
    S3(Error),
    Other(Failure),
    /// Other bytes are on record for this part.
    OtherBytes(u16),
}

impl<E: Into<Failure>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

impl<W: World> Multipart<'_, W> {
    fn run(&self, parts: &mut Parts<W::Body, W::Pieces>) -> Result<Step, Failure> {
        let upload = match ledger::read(self.world, self.key)? {
            Known::Upload(upload) => {
                debug!("going on with a multipart upload", key = self.key, parts_there = upload.parts.len());
                // The record for the sweep may be missing after a crash.
                ledger::using(self.world, self.target, self.key, &upload.id)?;
                upload
            }
            known => {
                if let Some(end) = self.already_there()? {
                    return Ok(Step::Ended(end));
                }
                if known == Known::Creating {
                    self.abort_strangers();
                }
                Upload { id: self.create()?, ..Upload::default() }
            }
        };
        match self.send(&upload, parts) {
            Ok(parts) => self.complete(&upload.id, &parts),
            Err(Stop::S3(error)) if error.code() == "NoSuchUpload" => self.vanished(&upload.id),
            Err(Stop::S3(error)) => Err(self.failed("sending a part of", error)),
            Err(Stop::Other(failure)) => Err(failure.doing(format!("sending a part of {}", self.place()))),
            Err(Stop::OtherBytes(number)) => {
                warn!(
                    "other bytes are on record for a part of this upload: starting it anew",
                    key = self.key,
                    part = number
                );
                self.give_up(&upload.id)?;
                Ok(Step::Anew)
            }
        }
    }

    fn place(&self) -> String {
        format!("s3://{}/{}", self.target.bucket, self.key)
    }

    fn failed(&self, what: &str, error: Error) -> Failure {
        Failure::from(error).doing(format!("{what} {}", self.place()))
    }

    /// Before anything large is sent for nothing. With conditional writes S3 itself guards the key, so an answer is not needed.
    fn already_there(&self) -> Result<Option<End>, Failure> {
        match whose(self.world, self.key) {
            Ok(Whose::Ours) => Ok(Some(End::Written)),
            Ok(Whose::Foreign) => Ok(Some(End::Taken)),
            Ok(Whose::Nobody) => Ok(None),
            Err(error) if self.target.conditional => {
                debug!("S3 does not tell whether the key is free: {}", error, key = self.key);
                Ok(None)
            }
            Err(error) => Err(self.failed("asking whether there already is", error)),
        }
    }

    /// An upload may have been created just before a crash, with nobody to know its id. Nobody else writes to this key.
    fn abort_strangers(&self) {
        match self.world.uploads(self.key) {
            Ok(uploads) => {
                for stranger in uploads.iter().filter(|upload| upload.key == self.key) {
                    self.abort(&stranger.upload_id);
                }
            }
            Err(error) => debug!("S3 does not list unfinished uploads: {}", error, key = self.key),
        }
    }

    fn create(&self) -> Result<String, Failure> {
        ledger::creating(self.world, self.key)?;
        let id = self
            .world
            .create(self.key, &self.target.attributes(&self.world.facts().id))
            .map_err(|error| self.failed("beginning the multipart upload of", error))?;
        ledger::using(self.world, self.target, self.key, &id)?;
        metrics::add("multipart_uploads", 1, &[]);
        Ok(id)
    }

    /// Sends what is not there yet. Whatever stops it, parts on their way are waited for and written down.
    fn send(&self, upload: &Upload, parts: &mut Parts<W::Body, W::Pieces>) -> Result<Vec<Part>, Stop> {
        let mut done = Vec::new();
        let mut in_flight = VecDeque::new();
        let mut sent = self.send_all(upload, parts, &mut done, &mut in_flight);
        while let Some(flying) = in_flight.pop_front() {
            let landed = self.land(flying).map(|part| done.push(part));
            if sent.is_ok() {
                sent = landed;
            }
        }
        sent?;
        done.sort_by_key(|part| part.number);
        Ok(done)
    }

    fn send_all(
        &self,
        upload: &Upload,
        parts: &mut Parts<W::Body, W::Pieces>,
        done: &mut Vec<Part>,
        in_flight: &mut VecDeque<(W::Pending, u64, u32)>,
    ) -> Result<(), Stop> {
        let mut number = 0;
        while let Some(body) = parts.next()? {
            number += 1;
            if number > MAX_PARTS {
                return Err(Failure::misconfigured(format!(
                    "the object would have more than S3's {MAX_PARTS} parts: raise `part_size` or lower `batch.max_bytes`"
                ))
                .into());
            }
            let (size, crc32c) = (body.size(), body.crc32c());
            if let Some(arrived) = upload.parts.get(&number) {
                if (arrived.size, arrived.crc32c) != (size, crc32c) {
                    return Err(Stop::OtherBytes(number));
                }
                done.push(arrived.part.clone());
                continue;
            }
            if in_flight.len() >= PARTS_IN_FLIGHT {
                let landed = in_flight.pop_front().map(|flying| self.land(flying)).transpose()?;
                done.extend(landed);
            }
            let pending = self.world.send_part(self.key, &upload.id, number, &body).map_err(Stop::S3)?;
            in_flight.push_back((pending, size, crc32c));
        }
        Ok(())
    }

    fn land(&self, (pending, size, crc32c): (W::Pending, u64, u32)) -> Result<Part, Stop> {
        let part = pending.wait().map_err(Stop::S3)?;
        let arrived = Arrived { size, crc32c, part };
        ledger::arrived(self.world, &arrived)?;
        metrics::add("put_bytes", size, &[]);
        Ok(arrived.part)
    }

    fn complete(&self, id: &str, parts: &[Part]) -> Result<Step, Failure> {
        if !self.target.conditional {
            if let Some(end) = self.already_there()? {
                self.give_up(id)?;
                return Ok(Step::Ended(end));
            }
        }
        match self.world.complete(self.key, id, parts, self.target.conditional) {
            Ok(()) => {
                ledger::ended(self.world, id)?;
                Ok(Step::Ended(End::Written))
            }
            Err(error) if is_taken(&error) => {
                let end = settle_taken(self.world, self.target, self.key)?;
                self.give_up(id)?;
                Ok(Step::Ended(end))
            }
            Err(error) if error.code() == "NoSuchUpload" => self.vanished(id),
            // After these S3 wants the whole upload again (409: another write to this key was under way).
            Err(error) if error.status() == Some(409) || matches!(error.code(), "InvalidPart" | "InvalidPartOrder") => {
                self.give_up(id)?;
                Err(self.failed("completing", error))
            }
            Err(error) => Err(hint(self.failed("completing", error), self.target)),
        }
    }

    /// S3 does not know the upload: it was completed and the answer lost, or somebody (a lifecycle rule) aborted it.
    fn vanished(&self, id: &str) -> Result<Step, Failure> {
        let whose = whose(self.world, self.key).map_err(|error| self.failed("asking for", error))?;
        ledger::forget(self.world)?;
        ledger::ended(self.world, id)?;
        Ok(match whose {
            Whose::Ours => Step::Ended(End::Written),
            Whose::Foreign => Step::Ended(End::Taken),
            Whose::Nobody => Step::Anew,
        })
    }

    fn give_up(&self, id: &str) -> Result<(), Failure> {
        self.abort(id);
        Ok(ledger::forget(self.world)?)
    }

    /// Where S3 does not take it, the row of the output stays and the sweep tries again.
    fn abort(&self, id: &str) {
        let aborted = self.world.abort(&self.target.bucket, self.key, id);
        match aborted {
            Ok(()) => {
                if let Err(error) = ledger::ended(self.world, id) {
                    debug!("the record of an aborted upload stays: {}", error, key = self.key);
                }
            }
            Err(error) => warn!("an unfinished upload could not be aborted: {}", error, key = self.key, upload_id = id),
        }
    }
}
