//! The last few chunks of a batch. Events are sent in the order of their times, which mostly but not quite is that of the records: what lies
//! a little out of order must not cost a read of its chunk each time.

use crate::capability::batch::Batch;
use crate::journal::ReadError;
use crate::record::Chunk;

/// How many chunks, and bytes of bodies, are kept; of large chunks at least the one in use.
const MAX_CHUNKS: usize = 8;
const MAX_BYTES: usize = 4 << 20;

/// Chunks that were read, the one in use last.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: Vec<(usize, Chunk)>,
}

impl Recent {
    /// Chunk `n` of the batch, kept or read. Blocks on the disk.
    pub(super) fn chunk(&mut self, batch: &Batch, n: usize) -> Result<&Chunk, ReadError> {
        if self.kept.last().is_none_or(|(number, _)| *number != n) {
            let kept = self.kept.iter().position(|(number, _)| *number == n).map(|at| self.kept.remove(at));
            let used = match kept {
                Some(used) => used,
                None => (n, batch.read_chunk(n)?),
            };
            self.make_room(used.1.bodies().len());
            self.kept.push(used);
        }
        // Put there above; what is not there is missing.
        self.kept.last().map(|(_, chunk)| chunk).ok_or(ReadError::Missing(crate::record::ChunkId(u64::MAX)))
    }

    /// Forgets what was not used for longest, so that one more of this size may be kept.
    fn make_room(&mut self, bytes: usize) {
        let mut left = self.kept.iter().map(|(_, chunk)| chunk.bodies().len()).sum::<usize>() + bytes;
        let mut too_many = 0;
        for (at, (_, chunk)) in self.kept.iter().enumerate() {
            if left <= MAX_BYTES && self.kept.len() - at < MAX_CHUNKS {
                break;
            }
            left -= chunk.bodies().len();
            too_many = at + 1;
        }
        self.kept.drain(..too_many);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::journal::{Journal, Options};
    use crate::record::{BodyKind, ChunkBuilder, Partitioning, Portion};
    use crate::state::BatchId;

    /// A batch of chunks with one record each, of so many bytes. Once read they are gone from the journal, so that no chunk is read twice.
    struct Vanishing {
        _dir: tempfile::TempDir,
        journal: Journal,
        ids: Vec<crate::record::ChunkId>,
        batch: Batch,
        recent: Recent,
    }

    impl Vanishing {
        async fn new(sizes: &[usize]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let limits = Options { segment_bytes: 1 << 20, max_bytes: None, reserve_bytes: 0 };
            let (journal, _) = Journal::open(&dir.path().join("j"), &dir.path().join("q"), limits).unwrap();
            journal.start(Box::new(|_| {}));
            let mut chunks = Vec::new();
            for size in sizes {
                let mut builder = ChunkBuilder::new(BodyKind::Text, "app".into());
                assert!(builder.push(0, &vec![b'x'; *size]));
                let chunk = builder.finish().unwrap();
                let meta = Arc::clone(chunk.meta());
                chunks.push(Portion::whole(journal.append(chunk).await.unwrap().unwrap(), meta));
            }
            let ids = chunks.iter().map(|portion| portion.id).collect();
            let together = Arc::new(Partitioning::new(&[]));
            let batch = Batch::new(BatchId([1; 16]), 1, chunks.into(), together, journal.clone());
            Self { _dir: dir, journal, ids, batch, recent: Recent::default() }
        }

        fn has(&mut self, n: usize) -> bool {
            let found = self.recent.chunk(&self.batch, n).is_ok();
            self.journal.release(&[self.ids[n]]);
            found
        }
    }

    #[tokio::test]
    async fn the_last_eight_chunks_are_not_read_again_whatever_their_order() {
        let mut chunks = Vanishing::new(&[1; 12]).await;
        for n in 0..8 {
            assert!(chunks.has(n));
        }
        for n in [3, 0, 7, 1, 0] {
            assert!(chunks.has(n), "{n}");
        }
        assert!(chunks.has(8), "a new one");
        assert!(!chunks.has(2), "the one that was not used for longest");
        for n in [3, 7, 1, 0, 8, 4, 5, 6] {
            assert!(chunks.has(n), "{n}");
        }
    }

    #[tokio::test]
    async fn large_chunks_are_kept_up_to_four_mebibytes_and_the_one_in_use_always() {
        let mebibyte = 1 << 20;
        let mut chunks = Vanishing::new(&[mebibyte, mebibyte, 6 * mebibyte, 1, 1]).await;
        assert!(chunks.has(0) && chunks.has(1) && chunks.has(0));
        assert!(chunks.has(2) && chunks.has(2));
        assert!(!chunks.has(0) && !chunks.has(1));
        assert!(chunks.has(3) && chunks.has(4) && chunks.has(3));
        assert!(!chunks.has(2));
    }
}
