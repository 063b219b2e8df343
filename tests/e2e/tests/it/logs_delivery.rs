//! Records to CloudWatch Logs: every record once, in the right group and stream, at its time. Against the strict local server and, with the
//! same records, against moto, which nobody here wrote; read back by boto3.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use wharf_e2e::skip::skip;
use wharf_e2e::{Logged, Moto, Place};
use wharf_local_aws::{Aws, Logs, Operation, Options, logs};

use crate::logs_support::{
    GROUP, LINES_BY_TAG, MAKE_GROUPS, assert_arrived_in_order, assert_no_rule_was_broken, counted, http_place, live,
    logs, names, output, post_objects, requests, tails, wait_settled, writers,
};

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// The same output twice: to the strict server, and to another.
fn twice(other: &str, config: &[&str]) -> String {
    let second = output("other", 2, "max_age: 300ms", config)
        .replace("    config:\n", &format!("    aws: {{ endpoint: \"{other}\" }}\n    config:\n"));
    format!("{}{second}", live(2, "max_age: 300ms", config))
}

/// What both servers hold of a group: the same, record for record and millisecond for millisecond.
fn read_both(strict: &Logs, moto: &Moto, group: &str) -> Logged {
    let read = Logged::of(strict, group);
    let theirs = moto.read_back(group).unwrap();
    for (stream, events) in &read.streams {
        assert_eq!(theirs.streams.get(stream), Some(events), "{group}:{stream}");
    }
    assert_eq!(read.streams.len(), theirs.streams.len());
    read
}

#[test]
fn lines_of_files_arrive_once_in_a_stream_for_each_tag() {
    let test = "lines_of_files_arrive_once_in_a_stream_for_each_tag";
    let moto = match Moto::start() {
        Ok(moto) => moto,
        Err(error) => return skip(test, &format!("{error:#}"), false),
    };
    let strict = logs();
    let place = Place::new().unwrap();
    let tags = ["web", "db.eu"];
    let config = ["log_group_name: /e2e", "log_stream_prefix: \"host-\"", "log_key: log", MAKE_GROUPS];
    place
        .configure(&strict.endpoint(), &format!("{}{}", tails(&place, &tags), twice(&moto.endpoint(), &config)))
        .unwrap();
    let mut writers = writers(&place, &tags, 150);
    let began = now_ms();
    let mut wharf = place.start().unwrap();
    for _ in 0..4 {
        for writer in &mut writers {
            writer.write(500).unwrap();
        }
        let wanted: u64 = writers.iter().map(|writer| 2 * writer.written()).sum();
        wharf
            .wait_until("they are durable", 30, || place.metric_at_least("wharf_durable_records_total", wanted as f64));
    }
    writers[0].rotate().unwrap();
    writers[0].write(100).unwrap();
    wait_settled(&mut wharf, &place, 2 * 4100);
    let ended = now_ms();
    wharf.stop();
    assert_no_rule_was_broken(&strict);

    let read = read_both(&strict, &moto, GROUP);
    assert_eq!(read, Logged::read_back(&strict.endpoint(), GROUP).unwrap(), "boto3 reads what is there");
    read.assert_each_once(names(&writers));
    for (stream, source, count) in [("host-web", "web.", 2100), ("host-db.eu", "db.eu.", 2000)] {
        let messages = read.messages(stream);
        assert_eq!(messages.len(), count, "{stream}");
        assert!(messages.iter().all(|message| message.starts_with(source) && message.len() == 150), "{stream}");
    }
    assert!(read.events().all(|(_, event)| (began..=ended).contains(&event.timestamp)), "an event has another time");
    assert_arrived_in_order(&strict, GROUP);
}

#[test]
fn objects_go_to_the_group_and_the_stream_that_their_fields_name() {
    let test = "objects_go_to_the_group_and_the_stream_that_their_fields_name";
    let moto = match Moto::start() {
        Ok(moto) => moto,
        Err(error) => return skip(test, &format!("{error:#}"), false),
    };
    let strict = logs();
    let config = [
        "log_group_name: /rest",
        "log_stream_prefix: \"rest-\"",
        "log_group_template: /k8s/$kubernetes['namespace']",
        "log_stream_template: $kubernetes['pod'].$TAG",
        MAKE_GROUPS,
    ];
    let (place, mut wharf, to) = http_place(&strict.endpoint(), &twice(&moto.endpoint(), &config));
    // Names are cleaned (`shop a`, `p:1`); what lacks a field has the static name for that half alone.
    let kinds = [
        (json!({ "namespace": "shop", "pod": "web-0" }), "/k8s/shop", "web-0.app"),
        (json!({ "namespace": "shop", "pod": "web-1" }), "/k8s/shop", "web-1.app"),
        (json!({ "namespace": "bank", "pod": "web-0" }), "/k8s/bank", "web-0.app"),
        (json!({ "namespace": "shop a", "pod": "p:1" }), "/k8s/shop_a", "p_1.app"),
        (json!({ "namespace": "bank" }), "/k8s/bank", "rest-app"),
        (json!({ "pod": 7 }), "/rest", "7.app"),
        (json!("no map"), "/rest", "rest-app"),
    ];
    let mut expected: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for round in 0..30 {
        let mut objects = Vec::new();
        for (fields, group, stream) in &kinds {
            let object = json!({ "log": format!("o-{round:08}"), "kubernetes": fields });
            expected.entry((group, stream)).or_default().push(object.to_string());
            objects.push(object);
        }
        post_objects(to, &objects);
    }
    wait_settled(&mut wharf, &place, 2 * 30 * 7);
    assert_eq!(counted(&place, "groups_created", &["output=\"live\""]), 4);
    wharf.stop();
    assert_no_rule_was_broken(&strict);

    let mut there = 0;
    for group in ["/rest", "/k8s/shop", "/k8s/bank", "/k8s/shop_a"] {
        for (stream, events) in read_both(&strict, &moto, group).streams {
            let messages: Vec<_> = events.into_iter().map(|event| event.message).collect();
            assert_eq!(Some(&messages), expected.get(&(group, &stream)), "{group}:{stream}");
            there += 1;
        }
    }
    assert_eq!(there, kinds.len());
    assert_eq!(strict.groups().len(), 4, "{:?}", strict.groups());
}

#[test]
fn groups_are_made_with_their_retention_class_and_tags() {
    let strict = logs();
    let config = [
        "log_group_name: /made",
        "log_stream_name: s",
        MAKE_GROUPS,
        "log_retention_days: 30",
        "log_group_class: INFREQUENT_ACCESS",
        "tags: { team: core, cost centre: \"42\" }",
        "kms_key_id: arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
        "entity: { type: Service, name: shop, environment: \"eks:prod/shop\", attributes: { K8s.Namespace: shop } }",
    ];
    let (place, mut wharf, to) = http_place(&strict.endpoint(), &live(2, "max_age: 50ms", &config));
    for number in 0..5 {
        post_objects(to, &[json!({ "log": format!("m-{number:08}") })]);
    }
    wait_settled(&mut wharf, &place, 5);
    wharf.stop();
    let groups = strict.groups();
    let [group] = groups.as_slice() else { panic!("{groups:?}") };
    assert_eq!((group.name.as_str(), group.retention_days), ("/made", Some(30)));
    assert_eq!(group.class, "INFREQUENT_ACCESS");
    assert!(group.kms_key_id.as_deref().is_some_and(|key| key.ends_with("1234567890ab")), "{group:?}");
    let tags: Vec<_> = group.tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(tags, [("cost centre", "42"), ("team", "core")]);
    let call = strict.accepted().first().cloned().unwrap();
    let pairs = |map: &BTreeMap<String, String>| map.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>();
    let [keys, attributes] = call.entity.clone().unwrap();
    assert_eq!(pairs(&keys), ["Environment=eks:prod/shop", "Name=shop", "Type=Service"]);
    assert_eq!(pairs(&attributes), ["K8s.Namespace=shop"]);
    Logged::of(&strict, "/made").assert_each_once((0..5).map(|number| format!("m-{number:08}")));
    assert_eq!(requests(&strict, Operation::PutRetentionPolicy), 1);
    assert_no_rule_was_broken(&strict);
}

/// 24 MB of short lines: calls are limited by events and by bytes, and full.
#[test]
fn calls_are_full_under_load() {
    let strict = logs();
    let place = Place::new().unwrap();
    let tags = ["short", "long"];
    place
        .configure(&strict.endpoint(), &format!("{}{}", tails(&place, &tags), live(2, "max_age: 2s", LINES_BY_TAG)))
        .unwrap();
    let mut short = writers(&place, &tags[..1], 30).remove(0);
    let mut long = writers(&place, &tags[1..], 700).remove(0);
    short.write(60_000).unwrap();
    long.write(15_000).unwrap();
    let mut wharf = place.start().unwrap();
    wait_settled(&mut wharf, &place, 75_000);
    wharf.stop();
    Logged::of(&strict, GROUP).assert_each_once(short.names().chain(long.names()));
    let totals = strict.totals();
    println!("{} events in {} calls, {:.1} % full", totals.events, totals.calls, 100.0 * totals.fill());
    // By hand: 60,000 / 10,000 are 6 calls, and 15,000 × 726 bytes are 10.4 calls. A batch's last call may have any size.
    assert!(totals.calls <= 20, "{} calls", totals.calls);
    assert_arrived_in_order(&strict, GROUP);
    assert_no_rule_was_broken(&strict);
}

#[test]
fn an_archive_in_s3_and_a_live_view_get_the_same_records_from_one_source() {
    let aws = Aws::start(Options::default(), logs::Options::default()).unwrap();
    let place = Place::new().unwrap();
    let outputs =
        crate::support::archive(2, "max_bytes: 20KB, max_age: 500ms", &["date_key: at", "date_format: epoch_ms"]);
    let live = output("live", 2, "max_age: 100ms", &["log_group_name: /e2e", "log_stream_prefix: \"\"", MAKE_GROUPS]);
    place.configure(&aws.endpoint(), &format!("{}{outputs}{live}", tails(&place, &["app"]))).unwrap();
    let mut writers = writers(&place, &["app"], 120);
    for round in 0..3 {
        writers[0].write(400).unwrap();
        let mut wharf = place.start().unwrap();
        wharf.wait_until("both have everything", 60, || {
            let wanted = writers[0].written() as usize;
            crate::support::delivered(aws.s3()).lines() >= wanted
                && Logged::of(aws.logs(), GROUP).names().len() >= wanted
        });
        wharf.wait_until("everything is settled", 30, || place.all_settled());
        if round == 1 { wharf.kill9() } else { wharf.stop() }
    }
    let archived = crate::support::delivered(aws.s3());
    archived.assert_each_once(names(&writers));
    archived.assert_contiguous(0);
    let live = Logged::of(aws.logs(), GROUP);
    live.assert_each_once(names(&writers));
    // The same times, too.
    let mut times = BTreeMap::new();
    for object in aws.s3().objects() {
        for line in String::from_utf8(object.body.to_vec()).unwrap().lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            times.insert(value["log"].to_string(), value["at"].as_i64().unwrap());
        }
    }
    for (_, event) in live.events() {
        let value: serde_json::Value = serde_json::from_str(&event.message).unwrap();
        assert_eq!(times.get(&value["log"].to_string()), Some(&event.timestamp), "{}", event.message);
    }
    assert_no_rule_was_broken(aws.logs());
    crate::support::assert_no_overwrites(aws.s3());
}
