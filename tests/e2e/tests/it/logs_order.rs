//! The order of a stream's batches, and what a stop and a restart in the middle of them do to it: nothing.

use std::collections::HashSet;
use std::time::Duration;

use wharf_e2e::{LogWriter, Logged, Place, Wharf};
use wharf_local_aws::{Fault, Logs, Operation, Rule};

use crate::logs_support::{
    GROUP, LINES_BY_TAG, LINES_TO_S, assert_arrived_in_order, assert_no_rule_was_broken, live, logs, names, repeated,
    tails, wait_settled, writers,
};
use crate::support::write_in_steps;

const PUT: Operation = Operation::PutLogEvents;

/// Batches of one stream wait for those before them, also for those that are throttled, fail or are slow.
fn trouble(logs: &Logs) {
    logs.faults().add(Rule::on(PUT, Fault::Error("ThrottlingException")).every(3));
    logs.faults().add(Rule::on(PUT, Fault::Error("InternalFailure")).every(7));
    logs.faults().add(Rule::on(PUT, Fault::Stall(Duration::from_millis(40))).every(2));
}

#[test]
fn with_four_workers_and_throttling_in_between_each_streams_events_come_in_order() {
    let logs = logs();
    trouble(&logs);
    let place = Place::new().unwrap();
    let tags = ["a", "b", "c"];
    let outputs = live(4, "max_bytes: 6KB, max_age: 50ms", LINES_BY_TAG);
    place.configure(&logs.endpoint(), &format!("{}{outputs}", tails(&place, &tags))).unwrap();
    let mut writers = writers(&place, &tags, 100);
    let mut wharf = place.start().unwrap();
    for step in 1..=15 {
        for writer in &mut writers {
            writer.write(40).unwrap();
        }
        let durable = f64::from(step * 40 * 3);
        wharf.wait_until("a step is durable", 30, || place.metric_at_least("wharf_durable_records_total", durable));
    }
    wait_settled(&mut wharf, &place, 15 * 40 * 3);
    assert!(place.metric_at_least("wharf_retries_total", 5.0), "nothing stood in the way");
    wharf.stop();
    Logged::of(&logs, GROUP).assert_each_once(names(&writers));
    assert!(logs.totals().calls >= 30, "{} calls say little about order", logs.totals().calls);
    assert_arrived_in_order(&logs, GROUP);
    assert_no_rule_was_broken(&logs);
}

/// How many calls of one stream the service had in hand at the same time, at most: the first is held until another comes or time is over.
fn sent_side_by_side(unordered: bool) -> bool {
    let logs = logs();
    let place = Place::new().unwrap();
    let mut config = LINES_TO_S.to_vec();
    if unordered {
        config.push("unordered: true");
    }
    let outputs = live(4, "max_bytes: 6KB, max_age: 50ms", &config);
    place.configure(&logs.endpoint(), &format!("{}{outputs}", tails(&place, &["app"]))).unwrap();
    let mut writer = writers(&place, &["app"], 100).remove(0);
    writer.write(10).unwrap();
    let mut wharf = place.start().unwrap();
    wait_settled(&mut wharf, &place, 10);
    let held = logs.faults().add(Rule::on(PUT, Fault::Stall(Duration::from_millis(1500))).next(1));
    write_in_steps(&mut writer, 10, 50, &mut wharf, &place);
    wharf.wait_until("a call is held", 30, || held.count() > 0);
    wait_settled(&mut wharf, &place, 510);
    wharf.stop();
    Logged::of(&logs, GROUP).assert_each_once(writer.names());
    assert_eq!(repeated(&logs).calls, 0);
    assert_no_rule_was_broken(&logs);
    // Events as they came, without regard to their times.
    let arrived: Vec<String> = logs.events(GROUP, "s").into_iter().map(|event| event.message).collect();
    if !unordered {
        assert_arrived_in_order(&logs, GROUP);
    }
    !arrived.is_sorted()
}

#[test]
fn unordered_batches_of_one_stream_overtake_each_other_and_others_do_not() {
    assert!(!sent_side_by_side(false));
    assert!(sent_side_by_side(true), "a batch that is slow held up the others all the same");
}

fn stop_and_start(place: &Place, wharf: Wharf) -> Wharf {
    wharf.stop();
    place.spawn().unwrap()
}

#[test]
fn stops_in_the_middle_lose_nothing_double_nothing_and_keep_the_order() {
    let logs = logs();
    let place = Place::new().unwrap();
    let tags = ["a", "b"];
    // Batches of several calls, whose answers come late: a stop comes upon them.
    logs.faults().add(Rule::on(PUT, Fault::StallReply(Duration::from_millis(50))).every(2));
    let outputs = live(2, "max_bytes: 4MB, max_age: 100ms", LINES_BY_TAG);
    place.configure(&logs.endpoint(), &format!("{}{outputs}", tails(&place, &tags))).unwrap();
    let mut writers = writers(&place, &tags, 4000);
    let mut wharf = place.start().unwrap();
    for round in 0..4 {
        let before = logs.totals().calls;
        for writer in &mut writers {
            writer.write(700).unwrap();
            if round == 2 {
                writer.rotate().unwrap();
            }
        }
        wharf.wait_until("calls are under way", 30, || logs.totals().calls > before);
        wharf = stop_and_start(&place, wharf);
    }
    wharf.wait_ready();
    let wanted: u64 = writers.iter().map(LogWriter::written).sum();
    wharf.wait_until("everything is delivered", 60, || logs.totals().events >= wanted);
    wait_settled(&mut wharf, &place, 0);
    wharf.stop();
    assert_eq!(repeated(&logs).calls, 0);
    Logged::of(&logs, GROUP).assert_each_once(names(&writers));
    assert_arrived_in_order(&logs, GROUP);
    assert_no_rule_was_broken(&logs);
}

#[test]
fn a_stop_that_the_service_does_not_answer_keeps_what_is_open_and_sends_again_one_call_a_worker_at_most() {
    let logs = logs();
    let place = Place::new().unwrap();
    let tags = ["a", "b"];
    let outputs = live(2, "max_bytes: 4MB, max_age: 100ms", LINES_BY_TAG);
    place.configure(&logs.endpoint(), &format!("grace: 1s\n{}{outputs}", tails(&place, &tags))).unwrap();
    let mut writers = writers(&place, &tags, 4000);
    for writer in &mut writers {
        writer.write(800).unwrap();
    }
    // Each stream's second call is carried out, and never answered.
    let mut stuck = Vec::new();
    for tag in tags {
        let rule = Rule::on(PUT, Fault::StallReply(Duration::from_secs(3600))).key(&format!(":{tag}"));
        stuck.push(logs.faults().add(rule.nth(3)));
    }
    let mut wharf = place.start().unwrap();
    wharf.wait_until("both streams are stuck", 30, || stuck.iter().all(|stuck| stuck.count() > 0));
    wharf.stop();
    logs.faults().clear();
    let mut wharf = place.start().unwrap();
    wait_settled(&mut wharf, &place, 1600);
    wharf.stop();
    Logged::of(&logs, GROUP).assert_none_lost(names(&writers));
    let again = repeated(&logs);
    println!("2 workers, 1 stop: {} calls twice, {} events", again.calls, again.events);
    assert!(again.calls <= 2, "{again:?}");
    let distinct: HashSet<String> = Logged::of(&logs, GROUP).names().into_iter().collect();
    assert_eq!(distinct.len(), 1600);
    assert_no_rule_was_broken(&logs);
}
