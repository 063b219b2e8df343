//! What the queues share: how many routes still need a chunk, and which positions are newer than the state's.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::journal::Journal;
use crate::record::{ChunkId, ChunkMeta, Portion, Position};
use crate::state::{State, StateError};
use crate::telemetry::Metrics;

/// Who gets chunks back that nobody needs: the journal.
pub(super) trait Keeper: Send + Sync {
    fn release(&self, ids: &[ChunkId]);
    /// Ids from now on are above this one.
    fn raise_ids_above(&self, known: ChunkId);
}

impl Keeper for Journal {
    fn release(&self, ids: &[ChunkId]) {
        Journal::release(self, ids);
    }
    fn raise_ids_above(&self, known: ChunkId) {
        Journal::raise_ids_above(self, known);
    }
}

/// The wall clock, nanoseconds since 1970 UTC.
pub(super) type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

pub(super) struct Shared {
    pub(super) state: State,
    pub(super) metrics: Metrics,
    pub(super) clock: Clock,
    pub(super) keeper: Arc<dyn Keeper>,
    books: Mutex<Books>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

/// Of one source.
type PositionsByKey = HashMap<String, (Vec<u8>, ChunkId)>;

#[derive(Debug, Default)]
struct Books {
    /// How many routes still need a chunk: it is kept whole until the last portion of it is settled.
    needed: HashMap<ChunkId, u32>,
    /// For each source and key: the newest position that is not yet in the state, and the chunk that brought it. That chunk, or
    /// a later one of the key, is in the journal, so the position is not lost before it is here.
    positions: HashMap<Arc<str>, PositionsByKey>,
    /// Chunks that nobody needs, but whose positions could not be kept yet.
    unreleased: Vec<Portion>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(keeper: Arc<dyn Keeper>, state: State, metrics: Metrics, clock: Clock) -> Self {
        Self { state, metrics, clock, keeper, books: Mutex::default() }
    }

    pub(super) fn now(&self) -> i64 {
        (self.clock)()
    }

    /// So many routes need a chunk.
    pub(super) fn need(&self, id: ChunkId, routes: u32) {
        lock(&self.books).needed.insert(id, routes);
    }

    /// A chunk brought its positions.
    pub(super) fn note_positions(&self, id: ChunkId, meta: &ChunkMeta) {
        if meta.positions.is_empty() {
            return;
        }
        let mut books = lock(&self.books);
        for position in &meta.positions {
            let of_source = books.positions.entry(position.source.clone()).or_default();
            match of_source.get_mut(&position.key) {
                Some(known) if known.1 > id => {}
                Some(known) => *known = (position.value.clone(), id),
                None => {
                    of_source.insert(position.key.clone(), (position.value.clone(), id));
                }
            }
        }
    }

    /// Positions that stand in these chunks, are the newest of their keys, and are not in the state: they have to be before
    /// the chunks go.
    pub(super) fn positions_in(&self, portions: &[Portion]) -> Vec<(Position, ChunkId)> {
        let books = lock(&self.books);
        let newest = |id: ChunkId, position: &Position| {
            books
                .positions
                .get(&position.source)
                .and_then(|keys| keys.get(&position.key))
                .is_some_and(|(_, at)| *at == id)
        };
        let mut found = Vec::new();
        for Portion { id, meta, .. } in portions {
            found.extend(meta.positions.iter().filter(|position| newest(*id, position)).map(|p| (p.clone(), *id)));
        }
        found
    }

    /// The newest positions of a source.
    pub(super) fn positions(&self, source: &str) -> Result<Vec<Position>, StateError> {
        // In this order: one that is not here any more when this looks is in the state.
        let here: Vec<(Position, ChunkId)> = {
            let books = lock(&self.books);
            let all = books.positions.get(source).into_iter().flatten();
            let position = |key: &String, value: &Vec<u8>| Position {
                source: source.into(),
                key: key.clone(),
                value: value.clone(),
            };
            all.map(|(key, (value, id))| (position(key, value), *id)).collect()
        };
        let mut newest: HashMap<String, (Position, ChunkId)> = HashMap::new();
        for (position, id) in self.state.positions(source)?.into_iter().chain(here) {
            match newest.get(&position.key) {
                Some((_, known)) if *known > id => {}
                _ => drop(newest.insert(position.key.clone(), (position, id))),
            }
        }
        Ok(newest.into_values().map(|(position, _)| position).collect())
    }

    /// These positions are in the state.
    pub(super) fn positions_kept(&self, kept: &[(Position, ChunkId)]) {
        let mut books = lock(&self.books);
        for (position, id) in kept {
            if let Some(keys) = books.positions.get_mut(&position.source) {
                if keys.get(&position.key).is_some_and(|(_, at)| at <= id) {
                    keys.remove(&position.key);
                }
                if keys.is_empty() {
                    books.positions.remove(&position.source);
                }
            }
        }
    }

    /// Positions that came with no chunk, and so are older than every chunk's.
    pub(super) fn keep(&self, positions: &[Position]) -> Result<(), StateError> {
        const BEFORE_ALL_CHUNKS: ChunkId = ChunkId(0);
        for some in positions.chunks(256) {
            let some: Vec<_> = some.iter().map(|position| (position.clone(), BEFORE_ALL_CHUNKS)).collect();
            self.state.put_positions(&some)?;
        }
        Ok(())
    }

    /// Positions that are forgotten, here and in the state.
    pub(super) fn forget(&self, source: &str, keys: &[String]) -> Result<(), StateError> {
        if let Some(of_source) = lock(&self.books).positions.get_mut(source) {
            of_source.retain(|key, _| !keys.contains(key));
        }
        for keys in keys.chunks(256) {
            self.state.delete_positions(source, keys)?;
        }
        Ok(())
    }

    /// These portions are needed no more, and that is durable. Chunks of which no portion is needed go back to the journal.
    pub(super) fn release(&self, portions: &[Portion]) {
        let free: Vec<Portion> = {
            let mut books = lock(&self.books);
            let mut free = std::mem::take(&mut books.unreleased);
            for portion in portions {
                match books.needed.get_mut(&portion.id) {
                    Some(routes) if *routes > 1 => *routes -= 1,
                    Some(_) => {
                        books.needed.remove(&portion.id);
                        free.push(portion.clone());
                    }
                    None => {}
                }
            }
            free
        };
        self.give_up(free);
    }

    /// Gives chunks back to the journal that nobody needs, once their positions are in the state.
    pub(super) fn give_up(&self, free: Vec<Portion>) {
        if free.is_empty() {
            return;
        }
        let positions = self.positions_in(&free);
        for some in positions.chunks(256) {
            if let Err(e) = self.state.put_positions(some) {
                tracing::warn!(error = %e, chunks = free.len(), "positions cannot be kept; their chunks stay until they can");
                lock(&self.books).unreleased.extend(free);
                return;
            }
            self.positions_kept(some);
        }
        let ids: Vec<ChunkId> = free.iter().map(|portion| portion.id).collect();
        self.keeper.release(&ids);
    }
}
