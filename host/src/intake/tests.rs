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

mod of_tenants;
