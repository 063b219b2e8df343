//! Messages on their way to chunks: those that come together share a chunk for each tag, so that a sender of one event a message does not
//! cost a chunk for each.

use std::sync::Arc;

use tokio::time::Instant;

use super::door::Door;
use super::fault::Fault;
use super::handshake;
use super::message::{Events, Message};
use crate::record::{BodyKind, Chunk, ChunkBuilder, now_ns};
use crate::source::room::Held;

/// Chunks close at this size.
const CHUNK_BYTES: usize = 1 << 20;

/// Room that a large message takes at a time.
const STEP: u64 = 1 << 20;

/// Most tags at once.
const TAGS: usize = 64;

/// Chunks that are being made, and what is to be answered when all of them are durable.
pub(crate) struct Gather {
    chunks: Vec<ChunkBuilder>,
    tags: Vec<Arc<str>>,
    /// Acknowledgements, as they will be sent.
    answers: Vec<u8>,
    bytes: usize,
    since: Option<Instant>,
}

/// What is to be handed in.
pub(crate) struct Gathered {
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) answers: Vec<u8>,
}

impl Gather {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), tags: Vec::new(), answers: Vec::new(), bytes: 0, since: None }
    }

    /// Since when something waits here.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Whether a sender waits for an answer.
    pub(crate) fn is_awaited(&self) -> bool {
        !self.answers.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= CHUNK_BYTES || self.tags.len() >= TAGS
    }

    pub(crate) fn take(&mut self) -> Gathered {
        let this = std::mem::replace(self, Self::new());
        let chunks = this.chunks.into_iter().filter_map(ChunkBuilder::finish).collect();
        Gathered { chunks, answers: this.answers }
    }

    /// Adds a message's events, which are all there.
    fn add(&mut self, tag: &Arc<str>, events: &Scratch, chunk: Option<&[u8]>) {
        if !events.ends.is_empty() {
            let at = self.tags.iter().rposition(|known| known == tag).unwrap_or_else(|| {
                self.tags.push(tag.clone());
                self.chunks.push(ChunkBuilder::new(BodyKind::Json, tag.clone()));
                self.tags.len() - 1
            });
            if let Some(builder) = self.chunks.get_mut(at) {
                let mut begin = 0;
                for (time_ns, end) in &events.ends {
                    builder.push(*time_ns, events.bodies.get(begin..*end).unwrap_or_default());
                    begin = *end;
                }
            }
            self.bytes += events.bodies.len();
        }
        self.answer(chunk);
    }

    fn answer(&mut self, chunk: Option<&[u8]>) {
        if let Some(chunk) = chunk {
            handshake::ack(chunk, &mut self.answers);
        }
        self.since.get_or_insert_with(Instant::now);
    }
}

/// A small message's events, kept apart until all of them were read: a message is all or nothing.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Times and ends.
    ends: Vec<(i64, usize)>,
    bodies: Vec<u8>,
    passed_over: u64,
    arrival_ns: i64,
    most_bytes: usize,
}

impl Scratch {
    /// Reads a message's events into `gather`.
    pub(crate) fn read(&mut self, message: Message<'_>, door: &Door, gather: &mut Gather) -> Result<(), Fault> {
        self.ends.clear();
        self.bodies.clear();
        self.passed_over = 0;
        self.arrival_ns = now_ns();
        self.most_bytes = door.records.most_bytes();
        let (tag, chunk) = (door.tag(&message.tag), message.chunk);
        message.events(&door.records, door.most_bytes, &mut door.room.hold(), self)?;
        gather.add(&tag, self, chunk);
        count_passed_over(door, self.passed_over);
        Ok(())
    }
}

#[cfg(test)]
impl Scratch {
    /// What it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.bodies.capacity() + self.ends.capacity() * size_of::<(i64, usize)>()
    }
}

impl Events for Scratch {
    fn event(&mut self, time_ns: Option<i64>, record: &[u8]) -> Result<(), Fault> {
        self.bodies.extend_from_slice(record);
        self.ends.push((time_ns.unwrap_or(self.arrival_ns), self.bodies.len()));
        within(self.bodies.len(), self.most_bytes)
    }
    fn passed_over(&mut self) {
        self.passed_over += 1;
    }
}

/// A large message's events: a chunk of their own, that is thrown away where one of them is none.
struct Large {
    chunk: ChunkBuilder,
    passed_over: u64,
    arrival_ns: i64,
    most_bytes: usize,
    room: Held,
}

impl Events for Large {
    fn event(&mut self, time_ns: Option<i64>, record: &[u8]) -> Result<(), Fault> {
        let bytes = self.chunk.body_bytes() as usize + record.len();
        within(bytes, self.most_bytes)?;
        if let Some(more) = (bytes as u64).checked_sub(self.room.bytes()).filter(|more| *more > 0) {
            // In steps, so that connections do not meet at the counter for each record.
            self.room.add(more.max(STEP)).map_err(|_| Fault::Busy)?;
        }
        if self.chunk.push(time_ns.unwrap_or(self.arrival_ns), record) {
            return Ok(());
        }
        Err(Fault::TooLargeAsJson(self.most_bytes))
    }
    fn passed_over(&mut self) {
        self.passed_over += 1;
    }
}

/// Reads a whole message that is large, or compressed. Computes for a while: not for the runtime's threads.
pub(crate) fn read_large(bytes: &[u8], door: &Door) -> Result<Gather, Fault> {
    let mut gather = Gather::new();
    let Some(message) = Message::read(bytes)? else { return Ok(gather) };
    let tag = door.tag(&message.tag);
    let chunk = message.chunk;
    let mut large = Large {
        chunk: ChunkBuilder::new(BodyKind::Json, tag.clone()),
        passed_over: 0,
        arrival_ns: now_ns(),
        most_bytes: door.records.most_bytes(),
        room: door.room.hold(),
    };
    message.events(&door.records, door.most_bytes, &mut door.room.hold(), &mut large)?;
    count_passed_over(door, large.passed_over);
    gather.tags.push(tag);
    gather.chunks.push(large.chunk);
    gather.answer(chunk);
    Ok(gather)
}

fn count_passed_over(door: &Door, passed_over: u64) {
    if passed_over > 0 {
        door.sink.count_discarded(&door.name, "group_mark", passed_over);
    }
}

fn within(bytes: usize, most: usize) -> Result<(), Fault> {
    if bytes > most { Err(Fault::TooLargeAsJson(most)) } else { Ok(()) }
}
