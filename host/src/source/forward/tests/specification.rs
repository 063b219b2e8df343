//! What a message means. "v1" is <https://github.com/fluent/fluentd/wiki/Forward-Protocol-Specification-v1>, "v1.5" its successor for Fluent Bit.

use super::pack::*;
use crate::source::forward::fault::Fault;
use crate::source::forward::json::Records;
use crate::source::forward::message::{Events, Message};
use crate::source::room::Room;

/// Times (none is that of arrival) and records.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) events: Vec<(Option<i64>, String)>,
    pub(super) passed_over: u64,
}

impl Events for Seen {
    fn event(&mut self, time_ns: Option<i64>, record: &[u8]) -> Result<(), Fault> {
        self.events.push((time_ns, String::from_utf8(record.to_vec()).unwrap()));
        Ok(())
    }
    fn passed_over(&mut self) {
        self.passed_over += 1;
    }
}

const LIMIT: usize = 1 << 20;

/// A message's tag, its chunk and its events.
fn read(bytes: &[u8]) -> Result<(String, Option<Vec<u8>>, Seen), Fault> {
    read_with(bytes, Some("metadata"))
}

fn read_with(bytes: &[u8], metadata_key: Option<&str>) -> Result<(String, Option<Vec<u8>>, Seen), Fault> {
    let message = Message::read(bytes)?.expect("events");
    let (tag, chunk, mut seen) = (message.tag.to_string(), message.chunk.map(<[u8]>::to_vec), Seen::default());
    message.events(&Records::new(metadata_key, LIMIT), LIMIT, &mut Room::new(1 << 30).hold(), &mut seen)?;
    Ok((tag, chunk, seen))
}

fn events(bytes: &[u8]) -> Vec<(Option<i64>, String)> {
    read(bytes).unwrap().2.events
}

fn logs(of: &[(i64, &str)]) -> Vec<(Option<i64>, String)> {
    of.iter().map(|(seconds, log)| (Some(seconds * 1_000_000_000), format!("{{\"log\":\"{log}\"}}"))).collect()
}

fn fault(bytes: &[u8]) -> Fault {
    read(bytes).unwrap_err()
}

fn packed(entries: &[Vec<u8>]) -> Vec<u8> {
    entries.concat()
}

/// v1, "Message Mode".
#[test]
fn message_mode_is_a_tag_a_time_and_a_record() {
    let message =
        list(&[text("tag.name"), int(1_441_588_984), record("bar"), map(&[(text("option"), text("optional"))])]);
    let (tag, chunk, seen) = read(&message).unwrap();
    assert_eq!((tag.as_str(), chunk), ("tag.name", None));
    assert_eq!(seen.events, logs(&[(1_441_588_984, "bar")]));
    // "option | object | map | option (optional)"
    assert_eq!(events(&list(&[text("t"), int(7), record("bar")])), logs(&[(7, "bar")]));
    // Docker 18 sends nil there.
    assert_eq!(events(&list(&[text("t"), int(7), record("bar"), nil()])), logs(&[(7, "bar")]));
}

/// v1, "Forward Mode".
#[test]
fn forward_mode_is_a_tag_and_a_list_of_entries() {
    let entries = list(&[entry(1_441_588_984, "foo"), entry(1_441_588_985, "bar"), entry(1_441_588_986, "baz")]);
    let expected = logs(&[(1_441_588_984, "foo"), (1_441_588_985, "bar"), (1_441_588_986, "baz")]);
    assert_eq!(events(&list(&[text("tag.name"), entries.clone(), map(&[])])), expected);
    assert_eq!(events(&list(&[text("tag.name"), entries])), expected);
    assert!(events(&list(&[text("t"), list(&[])])).is_empty());
}

/// v1, "PackedForward Mode": "entries is a binary chunk of MessagePackEventStream"; "Client SHOULD send … bin", str is for old ones.
#[test]
fn packed_forward_mode_is_a_tag_and_entries_as_bin_or_str() {
    let stream = packed(&[entry(1, "foo"), entry(2, "bar")]);
    for entries in [binary(&stream), raw_text(&stream)] {
        assert_eq!(events(&list(&[text("t"), entries.clone()])), logs(&[(1, "foo"), (2, "bar")]));
        assert_eq!(
            events(&list(&[text("t"), entries, map(&[(text("size"), int(2))])])),
            logs(&[(1, "foo"), (2, "bar")])
        );
    }
    assert!(events(&list(&[text("t"), binary(b"")])).is_empty());
}

/// v1, "CompressedPackedForward Mode": "entries is a gzipped binary chunk"; Fluent Bit sends zstd too, and both join pieces.
#[test]
fn compressed_entries_are_gzip_or_zstd_in_one_piece_or_several() {
    let (first, second) = (entry(1, "foo"), entry(2, "bar"));
    let both = packed(&[first.clone(), second.clone()]);
    for (name, compress) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("zstd", zstd as fn(&[u8]) -> Vec<u8>)] {
        let options = map(&[(text("compressed"), text(name)), (text("size"), int(2))]);
        let pieces = [compress(&first), compress(&second)].concat();
        for entries in [binary(&compress(&both)), binary(&pieces), raw_text(&compress(&both))] {
            assert_eq!(
                events(&list(&[text("t"), entries, options.clone()])),
                logs(&[(1, "foo"), (2, "bar")]),
                "{name}"
            );
        }
        assert!(events(&list(&[text("t"), binary(b""), options.clone()])).is_empty());
        let broken = fault(&list(&[text("t"), binary(b"plain"), options]));
        assert!(broken.to_string().starts_with(&format!("a message's entries are not {name}: ")), "{broken}");
    }
}

/// v1, "Option": "compressed". Fluentd says `text` where nothing is compressed.
#[test]
fn an_option_compressed_says_how_or_that_it_is_not() {
    let entries = binary(&entry(1, "foo"));
    for none in [text("text"), text(""), nil()] {
        let message = list(&[text("t"), entries.clone(), map(&[(text("compressed"), none)])]);
        assert_eq!(events(&message), logs(&[(1, "foo")]));
    }
    let message = list(&[text("t"), entries, map(&[(text("compressed"), text("lz4"))])]);
    let fault = fault(&message);
    assert_eq!(fault.reason(), "unsupported");
    assert_eq!(fault.to_string(), "entries are compressed as \"lz4\"; send gzip, zstd, or none");
}

/// v1, "Option": "size" "MAY" show the number of events: it is not needed, and not believed.
#[test]
fn a_size_that_is_wrong_changes_nothing() {
    for size in [int(0), int(-1), uint(u64::MAX), text("many")] {
        let message = list(&[text("t"), binary(&entry(1, "foo")), map(&[(text("size"), size)])]);
        assert_eq!(events(&message), logs(&[(1, "foo")]));
    }
}

/// v1, "Option": "chunk"; and "Response Messages": "the value of chunk" is sent back.
#[test]
fn a_chunk_comes_back_as_it_was_sent() {
    for chunk in [text("p8n9gmxTQVC8/nh2wlKKeQ=="), binary(&[0, 255, 7]), text("")] {
        let message = list(&[text("t"), list(&[entry(1, "a")]), map(&[(text("chunk"), chunk.clone())])]);
        assert_eq!(read(&message).unwrap().1, Some(chunk));
    }
    let nothing = list(&[text("t"), list(&[]), map(&[(text("chunk"), nil())])]);
    assert_eq!(read(&nothing).unwrap().1, None);
    let wrong = list(&[text("t"), list(&[]), map(&[(text("chunk"), int(5))])]);
    assert!(fault(&wrong).to_string().contains("the option chunk is a str"));
}

/// v1, "Option": other keys are the sender's own.
#[test]
fn options_that_are_not_known_are_left_alone() {
    let options = map(&[
        (int(1), list(&[map(&[])])),
        (list(&[]), nil()),
        (text("fluent_signal"), int(0)),
        (text("mine"), map(&[(text("a"), text("b"))])),
    ]);
    assert_eq!(events(&list(&[text("t"), list(&[entry(1, "a")]), options])), logs(&[(1, "a")]));
}

/// v1.5, "fluent_signal": 0 is logs, 1 metrics, 2 traces.
#[test]
fn metrics_and_traces_are_refused_with_a_remedy() {
    for signal in [1, 2] {
        let message = list(&[text("t"), binary(b"\x80"), map(&[(text("fluent_signal"), int(signal))])]);
        let fault = fault(&message);
        assert_eq!(fault.reason(), "unsupported");
        assert!(fault.to_string().contains("route only logs"), "{fault}");
    }
}

/// v1, "EventTime Ext Format", in every mode.
#[test]
fn nanoseconds_are_kept_in_every_mode() {
    let time = event_time(1_441_588_984, 5);
    let expected = [(Some(1_441_588_984_000_000_005), "{\"log\":\"a\"}".to_owned())];
    let entry = list(&[time.clone(), record("a")]);
    assert_eq!(events(&list(&[text("t"), time, record("a")])), expected);
    assert_eq!(events(&list(&[text("t"), list(std::slice::from_ref(&entry))])), expected);
    assert_eq!(events(&list(&[text("t"), binary(&entry)])), expected);
}

#[test]
fn no_time_is_that_of_arrival() {
    for none in [nil(), int(0), event_time(0, 0)] {
        assert_eq!(events(&list(&[text("t"), none, record("a")])), [(None, "{\"log\":\"a\"}".to_owned())]);
    }
}

/// v1.5, "Entry": `[[time, metadata], record]`; and in Message mode Fluent Bit sends metadata as an option.
#[test]
fn metadata_is_kept_in_the_record_where_it_has_no_such_key() {
    let metadata = map(&[(text("otlp"), map(&[(text("severity"), int(9))]))]);
    let entry = |metadata: Vec<u8>, record: Vec<u8>| list(&[list(&[event_time(1, 0), metadata]), record]);
    let one = |bytes: &[u8], key| read_with(bytes, key).unwrap().2.events.remove(0).1;
    let message = list(&[text("t"), binary(&entry(metadata.clone(), record("a")))]);
    assert_eq!(one(&message, Some("metadata")), r#"{"log":"a","metadata":{"otlp":{"severity":9}}}"#);
    assert_eq!(one(&message, Some("log")), r#"{"log":"a"}"#);
    assert_eq!(one(&message, None), r#"{"log":"a"}"#);
    let message = list(&[text("t"), int(1), record("a"), map(&[(text("metadata"), metadata.clone())])]);
    assert_eq!(one(&message, Some("m\"")), r#"{"log":"a","m\"":{"otlp":{"severity":9}}}"#);
    // Nothing in it, or none: nothing is added.
    for none in [map(&[]), nil()] {
        let message = list(&[text("t"), list(&[entry(none, record("a"))])]);
        assert_eq!(one(&message, Some("metadata")), r#"{"log":"a"}"#);
    }
    let message = list(&[text("t"), list(&[list(&[list(&[int(1)]), record("a")])])]);
    assert_eq!(one(&message, Some("metadata")), r#"{"log":"a"}"#);
    let message = list(&[text("t"), list(&[entry(metadata, map(&[]))])]);
    assert_eq!(one(&message, Some("metadata")), r#"{"metadata":{"otlp":{"severity":9}}}"#);
}

#[test]
fn fluent_bits_marks_of_groups_are_passed_over_and_counted() {
    let mark = |seconds: u32| list(&[list(&[event_time(seconds, 0), map(&[])]), map(&[(text("resource"), map(&[]))])]);
    let stream = packed(&[mark(u32::MAX), entry(1, "a"), mark(u32::MAX - 1)]);
    let (_, _, seen) = read(&list(&[text("t"), binary(&stream)])).unwrap();
    assert_eq!(seen, Seen { events: logs(&[(1, "a")]), passed_over: 2 });
}

/// v1, "Connection" and "Client": nil is a heartbeat.
#[test]
fn nil_is_a_heartbeat() {
    assert!(Message::read(&nil()).unwrap().is_none());
}

/// What a later version may add behind what is known.
#[test]
fn more_values_than_are_known_are_left_alone() {
    let entry = list(&[int(1), record("a"), text("more")]);
    assert_eq!(events(&list(&[text("t"), list(&[entry]), map(&[]), int(5)])), logs(&[(1, "a")]));
    assert_eq!(events(&list(&[text("t"), int(1), record("a"), map(&[]), int(5)])), logs(&[(1, "a")]));
}

/// v1, "tag is a string"; some libraries send bin.
#[test]
fn a_tag_is_text_whatever_bytes_it_has() {
    assert_eq!(read(&list(&[binary(b"app.x"), list(&[])])).unwrap().0, "app.x");
    assert_eq!(read(&list(&[raw_text(b"a\xffb"), list(&[])])).unwrap().0, "a\u{fffd}b");
    assert_eq!(read(&list(&[text(""), list(&[])])).unwrap().0, "");
    assert!(read(&list(&[text(&"x".repeat(4096)), list(&[])])).is_ok());
    assert!(fault(&list(&[text(&"x".repeat(4097)), list(&[])])).to_string().contains("longer than 4096"));
}

#[test]
fn what_is_no_message_is_refused_with_the_byte_and_what_should_be_there() {
    for (bytes, at, what) in [
        (text("GET / HTTP/1.1"), 0, "is something else speaking to this port?"),
        (b"{\"a\":1}".to_vec(), 0, "this looks like JSON text"),
        (b"[\"a\",1]".to_vec(), 0, "this looks like JSON text"),
        (list(&[]), 1, "a message has a tag and entries at least"),
        (list(&[text("t")]), 1, "a message has a tag and entries at least"),
        (list(&[int(1), int(1), record("a")]), 2, "a message begins with its tag"),
        (list(&[text("t"), int(1)]), 3, "a tag, a time and a record"),
        (list(&[text("t"), boolean(true), record("a")]), 3, "a time should be here"),
        (list(&[text("t"), map(&[]), record("a")]), 3, "a time should be here"),
        (list(&[text("t"), list(&[]), int(1)]), 5, "the options are a map"),
        (list(&[text("t"), list(&[int(1)])]), 0, "an entry is [time, record]"),
        (list(&[text("t"), list(&[list(&[int(1)])])]), 1, "an entry is [time, record]"),
        (list(&[text("t"), list(&[list(&[list(&[]), record("a")])])]), 1, "there is no time"),
        (list(&[text("t"), binary(&[1])]), 0, "an entry is [time, record]"),
        (list(&[text("t"), binary(&entry(1, "abc")[..6])]), 4, "it ends"),
        (list(&[text("t"), binary(&[entry(1, "a"), vec![0xc1]].concat())]), 9, "0xc1"),
    ] {
        let Fault::Malformed { at: found, what: said } = fault(&bytes) else { panic!("{bytes:x?}") };
        assert!(said.contains(what), "{said} for {bytes:x?}");
        assert!(found <= bytes.len() && (at == 0 || found == at), "byte {found} for {bytes:x?}, {what}");
    }
}

#[test]
fn entries_beyond_the_limit_are_refused_also_when_they_are_packed_small() {
    let big = entry(1, &"x".repeat(LIMIT + 1));
    for (name, compress) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("zstd", zstd as fn(&[u8]) -> Vec<u8>)] {
        let message = list(&[text("t"), binary(&compress(&big)), map(&[(text("compressed"), text(name))])]);
        assert!(message.len() < LIMIT / 50);
        assert_eq!(fault(&message), Fault::TooLargeDecompressed(LIMIT));
    }
}
