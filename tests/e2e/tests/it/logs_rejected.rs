//! Events that CloudWatch Logs does not take: dead letters with the reason, and the rest is delivered.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wharf_e2e::{Logged, wait_until};
use wharf_local_aws::logs::{Clock, Options};
use wharf_local_aws::{Fault, Logs, Operation, Reject, Rule};

use crate::logs_support::{
    GROUP, LINES_TO_S, assert_no_rule_was_broken, counted, dead_letter, http_place, letters, live, logs, post_lines,
    repeated, wait_settled,
};

const PUT: Operation = Operation::PutLogEvents;

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn lines(source: &str, numbers: std::ops::Range<u64>) -> Vec<String> {
    numbers.map(|number| format!("{source}-{number:08}")).collect()
}

/// Bodies of dead letters without their padding.
fn dead(place: &wharf_e2e::Place, reason: &str) -> Vec<String> {
    let letters = letters(place, "live").into_iter().filter(|(_, said)| said.starts_with(reason));
    letters.map(|(body, _)| body.split(' ').next().unwrap_or_default().to_owned()).collect()
}

/// Ten lines `a`, then ten lines `b`, in one batch; and the service's clock stands such that only a limit of it lies between them, `limit` away
/// from what it calls now.
fn between_a_and_b(limit_ms: i64, retention: Option<&str>) -> (Logs, wharf_e2e::Place) {
    let clock = Clock::at(0);
    let logs = Logs::start(Options { clock: clock.clone(), ..Options::default() }).unwrap();
    let mut config = LINES_TO_S.to_vec();
    config.extend(retention);
    logs.faults().add(Rule::on(PUT, Fault::Error("ThrottlingException")));
    // A batch of all of them, or nothing is shown about the rest of a call.
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(1, "max_records: 20, max_age: 1h", &config));
    post_lines(to, "a", 0..10);
    let border = now_ms() + 20;
    wait_until("the clock goes on", 10, || now_ms() > border + 20);
    post_lines(to, "b", 0..10);
    clock.advance(Duration::from_millis((border + limit_ms) as u64));
    wharf.wait_until("the batch was tried", 30, || place.metric_at_least("wharf_retries_total", 1.0));
    logs.faults().clear();
    wait_settled(&mut wharf, &place, 20);
    assert_eq!(place.metric("wharf_delivered_batches_total", &[]), Some(1.0), "it was more than one batch");
    assert_eq!(place.metric("wharf_rejected_records_total", &["reason=\"rejected\""]), Some(10.0));
    wharf.stop();
    assert_no_rule_was_broken(&logs);
    (logs, place)
}

#[test]
fn events_of_more_than_14_days_ago_are_dead_letters_and_the_rest_is_delivered() {
    let (logs, place) = between_a_and_b(14 * 86_400_000, None);
    Logged::of(&logs, GROUP).assert_each_once(lines("b", 0..10));
    assert_eq!(dead(&place, "too_old: "), lines("a", 0..10));
}

#[test]
fn events_past_the_groups_retention_are_dead_letters_and_the_rest_is_delivered() {
    let (logs, place) = between_a_and_b(3 * 86_400_000, Some("log_retention_days: 3"));
    Logged::of(&logs, GROUP).assert_each_once(lines("b", 0..10));
    assert_eq!(dead(&place, "expired: "), lines("a", 0..10));
}

#[test]
fn events_of_more_than_2_hours_ahead_are_dead_letters_and_the_rest_is_delivered() {
    let (logs, place) = between_a_and_b(-2 * 3_600_000, None);
    Logged::of(&logs, GROUP).assert_each_once(lines("a", 0..10));
    assert_eq!(dead(&place, "too_new: "), lines("b", 0..10));
}

#[test]
fn all_three_in_one_answer_are_told_apart_shown_and_can_be_sent_again() {
    let logs = logs();
    let reject = Reject { too_old: 2, expired: 5, too_new: 1, entity: None };
    logs.faults().add(Rule::on(PUT, Fault::Reject(reject)).nth(2));
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(1, "max_age: 50ms", LINES_TO_S));
    post_lines(to, "e", 0..20);
    wait_settled(&mut wharf, &place, 20);
    for (reason, count) in [("too_old", 2), ("expired", 3), ("too_new", 1)] {
        assert_eq!(counted(&place, "refused_events", &[&format!("reason=\"{reason}\"")]), count, "{reason}");
    }
    assert_eq!(place.metric("wharf_delivered_records_total", &[]), Some(14.0));
    assert_eq!(place.metric("wharf_rejected_records_total", &["reason=\"rejected\""]), Some(6.0));
    Logged::of(&logs, GROUP).assert_each_once(lines("e", 5..19));
    assert_eq!(dead(&place, "too_old: "), lines("e", 0..2));
    assert_eq!(dead(&place, "expired: "), lines("e", 2..5));
    assert_eq!(dead(&place, "too_new: "), lines("e", 19..20));
    let listed = dead_letter(&place, &["list", "--output", "live"]);
    for part in ["live", " 6 ", "too_old", "too_new", "expired"] {
        assert!(listed.contains(part), "{part:?} is not in: {listed}");
    }
    let shown = dead_letter(&place, &["show", "--output", "live"]);
    assert!(shown.contains("too_new: CloudWatch Logs takes no event of more than 2 hours ahead"), "{shown}");
    assert!(shown.contains("e-00000019"), "{shown}");

    dead_letter(&place, &["replay", "--output", "live"]);
    wharf.wait_until("what was sent again is delivered", 30, || {
        place.metric_at_least("wharf_delivered_records_total", 20.0) && place.all_settled()
    });
    wharf.stop();
    Logged::of(&logs, GROUP).assert_each_once(lines("e", 0..20));
    assert!(letters(&place, "live").is_empty());
    assert_no_rule_was_broken(&logs);
}

#[test]
fn what_was_refused_in_one_call_of_a_batch_is_remembered_over_a_restart() {
    let logs = logs();
    let mut config = LINES_TO_S.to_vec();
    config.push("oversized: dead_letter");
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(1, "max_bytes: 30MB, max_age: 300ms", &config));
    // 25,000 events are three calls, and one that finds no stream. The second's first event is too old, and the third (which the rule sees as
    // its third, since what one rule strikes the next ones do not see) has no answer before the kill.
    let reject = Reject { too_old: 1, ..Reject::default() };
    logs.faults().add(Rule::on(PUT, Fault::Reject(reject)).nth(3));
    let body: String = (0..25_000).map(|number| format!("k-{number:08}\n")).collect();
    let stalled = logs.faults().add(Rule::on(PUT, Fault::Stall(Duration::from_secs(3600))).nth(3));
    crate::logs_support::post(to, "text/plain", body.as_bytes());
    wharf.wait_until("the third call is under way", 30, || stalled.count() > 0);
    wharf.kill9();
    logs.faults().clear();
    let mut wharf = place.start().unwrap();
    wait_settled(&mut wharf, &place, 25_000);
    wharf.stop();
    assert_eq!(repeated(&logs).calls, 0, "what was accepted before the kill was noted before the next call");
    let lost = dead(&place, "too_old: ");
    assert_eq!(lost, ["k-00010000"]);
    Logged::of(&logs, GROUP).assert_each_once(lines("k", 0..10_000).into_iter().chain(lines("k", 10_001..25_000)));
    assert_no_rule_was_broken(&logs);
}

#[test]
fn a_call_that_is_refused_for_one_event_costs_that_event_alone() {
    let logs = logs();
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(1, "max_age: 300ms", LINES_TO_S));
    post_lines(to, "w", 0..1);
    wait_settled(&mut wharf, &place, 1);
    // Eight events: all, the first four, two of them, one of them.
    let wrong = logs.faults().add(Rule::on(PUT, Fault::Error("InvalidParameterException")).next(4));
    post_lines(to, "w", 1..9);
    wait_settled(&mut wharf, &place, 9);
    assert_eq!(wrong.count(), 4);
    assert_eq!(counted(&place, "put_refusals", &[]), 4);
    wharf.stop();
    assert_eq!(dead(&place, "refused: "), lines("w", 1..2));
    Logged::of(&logs, GROUP).assert_each_once(lines("w", 0..1).into_iter().chain(lines("w", 2..9)));
    assert_no_rule_was_broken(&logs);
}
