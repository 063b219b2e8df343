//! What the files of a source have in common, and their lines on the way into a chunk.

use std::sync::Arc;

use encoding_rs::Encoding;

use super::compressed::Turns;
use crate::config::{CompressedFiles, Multiline};
use crate::record::{BodyKind, Chunk, ChunkBuilder, Position, now_ns};
use crate::source::lines::Longest;

/// Most files whose lines share a chunk: each has a position in its header.
const MOST_FILES: usize = 64;

/// No more is gathered once there is so much; the last block may still be of 1 MiB.
const ENOUGH_BYTES: u64 = 256 << 10;

/// Most positions of other files that a chunk carries besides its own.
const MOST_OTHERS: usize = 64;

/// What all files of a source have in common.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) source: Arc<str>,
    pub(crate) tag: Arc<str>,
    pub(crate) longest: Longest,
    pub(crate) multiline: Option<Arc<Multiline>>,
    pub(crate) encoding: Option<&'static Encoding>,
    pub(crate) path_key: Option<String>,
    pub(crate) kubernetes: bool,
    pub(crate) compressed: CompressedFiles,
    /// Files that are being unpacked.
    pub(crate) turns: Turns,
    /// How many stretches of files there were so far.
    pub(crate) stretches: u64,
    /// A place to read into.
    pub(crate) buffer: Vec<u8>,
    /// Lines that are in no chunk yet.
    pub(crate) gathered: Gathered,
    /// Positions of files whose old content is left out, by `read_from: end` at the first start: they are to be kept though
    /// those files give no records yet. Where that does not work at once, they also go with the next chunks.
    pub(crate) unrecorded: Vec<Position>,
}

/// Lines of one or more files on their way into a chunk: many files with a few lines each share one.
#[derive(Debug)]
pub(crate) struct Gathered {
    pub(crate) chunk: ChunkBuilder,
    pub(crate) time_ns: i64,
    pub(crate) files: usize,
}

impl Gathered {
    pub(crate) fn new(tag: Arc<str>, objects: bool) -> Self {
        let kind = if objects { BodyKind::Json } else { BodyKind::Text };
        Self { chunk: ChunkBuilder::new(kind, tag), time_ns: now_ns(), files: 0 }
    }

    /// Whether it is large enough to be a chunk.
    pub(crate) fn is_enough(&self) -> bool {
        self.files >= MOST_FILES || self.chunk.body_bytes() >= ENOUGH_BYTES
    }
}

impl Common {
    /// A number for a stretch of a file: from one beginning to the next.
    pub(crate) fn next_stretch(&mut self) -> u64 {
        self.stretches += 1;
        self.stretches
    }

    /// Whether records are objects, and not lines as they are.
    pub(crate) fn has_objects(&self) -> bool {
        self.kubernetes || self.path_key.is_some()
    }

    /// What is gathered, and the block that was read.
    pub(crate) fn gather(&mut self, read: usize) -> (&mut Gathered, &[u8]) {
        // A chunk arrives when its first lines are read, not when the last chunk was closed.
        if self.gathered.chunk.is_empty() {
            self.gathered = Gathered::new(self.tag.clone(), self.has_objects());
        }
        (&mut self.gathered, self.buffer.get(..read).unwrap_or_default())
    }

    /// The chunk of what is gathered.
    pub(crate) fn close_chunk(&mut self) -> Option<Chunk> {
        let next = Gathered::new(self.tag.clone(), self.has_objects());
        let mut gathered = std::mem::replace(&mut self.gathered, next);
        if !gathered.chunk.is_empty() {
            let others = self.unrecorded.len().min(MOST_OTHERS);
            self.unrecorded.drain(..others).for_each(|other| gathered.chunk.position(other));
        }
        gathered.chunk.finish()
    }
}
