//! A sink for tests: what was handed in and made durable can be looked at, and it can be full, slow or broken.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::sink::{Durable, Later, Sink};
use crate::intake::Refused;
use crate::record::{BodyKind, Chunk, Position};

/// Stands in for the intake.
#[derive(Clone)]
pub(crate) struct FakeSink {
    inner: Arc<Mutex<Inner>>,
    /// Whose everything is that is handed in here.
    tenant: Option<Arc<str>>,
    /// How many chunks may become durable.
    allowed: watch::Sender<u64>,
    /// How many chunks are dealt with: they become durable in order, as in the journal.
    committed: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    chunks: Vec<Chunk>,
    /// Whose each of them is.
    tenants: Vec<Option<Arc<str>>>,
    handed_in: u64,
    positions: HashMap<String, Position>,
    discarded: BTreeMap<&'static str, u64>,
    unparsed: BTreeMap<&'static str, u64>,
    refused: BTreeMap<&'static str, u64>,
    connections: i64,
    /// Bytes of chunks that were handed in and are not durable, and the most that there were at once.
    under_way: u64,
    most_under_way: u64,
    refusals: VecDeque<Refused>,
    /// How many times positions that go with no record are not kept.
    unkept: u64,
    failures: VecDeque<Refused>,
}

impl FakeSink {
    pub(crate) fn new() -> Arc<Self> {
        Self::from_positions(Vec::new())
    }

    /// As after a restart: what the last run left.
    pub(crate) fn from_positions(positions: Vec<Position>) -> Arc<Self> {
        let positions = positions.into_iter().map(|p| (p.key.clone(), p)).collect();
        let inner = Inner { positions, ..Inner::default() };
        Arc::new(Self {
            inner: Arc::new(Mutex::new(inner)),
            tenant: None,
            allowed: watch::Sender::new(u64::MAX),
            committed: watch::Sender::new(0),
        })
    }

    /// Lets only so many chunks become durable.
    pub(crate) fn allow(&self, chunks: u64) {
        self.allowed.send_replace(chunks);
    }
    /// Refuses the next chunk that is handed in.
    pub(crate) fn refuse_next(&self, refused: Refused) {
        self.inner.lock().unwrap().refusals.push_back(refused);
    }
    /// Takes the next chunk, and then fails to make it durable.
    pub(crate) fn fail_next(&self, refused: Refused) {
        self.inner.lock().unwrap().failures.push_back(refused);
    }

    /// Does not keep positions that go with no record, so many times.
    pub(crate) fn keep_nothing(&self, times: u64) {
        self.inner.lock().unwrap().unkept = times;
    }

    /// The durable chunks.
    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        self.inner.lock().unwrap().chunks.clone()
    }
    /// Each durable chunk's tenant, and its records' bodies.
    pub(crate) fn by_tenant(&self) -> Vec<(Option<String>, Vec<String>)> {
        let inner = self.inner.lock().unwrap();
        let tenants = inner.tenants.iter().map(|tenant| tenant.as_deref().map(str::to_owned));
        tenants.zip(inner.chunks.iter().map(text)).collect()
    }
    /// How many chunks were handed in, durable or not.
    pub(crate) fn handed_in(&self) -> u64 {
        self.inner.lock().unwrap().handed_in
    }
    /// The most bytes that were under way at once so far.
    pub(crate) fn most_under_way(&self) -> u64 {
        self.inner.lock().unwrap().most_under_way
    }
    /// The bodies of all durable records, in order.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.chunks().iter().flat_map(text).collect()
    }
    /// The kinds of the durable chunks.
    pub(crate) fn kinds(&self) -> Vec<BodyKind> {
        self.chunks().iter().map(|chunk| chunk.meta().kind).collect()
    }
    /// All positions that are kept.
    pub(crate) fn kept_positions(&self) -> Vec<Position> {
        self.inner.lock().unwrap().positions.values().cloned().collect()
    }
    /// What a kill at this moment would leave: the durable lines and the positions that belong to them.
    pub(crate) fn snapshot(&self) -> (Vec<String>, Vec<Position>) {
        let inner = self.inner.lock().unwrap();
        (inner.chunks.iter().flat_map(text).collect(), inner.positions.values().cloned().collect())
    }
    /// How many records were discarded for a reason.
    pub(crate) fn discarded(&self, reason: &str) -> u64 {
        self.inner.lock().unwrap().discarded.get(reason).copied().unwrap_or(0)
    }

    /// How many records could not be parsed, by reason.
    pub(crate) fn unparsed(&self) -> BTreeMap<&'static str, u64> {
        self.inner.lock().unwrap().unparsed.clone()
    }
    /// How many requests were refused, by reason.
    pub(crate) fn refused(&self) -> BTreeMap<&'static str, u64> {
        self.inner.lock().unwrap().refused.clone()
    }

    /// How many connections are open.
    pub(crate) fn connections(&self) -> i64 {
        self.inner.lock().unwrap().connections
    }

    /// Waits until there are so many records.
    pub(crate) async fn wait_for(&self, records: usize) -> Vec<String> {
        eventually(&format!("{records} records"), || {
            let lines = self.lines();
            (lines.len() >= records).then_some(lines)
        })
        .await
    }

    fn take(self: &Arc<Self>, chunk: Chunk) -> Result<Durable, Refused> {
        let mut inner = self.inner.lock().unwrap();
        if let Some(refused) = inner.refusals.pop_front() {
            return Err(refused);
        }
        inner.handed_in += 1;
        inner.under_way += chunk.meta().body_bytes;
        inner.most_under_way = inner.most_under_way.max(inner.under_way);
        let (number, failure) = (inner.handed_in, inner.failures.pop_front());
        let (mut allowed, mut committed) = (self.allowed.subscribe(), self.committed.subscribe());
        let this = Arc::clone(self);
        // Whether or not anybody waits for it.
        let commit = tokio::spawn(async move {
            committed.wait_for(|committed| *committed == number - 1).await.unwrap();
            let outcome = match failure {
                Some(refused) => Err(refused),
                None => {
                    allowed.wait_for(|allowed| *allowed >= number).await.unwrap();
                    this.commit(chunk);
                    Ok(())
                }
            };
            this.committed.send_replace(number);
            outcome
        });
        Ok(Box::pin(async move { commit.await.unwrap() }))
    }

    fn commit(&self, chunk: Chunk) {
        let mut inner = self.inner.lock().unwrap();
        inner.under_way -= chunk.meta().body_bytes;
        for position in &chunk.meta().positions {
            assert!(position.key.len() <= 512 && position.value.len() <= 1024);
            inner.positions.insert(position.key.clone(), position.clone());
        }
        inner.chunks.push(chunk);
        inner.tenants.push(self.tenant.clone());
    }
}

impl Sink for Arc<FakeSink> {
    fn enqueue(&self, chunk: Chunk) -> Later<'_, Result<Durable, Refused>> {
        Box::pin(async move { self.take(chunk) })
    }
    fn try_enqueue(&self, chunk: Chunk) -> Result<Durable, Refused> {
        self.take(chunk)
    }
    fn refuses(&self) -> Option<Refused> {
        self.inner.lock().unwrap().refusals.front().cloned()
    }
    fn positions(&self, _source: &str) -> Vec<Position> {
        self.kept_positions()
    }
    fn keep(&self, positions: Vec<Position>) -> Later<'_, bool> {
        Box::pin(async move {
            let mut inner = self.inner.lock().unwrap();
            if inner.unkept > 0 {
                inner.unkept -= 1;
                return false;
            }
            for position in positions {
                inner.positions.entry(position.key.clone()).or_insert(position);
            }
            true
        })
    }
    fn forget<'a>(&'a self, _source: &'a str, keys: Vec<String>) -> Later<'a, ()> {
        Box::pin(async move {
            let mut inner = self.inner.lock().unwrap();
            keys.iter().for_each(|key| drop(inner.positions.remove(key)));
        })
    }
    fn of_tenant(&self, tenant: &Arc<str>) -> Arc<dyn Sink> {
        Arc::new(Arc::new(FakeSink { tenant: Some(tenant.clone()), ..FakeSink::clone(self) }))
    }
    fn count_discarded(&self, _source: &str, reason: &'static str, records: u64) {
        *self.inner.lock().unwrap().discarded.entry(reason).or_default() += records;
    }
    fn count_unparsed(&self, _: &str, reason: &'static str, records: u64) {
        *self.inner.lock().unwrap().unparsed.entry(reason).or_default() += records;
    }
    fn count_refused(&self, _source: &str, reason: &'static str) {
        *self.inner.lock().unwrap().refused.entry(reason).or_default() += 1;
    }
    fn count_connections(&self, _source: &str, change: i64) {
        self.inner.lock().unwrap().connections += change;
    }
}

fn text(chunk: &Chunk) -> Vec<String> {
    chunk.iter().map(|record| String::from_utf8_lossy(record.body).into_owned()).collect()
}

/// Asks again and again until there is an answer; gives up after a long time.
pub(crate) async fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(answer) = condition() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
