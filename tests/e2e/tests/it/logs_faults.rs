//! What CloudWatch Logs and the network do to a client, and what holds all the same.

use std::time::Duration;

use serde_json::json;
use wharf_e2e::{Logged, Place};
use wharf_local_aws::{Fault, Logs, Operation, Reject, Rule};

use crate::logs_support::{
    GROUP, LINES_TO_S, MAKE_GROUPS, assert_arrived_in_order, assert_no_rule_was_broken, counted, health, http_place,
    live, logs, output, post_lines, post_objects, repeated, requests, tails, wait_settled, writers,
};
use crate::support::write_in_steps;

const SMALL: &str = "max_bytes: 9KB, max_age: 200ms";
const PUT: Operation = Operation::PutLogEvents;

/// What a run under faults has shown.
struct Survived {
    logs: Logs,
    /// Deliveries that were tried again, by the kind of their failure.
    retries: Vec<(&'static str, f64)>,
    struck: u64,
}

impl Survived {
    fn retried(&self, kind: &str) -> bool {
        self.retries.iter().any(|(known, count)| *known == kind && *count > 0.0)
    }
}

/// Delivers 1,000 lines under these rules, which must all have struck: nothing is lost, the order holds, no rule of the service is broken.
fn survives(rules: Vec<Rule>) -> Survived {
    let logs = logs();
    let place = Place::new().unwrap();
    place.configure(&logs.endpoint(), &format!("{}{}", tails(&place, &["app"]), live(2, SMALL, LINES_TO_S))).unwrap();
    let mut writer = writers(&place, &["app"], 100).remove(0);
    let hits: Vec<_> = rules.into_iter().map(|rule| logs.faults().add(rule)).collect();
    let mut wharf = place.start().unwrap();
    write_in_steps(&mut writer, 10, 100, &mut wharf, &place);
    wait_settled(&mut wharf, &place, 1000);
    assert_eq!(place.metric("wharf_rejected_records_total", &[]), Some(0.0), "there are dead letters");
    let kinds = ["throttled", "transient", "auth", "misconfigured"];
    let count = |kind| place.metric("wharf_retries_total", &[&format!("kind=\"{kind}\"")]).unwrap_or_default();
    let retries = kinds.map(|kind| (kind, count(kind))).to_vec();
    wharf.stop();
    assert!(hits.iter().all(|hits| hits.count() > 0), "a fault never struck");
    let all = Logged::of(&logs, GROUP);
    all.assert_none_lost(writer.names());
    assert_no_rule_was_broken(&logs);
    Survived { logs, retries, struck: hits.iter().map(wharf_local_aws::Hits::count).sum() }
}

/// The same where nothing may be doubled.
fn survives_without_duplicates(rules: Vec<Rule>) -> Survived {
    let survived = survives(rules);
    assert_eq!(repeated(&survived.logs).calls, 0);
    assert_eq!(Logged::of(&survived.logs, GROUP).duplicates(), 0);
    assert_arrived_in_order(&survived.logs, GROUP);
    survived
}

#[test]
fn throttling_is_waited_out() {
    let survived = survives_without_duplicates(vec![
        Rule::on(PUT, Fault::Error("ThrottlingException")).lasting(Duration::from_secs(2)),
    ]);
    assert!(survived.retried("throttled"), "{:?}", survived.retries);
    assert!(survived.struck < 40, "{} calls into a service that throttles for 2 s", survived.struck);
}

#[test]
fn errors_of_the_service_are_tried_again() {
    let survived = survives_without_duplicates(vec![
        Rule::on(PUT, Fault::Error("InternalFailure")).every(3),
        Rule::on(PUT, Fault::Error("ServiceUnavailableException")).nth(2),
        Rule::on(PUT, Fault::EarlyError("ServiceUnavailableException")).nth(4),
    ]);
    assert!(survived.retried("transient"), "{:?}", survived.retries);
}

#[test]
fn reset_connections_are_tried_again() {
    survives_without_duplicates(vec![
        Rule::on(PUT, Fault::Reset { after: 1000 }).next(2),
        Rule::on(PUT, Fault::Reset { after: 0 }).every(4),
        Rule::on(Operation::CreateLogStream, Fault::Reset { after: 0 }).next(1),
    ]);
}

#[test]
fn lost_credentials_are_never_final() {
    let survived = survives_without_duplicates(vec![
        Rule::on(PUT, Fault::Error("AccessDeniedException")).nth(1),
        Rule::on(PUT, Fault::Error("UnrecognizedClientException")).nth(2),
        Rule::on(PUT, Fault::Error("ExpiredTokenException")).lasting(Duration::from_secs(2)),
    ]);
    assert!(survived.retried("auth"), "{:?}", survived.retries);
}

#[test]
fn slow_answers_are_waited_for() {
    survives_without_duplicates(vec![
        Rule::on(PUT, Fault::StallReply(Duration::from_millis(1200))).next(2),
        Rule::on(PUT, Fault::Stall(Duration::from_millis(300))).every(5),
    ]);
}

#[test]
fn a_call_whose_answer_was_lost_is_sent_again_and_no_other() {
    let survived = survives(vec![
        Rule::on(PUT, Fault::LoseReply).every(3),
        Rule::on(PUT, Fault::PartialReply { bytes: 5 }).every(4),
    ]);
    let again = repeated(&survived.logs);
    println!("{} answers were lost: {} calls came twice, {} events", survived.struck, again.calls, again.events);
    assert!(again.calls > 0, "an answer that was lost leaves a duplicate");
    assert!(
        again.calls as u64 <= survived.struck,
        "{} calls came twice, {} answers were lost",
        again.calls,
        survived.struck
    );
}

#[test]
fn an_outage_of_the_whole_service_is_waited_out() {
    let mut logs = logs();
    let place = Place::new().unwrap();
    place.configure(&logs.endpoint(), &format!("{}{}", tails(&place, &["app"]), live(2, SMALL, LINES_TO_S))).unwrap();
    let mut writer = writers(&place, &["app"], 100).remove(0);
    writer.write(200).unwrap();
    let mut wharf = place.start().unwrap();
    wait_settled(&mut wharf, &place, 200);
    logs.stop();
    writer.write(800).unwrap();
    wharf.wait_until("deliveries fail", 30, || place.metric_at_least("wharf_retries_total", 2.0));
    logs.restart().unwrap();
    wait_settled(&mut wharf, &place, 1000);
    wharf.stop();
    Logged::of(&logs, GROUP).assert_each_once(writer.names());
    assert_arrived_in_order(&logs, GROUP);
    assert_no_rule_was_broken(&logs);
}

#[test]
fn a_stream_that_is_slow_to_make_holds_up_no_other() {
    let logs = logs();
    let config =
        ["log_group_name: /e2e", "log_stream_name: rest", "log_stream_template: $stream", "log_key: log", MAKE_GROUPS];
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(2, "max_age: 50ms", &config));
    let slow = Rule::on(Operation::CreateLogStream, Fault::Stall(Duration::from_secs(3))).key(":slow");
    let struck = logs.faults().add(slow);
    post_objects(to, &[json!({ "stream": "slow", "log": "slow-00000000" })]);
    wharf.wait_until("the slow stream is being made", 30, || struck.count() > 0);
    for number in 0..20 {
        post_objects(to, &[json!({ "stream": "fast", "log": format!("fast-{number:08}") })]);
    }
    wharf.wait_until("the fast stream has everything", 30, || Logged::of(&logs, GROUP).messages("fast").len() == 20);
    assert!(Logged::of(&logs, GROUP).messages("slow").is_empty(), "the slow stream was not slow");
    wait_settled(&mut wharf, &place, 21);
    wharf.stop();
    let fast = (0..20).map(|number| format!("fast-{number:08}"));
    Logged::of(&logs, GROUP).assert_each_once(fast.chain(["slow-00000000".to_owned()]));
    assert_no_rule_was_broken(&logs);
}

#[test]
fn a_failing_retention_holds_back_no_logs_and_is_asked_for_again() {
    let logs = logs();
    let mut config = LINES_TO_S.to_vec();
    config.push("log_retention_days: 7");
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(2, "max_age: 50ms", &config));
    let refused = logs.faults().add(Rule::on(Operation::PutRetentionPolicy, Fault::Error("AccessDeniedException")));
    for number in 0..5 {
        post_lines(to, "r", number * 10..(number + 1) * 10);
    }
    wait_settled(&mut wharf, &place, 50);
    let asked = refused.count();
    assert_eq!(counted(&place, "side_call_failures", &["call=\"retention\""]), asked);
    assert!((1..=2).contains(&asked), "a worker asks once, not with every call: {asked} times by 2 workers");
    assert_eq!(place.metric("wharf_retries_total", &[]), Some(0.0));
    wharf.stop();
    assert_eq!(logs.groups()[0].retention_days, None);
    Logged::of(&logs, GROUP).assert_each_once((0..50).map(|number| format!("r-{number:08}")));

    logs.faults().clear();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("records are taken", 30, || wharf_e2e::http::get(to, "/").is_ok());
    post_lines(to, "r", 50..60);
    wharf.wait_until("the group has its retention", 30, || logs.groups()[0].retention_days == Some(7));
    wait_settled(&mut wharf, &place, 10);
    wharf.stop();
    assert!(requests(&logs, Operation::PutRetentionPolicy) as u64 <= asked + 2);
    Logged::of(&logs, GROUP).assert_each_once((0..60).map(|number| format!("r-{number:08}")));
}

#[test]
fn a_class_and_tags_that_are_refused_hold_back_no_logs_and_an_entity_neither() {
    let logs = logs();
    let config = [
        "log_group_name: /e2e",
        "log_stream_name: s",
        "log_key: log",
        MAKE_GROUPS,
        "tags: { team: core }",
        "log_group_class: INFREQUENT_ACCESS",
        "entity: { type: Service, name: shop }",
    ];
    logs.faults().add(Rule::on(Operation::CreateLogGroup, Fault::Error("AccessDeniedException")).next(3));
    let reject = Reject { entity: Some("InvalidEntity"), ..Reject::default() };
    let rejected = logs.faults().add(Rule::on(PUT, Fault::Reject(reject)).nth(2));
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(1, "max_age: 50ms", &config));
    post_lines(to, "t", 0..10);
    wait_settled(&mut wharf, &place, 10);
    let failed = |call: &str| counted(&place, "side_call_failures", &[&format!("call=\"{call}\"")]);
    assert_eq!((failed("tags"), failed("class")), (1, 1));
    assert_eq!((rejected.count(), counted(&place, "entity_rejections", &[])), (1, 1));
    assert_eq!(place.metric("wharf_retries_total", &[]), Some(0.0));
    wharf.stop();
    let group = logs.groups().remove(0);
    assert_eq!((group.class.as_str(), group.tags.len()), ("STANDARD", 0));
    Logged::of(&logs, GROUP).assert_each_once((0..10).map(|number| format!("t-{number:08}")));
}

#[test]
fn one_output_that_is_throttled_or_refused_holds_up_no_other() {
    let (throttled, healthy) = (logs(), logs());
    throttled.faults().add(Rule::on(PUT, Fault::Error("ThrottlingException")));
    let other = output("other", 1, "max_age: 50ms", LINES_TO_S)
        .replace("    config:\n", &format!("    aws: {{ endpoint: \"{}\" }}\n    config:\n", throttled.endpoint()));
    let outputs = format!("{}{other}", live(1, "max_age: 50ms", LINES_TO_S));
    let (place, mut wharf, to) = http_place(&healthy.endpoint(), &outputs);
    for number in 0..20 {
        post_lines(to, "h", number * 10..(number + 1) * 10);
    }
    wharf.wait_until("the healthy one has everything", 30, || Logged::of(&healthy, GROUP).events().count() == 200);
    wharf.wait_until("the other shows why it does not get through", 30, || {
        health(&place, "other")["last_failure"]["kind"] == "throttled"
    });
    assert_eq!(Logged::of(&throttled, GROUP).events().count(), 0);
    throttled.faults().clear();
    wait_settled(&mut wharf, &place, 400);
    wharf.stop();
    for logs in [healthy, throttled] {
        Logged::of(&logs, GROUP).assert_each_once((0..200).map(|number| format!("h-{number:08}")));
        assert_no_rule_was_broken(&logs);
    }
}
