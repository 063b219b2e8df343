//! The encoder against serde_json, jiff by way of hand-written times, and the system's own `gzip` and `zstd`.

use std::io::Write as _;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::record::{BodyKind, ChunkBuilder};

/// 2026-11-30T16:32:17.123456Z, and a nanosecond's part that this format has no place for.
const TIME: i64 = 1_796_056_337_123_456_789;
const DATE: &str = "2026-11-30T16:32:17.123456Z";

fn chunk_at<T: AsRef<[u8]>>(kind: BodyKind, records: &[(i64, T)]) -> Chunk {
    let mut builder = ChunkBuilder::arrived(kind, "app".into(), 0);
    for (time, body) in records {
        assert!(builder.push(*time, body.as_ref()));
    }
    builder.finish().unwrap()
}

fn chunk<T: AsRef<[u8]>>(kind: BodyKind, bodies: &[T]) -> Chunk {
    chunk_at(kind, &bodies.iter().map(|body| (TIME, body)).collect::<Vec<_>>())
}

fn text<T: AsRef<[u8]>>(bodies: &[T]) -> Chunk {
    chunk(BodyKind::Text, bodies)
}

fn json<T: AsRef<[u8]>>(bodies: &[T]) -> Chunk {
    chunk(BodyKind::Json, bodies)
}

fn options(format: &str, date_key: Option<&str>, log_key: Option<&str>) -> Options {
    Options::parse(format, date_key.map(str::to_owned), "iso8601", log_key.map(str::to_owned), "none", None).unwrap()
}

fn with_compression(options: Options, compression: Compression) -> Options {
    Options { compression, ..options }
}

fn encoded(chunks: &[Chunk], options: Options) -> String {
    String::from_utf8(encode_all(chunks, options).unwrap().to_vec()).unwrap()
}

/// All pieces of one size, which must be exactly that but for the last.
fn pieces<C: Chunks>(mut encoder: Encoder<C>, max: usize) -> Vec<u8>
where
    C::Error: fmt::Debug,
{
    let mut all = Vec::new();
    assert!(!encoder.finished());
    while let Some(piece) = encoder.next(max).unwrap() {
        all.extend_from_slice(&piece);
        assert!(piece.len() == max || encoder.finished(), "{} bytes of {max}", piece.len());
        assert!(!piece.is_empty() || all.is_empty());
    }
    assert!(encoder.finished());
    assert_eq!(encoder.next(max).unwrap(), None);
    all
}

fn selected(chunks: &[Chunk], selection: Selection) -> String {
    let encoder = Encoder::new(chunks.to_vec(), selection, options("text", None, None));
    String::from_utf8(pieces(encoder, 1000)).unwrap()
}

/// What a program makes of `input`. None where it is not installed.
fn through(program: &str, arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let command = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = command else {
        eprintln!("{program} is not installed: not compared with it");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{program} refuses the stream");
    Some(output.stdout)
}

mod text_records {
    use super::*;

    #[test]
    fn become_objects_of_date_and_log() {
        let chunk = text(&["hello", "", "say \"hi\" \\ \t\u{1}", "é😀"]);
        let expected = [
            r#"{"date":"2026-11-30T16:32:17.123456Z","log":"hello"}"#,
            r#"{"date":"2026-11-30T16:32:17.123456Z","log":""}"#,
            r#"{"date":"2026-11-30T16:32:17.123456Z","log":"say \"hi\" \\ \t\u0001"}"#,
            r#"{"date":"2026-11-30T16:32:17.123456Z","log":"é😀"}"#,
            "",
        ];
        assert_eq!(encoded(&[chunk], options("json_lines", Some("date"), None)), expected.join("\n"));
    }

    #[test]
    fn have_no_date_where_no_key_is_named() {
        assert_eq!(encoded(&[text(&["a"])], options("json_lines", None, None)), "{\"log\":\"a\"}\n");
    }

    #[test]
    fn keep_their_log_where_the_date_has_the_same_key() {
        assert_eq!(encoded(&[text(&["a"])], options("json_lines", Some("log"), None)), "{\"log\":\"a\"}\n");
    }

    #[test]
    fn carry_each_their_own_time() {
        let chunk = chunk_at(BodyKind::Text, &[(1_000_000_000, "a"), (1_000_000_000, "b"), (-1, "c"), (0, "d")]);
        let options = Options { date_format: DateFormat::Epoch, ..options("json_lines", Some("@\"t"), None) };
        let expected = [
            r#"{"@\"t":1,"log":"a"}"#,
            r#"{"@\"t":1,"log":"b"}"#,
            r#"{"@\"t":-1,"log":"c"}"#,
            r#"{"@\"t":0,"log":"d"}"#,
            "",
        ];
        assert_eq!(encoded(&[chunk], options), expected.join("\n"));
    }

    #[test]
    fn that_are_no_utf8_do_not_change_their_neighbours() {
        let chunk = text(&[&b"caf\xc3\xa9"[..], b"a\xffb\0", b"\xc3", b"\xa9"]);
        let lines = encoded(&[chunk], options("json_lines", None, None));
        let expected = ["{\"log\":\"café\"}", "{\"log\":\"a\u{FFFD}b\\u0000\"}", "{\"log\":\"\u{FFFD}\"}", ""];
        assert_eq!(lines, [&expected[..3], &expected[2..]].concat().join("\n"));
    }

    #[test]
    fn are_copied_as_text_whatever_their_bytes() {
        let chunk = text(&[&b"a\nb"[..], b"\0\xff", b""]);
        assert_eq!(
            encode_all(std::slice::from_ref(&chunk), options("text", None, None)).unwrap(),
            &b"a\nb\n\0\xff\n\n"[..]
        );
        assert_eq!(encode_all(&[chunk], options("text", Some("date"), Some("log"))).unwrap(), &b"a\nb\n\0\xff\n\n"[..]);
    }

    #[test]
    fn are_json_strings_where_only_their_log_is_wanted() {
        assert_eq!(
            encoded(&[text(&["a\"b", ""])], options("json_lines", Some("date"), Some("log"))),
            "\"a\\\"b\"\n\"\"\n"
        );
    }

    #[test]
    fn have_no_key_but_log() {
        for format in ["text", "json_lines"] {
            let chunks = vec![text(&["a", "b"]), json(&[r#"{"message":1}"#]), text(&["c"])];
            let mut encoder = Encoder::new(chunks, Selection::All, options(format, None, Some("message")));
            assert_eq!(encoder.next(100).unwrap().unwrap(), "1\n");
            assert_eq!(encoder.skipped(), (3, &[0, 1, 3][..]));
        }
    }
}

mod json_records {
    use super::*;

    #[test]
    fn are_copied_where_nothing_is_to_be_added() {
        let chunk = json(&[r#"{"b":1,"a":"\u00e9"}"#, "{}"]);
        for format in ["json_lines", "text"] {
            let expected = "{\"b\":1,\"a\":\"\\u00e9\"}\n{}\n";
            assert_eq!(encoded(std::slice::from_ref(&chunk), options(format, None, None)), expected);
        }
    }

    #[test]
    fn get_the_date_as_their_first_key() {
        let chunk =
            json(&[r#"{"b":1,"a":2}"#, "{}", " { \"a\" : {} } ", "{ }", r#"{"n":{"date":1},"s":"\"date\":2"}"#]);
        let expected = [
            format!(r#"{{"date":"{DATE}","b":1,"a":2}}"#),
            format!(r#"{{"date":"{DATE}"}}"#),
            format!(r#"{{"date":"{DATE}","a" : {{}} }} "#),
            format!(r#"{{"date":"{DATE}"}}"#),
            format!(r#"{{"date":"{DATE}","n":{{"date":1}},"s":"\"date\":2"}}"#),
            String::new(),
        ];
        assert_eq!(encoded(&[chunk], options("json_lines", Some("date"), None)), expected.join("\n"));
    }

    #[test]
    fn that_have_the_key_themselves_keep_it_and_get_no_second() {
        let bodies = [r#"{"a":1,"date":"mine"}"#, r#"{"d\u0061te":null}"#, r#"{"date":1}"#];
        assert_eq!(encoded(&[json(&bodies)], options("json_lines", Some("date"), None)), bodies.join("\n") + "\n");
    }

    #[test]
    fn give_one_key_s_value_as_text() {
        let bodies = [
            r#"{"log":"a\n\"b\" \ud83d\ude00 \ud83d \u0000"}"#,
            r#"{"x":1,"log":{"y":[1, 2]}}"#,
            r#"{"log":null}"#,
            r#"{"log":"first","log":"second"}"#,
            r#"{"log":-1.50e3}"#,
            r#"{"log":""}"#,
        ];
        let expected = "a\n\"b\" 😀 \u{FFFD} \0\n{\"y\":[1, 2]}\nnull\nfirst\n-1.50e3\n\n";
        assert_eq!(encoded(&[json(&bodies)], options("text", None, Some("log"))), expected);
    }

    #[test]
    fn give_one_key_s_value_as_json() {
        let bodies = [r#"{"log":"a\nb"}"#, r#"{"log" : [1, 2] }"#, r#"{"log":true}"#];
        let expected = "\"a\\nb\"\n[1, 2]\ntrue\n";
        assert_eq!(encoded(&[json(&bodies)], options("json_lines", Some("date"), Some("log"))), expected);
    }

    #[test]
    fn that_lack_the_wanted_key_are_skipped_and_counted() {
        let absent = vec![r#"{"logs":1}"#; 10_001];
        let chunks = vec![json(&[r#"{"log":1}"#, r#"{"a":{"log":1}}"#]), json(&absent), json(&[r#"{"log":2}"#])];
        let mut encoder = Encoder::new(chunks, Selection::All, options("text", None, Some("log")));
        assert_eq!(encoder.next(100).unwrap().unwrap(), "1\n2\n");
        let (count, numbers) = encoder.skipped();
        assert_eq!(count, 10_002);
        assert_eq!(numbers, (1..10_001).collect::<Vec<u32>>());
    }

    #[test]
    fn that_all_lack_the_key_encode_to_one_empty_piece() {
        let mut encoder = Encoder::new(vec![json(&["{}"])], Selection::All, options("text", None, Some("log")));
        assert_eq!(encoder.next(100).unwrap().unwrap(), "");
        assert!(encoder.finished());
        assert_eq!(encoder.next(100).unwrap(), None);
    }
}

mod arrays {
    use super::*;

    fn array(chunks: &[Chunk], date_key: Option<&str>, log_key: Option<&str>) -> String {
        encoded(chunks, options("json_array", date_key, log_key))
    }

    #[test]
    fn hold_the_objects_of_all_chunks_on_one_line() {
        let chunks = [text(&["a \"b\"", ""]), json(&[r#"{"k":1}"#, "{}", r#"{"date":2}"#]), text(&["c"])];
        let expected = [
            format!(r#"{{"date":"{DATE}","log":"a \"b\""}}"#),
            format!(r#"{{"date":"{DATE}","log":""}}"#),
            format!(r#"{{"date":"{DATE}","k":1}}"#),
            format!(r#"{{"date":"{DATE}"}}"#),
            r#"{"date":2}"#.to_owned(),
            format!(r#"{{"date":"{DATE}","log":"c"}}"#),
        ];
        assert_eq!(array(&chunks, Some("date"), None), format!("[{}]", expected.join(",")));
    }

    #[test]
    fn of_objects_that_nothing_is_added_to_hold_them_as_they_are() {
        let chunks = [json(&[r#"{"b":1,"a":"\u00e9"}"#]), json(&["{}", r#"{"c":[1, 2]}"#]), text(&["x"])];
        assert_eq!(array(&chunks, None, None), r#"[{"b":1,"a":"\u00e9"},{},{"c":[1, 2]},{"log":"x"}]"#);
    }

    #[test]
    fn of_one_key_s_values_leave_out_records_without_it_wherever_they_are() {
        let chunks =
            [json(&["{}", r#"{"log":"a\nb"}"#, "{}"]), json(&["{}"]), text(&["t"]), json(&[r#"{"log":[1]}"#, "{}"])];
        let mut encoder =
            Encoder::new(chunks.to_vec(), Selection::All, options("json_array", Some("date"), Some("log")));
        assert_eq!(encoder.next(100).unwrap().unwrap(), r#"["a\nb","t",[1]]"#);
        assert_eq!(encoder.skipped(), (4, &[0, 2, 3, 6][..]));
    }

    #[test]
    fn of_no_records_are_empty() {
        assert_eq!(array(&[], Some("date"), None), "[]");
        assert_eq!(array(&[json(&["{}"]), text(&["t"])], None, Some("message")), "[]");
        let mut encoder =
            Encoder::new(vec![text(&["a"])], Selection::Indexes(vec![]), options("json_array", None, None));
        assert_eq!(encoder.next(1).unwrap().unwrap(), "[");
        assert!(!encoder.finished());
        assert_eq!(encoder.next(1).unwrap().unwrap(), "]");
        assert!(encoder.finished());
    }

    #[test]
    fn hold_the_selected_records() {
        let chunks = vec![text(&["0", "1", "2"]), text(&["3"]), text(&["4", "5"])];
        let select = Selection::Indexes(vec![1, 3, 5]);
        let all = pieces(Encoder::new(chunks, select, options("json_array", None, None)), 7);
        assert_eq!(String::from_utf8(all).unwrap(), r#"[{"log":"1"},{"log":"3"},{"log":"5"}]"#);
    }

    /// jq knows neither our commas nor our windows.
    #[test]
    fn are_what_jq_makes_of_the_same_lines() {
        let lines: Vec<_> =
            (0..5000).map(|n| format!("line {n} \"quoted\" {} é", "x".repeat(n * 7919 % 100))).collect();
        let objects: Vec<_> = lines.iter().map(|line| serde_json::json!({ "m": line }).to_string()).collect();
        let chunks = [text(&lines), json(&objects)];
        let json_lines = encoded(&chunks, options("json_lines", Some("date"), None));
        let Some(slurped) = through("jq", &["-c", "-s", "-j", "."], json_lines.as_bytes()) else { return };
        for compression in [Compression::None, Compression::Gzip(2), Compression::Zstd(3)] {
            let options = with_compression(options("json_array", Some("date"), None), compression);
            let packed = pieces(Encoder::new(chunks.to_vec(), Selection::All, options), 70_001);
            let array = match compression {
                Compression::None => Some(packed),
                Compression::Gzip(_) => through("gzip", &["-dc"], &packed),
                Compression::Zstd(_) => through("zstd", &["-dcq"], &packed),
            };
            assert!(array.is_none_or(|array| array == slurped), "{compression:?}");
        }
    }
}

mod selections {
    use super::*;

    fn three() -> Vec<Chunk> {
        vec![text(&["0", "1", "2"]), text(&["3"]), text(&["4", "5"])]
    }

    #[test]
    fn reach_across_chunks() {
        assert_eq!(selected(&three(), Selection::All), "0\n1\n2\n3\n4\n5\n");
        assert_eq!(selected(&three(), Selection::Range(2, 3)), "2\n3\n4\n");
        assert_eq!(selected(&three(), Selection::Range(3, 1)), "3\n");
        assert_eq!(selected(&three(), Selection::Indexes(vec![0, 2, 3, 5])), "0\n2\n3\n5\n");
        assert_eq!(selected(&three(), Selection::Indexes(vec![4])), "4\n");
    }

    #[test]
    fn end_at_the_end_of_the_batch() {
        assert_eq!(selected(&three(), Selection::Range(5, u32::MAX)), "5\n");
        assert_eq!(selected(&three(), Selection::Range(6, 1)), "");
        assert_eq!(selected(&three(), Selection::Range(u32::MAX, u32::MAX)), "");
        assert_eq!(selected(&three(), Selection::Indexes(vec![5, 6, u32::MAX])), "5\n");
        assert_eq!(selected(&three(), Selection::Indexes(vec![])), "");
        assert_eq!(selected(&[], Selection::All), "");
    }

    #[test]
    fn number_skipped_records_by_their_place_in_the_batch() {
        let select = Selection::Indexes(vec![1, 3, 4]);
        let mut encoder = Encoder::new(three(), select, options("text", None, Some("k")));
        assert_eq!(encoder.next(100).unwrap().unwrap(), "");
        assert_eq!(encoder.skipped(), (3, &[1, 3, 4][..]));
    }

    proptest! {
        #[test]
        fn of_any_kind_give_the_records_that_they_name(
            sizes in prop::collection::vec(1_usize..6, 0..6),
            first in 0_u32..20,
            count in 0_u32..20,
            numbers in prop::collection::btree_set(0_u32..30, 0..20),
        ) {
            let mut next = 0..;
            let lines = |count: usize| next.by_ref().take(count).map(|n: u32| n.to_string()).collect::<Vec<_>>();
            let chunks: Vec<_> = sizes.iter().copied().map(lines).map(|lines| text(&lines)).collect();
            let total = sizes.iter().sum::<usize>() as u32;
            let expected = |numbers: &mut dyn Iterator<Item = u32>| {
                numbers.filter(|n| *n < total).map(|n| format!("{n}\n")).collect::<String>()
            };
            prop_assert_eq!(selected(&chunks, Selection::Range(first, count)), expected(&mut (first..first + count)));
            let indexes = Selection::Indexes(numbers.iter().copied().collect());
            prop_assert_eq!(selected(&chunks, indexes), expected(&mut numbers.iter().copied()));
        }
    }
}

mod streams {
    use super::*;

    /// Some windows of lines of many kinds, and one record that is larger than any window.
    fn many() -> Vec<Chunk> {
        let line = |n: usize| format!("line {n} \"quoted\" {} é", "x".repeat(n * 7919 % 300));
        let lines: Vec<_> = (0..700).map(line).collect();
        vec![
            text(&lines),
            text(&[vec![b'y'; 300_000], vec![0xff; 10_000], vec![1; 50_000]]),
            json(&lines.iter().map(|line| serde_json::json!({ "message": line }).to_string()).collect::<Vec<_>>()),
        ]
    }

    const COMPRESSIONS: [Compression; 6] = [
        Compression::None,
        Compression::Gzip(0),
        Compression::Gzip(3),
        Compression::Gzip(9),
        Compression::Zstd(1),
        Compression::Zstd(3),
    ];

    #[test]
    fn are_the_same_whatever_the_pieces() {
        let json_lines = options("json_lines", Some("date"), None);
        for compression in COMPRESSIONS {
            let whole = encode_all(&many(), with_compression(json_lines.clone(), compression)).unwrap();
            for max in [997, 65_536, 65_537, 100_003, whole.len() - 1, whole.len(), whole.len() + 1] {
                let options = with_compression(json_lines.clone(), compression);
                let all = pieces(Encoder::new(many(), Selection::All, options), max);
                assert!(all == whole, "{compression:?} in pieces of {max}");
            }
        }
    }

    #[test]
    fn decompress_with_the_system_s_programs() {
        let plain = encode_all(&many(), options("json_lines", Some("date"), None)).unwrap();
        for compression in COMPRESSIONS {
            let options = with_compression(options("json_lines", Some("date"), None), compression);
            let packed = encode_all(&many(), options).unwrap();
            let unpacked = match compression {
                Compression::None => Some(packed.to_vec()),
                Compression::Gzip(_) => through("gzip", &["-dc"], &packed),
                Compression::Zstd(_) => through("zstd", &["-dcq"], &packed),
            };
            assert!(unpacked.is_none_or(|unpacked| unpacked == plain), "{compression:?}");
        }
    }

    /// RFC 1952, section 2.3: no flags, no time, an unknown system. RFC 8878, section 3.1.1: bit 2 of the frame's descriptor says
    /// that a checksum of the content follows.
    #[test]
    fn carry_neither_time_nor_system_but_a_checksum() {
        let packed = |compression| {
            encode_all(&[text(&["a"])], with_compression(options("text", None, None), compression)).unwrap()
        };
        let gzip = packed(Compression::Gzip(3));
        assert_eq!((&gzip[..8], gzip[9]), (&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0][..], 255));
        let zstd = packed(Compression::Zstd(3));
        assert_eq!(zstd[..4], [0x28, 0xb5, 0x2f, 0xfd]);
        assert_eq!(zstd[4] & 0b100, 0b100);
    }

    #[test]
    fn of_nothing_are_whole_compressed_streams() {
        for (compression, program) in [(Compression::Gzip(3), "gzip"), (Compression::Zstd(3), "zstd")] {
            let packed = encode_all(&[], with_compression(options("text", None, None), compression)).unwrap();
            assert!(!packed.is_empty());
            assert!(through(program, &["-dc"], &packed).is_none_or(|unpacked| unpacked.is_empty()));
        }
    }

    #[test]
    fn whose_rest_is_skipped_end_with_the_last_piece_that_has_bytes() {
        let chunks = vec![json(&[r#"{"log":1}"#]), json(&["{}"])];
        let mut encoder = Encoder::new(chunks, Selection::All, options("text", None, Some("log")));
        assert_eq!(encoder.next(2).unwrap().unwrap(), "1\n");
        assert!(encoder.finished());
        assert_eq!(encoder.skipped().0, 1);
    }

    #[test]
    fn can_be_moved_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<Encoder<Vec<Chunk>>>();
    }

    /// Knows a chunk that cannot be read, and which chunk is asked for.
    struct Broken(Vec<Chunk>, Vec<usize>);

    impl Chunks for &mut Broken {
        type Error = String;

        fn len(&self) -> usize {
            self.0.len() + 1
        }
        fn records(&self, n: usize) -> u32 {
            self.0.get(n).map_or(1, |chunk| chunk.meta().records)
        }
        fn chunk(&mut self, n: usize) -> Result<Chunk, String> {
            self.1.push(n);
            self.0.get(n).cloned().ok_or_else(|| "chunk is damaged".to_owned())
        }
    }

    #[test]
    fn end_where_a_chunk_cannot_be_read() {
        let mut chunks = Broken(vec![text(&vec!["0123456789"; 20_000])], Vec::new());
        let mut encoder = Encoder::new(&mut chunks, Selection::All, options("text", None, None));
        assert_eq!(encoder.next(1000).unwrap().unwrap().len(), 1000);
        assert_eq!(encoder.next(1_000_000).unwrap_err().to_string(), "chunk is damaged");
        assert!(encoder.finished());
        assert!(encoder.next(1000).unwrap().is_none());
        // Each chunk is read once, however many windows it has.
        assert_eq!(chunks.1, [0, 1]);
    }

    #[test]
    fn read_only_the_chunks_that_are_selected() {
        let chunks = vec![text(&["0"]), text(&["1"]), text(&["2"])];
        let mut chunks = Broken(chunks, Vec::new());
        let select = Selection::Indexes(vec![0, 2]);
        let mut encoder = Encoder::new(&mut chunks, select, options("text", None, None));
        assert_eq!(encoder.next(100).unwrap().unwrap(), "0\n2\n");
        assert_eq!(chunks.1, [0, 2]);
    }
}

fn bodies() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..80),
        any::<String>().prop_map(String::into_bytes),
        "[ -~]{0,100}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(body, 1..12)
}

proptest! {
    #[test]
    fn serde_json_reads_any_text_record_as_its_lossy_text(bodies in bodies()) {
        let lines = encoded(&[text(&bodies)], options("json_lines", Some("date"), None));
        let found: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let expected: Vec<Value> = bodies
            .iter()
            .map(|body| serde_json::json!({ "date": DATE, "log": String::from_utf8_lossy(body) }))
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn serde_json_reads_the_same_object_with_a_date_before_its_keys(
        objects in prop::collection::vec(prop::collection::vec(("(date|[ab\"é]{0,3})", ".{0,8}"), 0..5), 1..8),
    ) {
        let objects: Vec<serde_json::Map<String, Value>> = objects
            .into_iter()
            .map(|members| members.into_iter().map(|(key, value)| (key, Value::from(value))).collect())
            .collect();
        let bodies: Vec<_> = objects.iter().map(|object| serde_json::to_string(object).unwrap()).collect();
        let lines = encoded(&[json(&bodies)], options("json_lines", Some("date"), None));
        for (line, mut object) in lines.lines().zip(objects) {
            let found: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
            if !object.contains_key("date") {
                object.shift_insert(0, "date".to_owned(), DATE.into());
            }
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), object.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn serde_json_reads_an_array_as_the_objects_of_its_records(
        texts in bodies(),
        objects in prop::collection::vec(prop::collection::vec(("(date|[ab\"é]{0,3})", ".{0,8}"), 0..5), 0..8),
        dated in any::<bool>(),
        max in 1_usize..200,
    ) {
        let objects: Vec<serde_json::Map<String, Value>> = objects
            .into_iter()
            .map(|members| members.into_iter().map(|(key, value)| (key, Value::from(value))).collect())
            .collect();
        let mut chunks = vec![text(&texts)];
        if !objects.is_empty() {
            let bodies: Vec<_> = objects.iter().map(|object| serde_json::to_string(object).unwrap()).collect();
            chunks.push(json(&bodies));
        }
        let of_texts = texts.iter().map(|body| {
            serde_json::Map::from_iter([("log".to_owned(), Value::from(String::from_utf8_lossy(body)))])
        });
        let expected: Vec<_> = of_texts
            .chain(objects)
            .map(|mut object| {
                if dated && !object.contains_key("date") {
                    object.shift_insert(0, "date".to_owned(), DATE.into());
                }
                object
            })
            .collect();
        let options = options("json_array", dated.then_some("date"), None);
        let array = pieces(Encoder::new(chunks, Selection::All, options), max);
        prop_assert!(!array.contains(&b'\n'));
        let found: Vec<serde_json::Map<String, Value>> = serde_json::from_slice(&array).unwrap();
        prop_assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(&expected) {
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn pieces_of_any_size_make_the_whole(bodies in bodies(), max in 1_usize..200, split in any::<prop::sample::Index>()) {
        let (left, right) = bodies.split_at(split.index(bodies.len()));
        let chunks: Vec<_> = [left, right].into_iter().filter(|part| !part.is_empty()).map(text).collect();
        for compression in [Compression::None, Compression::Gzip(1), Compression::Zstd(1)] {
            let options = with_compression(options("json_lines", Some("date"), None), compression);
            let whole = encode_all(&chunks, options.clone()).unwrap();
            prop_assert_eq!(pieces(Encoder::new(chunks.clone(), Selection::All, options), max), whole);
        }
    }
}
