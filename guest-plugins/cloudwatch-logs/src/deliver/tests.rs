use std::time::Duration;

use serde_json::{Value, json};
use wharf_plugin::cloudwatch_logs::{Entity, Error, ServiceError};
use wharf_plugin::service::Service;
use wharf_plugin::{FailureKind, Report};

use super::Worker;
use crate::fake::{Event, Fake, NOW, POISON, service};
use crate::settings::Settings;

const GROUP: &str = "/app";
const STREAM: &str = "main";
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// A call holds two such messages.
const HALF: usize = 500_000;

fn worker(more: Value) -> Worker {
    let mut config = json!({ "log_group_name": GROUP, "log_stream_name": STREAM });
    for (option, value) in more.as_object().unwrap() {
        config[option] = value.clone();
    }
    Worker::new(Settings::new(serde_json::from_value(config).unwrap()).unwrap().0)
}
fn plain() -> Worker {
    worker(json!({}))
}
fn making(more: Value) -> Worker {
    let mut all = json!({ "auto_create_group": true });
    for (option, value) in more.as_object().unwrap() {
        all[option] = value.clone();
    }
    worker(all)
}
/// `count` events, one a millisecond.
fn events(count: usize) -> Vec<Event> {
    (0..count).map(|n| Event::new(NOW + n as i64, &format!("m{n}"))).collect()
}
/// Events of which a call holds two.
fn large(count: usize) -> Vec<Event> {
    (0..count).map(|n| Event::new(NOW + n as i64, &format!("{n}{}", "x".repeat(HALF)))).collect()
}
fn there(events: Vec<Event>) -> Fake {
    Fake::with_stream(events, GROUP, STREAM)
}
fn texts(events: &[Event]) -> Vec<String> {
    events.iter().filter_map(|event| event.message.clone()).collect()
}
fn rejected(report: &Report) -> Vec<(u32, &str)> {
    report.rejected()
}
fn numbers(report: &Report) -> Vec<u32> {
    report.rejected().iter().map(|(record, _)| *record).collect()
}

mod sending {
    use super::*;

    #[test]
    fn a_batch_goes_to_its_stream_in_the_order_of_its_times() {
        let fake = there(vec![
            Event::new(NOW + 2, "c"),
            Event::new(NOW, "a"),
            Event::new(NOW + 2, "d"),
            Event::new(NOW + 1, "b"),
        ]);
        assert_eq!(plain().deliver(&fake).unwrap(), Report::all_delivered());
        assert_eq!(fake.messages(GROUP, STREAM), ["a", "b", "c", "d"]);
        assert_eq!(fake.calls(), ["put 4"]);
    }

    #[test]
    fn calls_are_filled_and_counted() {
        let fake = there(events(25_000));
        plain().deliver(&fake).unwrap();
        assert_eq!(fake.calls(), ["put 10000", "put 10000", "put 5000"]);
        assert_eq!((fake.counted("put_calls"), fake.counted("put_events")), (3, 25_000));
        // 26 each, and m0 to m24999: 1 + digits.
        let digits = 10 + 90 * 2 + 900 * 3 + 9_000 * 4 + 15_000 * 5;
        assert_eq!(fake.counted("put_bytes"), 25_000 * 27 + digits);
    }

    #[test]
    fn a_batch_of_nothing_that_can_be_sent_makes_no_call() {
        let fake = Fake::new(vec![Event::without_message(NOW), Event::new(NOW, "")]);
        let report = plain().deliver(&fake).unwrap();
        assert_eq!(numbers(&report), [0, 1]);
        assert!(fake.calls().is_empty());
    }

    #[test]
    fn records_without_the_key_are_named_and_the_others_delivered() {
        let fake = there(vec![Event::new(NOW, "a"), Event::without_message(NOW), Event::new(NOW, "b")]);
        let report = worker(json!({ "log_key": "log" })).deliver(&fake).unwrap();
        assert_eq!(rejected(&report), [(1, "the record has no key `log`")]);
        assert_eq!(fake.messages(GROUP, STREAM), ["a", "b"]);
    }

    #[test]
    fn format_and_entity_go_with_every_call() {
        let fake = there(events(1));
        let entity =
            json!({ "type": "Service", "name": "shop", "environment": "eks:prod/shop", "attributes": { "Team": "a" } });
        worker(json!({ "log_format": "json/emf", "entity": entity })).deliver(&fake).unwrap();
        assert_eq!(fake.shared.borrow().last_format.as_deref(), Some("json/emf"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = Entity {
            key_attributes: vec![pair("Type", "Service"), pair("Name", "shop"), pair("Environment", "eks:prod/shop")],
            attributes: vec![pair("Team", "a")],
        };
        assert_eq!(fake.shared.borrow().last_entity, Some(expected));
    }

    #[test]
    fn a_refused_entity_is_counted_and_the_events_are_delivered() {
        let fake = there(events(3));
        fake.shared.borrow_mut().entity_is_bad = true;
        assert_eq!(plain().deliver(&fake).unwrap(), Report::all_delivered());
        assert_eq!(fake.counted("entity_rejections"), 1);
        assert_eq!(fake.messages(GROUP, STREAM).len(), 3);
    }

    #[test]
    fn names_come_from_what_the_batch_has_in_common() {
        let mut worker = worker(json!({ "log_group_template": "/k8s/$ns", "log_stream_template": "$pod['name']" }));
        let mut fake = Fake::with_stream(events(1), "/k8s/shop", "web-0");
        fake.partition = vec![Some("shop".into()), Some("web-0".into())];
        worker.deliver(&fake).unwrap();
        assert_eq!(fake.messages("/k8s/shop", "web-0"), ["m0"]);

        let mut other = fake.with(events(1));
        other.partition = vec![None, None];
        other.add(GROUP, STREAM);
        worker.deliver(&other).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM), ["m0"]);
    }

    #[test]
    fn names_of_any_values_are_names_that_aws_takes() {
        for value in ["a:b*c", "\u{0}\n", "", &"long".repeat(200), &"😀".repeat(200), "aws/x", "$TAG", ".."] {
            let fake = Fake { partition: vec![Some(value.to_owned())], ..Fake::new(events(1)) };
            making(json!({ "log_group_template": "$x", "log_stream_template": "$x" })).deliver(&fake).unwrap();
            assert_eq!(fake.shared.borrow().streams.len(), 1, "{value:?}");
        }
    }
}

mod streams {
    use super::*;

    #[test]
    fn a_stream_that_is_there_costs_one_call() {
        let fake = there(events(1));
        let mut worker = plain();
        worker.deliver(&fake).unwrap();
        worker.deliver(&fake.with(events(1))).unwrap();
        assert_eq!(fake.calls(), ["put 1", "put 1"]);
        assert_eq!((fake.counted("stream_cache_misses"), fake.counted("stream_cache_hits")), (1, 1));
        assert_eq!(fake.shared.borrow().gauges["stream_cache_entries"], 1);
        assert!(fake.shared.borrow().gauges["stream_cache_bytes"] > 0);
    }

    #[test]
    fn a_missing_stream_is_made_and_the_same_call_sent_again() {
        let fake = there(large(4));
        fake.delete_stream(GROUP, STREAM);
        plain().deliver(&fake).unwrap();
        assert_eq!(fake.calls(), ["put 2", "stream main", "put 2", "put 2"]);
        assert_eq!(fake.messages(GROUP, STREAM), texts(&large(4)));
        assert_eq!(fake.counted("streams_created"), 1);
    }

    #[test]
    fn what_the_last_unknown_stream_was_is_what_the_next_is_taken_for() {
        let fake = there(events(1));
        let mut worker = worker(json!({ "log_stream_template": "$pod" }));
        let mut deliver = |pod: &str| {
            let batch = Fake { partition: vec![Some(pod.into())], ..fake.with(events(1)) };
            worker.deliver(&batch).unwrap();
            fake.calls()
        };
        assert_eq!(deliver("new1"), ["put 1", "stream new1", "put 1"]);
        assert_eq!(deliver("new2"), ["stream new2", "put 1"], "a wave of new ones costs two calls each");
        fake.add(GROUP, "old1");
        assert_eq!(deliver("old1"), ["stream old1", "put 1"]);
        fake.add(GROUP, "old2");
        assert_eq!(deliver("old2"), ["put 1"], "those that are there cost one");
        assert_eq!(deliver("new3"), ["put 1", "stream new3", "put 1"]);
        assert_eq!(fake.counted("streams_already_there"), 1);
    }

    /// Streams that are there need no permission to make any.
    #[test]
    fn a_stream_that_cannot_be_made_keeps_back_none_that_is_there() {
        let fake = there(events(1));
        let mut worker = worker(json!({ "log_stream_template": "$pod" }));
        let mut deliver = |pod: &str| {
            let batch = Fake { partition: vec![Some(pod.into())], ..fake.with(events(1)) };
            worker.deliver(&batch).map_err(|failure| failure.kind)
        };
        fake.fail_always("stream", service(400, "AccessDeniedException"));
        assert_eq!(deliver("new"), Err(FailureKind::Auth));
        fake.add(GROUP, "old");
        assert_eq!(deliver("old"), Ok(Report::all_delivered()));

        fake.mend();
        assert_eq!(deliver("new"), Ok(Report::all_delivered()));
        fake.fail_always("stream", service(400, "AccessDeniedException"));
        fake.add(GROUP, "old2");
        assert_eq!(deliver("old2"), Err(FailureKind::Auth), "taken for a new one");
        assert_eq!(deliver("old2"), Ok(Report::all_delivered()), "and then not any more");
    }

    #[test]
    fn two_workers_may_both_make_the_same_stream() {
        let fake = there(events(1));
        let (mut one, mut two) = (plain(), plain());
        // The other worker makes the stream between this one's two calls.
        fake.fail("put", 0, service(400, "ResourceNotFoundException"));
        one.deliver(&fake).unwrap();
        assert_eq!(fake.calls(), ["put 1", "stream main", "put 1"]);
        assert_eq!(fake.counted("streams_already_there"), 1);
        two.deliver(&fake.with(events(1))).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM).len(), 2);
    }

    /// The fault that this output was made for: elsewhere one worker frees the entry while another reads it.
    #[test]
    fn an_entry_that_expires_in_one_worker_stays_valid_in_another() {
        for (first, second) in [(1, 2), (2, 1)] {
            let fake = there(events(1));
            let ttl = json!({ "stream_cache_ttl": "50ms" });
            let (mut one, mut two) = (worker(ttl.clone()), worker(ttl));
            one.deliver(&fake.with(events(first))).unwrap();
            two.deliver(&fake.with(events(second))).unwrap();
            fake.wait(Duration::from_millis(40));
            two.deliver(&fake.with(events(second))).unwrap();
            fake.wait(Duration::from_millis(40));
            fake.shared.borrow_mut().counts.clear();

            one.deliver(&fake.with(events(first))).unwrap();
            assert_eq!((fake.counted("stream_cache_expirations"), fake.counted("stream_cache_misses")), (1, 1));
            two.deliver(&fake.with(events(second))).unwrap();
            assert_eq!((fake.counted("stream_cache_expirations"), fake.counted("stream_cache_hits")), (1, 1));
            assert_eq!(fake.messages(GROUP, STREAM).len(), 2 * first + 3 * second);
        }
    }

    #[test]
    fn what_a_worker_knew_goes_with_it() {
        let fake = there(events(1));
        plain().deliver(&fake).unwrap();
        plain().deliver(&fake.with(events(1))).unwrap();
        assert_eq!((fake.counted("stream_cache_misses"), fake.counted("stream_cache_hits")), (2, 0));
    }

    #[test]
    fn entries_that_expire_on_every_other_call_lose_nothing() {
        let fake = there(vec![]);
        let ttl = json!({ "stream_cache_ttl": "50ms", "stream_cache_size": 3, "log_stream_template": "$s", "auto_create_group": true });
        let mut workers: Vec<_> = (0..8).map(|_| worker(ttl.clone())).collect();
        for round in 0..500_usize {
            let stream = format!("s{}", round % 5);
            let event = Event::new(NOW, &format!("m{round}"));
            let batch = Fake { partition: vec![Some(stream)], ..fake.with(vec![event]) };
            workers[round % 8].deliver(&batch).unwrap();
            fake.wait(Duration::from_millis(if round % 2 == 0 { 60 } else { 1 }));
            batch.settle();
        }
        let mut all: Vec<_> = (0..5).flat_map(|n| fake.messages(GROUP, &format!("s{n}"))).collect();
        all.sort_by_key(|message| message[1..].parse::<usize>().unwrap());
        assert_eq!(all, (0..500).map(|n| format!("m{n}")).collect::<Vec<_>>());
        assert!(fake.counted("stream_cache_expirations") > 300);
        assert_eq!(fake.counted("streams_created"), 5);
    }

    #[test]
    fn a_stream_deleted_while_in_use_is_made_again() {
        let fake = there(events(1));
        let mut worker = plain();
        worker.deliver(&fake).unwrap();
        fake.delete_stream(GROUP, STREAM);
        fake.calls();
        worker.deliver(&fake.with(events(2))).unwrap();
        assert_eq!(fake.calls(), ["put 2", "stream main", "put 2"]);
        assert_eq!(fake.messages(GROUP, STREAM).len(), 2);
        assert_eq!(fake.counted("streams_vanished"), 1);
    }

    #[test]
    fn a_stream_that_vanished_is_not_known_also_where_it_cannot_be_made() {
        let fake = there(events(1));
        let mut worker = plain();
        worker.deliver(&fake).unwrap();
        assert_eq!(fake.shared.borrow().gauges["stream_cache_entries"], 1);
        fake.delete_stream(GROUP, STREAM);
        fake.fail("stream", 0, service(400, "ThrottlingException"));
        assert_eq!(worker.deliver(&fake.with(events(2))).unwrap_err().kind, FailureKind::Throttled);
        assert_eq!(fake.shared.borrow().gauges["stream_cache_entries"], 0);
        worker.deliver(&fake.with(events(2))).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM).len(), 2);
    }

    #[test]
    fn a_stream_that_does_not_show_yet_is_waited_for_and_not_made_for_ever() {
        let fake = there(events(1));
        fake.fail_always("put", service(400, "ResourceNotFoundException"));
        let mut worker = plain();
        let failure = worker.deliver(&fake).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Transient);
        assert!(failure.message.contains("/app:main was made and does not show yet"), "{failure}");
        assert_eq!(fake.calls(), ["put 1", "stream main", "put 1"]);
        fake.mend();
        worker.deliver(&fake).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM), ["m0"]);
    }
}

mod groups {
    use super::*;

    fn labels() -> Value {
        json!({ "tags": { "team": "a" }, "log_group_class": "INFREQUENT_ACCESS", "kms_key_id": KEY, "log_retention_days": 30 })
    }
    const KEY: &str = "arn:aws:kms:eu-central-1:123456789012:key/12345678-1234-1234-1234-123456789abc";

    #[test]
    fn a_missing_group_is_made_with_all_that_belongs_to_it() {
        let fake = Fake::new(events(2));
        making(labels()).deliver(&fake).unwrap();
        assert_eq!(
            fake.calls(),
            ["put 2", "stream main", "group /app class tags kms", "retention 30", "stream main", "put 2"]
        );
        let group = fake.shared.borrow().groups[GROUP].clone();
        assert_eq!(group.class.as_deref(), Some("INFREQUENT_ACCESS"));
        assert_eq!(group.tags, [("team".to_owned(), "a".to_owned())]);
        assert_eq!((group.kms_key_id.as_deref(), group.retention_days), (Some(KEY), Some(30)));
        assert_eq!(fake.messages(GROUP, STREAM).len(), 2);
        assert!(fake.shared.borrow().stored.is_empty(), "nothing is owed");
    }

    #[test]
    fn a_missing_group_that_is_not_to_be_made_waits_for_a_person() {
        let fake = Fake::new(events(1));
        let failure = plain().deliver(&fake).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Misconfigured);
        assert!(failure.message.contains("set `auto_create_group: true`"), "{failure}");
        assert_eq!(fake.calls(), ["put 1", "stream main"]);
    }

    #[test]
    fn a_group_deleted_while_in_use_is_made_again_and_gets_its_retention() {
        let fake = Fake::new(events(1));
        let mut worker = making(json!({ "log_retention_days": 7 }));
        worker.deliver(&fake).unwrap();
        fake.delete_group(GROUP);
        worker.deliver(&fake.with(events(3))).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM).len(), 3);
        assert_eq!(fake.shared.borrow().groups[GROUP].retention_days, Some(7));
    }

    #[test]
    fn a_group_that_another_worker_made_first_is_success() {
        let fake = Fake::new(events(1));
        fake.fail("group", 0, service(400, "ResourceAlreadyExistsException"));
        fake.shared.borrow_mut().faults[0].done = true;
        making(json!({})).deliver(&fake).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM), ["m0"]);
    }

    #[test]
    fn tags_that_are_refused_hold_back_nothing() {
        for code in ["AccessDeniedException", "InvalidParameterException", "TooManyTagsException"] {
            let fake = Fake::new(events(1));
            fake.fail("group", 0, service(400, code));
            making(labels()).deliver(&fake).unwrap();
            let calls = fake.calls();
            assert!(calls.contains(&"group /app class kms".to_owned()), "{calls:?}");
            assert_eq!((fake.counted("side_call_failures tags"), fake.counted("side_call_failures class")), (1, 0));
            assert_eq!(fake.messages(GROUP, STREAM), ["m0"], "{code}");
        }
    }

    #[test]
    fn a_class_that_is_refused_holds_back_nothing_and_the_key_is_never_left_out() {
        let fake = Fake::new(events(1));
        fake.fail("group", 0, service(400, "InvalidParameterException"));
        fake.fail("group", 0, service(400, "InvalidParameterException"));
        making(labels()).deliver(&fake).unwrap();
        let group = fake.shared.borrow().groups[GROUP].clone();
        assert_eq!((group.class.as_deref(), group.tags.len(), group.kms_key_id.as_deref()), (None, 1, Some(KEY)));
        assert_eq!((fake.counted("side_call_failures tags"), fake.counted("side_call_failures class")), (0, 1));

        let fake = Fake::new(events(1));
        fake.fail_always("group", service(400, "InvalidParameterException"));
        let failure = making(labels()).deliver(&fake).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Misconfigured);
        assert!(failure.message.contains("making the log group /app: CloudWatch Logs answered 400"), "{failure}");
        let made: Vec<_> = fake.calls().into_iter().filter(|call| call.starts_with("group")).collect();
        assert_eq!(
            made,
            ["group /app class tags kms", "group /app class kms", "group /app tags kms", "group /app kms"]
        );
    }

    #[test]
    fn a_retention_that_fails_holds_back_nothing_and_is_tried_now_and_then() {
        let fake = Fake::new(events(1));
        fake.fail_always("retention", service(400, "AccessDeniedException"));
        let mut worker = making(json!({ "log_retention_days": 30 }));
        worker.deliver(&fake).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM), ["m0"]);
        assert_eq!(fake.counted("side_call_failures retention"), 1);

        for _ in 0..10 {
            worker.deliver(&fake.with(events(1))).unwrap();
        }
        assert_eq!(fake.counted("side_call_failures retention"), 1, "not with every batch");
        fake.wait(Duration::from_secs(301));
        worker.deliver(&fake.with(events(1))).unwrap();
        assert_eq!(fake.counted("side_call_failures retention"), 2);
        fake.mend();
        fake.wait(Duration::from_secs(301));
        worker.deliver(&fake.with(events(1))).unwrap();
        assert_eq!(fake.shared.borrow().groups[GROUP].retention_days, Some(30));
        fake.calls();
        fake.wait(Duration::from_secs(301));
        worker.deliver(&fake.with(events(1))).unwrap();
        assert_eq!(fake.calls(), ["put 1"], "and then no more");
    }

    #[test]
    fn a_retention_that_is_owed_outlives_the_worker() {
        let fake = Fake::new(events(1));
        fake.fail("retention", 0, service(500, "ServiceUnavailableException"));
        making(json!({ "log_retention_days": 30 })).deliver(&fake).unwrap();
        assert_eq!(fake.shared.borrow().groups[GROUP].retention_days, None);
        let mut next = making(json!({ "log_retention_days": 30 }));
        next.deliver(&fake.with(events(1))).unwrap();
        assert_eq!(fake.shared.borrow().groups[GROUP].retention_days, Some(30));
        assert!(fake.shared.borrow().stored.is_empty());
    }

    #[test]
    fn groups_that_were_there_before_keep_their_retention() {
        let fake = there(events(1));
        making(json!({ "log_retention_days": 30 })).deliver(&fake).unwrap();
        assert_eq!(fake.calls(), ["put 1"]);
    }

    #[test]
    fn the_host_failing_to_write_down_what_is_owed_holds_back_nothing() {
        let fake = Fake::new(events(1));
        fake.fail_always("store", service(500, ""));
        making(json!({ "log_retention_days": 30 })).deliver(&fake).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM), ["m0"]);
    }
}

mod again {
    use super::*;

    #[test]
    fn a_throttled_call_is_sent_again_and_no_other() {
        for accepted in 0..5 {
            let fake = there(large(10));
            let throttled = Error::Service(ServiceError {
                service: Service::CloudWatchLogs,
                status: 400,
                code: "ThrottlingException".into(),
                message: "Rate exceeded".into(),
                retry_after_ms: Some(700),
            });
            fake.fail("put", accepted, throttled);
            let mut worker = plain();
            let failure = worker.deliver(&fake).unwrap_err();
            assert_eq!((failure.kind, failure.retry_after_ms), (FailureKind::Throttled, Some(700)));
            assert!(failure.message.contains("sending 2 events to /app:main"), "{failure}");
            // In another process: what was known is what was written down.
            plain().deliver(&fake).unwrap();
            assert_eq!(fake.messages(GROUP, STREAM), texts(&large(10)), "after {accepted} calls");
            assert_eq!(fake.calls().len(), 6);
        }
    }

    #[test]
    fn progress_is_written_between_calls_and_not_behind_the_last() {
        let fake = there(large(10));
        plain().deliver(&fake).unwrap();
        assert_eq!(fake.shared.borrow().progress_writes, 4);
        let fake = there(events(3));
        plain().deliver(&fake).unwrap();
        assert_eq!(fake.shared.borrow().progress_writes, 0, "a batch of one call needs none");
    }

    #[test]
    fn a_lost_answer_repeats_that_call_and_no_other() {
        for lost in 0..5 {
            let fake = there(large(10));
            fake.lose_answer("put", lost);
            let failure = plain().deliver(&fake).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Transient);
            assert!(failure.message.contains("no answer from CloudWatch Logs: reset"), "{failure}");
            plain().deliver(&fake).unwrap();
            let mut expected = texts(&large(10));
            let twice = expected[2 * lost..2 * lost + 2].to_vec();
            expected.splice(2 * lost..2 * lost, twice);
            assert_eq!(fake.messages(GROUP, STREAM), expected);
        }
    }

    /// Stopped between CloudWatch Logs' answer and the progress row.
    #[test]
    fn progress_that_is_not_written_repeats_one_call() {
        let fake = there(large(6));
        fake.shared.borrow_mut().faults.push(crate::fake::Fault {
            call: "progress",
            after: 1,
            times: 1,
            error: service(0, ""),
            done: false,
        });
        assert_eq!(plain().deliver(&fake).unwrap_err().kind, FailureKind::Transient);
        plain().deliver(&fake).unwrap();
        assert_eq!(fake.messages(GROUP, STREAM).len(), 8);
    }

    #[test]
    fn a_slow_service_gets_the_batch_in_several_attempts_and_each_call_once() {
        let fake = there(large(10));
        fake.shared.borrow_mut().put_takes = Duration::from_secs(120);
        let mut worker = plain();
        let failure = worker.deliver(&fake).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Transient);
        assert!(failure.message.contains("after 5 minutes"), "{failure}");
        worker.deliver(&fake).unwrap();
        assert_eq!(fake.calls().len(), 5);
        assert_eq!(fake.messages(GROUP, STREAM), texts(&large(10)));
    }

    #[test]
    fn a_batch_that_was_begun_is_finished_as_it_was_begun() {
        let message = "y".repeat(2_500_000);
        let fake = there(vec![Event::new(NOW, "a"), Event::new(NOW + 1, &message), Event::new(NOW + 2, "z")]);
        fake.fail("put", 2, service(503, "ServiceUnavailableException"));
        worker(json!({ "log_key": "log" })).deliver(&fake).unwrap_err();
        let report = worker(json!({ "log_key": "other", "oversized": "dead_letter" })).deliver(&fake).unwrap();
        assert_eq!(report, Report::all_delivered());
        let sent = fake.messages(GROUP, STREAM);
        let parts: String = sent[1..4].iter().map(|part| part.split_once("] ").unwrap().1).collect();
        assert!(parts == message && sent.len() == 5);
        // The next batch is the new configuration's.
        fake.settle();
        let report = worker(json!({ "oversized": "dead_letter" })).deliver(&fake).unwrap();
        assert_eq!(numbers(&report), [1]);
    }

    #[test]
    fn errors_have_their_kinds() {
        for (error, kind, said) in [
            (service(400, "ThrottlingException"), FailureKind::Throttled, "ThrottlingException"),
            (service(503, "ServiceUnavailableException"), FailureKind::Transient, "said so"),
            (service(500, "InternalFailure"), FailureKind::Transient, "500"),
            (service(400, "OperationAbortedException"), FailureKind::Transient, ""),
            (service(400, "UnrecognizedClientException"), FailureKind::Auth, ""),
            (service(400, "ExpiredTokenException"), FailureKind::Auth, ""),
            (service(400, "AccessDeniedException"), FailureKind::Auth, "needs logs:PutLogEvents"),
            (Error::Credentials("none found".into()), FailureKind::Auth, "none found"),
        ] {
            let fake = there(events(1));
            fake.fail("put", 0, error);
            let failure = plain().deliver(&fake).unwrap_err();
            assert_eq!(failure.kind, kind, "{failure}");
            assert!(failure.message.contains(said), "{failure}");
            plain().deliver(&fake).unwrap();
            assert_eq!(fake.messages(GROUP, STREAM), ["m0"]);
        }
    }

    #[test]
    fn what_was_already_accepted_is_accepted() {
        let fake = there(events(1));
        fake.fail("put", 0, service(400, "DataAlreadyAcceptedException"));
        assert_eq!(plain().deliver(&fake).unwrap(), Report::all_delivered());
    }

    #[test]
    fn trouble_with_making_a_stream_has_its_kind_and_names_what_to_allow() {
        for (code, kind) in [
            ("ThrottlingException", FailureKind::Throttled),
            ("OperationAbortedException", FailureKind::Transient),
            ("AccessDeniedException", FailureKind::Auth),
        ] {
            let fake = there(events(1));
            fake.delete_stream(GROUP, STREAM);
            fake.fail("stream", 0, service(400, code));
            let failure = plain().deliver(&fake).unwrap_err();
            assert_eq!(failure.kind, kind);
            assert!(failure.message.contains("making the log stream /app:main"), "{failure}");
            if kind == FailureKind::Auth {
                assert!(failure.message.contains("logs:CreateLogStream"), "{failure}");
            }
            plain().deliver(&fake).unwrap();
        }
    }
}

mod refused {
    use super::*;

    const OLD: &str = "too_old: CloudWatch Logs takes no event of more than 14 days ago";
    const NEW: &str = "too_new: CloudWatch Logs takes no event of more than 2 hours ahead";
    const EXPIRED: &str = "expired: it is older than the log group's retention";

    #[test]
    fn each_kind_is_named_with_its_reason_and_the_rest_is_delivered() {
        let fake = there(vec![
            Event::new(NOW + 3 * HOUR, "new"),
            Event::new(NOW, "good"),
            Event::new(NOW - 15 * DAY, "old"),
            Event::new(NOW + 2 * HOUR, "just not new"),
            Event::new(NOW - 14 * DAY, "just not old"),
        ]);
        let report = plain().deliver(&fake).unwrap();
        assert_eq!(rejected(&report), [(0, NEW), (2, OLD)]);
        assert_eq!(fake.messages(GROUP, STREAM), ["just not old", "good", "just not new"]);
        assert_eq!((fake.counted("refused_events too_old"), fake.counted("refused_events too_new")), (1, 1));
    }

    #[test]
    fn events_past_the_groups_retention_are_expired_and_those_past_14_days_too_old() {
        let fake = there(vec![
            Event::new(NOW - 8 * DAY, "expired"),
            Event::new(NOW - 15 * DAY, "old"),
            Event::new(NOW - DAY, "good"),
        ]);
        fake.shared.borrow_mut().groups.get_mut(GROUP).unwrap().retention_days = Some(7);
        let report = plain().deliver(&fake).unwrap();
        assert_eq!(rejected(&report), [(0, EXPIRED), (1, OLD)]);
        assert_eq!(fake.messages(GROUP, STREAM), ["good"]);
    }

    #[test]
    fn all_three_kinds_in_one_call_are_told_apart() {
        use crate::deliver::refused_ranges;
        use crate::progress::Why::{Expired, TooNew, TooOld};
        use wharf_plugin::cloudwatch_logs::Accepted;
        let ranges = |old, expired, new| {
            let accepted =
                Accepted { too_old_end: old, expired_end: expired, too_new_start: new, rejected_entity: None };
            refused_ranges(&accepted, 10)
        };
        assert_eq!(ranges(Some(2), Some(4), Some(8)), [(0..2, TooOld), (2..4, Expired), (8..10, TooNew)]);
        assert_eq!(ranges(Some(4), Some(2), None), [(0..4, TooOld)]);
        assert_eq!(ranges(None, None, Some(0)), [(0..10, TooNew)]);
        assert_eq!(ranges(None, None, None), []);
        assert_eq!(ranges(Some(5), Some(6), Some(3)), [(0..5, TooOld), (5..6, Expired), (6..10, TooNew)], "each once");
        assert_eq!(ranges(Some(99), None, Some(99)), [(0..10, TooOld)], "what is outside of the call is not there");
    }

    #[test]
    fn a_record_in_pieces_is_named_once() {
        let fake = there(vec![Event::new(NOW - 20 * DAY, &"x".repeat(3_000_000)), Event::new(NOW, "good")]);
        let report = plain().deliver(&fake).unwrap();
        assert_eq!(rejected(&report), [(0, OLD)]);
        assert_eq!(fake.messages(GROUP, STREAM), ["good"]);
    }

    #[test]
    fn what_was_refused_before_a_failure_is_still_named_after_it() {
        let mut events = large(6);
        events[1].time = NOW - 20 * DAY;
        events[4].time = NOW + 5 * HOUR;
        events.push(Event::without_message(NOW));
        for failing in 0..5 {
            let fake = there(events.clone());
            fake.fail("put", failing, service(500, "InternalFailure"));
            let mut report = plain().deliver(&fake);
            if report.is_err() {
                report = plain().deliver(&fake);
            }
            let report = report.unwrap();
            let reason = "the record is no JSON object";
            assert_eq!(rejected(&report), [(1, OLD), (4, NEW), (6, reason)], "call {failing} failed");
            assert_eq!(fake.messages(GROUP, STREAM).len(), 4);
        }
    }

    #[test]
    fn one_event_that_is_refused_keeps_back_no_other() {
        for poison in [0, 1, 4_999, 5_000, 9_999] {
            let mut all = events(10_000);
            all[poison].message = Some(POISON.into());
            let fake = there(all.clone());
            let report = plain().deliver(&fake).unwrap();
            assert_eq!(numbers(&report), [poison as u32]);
            assert!(report.rejected()[0].1.contains("this message is not for us"), "{report:?}");
            all.remove(poison);
            assert_eq!(fake.messages(GROUP, STREAM), texts(&all), "in order, each once");
            assert!(fake.calls().len() < 40);
            assert_eq!(fake.counted("refused_events refused"), 1);
        }
    }

    #[test]
    fn several_refused_events_are_found_also_over_failures() {
        let mut all = events(3_000);
        let poisoned = [7, 8, 1_500, 2_999];
        for poison in poisoned {
            all[poison].message = Some(POISON.into());
        }
        for failing in (0..60).step_by(7) {
            let fake = there(all.clone());
            fake.fail("put", failing, service(503, "ServiceUnavailableException"));
            let mut report = plain().deliver(&fake);
            if report.is_err() {
                report = plain().deliver(&fake);
            }
            assert_eq!(numbers(&report.unwrap()), poisoned.map(|poison| poison as u32));
            assert_eq!(fake.messages(GROUP, STREAM).len(), 2_996, "call {failing} failed");
        }
    }

    #[test]
    fn where_every_event_is_refused_it_is_not_the_events_and_nothing_is_given_up() {
        for count in [1, 3, 1_000] {
            let fake = there(events(count));
            fake.fail_always("put", service(400, "InvalidParameterException"));
            let failure = plain().deliver(&fake).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Misconfigured);
            assert!(failure.message.contains("InvalidParameterException (said so)"), "{failure}");
            assert!(fake.calls().len() < 40);
            fake.mend();
            assert_eq!(plain().deliver(&fake).unwrap(), Report::all_delivered());
            assert_eq!(fake.messages(GROUP, STREAM).len(), count);
        }
    }

    #[test]
    fn what_an_earlier_attempt_got_through_speaks_against_what_is_refused_now() {
        let mut all = large(4);
        all.push(Event::new(NOW + 4, &POISON.repeat(HALF / 4)));
        let fake = there(all);
        fake.fail("put", 2, service(500, "InternalFailure"));
        assert_eq!(plain().deliver(&fake).unwrap_err().kind, FailureKind::Transient);
        assert_eq!(numbers(&plain().deliver(&fake).unwrap()), [4]);
        assert_eq!(fake.messages(GROUP, STREAM).len(), 4);
    }

    #[test]
    fn a_great_many_refused_events_are_found_in_several_attempts() {
        let mut all = events(2_000);
        for poison in (0..2_000).step_by(40) {
            all[poison].message = Some(POISON.into());
        }
        let fake = there(all);
        let mut attempts = 0;
        let report = loop {
            attempts += 1;
            match plain().deliver(&fake) {
                Ok(report) => break report,
                Err(failure) => assert_eq!(failure.kind, FailureKind::Transient, "{failure}"),
            }
            assert!(attempts < 10);
        };
        assert_eq!(numbers(&report), (0..2_000).step_by(40).collect::<Vec<u32>>());
        assert_eq!(fake.messages(GROUP, STREAM).len(), 1_950, "each once");
    }
}

mod oversized {
    use super::*;

    fn four_byte() -> Vec<Event> {
        vec![Event::new(NOW, "a"), Event::new(NOW, &"😀".repeat(300_000)), Event::new(NOW, "z")]
    }

    #[test]
    fn by_default_nothing_of_a_large_record_is_lost() {
        let fake = there(four_byte());
        assert_eq!(plain().deliver(&fake).unwrap(), Report::all_delivered());
        let sent = fake.messages(GROUP, STREAM);
        assert_eq!((sent.len(), sent[0].as_str(), sent[3].as_str()), (4, "a", "z"), "in order, side by side");
        let parts = [sent[1].strip_prefix("[part 1/2] ").unwrap(), sent[2].strip_prefix("[part 2/2] ").unwrap()];
        assert_eq!(parts.concat(), "😀".repeat(300_000));
        assert_eq!(fake.counted("oversized_records split"), 1);
    }

    #[test]
    fn a_large_record_is_cut_short_where_that_is_asked_for() {
        let fake = there(four_byte());
        assert_eq!(worker(json!({ "oversized": "truncate" })).deliver(&fake).unwrap(), Report::all_delivered());
        let sent = fake.messages(GROUP, STREAM);
        let (kept, mark) = sent[1].split_once(' ').unwrap();
        assert_eq!(mark, format!("[truncated: {} bytes cut off]", 1_200_000 - kept.len()));
        assert!(kept.chars().all(|c| c == '😀'));
        assert_eq!(fake.counted("oversized_records truncate"), 1);
    }

    #[test]
    fn a_large_record_is_a_dead_letter_where_that_is_asked_for() {
        let fake = there(four_byte());
        let report = worker(json!({ "oversized": "dead_letter" })).deliver(&fake).unwrap();
        assert_eq!(rejected(&report), [(1, "the message has 1200000 bytes, and CloudWatch Logs takes 1048550")]);
        assert_eq!(fake.messages(GROUP, STREAM), ["a", "z"]);
    }

    #[test]
    fn an_event_of_exactly_the_limit_is_whole_and_one_byte_more_is_not() {
        for (size, events) in [(1_048_550, 1), (1_048_551, 2)] {
            let fake = there(vec![Event::new(NOW, &"x".repeat(size))]);
            plain().deliver(&fake).unwrap();
            assert_eq!(fake.messages(GROUP, STREAM).len(), events, "{size}");
        }
    }
}

mod whatever_happens {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fake::Fault;

    struct Chance(u64);

    impl Chance {
        fn below(&mut self, most: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % most
        }
    }

    /// A record's text says which it is.
    fn record(n: usize, chance: &mut Chance) -> Event {
        let time = match chance.below(20) {
            0 => NOW - 15 * DAY - chance.below(100) as i64,
            1 => NOW + 3 * HOUR,
            2 => -5,
            3..=6 => NOW - chance.below(10) as i64 * DAY,
            _ => NOW - chance.below(1000) as i64,
        };
        match chance.below(20) {
            0 => Event::without_message(time),
            1 => Event::new(time, ""),
            2 => Event::new(time, &format!("<{n}>{}", "é".repeat(300_000))),
            3 if chance.below(3) == 0 => Event::new(time, &format!("<{n}>{}", "x".repeat(2_400_000))),
            4 if chance.below(4) == 0 => Event::new(time, &format!("<{n}>{POISON}")),
            _ => Event::new(time, &format!("<{n}>{}", "y".repeat(chance.below(90_000) as usize))),
        }
    }

    fn fault(chance: &mut Chance) -> Fault {
        let call = ["put", "put", "put", "stream", "group", "retention", "progress", "store"][chance.below(8) as usize];
        let error = match chance.below(5) {
            0 => service(400, "ThrottlingException"),
            1 => service(400, "ResourceNotFoundException"),
            2 => service(403, "AccessDeniedException"),
            3 => service(500, "InternalFailure"),
            _ => Error::Connection(Service::CloudWatchLogs, "reset".into()),
        };
        // Only where no answer comes it may be done all the same.
        let done = matches!(error, Error::Connection(..)) && chance.below(2) == 0;
        Fault { call, after: chance.below(6) as usize, times: 1 + chance.below(2) as usize, error, done }
    }

    /// Which records are to be found in the stream, by what AWS says of each alone.
    fn is_taken(event: &Event) -> bool {
        let message = event.message.as_deref().unwrap_or_default();
        !message.is_empty() && !message.contains(POISON) && (NOW - 14 * DAY..=NOW + 2 * HOUR).contains(&event.time)
    }

    #[test]
    fn every_record_is_delivered_in_order_or_named_and_only_lost_answers_make_it_twice() {
        for seed in 0..50 {
            let chance = &mut Chance(seed);
            let count = 5 + chance.below(60) as usize;
            let records: Vec<Event> = (0..count).map(|n| record(n, chance)).collect();
            let fake = Fake::new(records.clone());
            let mut workers: Vec<_> = (0..2).map(|_| making(json!({ "log_retention_days": 30 }))).collect();
            let mut may_repeat = false;
            let mut attempt = 0;
            let report = loop {
                attempt += 1;
                assert!(attempt < 60, "seed {seed}");
                if attempt < 8 && chance.below(3) > 0 {
                    let fault = fault(chance);
                    may_repeat |= fault.done || fault.call == "progress";
                    fake.shared.borrow_mut().faults.push(fault);
                }
                // Now and then by another worker, or by a new one: a restart.
                let worker = &mut workers[chance.below(2) as usize];
                if chance.below(4) == 0 {
                    *worker = making(json!({ "log_retention_days": 30 }));
                }
                match worker.deliver(&fake) {
                    Ok(report) => break report,
                    Err(failure) => assert_ne!(failure.kind, FailureKind::Rejected, "seed {seed}: {failure}"),
                }
                // What every event is refused for is not the events, and would never end here.
                if records.iter().all(|event| !is_taken(event)) {
                    break Report::all_delivered();
                }
            };
            if records.iter().all(|event| !is_taken(event)) {
                continue;
            }

            let untaken: Vec<u32> = (0..count as u32).filter(|n| !is_taken(&records[*n as usize])).collect();
            assert_eq!(numbers(&report), untaken, "seed {seed}");
            let mut found: BTreeMap<usize, Vec<String>> = BTreeMap::new();
            let mut number = 0;
            for message in fake.messages(GROUP, STREAM) {
                let text = message.split_once("] ").map_or(message.as_str(), |(mark, rest)| {
                    if mark.starts_with("[part ") { rest } else { message.as_str() }
                });
                if let Some(named) = text.strip_prefix('<') {
                    number = named.split_once('>').unwrap().0.parse().unwrap();
                }
                found.entry(number).or_default().push(text.to_owned());
            }
            let taken: Vec<usize> = (0..count).filter(|n| is_taken(&records[*n])).collect();
            assert_eq!(found.keys().copied().collect::<Vec<_>>(), taken, "seed {seed}");
            for (n, texts) in found {
                let whole = records[n].message.as_deref().unwrap();
                if may_repeat {
                    assert!(texts.concat().len() >= whole.len(), "seed {seed}, record {n}");
                } else {
                    assert!(texts.concat() == whole, "seed {seed}, record {n}: once, and all of it");
                }
            }
            let times: Vec<i64> =
                fake.shared.borrow().streams[&(GROUP.into(), STREAM.into())].iter().map(|e| e.0).collect();
            assert!(may_repeat || times.is_sorted(), "seed {seed}");
        }
    }
}
