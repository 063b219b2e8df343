//! What sources rely on.

use std::collections::VecDeque;
use std::path::Path;

use proptest::prelude::*;
use tokio::sync::{oneshot, watch};

use super::line::Log;
use super::*;
use crate::journal::{AppendError, Condition, Options, Recovery};
use crate::queue::WhenFull;
use crate::queue::{BatchLimits, QueueOptions};
use crate::record::{BodyKind, ChunkBuilder, ChunkId, PartitionKey};
use crate::state::State;

const SEGMENT: u64 = 1 << 20;

struct House {
    dir: tempfile::TempDir,
    journal: Journal,
    metrics: Metrics,
    queues: Vec<Queue>,
    intake: Intake,
}

fn output(name: &str) -> QueueOptions {
    QueueOptions {
        output: name.into(),
        partition_by: vec![PartitionKey::Tag],
        in_order: false,
        limits: BatchLimits {
            max_bytes: 1,
            max_records: 1_000_000,
            max_age: Duration::from_secs(600),
            record_overhead: 0,
        },
        max_bytes: None,
        when_full: WhenFull::Block,
    }
}

fn options(max_bytes: Option<u64>) -> Options {
    Options { segment_bytes: SEGMENT, max_bytes, reserve_bytes: 0 }
}

/// A journal, a state, and outputs that want what their match says.
fn house_in(dir: tempfile::TempDir, max_bytes: Option<u64>, outputs: Vec<(&str, QueueOptions)>) -> House {
    let (journal, recovery) = open_journal(dir.path(), max_bytes);
    let (state, _) = State::open(&dir.path().join("data")).unwrap();
    let metrics = Metrics::new();
    let ledger = Ledger::new(journal.clone(), state, metrics.clone());
    let (patterns, options): (Vec<_>, Vec<_>) = outputs.into_iter().unzip();
    let (queues, positions) = ledger.restore(&recovery, options).unwrap();
    let committing = ledger.clone();
    journal.start(Box::new(move |group| committing.committed(group)));
    let routes: Vec<_> = patterns.iter().map(|p| vec![(*p).to_owned()]).zip(queues.clone()).collect();
    let intake = Intake::new(routes.into(), journal.clone(), ledger, positions, metrics.clone()).unwrap();
    House { dir, journal, metrics, queues, intake }
}

fn open_journal(dir: &Path, max_bytes: Option<u64>) -> (Journal, Recovery) {
    Journal::open(&dir.join("journal"), &dir.join("quarantine"), options(max_bytes)).unwrap()
}

fn house(outputs: Vec<(&str, QueueOptions)>) -> House {
    house_in(tempfile::tempdir().unwrap(), None, outputs)
}

fn chunk(tag: &str, bytes: usize) -> Chunk {
    let mut builder = ChunkBuilder::new(BodyKind::Text, tag.into());
    builder.push(1, &vec![b'x'; bytes]);
    builder.finish().unwrap()
}

fn at(key: &str, value: &str) -> Position {
    Position { source: "files".into(), key: key.into(), value: value.into() }
}

fn chunk_at(tag: &str, position: Position) -> Chunk {
    let mut builder = ChunkBuilder::new(BodyKind::Text, tag.into());
    builder.push(1, b"body");
    builder.position(position);
    builder.finish().unwrap()
}

impl House {
    fn counted(&self, line: &str) -> bool {
        self.metrics.render().lines().any(|l| l == line)
    }
}

#[tokio::test]
async fn a_chunk_goes_to_each_output_that_its_tag_matches() {
    let house = house(vec![("app*", output("a")), ("*.web", output("b")), ("other", output("c"))]);
    house.intake.enqueue(chunk("app.web", 10)).await.unwrap().durable().await.unwrap();
    house.intake.enqueue(chunk("app", 10)).await.unwrap().durable().await.unwrap();
    let records: Vec<_> = house.queues.iter().map(Queue::records).collect();
    assert_eq!(records, [2, 1, 0]);
    let batch = house.queues[1].next_batch().await.unwrap();
    assert_eq!(&*batch.row.partition, "app.web");
    assert!(house.counted(r#"wharf_durable_records_total{output="a"} 2"#));
    assert!(house.counted(r#"wharf_source_accepted_records_total{source="app"} 1"#));
}

/// The bodies of all batches that a flush gives, by partition, read as workers would.
async fn bodies(house: &House, queue: &Queue) -> Vec<(String, Vec<String>)> {
    queue.flush();
    let mut found = Vec::new();
    while !queue.is_empty() {
        let batch = queue.next_batch().await.unwrap();
        let mut bodies = Vec::new();
        for portion in batch.portions.iter() {
            let chunk = house.journal.read_portion(portion).unwrap();
            bodies.extend(chunk.iter().map(|record| String::from_utf8(record.body.to_vec()).unwrap()));
        }
        assert_eq!(batch.row.bytes, bodies.iter().map(|body| body.len() as u64).sum::<u64>());
        found.push((batch.row.partition.to_string(), bodies));
        queue.settle(&batch).unwrap();
    }
    found
}

fn json_chunk(bodies: &[&str]) -> Chunk {
    let mut builder = ChunkBuilder::new(BodyKind::Json, "app".into());
    for (time, body) in (1..).zip(bodies) {
        builder.push(time, body.as_bytes());
    }
    builder.position(at("f", "10"));
    builder.finish().unwrap()
}

fn by_pod(name: &str) -> QueueOptions {
    let limits = BatchLimits { max_bytes: 1_000_000, ..output(name).limits };
    QueueOptions { partition_by: vec![PartitionKey::Field(vec!["pod".into()])], limits, ..output(name) }
}

#[tokio::test]
async fn outputs_that_partition_differently_share_one_stored_chunk_and_each_gets_every_record_once() {
    let mut house = house(vec![("*", by_pod("a")), ("*", output("b")), ("*", by_pod("c"))]);
    let records = [r#"{"pod":"x","n":1}"#, r#"{"pod":"y","n":2}"#, r#"{"n":3}"#, r#"{"pod":"x","n":4}"#];
    house.intake.enqueue(json_chunk(&records)).await.unwrap().durable().await.unwrap();
    assert_eq!(house.journal.usage().chunks, 1);
    assert_eq!(house.queues.iter().map(Queue::records).collect::<Vec<_>>(), [4, 4, 4]);
    let by_pods = [(".pod", vec![2]), (".pod=x", vec![0, 3]), (".pod=y", vec![1])].map(|(partition, of)| {
        let of: Vec<_> = of.into_iter().map(|n: usize| records[n].to_owned()).collect();
        (partition.to_owned(), of)
    });
    assert_eq!(bodies(&house, &house.queues[0]).await, by_pods);
    assert_eq!(bodies(&house, &house.queues[1]).await, [("app".to_owned(), records.map(str::to_owned).to_vec())]);
    assert_eq!(house.journal.usage().chunks, 1);

    // A restart: what is left is as it was, and what was settled does not come again.
    let dir = std::mem::replace(&mut house.dir, tempfile::tempdir().unwrap());
    house.journal.close();
    drop(house);
    let house = house_in(dir, None, vec![("*", by_pod("a")), ("*", output("b")), ("*", by_pod("c"))]);
    assert_eq!(house.queues.iter().map(Queue::records).collect::<Vec<_>>(), [0, 0, 4]);
    assert_eq!(house.intake.positions("files"), [at("f", "10")]);
    assert_eq!(bodies(&house, &house.queues[2]).await, by_pods);
    assert_eq!(house.journal.usage().chunks, 0);
}

#[tokio::test]
async fn a_chunk_with_records_of_one_partition_goes_there_whole() {
    let house = house(vec![("*", by_pod("a"))]);
    house
        .intake
        .enqueue(json_chunk(&[r#"{"pod":"x"}"#, r#"{"pod":"x","n":1}"#]))
        .await
        .unwrap()
        .durable()
        .await
        .unwrap();
    house.queues[0].flush();
    let batch = house.queues[0].next_batch().await.unwrap();
    assert_eq!(&*batch.row.partition, ".pod=x");
    assert_eq!(batch.portions[0].meta.routes[0].part, None);
}

#[tokio::test]
async fn records_that_are_shared_out_use_the_room_that_they_were_granted() {
    let house = house(vec![("*", QueueOptions { max_bytes: Some(1_000), ..by_pod("a") })]);
    let bodies = [r#"{"pod":"x"}"#, r#"{"pod":"y"}"#];
    let mut taken = 0;
    while house.intake.try_enqueue(json_chunk(&bodies)).map(|ticket| ticket.durable()).is_ok() {
        taken += 1;
        assert!(taken < 20, "it is never full");
    }
    let queue = &house.queues[0];
    while queue.records() < 2 * taken {
        tokio::task::yield_now().await;
    }
    // All that was granted is taken up by what is there, and comes back with it.
    queue.flush();
    while !queue.is_empty() {
        let batch = queue.next_batch().await.unwrap();
        queue.settle(&batch).unwrap();
    }
    assert_eq!(queue.bytes(), 0);
    assert_eq!(queue.admit(1_000, 1), Admission::Granted);
}

#[tokio::test]
async fn replayed_records_are_shared_out_too() {
    let house = house(vec![("nothing", by_pod("a"))]);
    let records = [r#"{"pod":"x"}"#, r#"{"pod":"y"}"#];
    house.intake.enqueue_for("a", json_chunk(&records)).await.unwrap().durable().await.unwrap();
    let partitions: Vec<_> =
        bodies(&house, &house.queues[0]).await.into_iter().map(|(partition, _)| partition).collect();
    assert_eq!(partitions, [".pod=x", ".pod=y"]);
}

#[tokio::test]
async fn what_no_output_wants_is_counted_and_over_at_once() {
    let house = house(vec![("app", output("a"))]);
    let named = house.intake.for_source(&"http".into());
    named.try_enqueue(chunk("web", 10)).unwrap().durable().await.unwrap();
    named.enqueue(chunk("web", 10)).await.unwrap().durable().await.unwrap();
    assert!(house.counted(r#"wharf_dropped_records_total{output="",reason="no_output"} 2"#));
    assert!(house.counted(r#"wharf_source_accepted_records_total{source="http"} 2"#));
    assert_eq!(house.journal.usage().chunks, 0);
}

#[test]
fn an_empty_match_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, recovery) = open_journal(dir.path(), None);
    let (state, _) = State::open(&dir.path().join("data")).unwrap();
    let ledger = Ledger::new(journal.clone(), state, Metrics::new());
    let queue = ledger.restore(&recovery, vec![output("a")]).unwrap().0.remove(0);
    let error =
        Intake::new(vec![(vec![String::new()], queue)].into(), journal, ledger, vec![], Metrics::new()).unwrap_err();
    assert!(error.to_string().contains("output a"), "{error}");
}

#[tokio::test]
async fn an_output_that_drops_the_newest_does_not_keep_the_others_from_theirs() {
    let dropping = QueueOptions { max_bytes: Some(1000), when_full: WhenFull::DropNewest, ..output("d") };
    let house = house(vec![("*", dropping), ("*", output("a"))]);
    for _ in 0..3 {
        house.intake.enqueue(chunk("t", 600)).await.unwrap().durable().await.unwrap();
    }
    assert_eq!((house.queues[0].records(), house.queues[1].records()), (1, 3));
    assert!(house.counted(r#"wharf_dropped_records_total{output="d",reason="queue_full_drop_newest"} 2"#));
}

#[tokio::test]
async fn a_full_output_is_waited_for_and_holds_no_room_elsewhere() {
    let small = |name| QueueOptions { max_bytes: Some(1000), ..output(name) };
    let house = house(vec![("both*", small("a")), ("*", small("b"))]);
    house.intake.enqueue(chunk("both", 600)).await.unwrap().durable().await.unwrap();
    let b = house.queues[1].next_batch().await.unwrap();
    house.queues[1].settle(&b).unwrap();
    // `a` is full, `b` is not.
    assert!(
        matches!(house.intake.try_enqueue(chunk("both", 600)), Err(Refused::Full { what, .. }) if what == "output a")
    );
    let waiting = tokio::spawn({
        let intake = house.intake.clone();
        async move { intake.enqueue(chunk("both", 600)).await.unwrap().durable().await }
    });
    tokio::task::yield_now().await;
    house.intake.try_enqueue(chunk("only.b", 600)).unwrap().durable().await.unwrap();
    let a = house.queues[0].next_batch().await.unwrap();
    let only_b = house.queues[1].next_batch().await.unwrap();
    house.queues[0].settle(&a).unwrap();
    house.queues[1].settle(&only_b).unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!((house.queues[0].records(), house.queues[1].records()), (1, 1));
}

#[tokio::test]
async fn what_an_empty_journal_could_not_take_is_told_apart_from_a_full_one() {
    let house = house_in(tempfile::tempdir().unwrap(), Some(2 * SEGMENT), vec![("*", output("a"))]);
    let too_large = usize::try_from(2 * SEGMENT).unwrap() + 1;
    let refused = house.intake.try_enqueue(chunk("http", too_large)).unwrap().durable().await;
    assert!(
        matches!(refused, Err(Refused::TooLarge { bytes, limit }) if bytes > limit && limit == 2 * SEGMENT),
        "{refused:?}"
    );
    // It is refused alone.
    house.intake.try_enqueue(chunk("http", 10)).unwrap().durable().await.unwrap();
}

#[tokio::test]
async fn when_the_journal_is_full_senders_wait_or_are_told_and_nothing_is_lost_or_reordered() {
    let house = house_in(tempfile::tempdir().unwrap(), Some(2 * SEGMENT), vec![("*", output("a"))]);
    let sent = tokio::spawn({
        let intake = house.intake.clone();
        async move {
            let mut tickets = Vec::new();
            for n in 0..12 {
                tickets.push(intake.enqueue(chunk(&format!("t{n}"), 300_000)).await.unwrap());
            }
            for ticket in tickets {
                ticket.durable().await.unwrap();
            }
        }
    });
    // Only what fits is there until something is settled.
    let mut condition = house.journal.condition();
    condition.wait_for(|c| matches!(c, Condition::LimitReached { .. })).await.unwrap();
    let refused = house.intake.try_enqueue(chunk("http", 10));
    assert!(matches!(refused, Err(Refused::Full { what, .. }) if what == "the journal"));
    let mut had = Vec::new();
    while had.len() < 12 {
        let batch = house.queues[0].next_batch().await.unwrap();
        had.push((batch.row.first, batch.row.partition.to_string()));
        let queue = house.queues[0].clone();
        tokio::task::spawn_blocking(move || queue.settle(&batch)).await.unwrap().unwrap();
    }
    sent.await.unwrap();
    had.sort();
    let expected: Vec<_> = (0..12).map(|n| format!("t{n}")).collect();
    assert_eq!(had.into_iter().map(|(_, tag)| tag).collect::<Vec<_>>(), expected);
    assert_eq!(house.queues[0].bytes(), 0);
}

#[tokio::test]
async fn positions_are_found_after_a_restart_and_can_be_forgotten() {
    let one = house(vec![("app", output("a"))]);
    for value in ["1", "2"] {
        one.intake.enqueue(chunk_at("app", at("f", value))).await.unwrap().durable().await.unwrap();
    }
    // Nobody wants it, so it is not kept; it is read again when somebody may.
    one.intake.enqueue(chunk_at("other", at("g", "9"))).await.unwrap().durable().await.unwrap();
    assert_eq!(one.intake.positions("files"), []);
    let restart = |house: House| {
        let House { dir, journal, metrics: _, queues, intake } = house;
        drop((queues, intake));
        journal.close();
        drop(journal);
        house_in(dir, None, vec![("app", output("a"))])
    };
    let two = restart(one);
    assert_eq!(two.intake.positions("files"), [at("f", "2")]);
    assert_eq!(two.intake.positions("none"), []);
    // Delivered and released, it is in the state.
    let queue = two.queues[0].clone();
    while !queue.is_empty() {
        let batch = queue.next_batch().await.unwrap();
        queue.settle(&batch).unwrap();
    }
    drop(queue);
    let three = restart(two);
    assert_eq!(three.intake.positions("files"), [at("f", "2")]);
    three.intake.forget("files", vec!["f".into()]).await;
    assert_eq!(three.intake.positions("files"), []);
    assert_eq!(restart(three).intake.positions("files"), []);
}

#[tokio::test]
async fn a_stop_ends_all_waiting() {
    let house = house(vec![("*", QueueOptions { max_bytes: Some(1000), ..output("a") })]);
    house.intake.enqueue(chunk("t", 900)).await.unwrap().durable().await.unwrap();
    let waiting = tokio::spawn({
        let intake = house.intake.clone();
        async move { intake.enqueue(chunk("t", 900)).await.map(|_| ()) }
    });
    tokio::task::yield_now().await;
    house.intake.stop();
    assert_eq!(waiting.await.unwrap(), Err(Refused::Stopping));
    assert_eq!(house.intake.try_enqueue(chunk("t", 1)).map(|_| ()), Err(Refused::Stopping));
    assert_eq!(house.intake.enqueue(chunk("t", 1)).await.map(|_| ()), Err(Refused::Stopping));
}

#[tokio::test]
async fn what_is_handed_in_for_one_output_goes_there_alone_and_is_never_dropped() {
    let dropping = QueueOptions { max_bytes: Some(1000), when_full: WhenFull::DropNewest, ..output("d") };
    let house = house(vec![("app", dropping), ("*", output("a"))]);
    house.intake.enqueue_for("d", chunk("elsewhere", 600)).await.unwrap().durable().await.unwrap();
    let waiting = tokio::spawn({
        let intake = house.intake.clone();
        async move { intake.enqueue_for("d", chunk("elsewhere", 600)).await.unwrap().durable().await }
    });
    tokio::task::yield_now().await;
    let batch = house.queues[0].next_batch().await.unwrap();
    assert_eq!(&*batch.row.partition, "elsewhere");
    house.queues[0].settle(&batch).unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!((house.queues[0].records(), house.queues[1].records()), (1, 0));
    assert!(house.intake.has_output("d") && !house.intake.has_output("x"));
    assert!(matches!(house.intake.enqueue_for("x", chunk("t", 1)).await, Err(Refused::Failed(_))));
}

/// A journal that refuses when its script says so, and then all that was meant to come behind.
struct Scripted(Mutex<Script>, watch::Sender<Condition>);

type Answer = oneshot::Sender<Result<ChunkId, AppendError>>;

#[derive(Default)]
struct Script {
    refuses: VecDeque<bool>,
    refusals: u64,
    waiting: VecDeque<(Chunk, Option<u64>, Answer)>,
    taken: Vec<String>,
}

impl Log for Scripted {
    fn refusals(&self) -> u64 {
        self.0.lock().unwrap().refusals
    }
    fn append(&self, chunk: Chunk, seen: Option<u64>) -> oneshot::Receiver<Result<ChunkId, AppendError>> {
        let (reply, answer) = oneshot::channel();
        self.0.lock().unwrap().waiting.push_back((chunk, seen, reply));
        answer
    }
    fn condition(&self) -> watch::Receiver<Condition> {
        self.1.subscribe()
    }
}

impl Scripted {
    /// Answers the oldest append. Whether there was one.
    fn turn(&self) -> bool {
        let mut script = self.0.lock().unwrap();
        let Some((chunk, seen, reply)) = script.waiting.pop_front() else { return false };
        let answer = if seen.is_some_and(|seen| seen != script.refusals) {
            Err(AppendError::Overtaking)
        } else if script.refuses.pop_front().unwrap_or(false) {
            script.refusals += 1;
            Err(AppendError::Io("scripted".into()))
        } else {
            script.taken.push(chunk.meta().tag.to_string());
            Ok(ChunkId(script.taken.len() as u64))
        };
        let _ = reply.send(answer);
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_refused_the_order_stays_and_nothing_is_missing(
        first in proptest::collection::vec(proptest::bool::weighted(0.3), 0..12),
        turns in proptest::collection::vec(0usize..4, 20),
    ) {
        // Refusals in a row would each wait a while: one pass with refusals, then none.
        let log = Arc::new(Scripted(Mutex::default(), watch::Sender::new(Condition::Writable)));
        log.0.lock().unwrap().refuses = first.iter().enumerate().map(|(n, no)| *no && n % 4 == 0).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let dir = tempfile::tempdir().unwrap();
        runtime.block_on(async {
            let (journal, recovery) = open_journal(dir.path(), None);
            let (state, _) = State::open(&dir.path().join("data")).unwrap();
            let ledger = Ledger::new(journal, state, Metrics::new());
            let queue = ledger.restore(&recovery, vec![output("a")]).unwrap().0.remove(0);
            let routes = vec![(vec!["*".to_owned()], queue)];
            let same = Arc::clone(&log);
            let logs = Box::new(move |_: Option<&str>| Arc::clone(&same) as Arc<_>);
            let intake = Intake::with(routes.into(), logs, ledger, vec![], Metrics::new(), Tenants::new()).unwrap();
            let sender = tokio::spawn({
                let turns = turns.clone();
                async move {
                    let mut tickets = Vec::new();
                    for (n, turns) in turns.into_iter().enumerate() {
                        tickets.push(intake.enqueue(chunk(&format!("{n:02}"), 1)).await.unwrap());
                        for _ in 0..turns {
                            tokio::task::yield_now().await;
                        }
                    }
                    for ticket in tickets {
                        ticket.durable().await.unwrap();
                    }
                }
            });
            while !sender.is_finished() {
                log.turn();
                tokio::task::yield_now().await;
            }
            sender.await.unwrap();
        });
        let expected: Vec<_> = (0..turns.len()).map(|n| format!("{n:02}")).collect();
        prop_assert_eq!(&log.0.lock().unwrap().taken, &expected);
    }
}

#[tokio::test]
async fn what_waits_for_a_queue_that_leaves_goes_by_the_next_routes() {
    let mut small = output("a");
    small.max_bytes = Some(1);
    let house = house(vec![("app", small), ("nothing", output("b"))]);
    let (a, b) = (&house.queues[0], &house.queues[1]);
    house.intake.enqueue(chunk("app", 10)).await.unwrap().durable().await.unwrap();
    let waiting = house.intake.clone();
    let waiting = tokio::spawn(async move { waiting.enqueue(chunk("app", 10)).await.unwrap().durable().await });
    assert!(a.leave(Duration::from_secs(60)).await);
    assert!(matches!(house.intake.try_enqueue(chunk("app", 10)), Err(Refused::Full { .. })));
    house.intake.reroute(vec![(vec!["app".to_owned()], b.clone())].into()).unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!((a.records(), b.records()), (1, 1));
}

#[tokio::test]
async fn a_source_that_is_not_opened_yet_hands_nothing_in() {
    let house = house(vec![("app", output("a"))]);
    let opened = CancellationToken::new();
    let gated = house.intake.opened_by(opened.clone()).for_source(&"app".into());
    assert!(matches!(gated.try_enqueue(chunk("app", 10)), Err(Refused::Full { .. })));
    let waiting = gated.clone();
    let waiting = tokio::spawn(async move { waiting.enqueue(chunk("app", 10)).await.unwrap().durable().await });
    house.intake.enqueue(chunk("app", 10)).await.unwrap().durable().await.unwrap();
    assert_eq!(house.queues[0].records(), 1, "others are not held up");
    opened.cancel();
    waiting.await.unwrap().unwrap();
    assert_eq!(house.queues[0].records(), 2);
}

/// Tenants, in the same house.
mod of_tenants {
    use std::sync::Mutex;

    use super::*;
    use crate::config::{IngestLimits, TenantLimits};

    /// A clock that stands still until it is told otherwise.
    #[derive(Clone, Default)]
    struct Standing(Arc<Mutex<Duration>>);

    impl Standing {
        fn go_on(&self, by: Duration) {
            *self.0.lock().unwrap() += by;
        }
    }

    fn limited(journal_bytes: Option<u64>, records_per_second: Option<u64>) -> TenantLimits {
        let burst = Duration::from_secs(1);
        let ingest = IngestLimits { bytes_per_second: None, records_per_second, burst };
        TenantLimits { journal_bytes, ingest, ..TenantLimits::default() }
    }

    /// Outputs by name, with what they match and their options, and tenants with tags and limits.
    type Outputs = Vec<(&'static str, QueueOptions)>;
    type Of = (&'static str, Vec<&'static str>, TenantLimits);

    fn house_of(outputs: Outputs, tenants: Vec<Of>) -> (House, Standing) {
        let dir = tempfile::tempdir().unwrap();
        let (journal, recovery) = open_journal(dir.path(), None);
        let (state, _) = State::open(&dir.path().join("data")).unwrap();
        let (metrics, clock) = (Metrics::new(), Standing::default());
        let ledger = Ledger::new(journal.clone(), state, metrics.clone());
        let (patterns, options): (Vec<_>, Vec<_>) = outputs.into_iter().unzip();
        let (queues, positions) = ledger.restore(&recovery, options).unwrap();
        let committing = ledger.clone();
        journal.start(Box::new(move |group| committing.committed(group)));
        let routing = Routing {
            claims: tenants
                .iter()
                .map(|(name, tags, _)| ((*name).into(), tags.iter().map(|&t| t.into()).collect()))
                .collect(),
            limits: tenants.iter().map(|(name, _, limits)| ((*name).into(), *limits)).collect(),
            outputs: patterns.iter().map(|p| vec![(*p).to_owned()]).zip(queues.clone()).collect(),
        };
        let at = clock.clone();
        let tenants = Tenants::with_clock(Arc::new(move || *at.0.lock().unwrap()));
        let log = journal.clone();
        let logs =
            Box::new(move |tenant: Option<&str>| Arc::new(log.lane(crate::fair::Tenant::named(tenant))) as Arc<_>);
        let intake = Intake::with(routing, logs, ledger, positions, metrics.clone(), tenants).unwrap();
        (House { dir, journal, metrics, queues, intake }, clock)
    }

    fn at_limit(refused: Result<Ticket, Refused>) -> AtLimit {
        match refused {
            Err(Refused::AtLimit(at)) => *at,
            other => panic!("{other:?} is no limit of a tenant"),
        }
    }

    async fn durable(ticket: Result<Ticket, Refused>) {
        ticket.unwrap().durable().await.unwrap();
    }

    /// Which source it comes from (`acme/…` is a tenant's own), whom its token names, its tag; and the outputs that get it. Acme claims
    /// `acme.*` and `both.*`, globex `globex` and `both.*`, and every output takes everything.
    #[tokio::test]
    async fn a_record_reaches_the_outputs_of_its_tenant_and_no_others() {
        for (source, sender, tag, reached) in [
            ("acme/web", None, "acme.x", ["acme/all", "acme/more"].as_slice()),
            ("acme/web", None, "globex", &["acme/all", "acme/more"]),
            ("acme/web", None, "free", &["acme/all", "acme/more"]),
            ("shared", None, "acme.x", &["acme/all", "acme/more"]),
            ("shared", None, "both.x", &["acme/all", "acme/more"]),
            ("shared", None, "globex", &["globex/all"]),
            ("shared", None, "globexx", &["all"]),
            ("shared", None, "free", &["all"]),
            ("shared", Some("globex"), "acme.x", &["globex/all"]),
            ("shared", Some("globex"), "free", &["globex/all"]),
            ("shared", Some("acme"), "globex", &["acme/all", "acme/more"]),
            ("shared", Some("gone"), "free", &[]),
        ] {
            let names = ["all", "acme/all", "acme/more", "globex/all"];
            let outputs = names.map(|name| ("*", output(name))).to_vec();
            let free = TenantLimits::default();
            let tenants = vec![("acme", vec!["acme.*", "both.*"], free), ("globex", vec!["globex", "both.*"], free)];
            let (house, _) = house_of(outputs, tenants);
            let mut intake = house.intake.for_source(&source.into());
            if let Some(sender) = sender {
                intake = intake.for_tenant(&sender.into());
            }
            // Twice: what is remembered of a tag is remembered for its tenant.
            for _ in 0..2 {
                durable(intake.try_enqueue(chunk(tag, 10))).await;
                durable(house.intake.for_source(&"other".into()).try_enqueue(chunk("free", 10))).await;
            }
            let has: Vec<&str> = house.queues.iter().filter(|q| q.records() > 0).map(|q| &**q.output()).collect();
            let mut expected = reached.to_vec();
            expected.extend(["all"].iter().filter(|_| !reached.contains(&"all")));
            expected.sort_by_key(|name| names.iter().position(|known| known == name));
            assert_eq!(has, expected, "{source} {sender:?} {tag}");
        }
    }

    #[tokio::test]
    async fn what_no_output_of_a_tenant_wants_is_counted_as_that_tenants() {
        let (house, _) = house_of(vec![("x", output("acme/some")), ("*", output("all"))], vec![]);
        durable(house.intake.for_tenant(&"acme".into()).try_enqueue(chunk("y", 10))).await;
        assert!(house.counted(r#"wharf_dropped_records_total{output="",tenant="acme",reason="no_output"} 1"#));
        assert!(house.counted(r#"wharf_tenant_accepted_records_total{tenant="acme"} 1"#));
    }

    #[tokio::test]
    async fn all_queues_of_a_tenant_together_have_its_share_of_the_disk_and_another_tenant_has_its_own() {
        let outputs = vec![("*", output("acme/a")), ("b", output("acme/b")), ("*", output("globex/a"))];
        let tenants =
            vec![("acme", vec![], limited(Some(2_000), None)), ("globex", vec![], limited(Some(2_000), None))];
        let (house, _) = house_of(outputs, tenants);
        let (acme, globex) = (house.intake.for_tenant(&"acme".into()), house.intake.for_tenant(&"globex".into()));
        // Both outputs want it, and each counts it.
        durable(acme.try_enqueue(chunk("b", 600))).await;
        let used: u64 = house.queues[..2].iter().map(Queue::bytes).sum();
        assert!((1_200..2_000).contains(&used), "{used}");
        let at = at_limit(acme.try_enqueue(chunk("b", 600)));
        assert_eq!((&*at.tenant, at.limit, at.most, at.current), ("acme", Limit::Journal, 2_000, used));
        assert_eq!(at.requested, used, "it is as large as the one that is there");
        assert_eq!(
            at.to_string(),
            format!(
                "tenant acme is at its limit: limits.journal allows 2 KB, {used} of it are used, and {used} more were to come"
            )
            .replace(&used.to_string(), &crate::config::units::format_size(used))
        );
        assert!(house.counted(r#"wharf_tenant_refused_total{tenant="acme",limit="journal"} 1"#));
        // One output alone still has room, and so has the other tenant.
        durable(acme.try_enqueue(chunk("a", 100))).await;
        durable(globex.try_enqueue(chunk("a", 600))).await;
    }

    #[tokio::test]
    async fn who_waits_for_the_tenants_share_goes_on_when_any_of_its_outputs_has_delivered() {
        let outputs = vec![("a", output("acme/a")), ("b", output("acme/b"))];
        let (house, _) = house_of(outputs, vec![("acme", vec![], limited(Some(1_000), None))]);
        let acme = house.intake.for_tenant(&"acme".into());
        durable(acme.try_enqueue(chunk("a", 700))).await;
        let waiting = tokio::spawn(async move { acme.enqueue(chunk("b", 700)).await?.durable().await });
        // It has looked and waits, as the count says.
        while !house.counted(r#"wharf_tenant_refused_total{tenant="acme",limit="journal"} 1"#) {
            tokio::task::yield_now().await;
        }
        let queue = house.queues[0].clone();
        queue.flush();
        let batch = queue.next_batch().await.unwrap();
        queue.settle(&batch).unwrap();
        waiting.await.unwrap().unwrap();
        assert_eq!(house.queues[1].records(), 1);
    }

    #[tokio::test]
    async fn what_is_larger_than_a_tenants_whole_share_comes_in_when_there_is_nothing_else() {
        let (house, _) = house_of(vec![("*", output("acme/a"))], vec![("acme", vec![], limited(Some(1_000), None))]);
        let acme = house.intake.for_tenant(&"acme".into());
        durable(acme.try_enqueue(chunk("a", 5_000))).await;
        assert_eq!(at_limit(acme.try_enqueue(chunk("a", 1))).limit, Limit::Journal);
    }

    #[tokio::test]
    async fn outputs_that_may_drop_do_so_within_their_tenants_share_and_never_take_what_another_waits_for() {
        let newest = QueueOptions { when_full: WhenFull::DropNewest, ..output("acme/newest") };
        let oldest = QueueOptions { when_full: WhenFull::DropOldest, ..output("acme/oldest") };
        let outputs = vec![("*", newest), ("*", oldest), ("b", output("acme/block"))];
        let (house, _) = house_of(outputs, vec![("acme", vec![], limited(Some(3_000), None))]);
        let acme = house.intake.for_tenant(&"acme".into());
        durable(acme.try_enqueue(chunk("a", 900))).await;
        assert_eq!(house.queues.iter().map(Queue::records).collect::<Vec<_>>(), [1, 1, 0]);
        // No room for two more: the oldest of one makes room for its own, and the other drops the new one.
        durable(acme.try_enqueue(chunk("a", 900))).await;
        assert_eq!(house.queues.iter().map(Queue::records).collect::<Vec<_>>(), [1, 1, 0]);
        assert!(house.counted(
            r#"wharf_dropped_records_total{output="newest",tenant="acme",reason="queue_full_drop_newest"} 1"#
        ));
        // Counted where it is written down, which nobody waits for.
        let oldest = r#"wharf_dropped_records_total{output="oldest",tenant="acme",reason="queue_full_drop_oldest"} 1"#;
        while !house.counted(oldest) {
            tokio::task::yield_now().await;
        }
        // What cannot be dropped has what is left: the others do without. It may wait until what was dropped is written down.
        durable(acme.enqueue(chunk("b", 700)).await).await;
        assert_eq!(house.queues[2].records(), 1);
        let used: u64 = house.queues.iter().map(Queue::used).sum();
        assert!(used <= 3_000, "{used}");
    }

    #[tokio::test]
    async fn a_tenant_that_sends_too_fast_is_refused_until_time_has_passed_and_another_is_not() {
        let outputs = vec![("*", output("acme/a")), ("*", output("globex/a"))];
        let tenants = vec![("acme", vec!["x"], limited(None, Some(2))), ("globex", vec![], limited(None, Some(2)))];
        let (house, clock) = house_of(outputs, tenants);
        let acme = house.intake.for_tenant(&"acme".into());
        durable(acme.try_enqueue(chunk("a", 10))).await;
        // By its tag, it is the same tenant's.
        durable(house.intake.try_enqueue(chunk("x", 10))).await;
        let at = at_limit(acme.try_enqueue(chunk("a", 10)));
        assert_eq!((at.limit, at.most, at.current, at.requested), (Limit::IngestRecords, 2, 2, 1));
        assert_eq!(at.retry_after, Duration::from_millis(500));
        assert_eq!(Refused::AtLimit(Box::new(at)).reason(), "tenant_ingest");
        durable(house.intake.for_tenant(&"globex".into()).try_enqueue(chunk("a", 10))).await;
        clock.go_on(Duration::from_millis(500));
        durable(acme.try_enqueue(chunk("a", 10))).await;
        assert_eq!(house.queues[0].records(), 3);
    }

    #[tokio::test]
    async fn a_source_that_can_wait_waits_for_its_tenants_rate() {
        let (house, clock) = house_of(vec![("*", output("acme/a"))], vec![("acme", vec![], limited(None, Some(100)))]);
        let acme = house.intake.for_source(&"acme/files".into());
        let mut builder = ChunkBuilder::new(BodyKind::Text, "a".into());
        for _ in 0..100 {
            builder.push(1, b"line");
        }
        durable(acme.enqueue(builder.finish().unwrap()).await).await;
        let waiting = tokio::spawn(async move { acme.enqueue(chunk("a", 10)).await?.durable().await });
        while !house.counted(r#"wharf_tenant_refused_total{tenant="acme",limit="ingest_records"} 1"#) {
            tokio::task::yield_now().await;
        }
        assert!(!waiting.is_finished());
        clock.go_on(Duration::from_millis(10));
        waiting.await.unwrap().unwrap();
        assert_eq!(house.queues[0].records(), 101);
    }

    #[tokio::test]
    async fn what_was_refused_for_another_reason_has_used_nothing_of_the_rate() {
        let full = QueueOptions { max_bytes: Some(1), ..output("acme/a") };
        let (house, _) = house_of(vec![("*", full)], vec![("acme", vec![], limited(None, Some(2)))]);
        let acme = house.intake.for_tenant(&"acme".into());
        durable(acme.try_enqueue(chunk("a", 10))).await;
        for _ in 0..5 {
            assert_eq!(acme.try_enqueue(chunk("a", 10)).unwrap_err().reason(), "queue_full");
        }
    }

    #[tokio::test]
    async fn limits_and_tenants_can_be_others_from_one_moment_to_the_next() {
        let (house, _) = house_of(vec![("*", output("acme/a"))], vec![("acme", vec![], limited(Some(500), None))]);
        let acme = house.intake.for_tenant(&"acme".into());
        durable(acme.try_enqueue(chunk("a", 400))).await;
        assert_eq!(at_limit(acme.try_enqueue(chunk("a", 400))).most, 500);
        let reroute = |limits: TenantLimits| {
            let outputs = vec![(vec!["*".to_owned()], house.queues[0].clone())];
            house
                .intake
                .reroute(Routing { limits: vec![("acme".into(), limits)], outputs, ..Routing::default() })
                .unwrap();
        };
        reroute(limited(Some(5_000), None));
        durable(acme.try_enqueue(chunk("a", 400))).await;
        reroute(limited(Some(600), Some(1)));
        assert_eq!(at_limit(acme.try_enqueue(chunk("a", 400))).most, 600);
        house.intake.reroute(Routing::default()).unwrap();
        durable(acme.try_enqueue(chunk("a", 400))).await;
        assert!(house.counted(r#"wharf_dropped_records_total{output="",tenant="acme",reason="no_output"} 1"#));
    }
}
