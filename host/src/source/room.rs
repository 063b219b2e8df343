//! How many bytes a source holds in memory, for all its connections: what many large requests at once are held against.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many bytes at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    used: Arc<AtomicU64>,
    most: u64,
}

/// A part of the room, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    room: Room,
    bytes: u64,
}

/// The room is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Room {
    pub(crate) fn new(most: u64) -> Self {
        Self { used: Arc::default(), most }
    }

    /// Whether all of it is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.most
    }

    pub(crate) fn hold(&self) -> Held {
        Held { room: self.clone(), bytes: 0 }
    }
}

impl Held {
    /// Takes so many bytes more, or none.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), NoRoom> {
        let before = self.room.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > self.room.most {
            self.room.used.fetch_sub(bytes, Ordering::Relaxed);
            return Err(NoRoom);
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Takes so many bytes more, whether there is room or not: they are in memory already.
    pub(crate) fn add_anyway(&mut self, bytes: u64) {
        self.room.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
    }

    /// Gives back what is more than so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let spare = self.bytes.saturating_sub(bytes);
        self.room.used.fetch_sub(spare, Ordering::Relaxed);
        self.bytes -= spare;
    }

    /// How many it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_back() {
        let room = Room::new(100);
        let mut first = room.hold();
        first.add(80).unwrap();
        assert_eq!(room.hold().add(30), Err(NoRoom));
        room.hold().add(20).unwrap();
        first.shrink_to(50);
        assert_eq!(first.bytes(), 50);
        drop(first);
        room.hold().add(100).unwrap();
    }

    #[test]
    fn what_is_in_memory_already_takes_room_from_others() {
        let room = Room::new(100);
        let mut first = room.hold();
        assert!(!room.is_full());
        first.add_anyway(150);
        assert!(room.is_full());
        assert_eq!(room.hold().add(1), Err(NoRoom));
        first.shrink_to(99);
        room.hold().add(1).unwrap();
    }
}
