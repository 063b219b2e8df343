//! Log groups and log streams that are not there, or not any more.

use wharf_e2e::{Logged, Place};
use wharf_local_aws::{Fault, Operation, Rule, Vanish};

use crate::logs_support::{
    GROUP, LINES_TO_S, assert_no_rule_was_broken, counted, health, http_place, live, logs, post_lines, repeated,
    requests, tails, wait_settled, writers,
};
use crate::support::write_in_steps;

/// Somebody deletes `what` three times while lines go there.
fn deleted_in_mid_run(what: Vanish) {
    let logs = logs();
    let place = Place::new().unwrap();
    let mut config = LINES_TO_S.to_vec();
    config.push("log_retention_days: 7");
    let outputs = live(2, "max_bytes: 9KB, max_age: 200ms", &config);
    place.configure(&logs.endpoint(), &format!("{}{outputs}", tails(&place, &["app"]))).unwrap();
    let mut writer = writers(&place, &["app"], 100).remove(0);
    let vanished: Vec<_> = [4, 8, 9]
        .map(|call| logs.faults().add(Rule::on(Operation::PutLogEvents, Fault::Vanish(what)).nth(call)))
        .to_vec();
    let mut wharf = place.start().unwrap();
    write_in_steps(&mut writer, 12, 100, &mut wharf, &place);
    wait_settled(&mut wharf, &place, 1200);
    assert!(vanished.iter().all(|hits| hits.count() == 1), "it was not deleted three times");
    let again = counted(&place, "streams_vanished", &[]);
    println!("{what:?}: deleted 3 times, noticed by a worker that knew it {again} times");
    assert!((1..=3).contains(&again), "{again}");
    assert_eq!(place.metric("wharf_retries_total", &[]), Some(0.0), "the same call is sent again at once");
    wharf.stop();
    // What was in it is gone with it; what counts is what was ever taken.
    Logged::ever(&logs, GROUP).assert_each_once(writer.names());
    assert_eq!(repeated(&logs).calls, 0);
    assert!(!Logged::of(&logs, GROUP).messages("s").is_empty(), "the stream is there again");
    assert_eq!(logs.groups()[0].retention_days, Some(7), "a group that is made again has its retention again");
    assert_no_rule_was_broken(&logs);
}

#[test]
fn a_stream_that_is_deleted_in_mid_run_is_made_again() {
    deleted_in_mid_run(Vanish::Stream);
}

#[test]
fn a_group_that_is_deleted_in_mid_run_is_made_again() {
    deleted_in_mid_run(Vanish::Group);
}

#[test]
fn a_stream_that_does_not_show_at_once_is_waited_for() {
    let logs = logs();
    logs.faults().add(Rule::on(Operation::PutLogEvents, Fault::Error("ResourceNotFoundException")).next(4));
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(2, "max_age: 50ms", LINES_TO_S));
    post_lines(to, "d", 0..10);
    wait_settled(&mut wharf, &place, 10);
    wharf.stop();
    Logged::of(&logs, GROUP).assert_each_once((0..10).map(|number| format!("d-{number:08}")));
    assert_no_rule_was_broken(&logs);
}

#[test]
fn without_auto_create_group_a_missing_group_is_shown_and_waited_for() {
    let logs = logs();
    let config = ["log_group_name: /e2e", "log_stream_name: s", "log_key: log"];
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(2, "max_age: 50ms", &config));
    post_lines(to, "g", 0..100);
    wharf.wait_until("the missing group is shown", 30, || {
        let failure = &health(&place, "live")["last_failure"];
        let said = failure["message"].as_str().unwrap_or_default();
        failure["kind"] == "misconfigured"
            && said.contains("log group /e2e does not exist")
            && said.contains("auto_create_group")
    });
    assert_eq!(place.metric("wharf_rejected_records_total", &[]), Some(0.0));
    assert_eq!(requests(&logs, Operation::CreateLogGroup), 0, "a group was to be made that nobody asked for");
    logs.place_group(GROUP).unwrap();
    wait_settled(&mut wharf, &place, 100);
    wharf.stop();
    Logged::of(&logs, GROUP).assert_each_once((0..100).map(|number| format!("g-{number:08}")));
}

#[test]
fn a_restart_makes_no_stream_in_vain() {
    let logs = logs();
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(4, "max_age: 50ms", LINES_TO_S));
    post_lines(to, "v", 0..10);
    wait_settled(&mut wharf, &place, 10);
    wharf.stop();
    let made = requests(&logs, Operation::CreateLogStream);
    let mut wharf = place.start().unwrap();
    wharf.wait_until("records are taken", 30, || wharf_e2e::http::get(to, "/").is_ok());
    for number in 1..5 {
        post_lines(to, "v", number * 10..(number + 1) * 10);
    }
    wait_settled(&mut wharf, &place, 40);
    assert!(counted(&place, "stream_cache_misses", &[]) >= 1, "a worker's list ends with it");
    wharf.stop();
    assert_eq!(requests(&logs, Operation::CreateLogStream), made);
    Logged::of(&logs, GROUP).assert_each_once((0..50).map(|number| format!("v-{number:08}")));
}
