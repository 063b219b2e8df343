//! MessagePack as JSON: `docs/sources.md` has the same table.

use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::pack::*;
use crate::source::forward::fault::Fault;
use crate::source::forward::json::Records;
use crate::source::forward::msgpack::Reader;

fn record(bytes: &[u8]) -> Result<String, Fault> {
    let mut out = b"from before".to_vec();
    let mut from = Reader::new(bytes);
    Records::new(None, 1 << 20).write(&mut from, None, &mut out)?;
    assert!(from.is_empty());
    Ok(String::from_utf8(out).unwrap())
}

/// A value in a record, without what is around it.
fn json(value: &[u8]) -> String {
    let record = record(&map(&[(text("v"), value.to_vec())])).unwrap();
    record.strip_prefix("{\"v\":").and_then(|rest| rest.strip_suffix('}')).unwrap().to_owned()
}

#[test]
fn what_json_has_is_that() {
    for (value, expected) in [
        (nil(), "null"),
        (boolean(true), "true"),
        (boolean(false), "false"),
        (int(0), "0"),
        (int(-1), "-1"),
        (int(i64::MIN), "-9223372036854775808"),
        (uint(u64::MAX), "18446744073709551615"),
        (uint(9_223_372_036_854_775_808), "9223372036854775808"),
        (double(1.0), "1.0"),
        (double(-0.0), "-0.0"),
        (double(0.1), "0.1"),
        (double(1e300), "1e+300"),
        (single(0.1), "0.1"),
        (single(16_777_216.0), "16777216.0"),
        (text(""), "\"\""),
        (text("Grüße \u{1f980}"), "\"Grüße \u{1f980}\""),
        (text("a\"b\\c\n\t\u{1}\u{7f}"), "\"a\\\"b\\\\c\\n\\t\\u0001\u{7f}\""),
        (list(&[]), "[]"),
        (list(&[int(1), text("x"), list(&[nil()])]), "[1,\"x\",[null]]"),
        (map(&[]), "{}"),
        (map(&[(text("b"), int(1)), (text("a"), map(&[]))]), "{\"b\":1,\"a\":{}}"),
    ] {
        let found = json(&value);
        // How large powers of ten are written is the library's.
        assert!(
            found == expected || found.replace("e+", "e") == expected.replace("e+", "e"),
            "{found} is not {expected}"
        );
    }
}

#[test]
fn what_json_has_not_is_a_string_that_says_what_it_was() {
    for (value, expected) in [
        (double(f64::NAN), "\"NaN\""),
        (double(f64::INFINITY), "\"Infinity\""),
        (single(f32::NEG_INFINITY), "\"-Infinity\""),
        // Bytes that are text are text; others are a data URL (RFC 2397).
        (binary(b"text"), "\"text\""),
        (binary(b""), "\"\""),
        (binary(&[0xff, 0x00, 0x01]), "\"data:;base64,/wAB\""),
        // A str that is no UTF-8: U+FFFD for each part that is none, as Unicode recommends.
        (raw_text(b"a\xe4b\xf0\x9f\xa6"), "\"a\u{fffd}b\u{fffd}\""),
        (ext(5, &[0xff]), "\"data:application/x-msgpack-ext;type=5;base64,/w==\""),
        (ext(-128, b""), "\"data:application/x-msgpack-ext;type=-128;base64,\""),
        (ext(0, &[1, 2, 3]), "\"data:application/x-msgpack-ext;type=0;base64,AQID\""),
        // 1441588984 is 2015-09-07T01:23:04Z.
        (event_time(1_441_588_984, 5), "\"2015-09-07T01:23:04.000000005Z\""),
        (ext(-1, &1_441_588_984_u32.to_be_bytes()), "\"2015-09-07T01:23:04.000000000Z\""),
    ] {
        assert_eq!(json(&value), expected);
    }
}

#[test]
fn a_key_that_is_no_string_is_what_it_would_be_as_a_value_in_quotes() {
    for (key, expected) in [
        (int(-5), "\"-5\""),
        (uint(u64::MAX), "\"18446744073709551615\""),
        (boolean(true), "\"true\""),
        (nil(), "\"null\""),
        (double(1.5), "\"1.5\""),
        (single(0.1), "\"0.1\""),
        (double(f64::NAN), "\"NaN\""),
        (binary(b"k"), "\"k\""),
        (binary(&[0xff]), "\"data:;base64,/w==\""),
        (raw_text(b"\xff"), "\"\u{fffd}\""),
        (text("a\"b"), "\"a\\\"b\""),
        (ext(0, &[0; 8]), "\"1970-01-01T00:00:00.000000000Z\""),
        // The bytes of [1] and of {}: 91 01, 80.
        (list(&[int(1)]), "\"data:application/x-msgpack;base64,kQE=\""),
        (map(&[]), "\"data:application/x-msgpack;base64,gA==\""),
    ] {
        assert_eq!(record(&map(&[(key, int(1))])).unwrap(), format!("{{{expected}:1}}"));
    }
}

#[test]
fn keys_that_come_twice_stay_twice_in_their_order() {
    let twice = map(&[(text("a"), int(1)), (text("b"), int(2)), (text("a"), int(3)), (binary(b"a"), int(4))]);
    assert_eq!(record(&twice).unwrap(), r#"{"a":1,"b":2,"a":3,"a":4}"#);
}

#[test]
fn a_record_that_is_no_map_is_under_message() {
    for (value, expected) in [
        (text("a line"), "\"a line\""),
        (nil(), "null"),
        (list(&[int(1), int(2)]), "[1,2]"),
        (int(7), "7"),
        (event_time(0, 0), "\"1970-01-01T00:00:00.000000000Z\""),
    ] {
        assert_eq!(record(&value).unwrap(), format!("{{\"message\":{expected}}}"));
    }
}

#[test]
fn a_record_is_nested_128_deep_and_not_deeper() {
    let nested = |depth: usize| (1..depth).fold(map(&[]), |inside, _| map(&[(text("k"), inside)]));
    assert_eq!(record(&nested(128)).unwrap().matches('{').count(), 128);
    assert_eq!(record(&nested(129)), Err(Fault::TooDeep));
    let lists = |depth: usize| (1..depth).fold(list(&[]), |inside, _| list(&[inside]));
    assert!(record(&map(&[(text("k"), lists(127))])).is_ok());
    assert_eq!(record(&map(&[(text("k"), lists(128))])), Err(Fault::TooDeep));
}

/// Quotes inside of quotes would double their escapes at each level.
#[test]
fn keys_that_are_maps_with_keys_that_are_maps_stay_small() {
    let nested = (0..100).fold(map(&[]), |inside, _| map(&[(inside, nil())]));
    let json = record(&nested).unwrap();
    assert!(json.len() < 2 * nested.len() + 100, "{} bytes of {}", json.len(), nested.len());
}

/// Values that grow most by being JSON: ext types, and characters that have to be escaped.
#[test]
fn a_record_that_grows_beyond_the_limit_is_refused_on_the_way() {
    let limit = 1 << 20;
    for value in [list(&vec![ext(5, &[0]); 100_000]), text(&"\u{1}".repeat(900_000)), list(&vec![nil(); 900_000])] {
        assert!(value.len() < limit);
        let mut out = Vec::new();
        let record = map(&[(text("v"), value)]);
        let written = Records::new(None, limit).write(&mut Reader::new(&record), None, &mut out);
        assert_eq!(written, Err(Fault::TooLargeAsJson(limit)));
        assert!(out.capacity() < 3 * limit, "{} bytes were taken", out.capacity());
    }
}

/// They are written in pieces, which must not fall into a character.
#[test]
fn long_strings_come_back_whole() {
    for (character, times) in [("x", 300_000), ("\u{e4}", 150_001), ("a\u{20ac}", 80_003), ("\u{1f980}", 70_000)] {
        for before in 0..5 {
            let long = format!("{}{}", "y".repeat(before), character.repeat(times));
            let back: String = serde_json::from_str(&json(&text(&long))).unwrap();
            assert!(back == long, "{character}, {before} before it");
        }
    }
}

/// What JSON can hold, and what reads it back the same.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| Value::Number(n.into())),
        any::<u64>().prop_map(|n| Value::Number(n.into())),
        // Exact in few digits: the parser here is only then exact.
        any::<i32>().prop_filter_map("a number", |n| Number::from_f64(f64::from(n) / 1024.0).map(Value::Number)),
        any::<String>().prop_map(Value::String),
        "[a-z\"\\\\\n]{0,40}".prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 60, 8, |inside| {
        prop_oneof![
            proptest::collection::vec(inside.clone(), 0..8).prop_map(Value::Array),
            object(inside).prop_map(Value::Object),
        ]
    })
}

fn object(inside: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec((any::<String>(), inside), 0..8).prop_map(|pairs| pairs.into_iter().collect())
}

fn packed(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => nil(),
        Value::Bool(value) => boolean(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => uint(number),
            (None, Some(number)) => int(number),
            (None, None) => double(number.as_f64().unwrap()),
        },
        Value::String(value) => text(value),
        Value::Array(values) => list(&values.iter().map(packed).collect::<Vec<_>>()),
        Value::Object(pairs) => map(&pairs.iter().map(|(key, value)| (text(key), packed(value))).collect::<Vec<_>>()),
    }
}

proptest! {
    /// By serde_json's parser.
    #[test]
    fn what_json_can_hold_comes_back_as_it_was(pairs in object(value())) {
        let value = Value::Object(pairs);
        let json = record(&packed(&value)).unwrap();
        prop_assert!(!json.contains('\n'));
        let back: Value = serde_json::from_str(&json).unwrap();
        prop_assert_eq!(&back, &value);
        // Keys stay in their order.
        prop_assert_eq!(serde_json::to_string(&back).unwrap(), serde_json::to_string(&value).unwrap());
    }

    /// By the standard library's parser.
    #[test]
    fn floating_numbers_keep_every_bit(long in any::<f64>(), short in any::<f32>()) {
        prop_assume!(long.is_finite() && short.is_finite());
        prop_assert_eq!(json(&double(long)).parse::<f64>().unwrap().to_bits(), long.to_bits());
        prop_assert_eq!(json(&single(short)).parse::<f32>().unwrap().to_bits(), short.to_bits());
    }

    /// Whatever bytes a str, bin or ext has, it is one JSON string on one line.
    #[test]
    fn any_bytes_are_a_json_string(bytes in proptest::collection::vec(any::<u8>(), 0..60), kind in any::<i8>()) {
        for value in [raw_text(&bytes), binary(&bytes), ext(kind, &bytes)] {
            let json = json(&value);
            let back: Value = serde_json::from_str(&json).unwrap();
            prop_assert!(back.is_string() && !json.contains('\n'));
        }
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let back: String = serde_json::from_str(&json(&raw_text(&bytes))).unwrap();
            prop_assert_eq!(back, text);
        }
    }
}
