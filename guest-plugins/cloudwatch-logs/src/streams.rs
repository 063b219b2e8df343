//! Log streams that this worker knows to exist: ordinary memory of this worker, which no other worker can see.
//!
//! An entry goes when it was not used for a while, or when there are too many and it is the one that was not used for longest. Nothing is
//! lost with it: an unknown stream is found out about by the call that needs it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::naming::Place;

/// Known streams.
#[derive(Debug)]
pub struct Streams {
    ttl: Duration,
    most: usize,
    entries: HashMap<String, Entry>,
    /// From the one not used for longest to the last used: the turns at which they were used.
    by_turn: BTreeMap<u64, String>,
    turn: u64,
    counts: Counts,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    turn: u64,
    used: Duration,
}

/// What happened since the counts were last taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// The stream was known.
    pub hits: u64,
    /// It was not.
    pub misses: u64,
    /// Entries that made room for others.
    pub evictions: u64,
    /// Entries that were not used for too long.
    pub expirations: u64,
}

impl Streams {
    /// None are known.
    pub fn new(ttl: Duration, most: usize) -> Self {
        let (entries, by_turn) = (HashMap::new(), BTreeMap::new());
        Self { ttl, most, entries, by_turn, turn: 0, counts: Counts::default(), bytes: 0 }
    }

    /// Whether a stream is known to exist, now that it is about to be used.
    pub fn knows(&mut self, place: &Place, now: Duration) -> bool {
        self.expire(now);
        let known = self.entries.contains_key(&place.to_string());
        if known {
            self.counts.hits += 1;
        } else {
            self.counts.misses += 1;
        }
        known
    }

    /// A stream exists: it was just used.
    pub fn used(&mut self, place: &Place, now: Duration) {
        let key = place.to_string();
        self.turn += 1;
        self.bytes += cost(&key);
        self.by_turn.insert(self.turn, key.clone());
        let before = self.entries.insert(key.clone(), Entry { turn: self.turn, used: now });
        if let Some(before) = before {
            self.by_turn.remove(&before.turn);
            self.bytes -= cost(&key);
        }
        while self.entries.len() > self.most && self.drop_oldest() {
            self.counts.evictions += 1;
        }
    }

    /// A stream does not exist.
    pub fn forget(&mut self, place: &Place) {
        let key = place.to_string();
        if let Some(entry) = self.entries.remove(&key) {
            self.by_turn.remove(&entry.turn);
            self.bytes -= cost(&key);
        }
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// About how many bytes of this worker's memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What happened since this was last asked.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    fn expire(&mut self, now: Duration) {
        while let Some((_, key)) = self.by_turn.first_key_value() {
            let old = self.entries.get(key).is_none_or(|entry| now.saturating_sub(entry.used) >= self.ttl);
            if !old || !self.drop_oldest() {
                return;
            }
            self.counts.expirations += 1;
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let Some((_, key)) = self.by_turn.pop_first() else { return false };
        self.entries.remove(&key);
        self.bytes -= cost(&key);
        true
    }
}

/// The name twice, and about what the two maps need besides.
fn cost(key: &str) -> usize {
    2 * key.len() + 160
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(stream: &str) -> Place {
        Place { group: "g".into(), stream: stream.into() }
    }
    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }
    fn streams(most: usize) -> Streams {
        Streams::new(at(100), most)
    }

    #[test]
    fn an_entry_expires_after_its_last_use_and_not_before() {
        let mut streams = streams(10);
        assert!(!streams.knows(&place("a"), at(0)));
        streams.used(&place("a"), at(0));
        assert!(streams.knows(&place("a"), at(99)));
        streams.used(&place("a"), at(99));
        assert!(streams.knows(&place("a"), at(198)), "its time counts from the last use");
        assert!(!streams.knows(&place("a"), at(199)));
        assert_eq!(streams.take_counts(), Counts { hits: 2, misses: 2, evictions: 0, expirations: 1 });
        assert_eq!((streams.len(), streams.bytes()), (0, 0));
    }

    #[test]
    fn the_one_not_used_for_longest_makes_room() {
        let mut streams = streams(2);
        streams.used(&place("a"), at(0));
        streams.used(&place("b"), at(1));
        streams.used(&place("a"), at(2));
        streams.used(&place("c"), at(3));
        assert!(streams.knows(&place("a"), at(4)) && streams.knows(&place("c"), at(4)));
        assert!(!streams.knows(&place("b"), at(4)));
        assert_eq!(streams.take_counts(), Counts { hits: 2, misses: 1, evictions: 1, expirations: 0 });
        assert_eq!(streams.len(), 2);
    }

    #[test]
    fn what_is_forgotten_is_gone_and_costs_nothing() {
        let mut streams = streams(2);
        streams.used(&place("a"), at(0));
        let one = streams.bytes();
        streams.used(&place("a"), at(1));
        assert_eq!(streams.bytes(), one, "using it again costs nothing more");
        streams.used(&place("b"), at(1));
        assert_eq!(streams.bytes(), 2 * one);
        streams.forget(&place("a"));
        streams.forget(&place("a"));
        assert!(!streams.knows(&place("a"), at(2)) && streams.knows(&place("b"), at(2)));
        assert_eq!((streams.len(), streams.bytes()), (1, one));
    }

    #[test]
    fn a_stream_of_another_group_is_another_stream() {
        let mut streams = streams(9);
        streams.used(&place("a"), at(0));
        assert!(!streams.knows(&Place { group: "h".into(), stream: "a".into() }, at(0)));
    }

    /// Against a list that does the same in the slowest and plainest way.
    #[test]
    fn it_agrees_with_a_plain_list_under_a_long_random_run() {
        let mut streams = Streams::new(at(20), 5);
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut seed = 1_u64;
        let mut now = 0;
        for _ in 0..5_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (which, what) = (seed >> 33 & 7, seed >> 40 & 7);
            now += seed >> 50 & 7;
            let name = place(&which.to_string());
            list.retain(|(_, used)| what == 0 || now - used < 20);
            match what {
                0 => {
                    list.retain(|(it, _)| *it != which);
                    streams.forget(&name);
                }
                1..=3 => {
                    let known = list.iter().any(|(it, _)| *it == which);
                    assert_eq!(streams.knows(&name, at(now)), known, "at {now}");
                }
                _ => {
                    streams.knows(&name, at(now));
                    list.retain(|(it, _)| *it != which);
                    list.push((which, now));
                    if list.len() > 5 {
                        list.remove(0);
                    }
                    streams.used(&name, at(now));
                }
            }
            assert!(streams.len() <= 5);
        }
    }
}
