//! Which batch comes next, with time in hand.

use tokio::time::Instant;

use super::super::destination::{DOWN_AFTER, Destination};
use super::super::poison::{PROBE_EVERY, PluginHealth, Verdict};
use super::super::schedule::{Job, MOST_WAITING, Pick, Schedule};
use super::*;
use crate::plugin::{Failure, FailureKind};
use crate::queue::Batch;
use crate::record::ChunkId;
use crate::state::{BatchId, BatchRow};

struct Bench {
    schedule: Schedule,
    destination: Arc<Destination>,
    health: Arc<PluginHealth>,
    now: Instant,
    _rooms: (Place, Wharf),
}

impl Bench {
    async fn new() -> Self {
        let place = Place::new();
        let wharf = place.archive().await;
        let destination = Destinations::default().get(None, "there");
        let health = Arc::new(Quarantines::default().join("digest", "archive".into()));
        let schedule = Schedule::new(
            wharf.queue("archive").clone(),
            destination.clone(),
            health.clone(),
            OnQuarantine::Hold,
            Arc::default(),
        );
        Self { schedule, destination, health, now: Instant::now(), _rooms: (place, wharf) }
    }

    fn destination_goes_down(&self) {
        let failure = Failure { kind: FailureKind::Transient, message: String::new(), retry_after: None };
        for _ in 0..DOWN_AFTER {
            self.destination.failed(&failure, &QUICK, self.now, 1.0);
        }
        assert!(self.destination.is_down());
    }

    fn quarantine(&self) {
        while self.health.died(2, self.now) != Verdict::Hold {}
    }

    /// A job that waits for so long.
    fn waits(&self, number: u64, failures: u32, wait: Duration) {
        let row = BatchRow {
            id: BatchId([0; 16]),
            output: "archive".into(),
            partition: "".into(),
            number,
            first: ChunkId(number),
            last: ChunkId(number),
            records: 1,
            bytes: 1,
            closed_ns: 0,
        };
        let job = Job::new(Batch { row, portions: Arc::from([]), restored: false });
        self.schedule.again_at(self.now + wait, Job { failures, ..job });
    }

    /// The number of the job that is next, or whether a new batch may be drawn.
    fn pick(&self, after: Duration) -> Result<u64, bool> {
        self.pick_or_draw(after, false)
    }

    fn pick_or_draw(&self, after: Duration, draw_first: bool) -> Result<u64, bool> {
        match self.schedule.pick(self.now + after, draw_first) {
            Pick::Job(job) => Ok(job.batch.row.number),
            Pick::Held(_) => Err(false),
            Pick::Wait { draw, .. } => Err(draw),
        }
    }
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn the_batch_whose_wait_ended_first_comes_first() {
    let bench = Bench::new().await;
    bench.waits(3, 1, Duration::ZERO);
    bench.waits(1, 1, 2 * SECOND);
    bench.waits(2, 1, SECOND);
    assert_eq!(bench.pick(SECOND), Ok(3));
    assert_eq!(bench.pick(SECOND), Ok(2));
    assert_eq!(bench.pick(SECOND), Err(true));
    assert_eq!(bench.pick(2 * SECOND), Ok(1));
}

#[tokio::test]
async fn while_the_destination_is_down_a_new_batch_is_drawn_only_where_all_that_wait_were_tried_often() {
    let bench = Bench::new().await;
    bench.destination_goes_down();
    assert_eq!(bench.pick(Duration::ZERO), Err(true), "something must find out when it is up again");
    bench.waits(1, DOWN_AFTER, SECOND);
    assert_eq!(bench.pick(Duration::ZERO), Err(true));
    bench.waits(2, DOWN_AFTER - 1, SECOND);
    assert_eq!(bench.pick(Duration::ZERO), Err(false));
    bench.destination.succeeded();
    assert_eq!(bench.pick(Duration::ZERO), Err(true));
}

#[tokio::test]
async fn batches_that_never_get_through_do_not_keep_new_ones_from_being_the_probe() {
    let bench = Bench::new().await;
    bench.waits(1, DOWN_AFTER, Duration::ZERO);
    bench.waits(2, DOWN_AFTER, Duration::ZERO);
    bench.destination_goes_down();
    assert_eq!(bench.pick_or_draw(SECOND, true), Err(true));
    // There was none to draw.
    assert_eq!(bench.pick_or_draw(SECOND, false), Ok(1));
    bench.destination.succeeded();
    assert_eq!(bench.pick_or_draw(SECOND, true), Ok(2));
}

#[tokio::test]
async fn what_many_waiting_batches_leave_in_the_queue_stays_there() {
    let bench = Bench::new().await;
    for number in 1..MOST_WAITING as u64 {
        bench.waits(number, 1, SECOND);
    }
    assert_eq!(bench.pick(Duration::ZERO), Err(true));
    bench.waits(0, 1, SECOND);
    assert_eq!(bench.pick(Duration::ZERO), Err(false));
}

#[tokio::test]
async fn a_quarantined_plugin_gets_one_batch_now_and_then_and_all_once_one_got_through() {
    let bench = Bench::new().await;
    for number in 1..=3 {
        bench.waits(number, 2, Duration::ZERO);
    }
    bench.quarantine();
    assert_eq!(bench.pick(SECOND), Err(false));
    assert_eq!(bench.pick(PROBE_EVERY), Ok(1));
    assert_eq!(bench.pick(PROBE_EVERY), Err(false));
    assert!(!bench.health.delivered().is_empty());
    assert_eq!(bench.pick(PROBE_EVERY), Ok(2));
    assert_eq!(bench.pick(PROBE_EVERY), Ok(3));
}

#[tokio::test]
async fn a_worker_that_waits_hears_that_the_destination_is_up_again() {
    let bench = Bench::new().await;
    bench.destination_goes_down();
    bench.waits(1, 1, 3600 * SECOND);
    let (_, wharf) = &bench._rooms;
    wharf.put("ok", &["new"]).await;
    let up_again = async {
        // The worker is at rest before the destination is up.
        tokio::task::yield_now().await;
        bench.destination.succeeded();
        std::future::pending::<()>().await;
    };
    let job = tokio::select! {
        biased;
        job = bench.schedule.next(|_| ()) => job,
        () = up_again => unreachable!(),
    };
    assert_eq!(job.unwrap().batch.row.records, 1);
}
