//! The fault that Wharf was started for, of the other output: workers that share a list of log streams, in which one frees an entry that another
//! walks. Here each worker has its own, and entries expire all the time.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;
use wharf_e2e::{Logged, Place, Wharf, deadline};
use wharf_local_aws::{Fault, Logs, Operation, Rule};

use crate::logs_support::{
    GROUP, MAKE_GROUPS, assert_arrived_in_order, assert_no_rule_was_broken, counted, counted_by, http_place, live,
    logs, post_objects, repeated, requests, wait_settled,
};

const STREAMS: u64 = 12;
/// Calls over all streams: some five minutes of an output that writes to each of them every few seconds.
const CALLS: u64 = 1500;

#[test]
fn two_workers_whose_entries_expire_all_the_time_lose_nothing() {
    expire_all_the_time(2);
}

#[test]
fn eight_workers_whose_entries_expire_all_the_time_lose_nothing() {
    expire_all_the_time(8);
}

fn config(ttl: &str) -> Vec<String> {
    let lines =
        ["log_group_name: /e2e", "log_stream_name: rest", "log_stream_template: $stream", "log_key: log", MAKE_GROUPS];
    let ttl = format!("stream_cache_ttl: {ttl}");
    lines.iter().map(|line| (*line).to_owned()).chain([ttl]).collect()
}

fn place(logs: &Logs, workers: u32, ttl: &str) -> (Place, Wharf, std::net::SocketAddr) {
    let config = config(ttl);
    let config: Vec<&str> = config.iter().map(String::as_str).collect();
    http_place(&logs.endpoint(), &live(workers, "max_age: 5ms", &config))
}

fn expire_all_the_time(workers: u32) {
    let logs = logs();
    let (place, mut wharf, to) = place(&logs, workers, "50ms");
    let mut number = 0;
    let mut send_one_to_each_stream = || {
        let objects: Vec<_> = (0..STREAMS)
            .map(|stream| json!({ "stream": format!("s{stream}"), "log": format!("s{stream}-{number:08} x") }))
            .collect();
        number += 1;
        post_objects(to, &objects);
    };
    let expired = |worker| counted_by(&place, "stream_cache_expirations", worker);
    let end = deadline(90);
    // Twice close together, then not for longer than an entry lives: an entry that was used again is gone by the next time.
    while logs.totals().calls < CALLS || (0..workers).any(|worker| expired(worker) < 5) {
        assert!(Instant::now() < end, "not after 90 s: {} calls", logs.totals().calls);
        for _ in 0..10 {
            send_one_to_each_stream();
            std::thread::sleep(Duration::from_millis(10));
            send_one_to_each_stream();
            std::thread::sleep(Duration::from_millis(60));
        }
        assert!(wharf.is_running());
    }
    let rounds = number;
    wait_settled(&mut wharf, &place, rounds * STREAMS);

    let calls = logs.totals().calls;
    assert_eq!(counted(&place, "put_calls", &[]), calls);
    let mut all_expired = 0;
    for worker in 0..workers {
        let of = |name| counted_by(&place, name, worker);
        let (hits, misses, expired) =
            (of("stream_cache_hits"), of("stream_cache_misses"), of("stream_cache_expirations"));
        println!(
            "worker {worker}: {hits} hits, {misses} misses, {expired} expirations, {} made",
            of("streams_created")
        );
        assert_eq!(hits + misses, of("put_calls"), "worker {worker}: each call asks its worker's list once");
        assert!(expired <= misses, "worker {worker}: what expired was there once");
        all_expired += expired;
    }
    // On every other call, at least.
    assert!(2 * all_expired >= calls / 2, "{all_expired} entries expired in {calls} calls");
    let creates = requests(&logs, Operation::CreateLogStream) as u64;
    println!(
        "{workers} workers: {calls} calls, {all_expired} expirations, {creates} CreateLogStream for {STREAMS} streams"
    );
    assert!(creates <= STREAMS * u64::from(workers), "a worker makes a stream once at most: {creates} calls");
    assert_eq!(counted(&place, "streams_created", &[]), STREAMS);
    assert_eq!(counted(&place, "streams_already_there", &[]), creates - STREAMS - misses_of_the_group(&logs));
    for trouble in ["wharf_worker_restarts_total", "wharf_retries_total", "wharf_rejected_records_total"] {
        assert_eq!(place.metric(trouble, &[]), Some(0.0), "{trouble}");
    }
    // All lists go with their workers, however full they are.
    assert!(place.metric_at_least("wharf_plugin_stream_cache_entries", 1.0));
    wharf.stop();

    let all = Logged::of(&logs, GROUP);
    let written = (0..rounds).flat_map(|number| (0..STREAMS).map(move |stream| format!("s{stream}-{number:08}")));
    all.assert_each_once(written);
    for (stream, event) in all.events() {
        assert!(event.message.starts_with(&format!("{stream}-")), "{} went to {stream}", event.message);
    }
    assert_eq!(repeated(&logs).calls, 0);
    assert_arrived_in_order(&logs, GROUP);
    assert_no_rule_was_broken(&logs);
}

/// CreateLogStream calls that found no group: those at the very beginning.
fn misses_of_the_group(logs: &Logs) -> u64 {
    let missed = logs.requests().into_iter().filter(|request| {
        request.operation == Operation::CreateLogStream && request.code.as_deref() == Some("ResourceNotFoundException")
    });
    missed.count() as u64
}

/// Two workers, of which one can be kept busy while the other writes.
struct Pair<'a> {
    logs: &'a Logs,
    place: &'a Place,
    wharf: Wharf,
    to: std::net::SocketAddr,
    sent: u64,
    holds: u64,
}

/// A worker's list, as its metrics tell.
#[derive(Debug, Clone, Copy)]
struct List {
    hits: u64,
    expirations: u64,
}

impl Pair<'_> {
    fn list(&self, worker: u32) -> List {
        let of = |name| counted_by(self.place, name, worker);
        List { hits: of("stream_cache_hits"), expirations: of("stream_cache_expirations") }
    }
    fn written(&self) -> [u64; 2] {
        [0, 1].map(|worker| counted_by(self.place, "put_events", worker))
    }
    /// Writes one record to the stream `s`; gives who sent it.
    fn write(&mut self) -> u32 {
        let before = self.written();
        post_objects(self.to, &[json!({ "stream": "s", "log": format!("s-{:08}", self.sent) })]);
        self.sent += 1;
        let mut by = None;
        let (place, written) = (self.place, &mut by);
        self.wharf.wait_until("the record is sent", 30, || {
            *written =
                [0, 1].into_iter().find(|worker| counted_by(place, "put_events", *worker) > before[*worker as usize]);
            written.is_some()
        });
        by.unwrap()
    }
    /// Whether the call that holds a worker is not answered yet.
    fn is_held(&self, stream: &str) -> bool {
        self.logs.requests().iter().any(|request| request.stream == stream && request.status.is_none())
    }
    /// Keeps one worker busy for so long, and lets the other write to `s` all the while. Gives the one that wrote, and when it last began to.
    fn write_beside_a_busy_worker(&mut self, time: Duration) -> (u32, Instant) {
        let mut wrote = None;
        // On a machine that is slow, the time may be over before anything is written.
        while wrote.is_none() {
            let hold = format!("hold-{}", self.holds);
            self.holds += 1;
            let rule = Rule::on(Operation::PutLogEvents, Fault::Stall(time)).key(&format!(":{hold}")).next(1);
            let struck = self.logs.faults().add(rule);
            post_objects(self.to, &[json!({ "stream": hold, "log": format!("{hold}-{:08}", 0) })]);
            self.wharf.wait_until("a worker is busy", 30, || struck.count() > 0);
            while self.is_held(&hold) {
                let (began, by) = (Instant::now(), self.write());
                if self.is_held(&hold) {
                    assert!(wrote.is_none_or(|(known, _)| known == by), "worker {by} is busy");
                    wrote = Some((by, began));
                }
                std::thread::sleep(Duration::from_millis(30));
            }
            wait_settled(&mut self.wharf, self.place, self.sent + self.holds);
        }
        wrote.unwrap()
    }
}

#[test]
fn an_entry_that_expires_in_one_worker_stays_valid_in_the_other() {
    const TTL: Duration = Duration::from_millis(1500);
    const SHORT: Duration = Duration::from_millis(100);
    let logs = logs();
    logs.place_group(GROUP).unwrap();
    let (place, wharf, to) = place(&logs, 2, "1500ms");
    let mut pair = Pair { logs: &logs, place: &place, wharf, to, sent: 0, holds: 0 };
    let (mut shown, mut tries) = (0, 0);
    while shown < 2 {
        tries += 1;
        assert!(tries <= 10, "this machine is too slow to tell");
        let mut know = BTreeSet::new();
        while know.len() < 2 {
            know.insert(pair.write());
            know.insert(pair.write_beside_a_busy_worker(SHORT).0);
        }
        // One keeps using its entry; the other's, which knows the stream as well, grows too old.
        let (active, last_used) = pair.write_beside_a_busy_worker(TTL + Duration::from_millis(300));
        let other = 1 - active;
        let (before, others) = (pair.list(active), pair.list(other));
        // Whatever the other does next, it finds that its entry has expired.
        while pair.list(other).expirations == others.expirations {
            pair.write_beside_a_busy_worker(SHORT);
        }
        // And the active one's is as valid as before.
        let between = pair.list(active);
        while pair.write_beside_a_busy_worker(SHORT).0 != active {}
        let after = pair.list(active);
        if last_used.elapsed() >= TTL {
            // So much later everything may have expired.
            continue;
        }
        println!("worker {other} expired while worker {active} did not: {before:?}, then {after:?}");
        assert_eq!(after.expirations, before.expirations, "nothing of worker {active} expired");
        assert!(after.hits > between.hits, "worker {active} knew the stream: {between:?}, then {after:?}");
        shown += 1;
    }
    let (written, holds) = (pair.sent, pair.holds);
    pair.wharf.stop();
    let written = (0..written).map(|number| format!("s-{number:08}"));
    Logged::of(&logs, GROUP).assert_each_once(written.chain((0..holds).map(|hold| format!("hold-{hold}-00000000"))));
    assert_no_rule_was_broken(&logs);
}
