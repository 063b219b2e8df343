//! Room for chunks that are read, used again. Memory that is new to the process costs a fault for each page, and is cold: more than
//! reading a chunk out of the page cache costs.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Smaller reads take their room from the allocator, which keeps such.
const SMALLEST: usize = 64 << 10;
/// A chunk may be one message of a sender: 2 MB from Fluent Bit, 4 MB of JSON from a collector. Larger ones are rare, and would be kept for
/// nothing.
const LARGEST: usize = 4 << 20;
/// Bytes that are kept for later reads, and buffers.
const KEPT_BYTES: usize = 8 << 20;
const KEPT: usize = 16;

/// Buffers that nobody uses. Cheap to clone; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Buffers {
    free: Arc<Mutex<Free>>,
}

#[derive(Debug, Default)]
struct Free {
    /// The one that was used last is last, and is taken first: it may still be in the processor's caches.
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

/// A buffer in use, which comes back.
struct Lent {
    buffer: Vec<u8>,
    home: Buffers,
}

impl Buffers {
    /// An empty buffer, perhaps with room already.
    pub(super) fn take(&self, length: usize) -> Vec<u8> {
        if !(SMALLEST..=LARGEST).contains(&length) {
            return Vec::new();
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = free.buffers.iter().rposition(|buffer| buffer.capacity() >= length) else {
            // Chunks are of much the same size: the next one may be as large.
            return Vec::with_capacity(length.next_multiple_of(SMALLEST));
        };
        let buffer = free.buffers.remove(place);
        free.bytes -= buffer.capacity();
        buffer
    }

    /// What was read, as bytes whose buffer comes back when nobody has any part of them any more.
    pub(super) fn lend(&self, buffer: Vec<u8>) -> Bytes {
        if !(SMALLEST..=LARGEST).contains(&buffer.capacity()) {
            return buffer.into();
        }
        Bytes::from_owner(Lent { buffer, home: self.clone() })
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let mut free = self.home.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.buffers.len() < KEPT && free.bytes + buffer.capacity() <= KEPT_BYTES {
            free.bytes += buffer.capacity();
            free.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(buffers: &Buffers) -> (usize, usize) {
        let free = buffers.free.lock().unwrap();
        (free.buffers.len(), free.bytes)
    }

    #[test]
    fn a_buffer_comes_back_when_the_last_part_of_it_is_dropped() {
        let buffers = Buffers::default();
        let mut room = buffers.take(100_000);
        room.extend_from_slice(&[7; 100_000]);
        let at = room.as_ptr();
        let bytes = buffers.lend(room);
        let part = bytes.slice(99_999..);
        drop(bytes);
        assert_eq!((kept(&buffers).0, &*part), (0, &[7_u8][..]));
        drop(part);
        assert_eq!(kept(&buffers), (1, 131_072));
        let again = buffers.take(131_072);
        assert!(again.is_empty() && again.as_ptr() == at, "the same room, and nothing of what was in it");
        assert_eq!(kept(&buffers), (0, 0));
    }

    #[test]
    fn what_is_kept_for_later_is_bounded() {
        let buffers = Buffers::default();
        let lent: Vec<Bytes> = (0..40).map(|_| buffers.lend(buffers.take(1 << 20))).collect();
        drop(lent);
        assert_eq!(kept(&buffers), (8, 8 << 20));
        let lent: Vec<Bytes> = [1_000, 5 << 20].map(|length| buffers.lend(buffers.take(length))).into();
        drop(lent);
        assert_eq!(kept(&buffers), (8, 8 << 20), "small ones and large ones are the allocator's");
    }
}
