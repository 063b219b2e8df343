//! How many bytes a source holds in memory, for all its connections: what many large requests at once are held against.
//!
//! Room is shared out by sender, as places are: where all of it is taken, what is still coming from the sender that has most of it, and more than
//! its share, is given up for another sender that has less. Else one that sends large requests very slowly would have all of it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// So many bytes at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    shared: Arc<Shared>,
    most: u64,
}

#[derive(Debug, Default)]
struct Shared {
    used: AtomicU64,
    next: AtomicU64,
    /// What may be given up: requests that are still coming, in the order in which they began.
    coming: Mutex<BTreeMap<u64, Arc<Part>>>,
}

/// What one request has.
#[derive(Debug, Default)]
struct Part {
    bytes: AtomicU64,
    sender: Option<Arc<str>>,
    given_up: CancellationToken,
}

/// A part of the room, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    room: Room,
    part: Arc<Part>,
    /// Among those that may be given up.
    number: Option<u64>,
}

/// The room is full, or this part of it was given up for another sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Room {
    pub(crate) fn new(most: u64) -> Self {
        Self { shared: Arc::default(), most }
    }

    /// Whether all of it is taken.
    pub(crate) fn is_full(&self) -> bool {
        self.shared.used.load(Ordering::Relaxed) >= self.most
    }

    /// For what is not given up.
    pub(crate) fn hold(&self) -> Held {
        Held { room: self.clone(), part: Arc::default(), number: None }
    }

    /// For what comes from a sender. Until [`Held::is_whole`] it may be given up.
    pub(crate) fn hold_for(&self, sender: Option<&Arc<str>>) -> Held {
        let part = Arc::new(Part { sender: sender.cloned(), ..Part::default() });
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        self.shared.coming().insert(number, Arc::clone(&part));
        Held { room: self.clone(), part, number: Some(number) }
    }
}

impl Shared {
    fn coming(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Part>>> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up one request so that `own` may have `bytes` more; gives false where there is none to be given up.
    fn give_up_one(&self, own: &Part, bytes: u64, most: u64) -> bool {
        let mut coming = self.coming();
        // Of each sender: how many bytes, and the request that it began first.
        let mut held: HashMap<Option<&str>, (u64, u64)> = HashMap::new();
        held.entry(own.sender.as_deref()).or_default();
        for (number, part) in coming.iter() {
            let has = part.bytes.load(Ordering::Relaxed);
            if has > 0 {
                held.entry(part.sender.as_deref()).or_insert((0, *number)).0 += has;
            }
        }
        let share = most / held.len() as u64;
        let own_bytes = held.get(&own.sender.as_deref()).map_or(0, |(sum, _)| *sum).saturating_add(bytes);
        let greatest = held.iter().filter(|(sender, _)| **sender != own.sender.as_deref()).max_by_key(|(_, of)| **of);
        let oldest = greatest.filter(|(_, (sum, _))| *sum > share && own_bytes <= share);
        let Some(part) = oldest.map(|(_, (_, first))| *first).and_then(|first| coming.remove(&first)) else {
            return false;
        };
        part.given_up.cancel();
        self.used.fetch_sub(part.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        true
    }
}

impl Held {
    /// Takes so many bytes more, or none.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), NoRoom> {
        let Room { shared, most } = &self.room;
        loop {
            if self.part.given_up.is_cancelled() {
                return Err(NoRoom);
            }
            let before = shared.used.fetch_add(bytes, Ordering::Relaxed);
            if before.saturating_add(bytes) <= *most {
                break;
            }
            shared.used.fetch_sub(bytes, Ordering::Relaxed);
            if !shared.give_up_one(&self.part, bytes, *most) {
                return Err(NoRoom);
            }
        }
        self.part.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Takes so many bytes more, whether there is room or not: they are in memory already.
    pub(crate) fn add_anyway(&mut self, bytes: u64) {
        self.room.shared.used.fetch_add(bytes, Ordering::Relaxed);
        self.part.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives back what is more than so many bytes.
    pub(crate) fn shrink_to(&mut self, bytes: u64) {
        let before = self.part.bytes.fetch_min(bytes, Ordering::Relaxed);
        self.room.shared.used.fetch_sub(before.saturating_sub(bytes), Ordering::Relaxed);
    }

    /// How many it has.
    pub(crate) fn bytes(&self) -> u64 {
        self.part.bytes.load(Ordering::Relaxed)
    }

    /// All has come: from here on it keeps what it has.
    ///
    /// # Errors
    /// Where it was given up already.
    pub(crate) fn is_whole(&mut self) -> Result<(), NoRoom> {
        if let Some(number) = self.number.take() {
            self.room.shared.coming().remove(&number);
        }
        if self.part.given_up.is_cancelled() { Err(NoRoom) } else { Ok(()) }
    }

    /// Ends when it is given up: what has come is to be dropped.
    pub(crate) async fn given_up(&self) {
        self.part.given_up.cancelled().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.is_whole();
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

    /// Requests of a room of 100 bytes: who sends, and how many bytes came.
    fn coming(room: &Room, table: &[(&str, u64)]) -> Vec<Held> {
        let held = |(sender, bytes): &(&str, u64)| {
            let mut held = room.hold_for(Some(&Arc::from(*sender)));
            held.add(*bytes).unwrap();
            held
        };
        table.iter().map(held).collect()
    }

    fn given_up(held: &[Held]) -> Vec<usize> {
        (0..held.len()).filter(|n| held[*n].part.given_up.is_cancelled()).collect()
    }

    #[test]
    fn the_sender_with_the_most_gives_up_what_it_began_first_for_one_that_has_less_than_its_share() {
        let room = Room::new(100);
        let mut held = coming(&room, &[("a", 25), ("a", 25), ("a", 25), ("b", 20)]);
        let mut other = room.hold_for(Some(&"c".into()));
        other.add(10).unwrap();
        assert_eq!((given_up(&held), held[0].bytes()), (vec![0], 0));
        assert_eq!(held[0].add(1), Err(NoRoom), "its request comes to nothing");
        assert_eq!(held[0].is_whole(), Err(NoRoom));
        assert_eq!(room.hold_for(Some(&"a".into())).add(30), Err(NoRoom), "it has most, and asks for more");
        // 80 are taken, and a third of the room is 33.
        other.add(20).unwrap();
        assert_eq!(other.add(24), Err(NoRoom), "that were more than its share");
        assert_eq!(given_up(&held), [0]);
        drop(held);
        drop(other);
        room.hold().add(100).unwrap();
    }

    #[test]
    fn nothing_is_given_up_for_the_same_sender_nor_of_one_that_has_its_share() {
        let room = Room::new(100);
        let held = coming(&room, &[("a", 50), ("a", 50)]);
        assert_eq!(room.hold_for(Some(&"a".into())).add(1), Err(NoRoom));
        drop(held);
        let held = coming(&room, &[("a", 50), ("b", 50)]);
        assert_eq!(room.hold_for(Some(&"b".into())).add(1), Err(NoRoom));
        assert_eq!(given_up(&held), Vec::<usize>::new());
    }

    #[test]
    fn what_has_come_as_a_whole_is_kept() {
        let room = Room::new(100);
        let mut held = coming(&room, &[("a", 40), ("a", 40), ("a", 20)]);
        held[0].is_whole().unwrap();
        let mut other = room.hold_for(Some(&"b".into()));
        other.add(5).unwrap();
        assert_eq!(given_up(&held), [1]);
        assert_eq!(held[0].bytes(), 40);
    }
}
