//! The line in which a tenant's chunks go to the journal.
//!
//! A chunk that a source handed in keeps its place until it is durable: when the journal refuses it, it is handed in again as
//! soon as the journal takes anything, and nothing that came later goes before it. That matters for positions: if a later chunk of
//! a file were committed and the earlier one not, a crash would lose the earlier one, since the file is read on from the later
//! position. So each append says how many refusals the journal had when all before it were known to be good, and the journal
//! refuses it when there was one since.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch};

use super::{JOURNAL, Refused};
use crate::journal::{AppendError, Condition, Lane};
use crate::queue::Queue;
use crate::record::{Chunk, ChunkId};

/// How long to wait, at most, before the journal is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// What the journal does for the line.
pub(super) trait Log: Send + Sync {
    /// How many appends were refused so far.
    fn refusals(&self) -> u64;
    /// Appends, unless there was a refusal since `seen`; with none, in any case.
    fn append(&self, chunk: Chunk, seen: Option<u64>) -> Answer;
    fn condition(&self) -> watch::Receiver<Condition>;
}

type Answer = oneshot::Receiver<Result<ChunkId, AppendError>>;

/// Room that queues granted. Given back when this is dropped, unless the chunk has committed.
#[derive(Debug, Default)]
pub(super) struct Granted {
    /// Queues, and the bytes that each granted.
    pub(super) room: Vec<(Queue, u64)>,
}

impl Granted {
    /// The commit has used the room up.
    fn used(mut self) {
        self.room.clear();
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        for (queue, bytes) in &self.room {
            queue.withdraw(*bytes);
        }
    }
}

/// A chunk with everything that goes with it.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) chunk: Chunk,
    pub(super) granted: Granted,
    /// Whether the line keeps it until it is durable; if not, whoever handed it in hears of a refusal.
    pub(super) keep: bool,
}

struct UnderWay {
    parcel: Parcel,
    answer: Answer,
    done: oneshot::Sender<Result<(), Refused>>,
}

/// Hears of a chunk's end.
pub(super) type Done = oneshot::Receiver<Result<(), Refused>>;

/// Why a parcel was not taken.
pub(super) enum NotNow {
    /// Earlier ones have to be handed in again first. The parcel comes back.
    Behind(Box<Parcel>),
    /// For good.
    Refused(Refused),
}

pub(super) struct Line {
    log: Arc<dyn Log>,
    books: Mutex<Books>,
    clear: Notify,
    runtime: Option<Handle>,
}

#[derive(Default)]
struct Books {
    under_way: VecDeque<UnderWay>,
    /// The journal's refusals when everything before was last known to be good.
    seen: u64,
    /// What was refused is handed in again; nothing else is.
    recovering: bool,
    driven: bool,
    stopped: bool,
}

impl Line {
    pub(super) fn new(log: Arc<dyn Log>) -> Arc<Self> {
        let books = Books { seen: log.refusals(), ..Books::default() };
        let runtime = Handle::try_current().ok();
        Arc::new(Self { log, books: Mutex::new(books), clear: Notify::new(), runtime })
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a parcel at the end of the line.
    pub(super) fn join(self: &Arc<Self>, parcel: Parcel) -> Result<Done, NotNow> {
        let mut books = self.lock();
        if books.stopped {
            return Err(NotNow::Refused(Refused::Stopping));
        }
        if books.recovering {
            return Err(NotNow::Behind(Box::new(parcel)));
        }
        if !books.driven {
            let Some(runtime) = Handle::try_current().ok().or_else(|| self.runtime.clone()) else {
                return Err(NotNow::Refused(Refused::Failed("there is no runtime to wait on the journal with".into())));
            };
            books.driven = true;
            runtime.spawn(self.clone().drive());
        }
        let seen = parcel.keep.then_some(books.seen);
        // Under the lock: the order in the journal is the order here.
        let answer = self.log.append(parcel.chunk.clone(), seen);
        let (done, heard) = oneshot::channel();
        books.under_way.push_back(UnderWay { parcel, answer, done });
        Ok(heard)
    }

    /// Whether parcels are taken, and the journal takes chunks.
    pub(super) fn is_clear(&self) -> bool {
        !self.lock().recovering && *self.log.condition().borrow() == Condition::Writable
    }

    /// Waits until parcels are taken again.
    pub(super) async fn clear(&self) {
        let clear = self.clear.notified();
        if self.lock().recovering {
            clear.await;
        }
    }

    /// Takes nothing any more, and does not hand in again what is refused from now on.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.clear.notify_waiters();
    }

    /// Why the journal takes nothing, or what to say where it does again.
    pub(super) fn refusal(&self) -> Refused {
        match &*self.log.condition().borrow() {
            Condition::DiskFull { .. } => Refused::DiskFull { retry_after: RETRY_AFTER },
            Condition::LimitReached { .. } => Refused::Full { what: JOURNAL.into(), retry_after: RETRY_AFTER },
            Condition::Failed(cause) => Refused::Failed(cause.clone()),
            Condition::Writable => Refused::Full { what: JOURNAL.into(), retry_after: PAUSE },
        }
    }

    /// Hears the journal's answers, in order, until there is nothing under way.
    async fn drive(self: Arc<Self>) {
        loop {
            let first = {
                let mut books = self.lock();
                let Some(first) = books.under_way.pop_front() else {
                    books.driven = false;
                    return;
                };
                first
            };
            let answer = heard(first.answer.await);
            match answer {
                Ok(_) => committed(first.parcel, first.done),
                Err(error) => self.recover(first.parcel, first.done, error).await,
            }
        }
    }

    /// One was refused. Sees to it that it and all behind it come in, in order, before anything else.
    async fn recover(&self, parcel: Parcel, done: oneshot::Sender<Result<(), Refused>>, error: AppendError) {
        let behind = {
            let mut books = self.lock();
            books.recovering = true;
            std::mem::take(&mut books.under_way)
        };
        let mut again = VecDeque::new();
        let mut refused = |parcel: Parcel, done: oneshot::Sender<_>, error: AppendError| {
            if parcel.keep && !is_final(&error) {
                again.push_back((parcel, done, error));
            } else {
                // Room goes back first: whoever hears of it may try at once.
                drop(parcel);
                let _ = done.send(Err(refusal_of(&error)));
            }
        };
        refused(parcel, done, error);
        for later in behind {
            match heard(later.answer.await) {
                Ok(_) => committed(later.parcel, later.done),
                Err(error) => refused(later.parcel, later.done, error),
            }
        }
        if let Some((_, _, error)) = again.front()
            && *error != AppendError::Overtaking
        {
            tracing::warn!(chunks = again.len(), reason = %error, "the journal refused records; they are handed in again when it can take them");
        }
        let mut said = false;
        while !again.is_empty() {
            self.writable(said).await;
            // Read before the appends: what is refused from here on, all behind it are refused with.
            let seen = self.log.refusals();
            let stopped = self.lock().stopped;
            let mut answers = VecDeque::new();
            for (parcel, done, _) in again.drain(..) {
                if stopped {
                    drop(parcel);
                    let _ = done.send(Err(Refused::Stopping));
                } else {
                    let answer = self.log.append(parcel.chunk.clone(), Some(seen));
                    answers.push_back((parcel, done, answer));
                }
            }
            for (parcel, done, answer) in answers {
                match heard(answer.await) {
                    Ok(_) => committed(parcel, done),
                    Err(error) if is_final(&error) => {
                        drop(parcel);
                        let _ = done.send(Err(refusal_of(&error)));
                    }
                    Err(error) => again.push_back((parcel, done, error)),
                }
            }
            said = !again.is_empty();
        }
        let mut books = self.lock();
        // Before this is read nothing is under way, and nothing is refused that anybody waits for.
        books.seen = self.log.refusals();
        books.recovering = false;
        drop(books);
        self.clear.notify_waiters();
    }

    /// Waits until the journal says that it can be written, or a while where it says nothing. After a refusal that its
    /// condition does not explain, a while in any case.
    async fn writable(&self, refused_before: bool) {
        let mut condition = self.log.condition();
        let writable = |condition: &Condition| *condition == Condition::Writable;
        if writable(&condition.borrow()) && !refused_before {
            return;
        }
        let changed = async {
            if refused_before && writable(&condition.borrow()) {
                std::future::pending::<()>().await;
            }
            let _ = condition.wait_for(writable).await;
        };
        let _ = tokio::time::timeout(PAUSE, changed).await;
    }
}

/// What a sender is told to wait when the disk or the journal is full.
const RETRY_AFTER: Duration = Duration::from_secs(5);

fn committed(parcel: Parcel, done: oneshot::Sender<Result<(), Refused>>) {
    parcel.granted.used();
    // Whoever does not wait any more does not want to know.
    let _ = done.send(Ok(()));
}

/// A journal that ends without an answer has not taken the chunk.
fn heard(answer: Result<Result<ChunkId, AppendError>, oneshot::error::RecvError>) -> Result<ChunkId, AppendError> {
    answer.unwrap_or(Err(AppendError::Closed))
}

/// Whether handing in again is of no use: the journal is closed, or the chunk larger than all of it. Everybody would wait
/// behind such a chunk.
fn is_final(error: &AppendError) -> bool {
    match error {
        AppendError::Closed => true,
        AppendError::LimitReached { used, limit } => used > limit,
        _ => false,
    }
}

fn refusal_of(error: &AppendError) -> Refused {
    match error {
        AppendError::DiskFull { .. } => Refused::DiskFull { retry_after: RETRY_AFTER },
        AppendError::LimitReached { used, limit } if is_final(error) => {
            Refused::TooLarge { bytes: *used, limit: *limit }
        }
        AppendError::LimitReached { .. } => Refused::Full { what: JOURNAL.into(), retry_after: RETRY_AFTER },
        AppendError::Overtaking => Refused::Full { what: JOURNAL.into(), retry_after: PAUSE },
        AppendError::Io(cause) => Refused::Failed(cause.clone()),
        AppendError::Closed => Refused::Stopping,
    }
}

impl Log for Lane {
    fn refusals(&self) -> u64 {
        Lane::refusals(self)
    }
    fn append(&self, chunk: Chunk, seen: Option<u64>) -> Answer {
        match seen {
            Some(seen) => self.append_unless_refused_since(chunk, seen),
            None => Lane::append(self, chunk),
        }
    }
    fn condition(&self) -> watch::Receiver<Condition> {
        Lane::condition(self)
    }
}
