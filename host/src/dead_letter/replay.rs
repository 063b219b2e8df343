//! Takes dead letters in again, as a task of the running host.
//!
//! Files in `dead-letters/replay/` become chunks for their own output. A file is large and may become several: each chunk carries
//! the position (`key`: the file's name, `value`: how many of its records are taken in with this chunk), which commits with it, so a
//! crash in between goes on at the next record and takes none twice. When all are durable the file is removed, then its position.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::files::check_letters;
use super::{DeadLetterError, DeadLetters, LetterFile, Letters, REPLAY_SOURCE, StoredLetter};
use crate::intake::Refused;
use crate::record::{Chunk, ChunkBuilder, Position};

/// Bodies in a chunk.
const CHUNK_BYTES: u64 = 512 << 10;

/// How often the folder is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// How long a file that made trouble is left alone.
const HOLD: Duration = Duration::from_secs(30);

/// Where replayed records go: the intake, past its routing.
pub trait Target: Send + Sync {
    /// Whether there is such an output now.
    fn has_output(&self, output: &str) -> bool;
    /// Takes a chunk in for one output alone, waiting for room whatever its `when_full` says. Done when it is durable.
    fn submit(&self, output: &str, chunk: Chunk) -> impl Future<Output = Result<(), Refused>> + Send;
    /// The positions of [`REPLAY_SOURCE`] as they were at start.
    fn positions(&self) -> Vec<Position>;
    /// Forgets positions of [`REPLAY_SOURCE`].
    fn forget(&self, keys: Vec<String>) -> impl Future<Output = ()> + Send;
}

/// Watches for files and takes them in until `shutdown`. `at_start` is dropped when those that were there at the start are taken in, but for
/// those that have to wait for somebody: their output is not there, a line of them is damaged, the disk does not take them.
pub async fn run(letters: DeadLetters, target: impl Target, shutdown: CancellationToken, at_start: DropGuard) {
    let mut replay = Replay { letters, taken: taken_at_start(&target), held: HashMap::new() };
    let mut at_start = Some(at_start);
    loop {
        let round = shutdown.run_until_cancelled(replay.round(&target, &shutdown));
        match round.await {
            None | Some(Err(Ended)) => return,
            Some(Ok(())) => drop(at_start.take()),
        }
        if shutdown.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_none() {
            return;
        }
    }
}

/// Wharf is stopping.
struct Ended;

fn taken_at_start(target: &impl Target) -> HashMap<String, u64> {
    let number = |value: &[u8]| std::str::from_utf8(value).ok()?.parse::<u64>().ok();
    target.positions().into_iter().filter_map(|p| Some((p.key, number(&p.value)?))).collect()
}

struct Replay {
    letters: DeadLetters,
    /// How many records of each file are durable already.
    taken: HashMap<String, u64>,
    /// Files that made trouble, and when they are looked at again.
    held: HashMap<String, Instant>,
}

impl Replay {
    async fn round(&mut self, target: &impl Target, shutdown: &CancellationToken) -> Result<(), Ended> {
        let letters = self.letters.clone();
        let pending = match blocking(move || letters.replay_pending()).await {
            Ok(pending) => pending,
            Err(error) => {
                if self.held.get("").is_none_or(|until| Instant::now() >= *until) {
                    self.hold("", &error);
                }
                return Ok(());
            }
        };
        self.forget_gone(&pending, target).await;
        for file in pending {
            if shutdown.is_cancelled() {
                return Err(Ended);
            }
            let name = file_name(&file);
            if self.held.get(&name).is_some_and(|until| Instant::now() < *until) {
                continue;
            }
            if !target.has_output(&file.output) {
                self.hold(&name, &format!("there is no output {:?} now; it waits", file.output));
                continue;
            }
            match self.file(&file, &name, target).await {
                Ok(records) => {
                    tracing::info!(output = file.output, batch = file.batch, records, "dead letters replayed")
                }
                Err(Trouble::Stopping) => return Err(Ended),
                Err(Trouble::Letters(error)) => self.give_back(&file, &name, error).await,
                Err(Trouble::Refused(refused)) => self.hold(&name, &refused),
            }
        }
        Ok(())
    }

    /// Takes one file in, from where it was left, and gives how many records that were.
    async fn file(&mut self, file: &LetterFile, name: &str, target: &impl Target) -> Result<u64, Trouble> {
        let taken = self.taken.get(name).copied().unwrap_or(0);
        let opened = file.clone();
        let mut chunks = blocking(move || {
            check_letters(&opened)?;
            Chunks::open(&opened, taken)
        })
        .await?;
        let mut records = 0;
        loop {
            let (chunk, rest) = blocking(move || Ok((chunks.next()?, chunks))).await?;
            chunks = rest;
            let Some((chunk, taken)) = chunk else { break };
            records += u64::from(chunk.meta().records);
            target.submit(&file.output, chunk).await?;
            self.taken.insert(name.to_owned(), taken);
        }
        let (letters, done) = (self.letters.clone(), file.clone());
        blocking(move || letters.replay_done(&done)).await?;
        target.forget(vec![name.to_owned()]).await;
        self.taken.remove(name);
        Ok(records)
    }

    /// Positions whose file is gone: the host ended between the two.
    async fn forget_gone(&mut self, pending: &[LetterFile], target: &impl Target) {
        let there: HashSet<String> = pending.iter().map(file_name).collect();
        let gone: Vec<String> = self.taken.keys().filter(|name| !there.contains(*name)).cloned().collect();
        if !gone.is_empty() {
            target.forget(gone).await;
            self.taken.retain(|name, _| there.contains(name));
        }
    }

    /// A file with a line that is no record goes back whole, unless a part of it was taken in already: then it stays
    /// for somebody to mend.
    async fn give_back(&mut self, file: &LetterFile, name: &str, error: DeadLetterError) {
        let damaged = matches!(error, DeadLetterError::Line { .. });
        if damaged && !self.taken.contains_key(name) {
            let (letters, back) = (self.letters.clone(), file.clone());
            let moved = blocking(move || letters.replay_refused(&back)).await;
            tracing::error!(output = file.output, batch = file.batch, %error, "dead letters not replayed: mend the line and replay again");
            if let Err(error) = moved {
                self.hold(name, &error);
            }
        } else {
            self.hold(name, &error);
        }
    }

    fn hold(&mut self, name: &str, trouble: &dyn std::fmt::Display) {
        tracing::warn!(file = name, "dead letters wait for their replay: {trouble}");
        self.held.insert(name.to_owned(), Instant::now() + HOLD);
    }
}

enum Trouble {
    Stopping,
    Refused(Refused),
    Letters(DeadLetterError),
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        if refused == Refused::Stopping { Self::Stopping } else { Self::Refused(refused) }
    }
}

impl From<DeadLetterError> for Trouble {
    fn from(error: DeadLetterError) -> Self {
        Self::Letters(error)
    }
}

fn file_name(file: &LetterFile) -> String {
    file.path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DeadLetterError> + Send + 'static,
) -> Result<T, DeadLetterError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(cause) => Err(DeadLetterError::Disk {
            doing: "read",
            path: "dead-letters".into(),
            cause: std::io::Error::other(cause),
        }),
    }
}

/// A file's records as chunks.
struct Chunks {
    name: String,
    letters: Letters,
    /// Read, but of another tag or kind than the chunk before.
    next: Option<StoredLetter>,
    taken: u64,
}

impl Chunks {
    fn open(file: &LetterFile, taken: u64) -> Result<Self, DeadLetterError> {
        let mut letters = file.letters()?;
        for _ in 0..taken {
            letters.next().transpose()?;
        }
        Ok(Self { name: file_name(file), letters, next: None, taken })
    }

    fn letter(&mut self) -> Result<Option<StoredLetter>, DeadLetterError> {
        match self.next.take() {
            Some(letter) => Ok(Some(letter)),
            None => self.letters.next().transpose(),
        }
    }

    /// The next chunk, and how many of the file's records are taken with it.
    fn next(&mut self) -> Result<Option<(Chunk, u64)>, DeadLetterError> {
        let Some(first) = self.letter()? else { return Ok(None) };
        let (kind, tag) = (first.kind, first.tag.clone());
        let mut chunk = ChunkBuilder::new(kind, Arc::from(tag.as_str()));
        chunk.push(first.time_ns, &first.body);
        self.taken += 1;
        while chunk.body_bytes() < CHUNK_BYTES {
            match self.letter()? {
                Some(letter) if letter.kind == kind && letter.tag == tag => {
                    chunk.push(letter.time_ns, &letter.body);
                    self.taken += 1;
                }
                other => {
                    self.next = other;
                    break;
                }
            }
        }
        let value = self.taken.to_string().into_bytes();
        chunk.position(Position { source: REPLAY_SOURCE.into(), key: self.name.clone(), value });
        Ok(chunk.finish().map(|chunk| (chunk, self.taken)))
    }
}

#[cfg(test)]
mod tests;
