//! Room for large pieces of bytes, used again. Memory that is new to the process costs a fault for each page, and is cold: more than
//! reading a chunk out of the page cache costs, and a tenth of what a batch costs in all.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Room is made in steps of this.
const STEP: usize = 64 << 10;

/// What buffers are kept for later use. Others are the allocator's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// The least and the most room of one that is kept.
    pub(crate) room: (usize, usize),
    /// The most of them.
    pub(crate) buffers: usize,
    /// The most room that all of them have.
    pub(crate) bytes: usize,
}

impl Keep {
    fn fits(&self, room: usize) -> bool {
        (self.room.0..=self.room.1).contains(&room)
    }
}

/// Buffers that nobody uses. Cheap to clone; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Buffers {
    keep: Keep,
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
    pub(crate) fn new(keep: Keep) -> Self {
        Self { keep, free: Arc::default() }
    }

    /// An empty buffer with room for so many bytes. What is more than is kept has no room yet: it may never be needed.
    pub(crate) fn take(&self, length: usize) -> Vec<u8> {
        if length > self.keep.room.1 {
            return Vec::new();
        }
        if length < self.keep.room.0 {
            return Vec::with_capacity(length);
        }
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = free.buffers.iter().rposition(|buffer| buffer.capacity() >= length) else {
            // They are of much the same size: the next one may be a little larger.
            return Vec::with_capacity(length.next_multiple_of(STEP));
        };
        let buffer = free.buffers.remove(place);
        free.bytes -= buffer.capacity();
        buffer
    }

    /// What was read, as bytes whose buffer comes back when nobody has any part of them any more.
    pub(crate) fn lend(&self, buffer: Vec<u8>) -> Bytes {
        if !self.keep.fits(buffer.capacity()) {
            return buffer.into();
        }
        Bytes::from_owner(Lent { buffer, home: self.clone() })
    }

    /// Gives what is kept back to the allocator.
    pub(crate) fn let_go(&self) {
        *self.free.lock().unwrap_or_else(PoisonError::into_inner) = Free::default();
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
        let Keep { buffers, bytes, .. } = self.home.keep;
        let mut free = self.home.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.buffers.len() < buffers && free.bytes + buffer.capacity() <= bytes {
            free.bytes += buffer.capacity();
            free.buffers.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Keep = Keep { room: (64 << 10, 4 << 20), buffers: 16, bytes: 8 << 20 };

    fn kept(buffers: &Buffers) -> (usize, usize) {
        let free = buffers.free.lock().unwrap();
        (free.buffers.len(), free.bytes)
    }

    #[test]
    fn a_buffer_comes_back_when_the_last_part_of_it_is_dropped() {
        let buffers = Buffers::new(KEEP);
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
        let buffers = Buffers::new(KEEP);
        let lent: Vec<Bytes> = (0..40).map(|_| buffers.lend(buffers.take(1 << 20))).collect();
        drop(lent);
        assert_eq!(kept(&buffers), (8, 8 << 20));
        let lent: Vec<Bytes> = [1_000, 5 << 20].map(|length| buffers.lend(buffers.take(length))).into();
        drop(lent);
        assert_eq!(kept(&buffers), (8, 8 << 20), "small ones and large ones are the allocator's");
        buffers.let_go();
        assert_eq!(kept(&buffers), (0, 0));
    }
}
