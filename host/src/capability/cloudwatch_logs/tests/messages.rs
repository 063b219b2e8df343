//! What a guest knows of its events, and that it is what is sent.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::*;

const NO_MESSAGE: u32 = 4_294_967_295;

#[tokio::test]
async fn times_are_milliseconds_rounded_down() {
    let mut bench = Bench::new(|_| ok()).await;
    let records: [(i64, &[u8]); 6] =
        [(0, b""), (999_999, b""), (1_000_000, b""), (-1, b""), (-1_000_001, b""), (1_796_056_337_123_456_789, b"")];
    let events = bench.events(None, &[(BodyKind::Text, &records[..2]), (BodyKind::Text, &records[2..])]).await;
    let times =
        async |bench: &mut Bench, first, count| bench.caller.times(borrow(&events), first, count).await.unwrap();
    assert_eq!(times(&mut bench, 0, 6).await, [0, 0, 1, -1, -2, 1_796_056_337_123]);
    assert_eq!(times(&mut bench, 1, 2).await, [0, 1]);
    assert_eq!(times(&mut bench, 4, u32::MAX).await, [-2, 1_796_056_337_123]);
    assert_eq!(times(&mut bench, 6, 1).await, [0_i64; 0]);
}

#[tokio::test]
async fn one_time_of_many_records_is_told_without_reading_them() {
    let mut bench = Bench::new(|_| ok()).await;
    let same: &[(i64, &[u8])] = &[(-5_000_001, b"a"), (-5_000_001, b"b")];
    let differing: &[(i64, &[u8])] = &[(7_000_000, b"c"), (8_000_000, b"d")];
    let batch = bench.batch(&[(BodyKind::Text, same), (BodyKind::Text, differing)]).await;
    let numbers = Selection::Indexes(vec![1, 2]);
    let mut prepare = async |select| bench.caller.prepare(borrow(&batch), select, None).await.unwrap().unwrap();
    let (all, some) = (prepare(Selection::All).await, prepare(numbers).await);
    let ids: Vec<_> = (0..100).map(crate::record::ChunkId).collect();
    // Both chunks are gone from the journal.
    bench.journal.release(&ids);
    assert_eq!(bench.caller.times(borrow(&all), 0, 2).await.unwrap(), [-6, -6]);
    assert_eq!(bench.caller.times(borrow(&some), 0, 1).await.unwrap(), [-6]);
    assert!(bench.caller.times(borrow(&all), 0, 3).await.is_err());
    assert!(bench.caller.times(borrow(&some), 0, 2).await.is_err());
}

#[tokio::test]
async fn sizes_are_bytes_of_utf8_and_say_where_there_is_no_message() {
    let mut bench = Bench::new(|_| ok()).await;
    let texts: &[(i64, &[u8])] =
        &[(0, b""), (0, b"a\0b"), (0, "😀".as_bytes()), (0, b"\xff\xfe"), (0, b"\xf0\x9f\x98")];
    let json: &[(i64, &[u8])] = &[
        (0, br#"{"log":"\u00e9\n"}"#),
        (0, br#"{"log":[1, 2]}"#),
        (0, br#"{"logs":"x"}"#),
        (0, br#"{"a":{"log":"x"}}"#),
        (0, br#"{"log":"first","log":"2"}"#),
    ];
    let chunks = [(BodyKind::Text, texts), (BodyKind::Json, json)];
    let log = bench.events(Some("log"), &chunks).await;
    assert_eq!(bench.sizes(&log, 0, 10).await, [0, 3, 4, 6, 3, 3, 6, NO_MESSAGE, NO_MESSAGE, 5]);
    assert_eq!(bench.sizes(&log, 4, 2).await, [3, 3]);
    assert_eq!(bench.sizes(&log, 10, 1).await, [0_u32; 0]);
    let other = bench.events(Some("a"), &chunks).await;
    assert_eq!(bench.sizes(&other, 0, 5).await, [NO_MESSAGE; 5]);
    assert_eq!(bench.sizes(&other, 8, 1).await, [r#"{"log":"x"}"#.len() as u32]);
    // `{"log":""}` has ten bytes; a NUL is written as six.
    let whole = bench.events(None, &chunks).await;
    assert_eq!(bench.sizes(&whole, 0, 6).await, [10, 18, 14, 16, 13, 18]);
}

#[tokio::test]
async fn a_part_of_a_message_is_read_by_bytes_of_its_utf8() {
    let mut bench = Bench::new(|_| ok()).await;
    let events = bench.events(Some("log"), &[(BodyKind::Text, &[(0, b"ab\xffcd"), (0, b"")])]).await;
    let read = async |bench: &mut Bench, event, offset, length| {
        bench.caller.read(borrow(&events), event, offset, length).await.unwrap()
    };
    assert_eq!(read(&mut bench, 0, 0, 100).await.unwrap(), "ab\u{FFFD}cd".as_bytes());
    assert_eq!(read(&mut bench, 0, 1, 2).await.unwrap(), b"b\xef");
    assert_eq!(read(&mut bench, 0, 5, 1).await.unwrap(), b"c");
    assert_eq!(read(&mut bench, 0, 7, 1).await.unwrap(), b"");
    assert_eq!(read(&mut bench, 0, u32::MAX, u32::MAX).await.unwrap(), b"");
    assert_eq!(read(&mut bench, 1, 0, 1).await.unwrap(), b"");
    assert!(matches!(read(&mut bench, 2, 0, 1).await, Err(HostError::Invalid(_))));
    let none = bench.events(Some("other"), &[(BodyKind::Text, &[(0, b"x")])]).await;
    let read = bench.caller.read(borrow(&none), 0, 0, 1).await.unwrap();
    assert!(matches!(read, Err(HostError::Invalid(_))));
}

#[tokio::test]
async fn one_read_gives_at_most_a_mebibyte() {
    let mut bench = Bench::new(|_| ok()).await;
    let long = "é".repeat(600_000);
    let events = bench.lines(&[&long]).await;
    assert_eq!(bench.sizes(&events, 0, 1).await, [1_200_000]);
    let read =
        async |bench: &mut Bench, offset, length| bench.caller.read(borrow(&events), 0, offset, length).await.unwrap();
    assert!(matches!(read(&mut bench, 0, u32::MAX).await, Err(HostError::Limit(_))));
    assert_eq!(read(&mut bench, 0, 1 << 20).await.unwrap(), &long.as_bytes()[..1 << 20]);
    assert_eq!(read(&mut bench, 1 << 20, u32::MAX).await.unwrap(), &long.as_bytes()[1 << 20..]);
}

/// One chunk's records of either kind, with bytes that are easily got wrong.
fn chunk() -> impl Strategy<Value = (BodyKind, Vec<(i64, Vec<u8>)>)> {
    let time = -3_000_000_000_i64..3_000_000_000;
    let text = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..30),
        "[a\"\\\\\u{0}\n\u{7f}é😀]{0,20}".prop_map(String::into_bytes),
    ];
    let json =
        (any::<bool>(), "[a\"\\\\\u{0}\n😀/]{0,12}", any::<i32>(), any::<bool>()).prop_map(|(has, text, n, number)| {
            let value = if number { serde_json::json!([n, &text]) } else { Value::from(text.as_str()) };
            let key = if has { "log" } else { "lo" };
            serde_json::json!({ "a": { "log": n }, key: value }).to_string().into_bytes()
        });
    prop_oneof![
        prop::collection::vec((time.clone(), text), 1..6).prop_map(|records| (BodyKind::Text, records)),
        prop::collection::vec((time, json), 1..6).prop_map(|records| (BodyKind::Json, records)),
    ]
}

/// Sizes, what can be read, and what the request's JSON means are the same, whatever the records are.
#[test]
fn what_is_sent_has_the_sizes_and_texts_that_were_told() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut bench = runtime.block_on(Bench::new(|_| ok()));
    let mut runner = TestRunner::new(ProptestConfig { cases: 48, ..ProptestConfig::default() });
    let cases = (prop::collection::vec(chunk(), 1..5), prop_oneof![Just(None), Just(Some("log")), Just(Some("a"))]);
    let bench = std::cell::RefCell::new(&mut bench);
    let result = runner.run(&cases, |(chunks, log_key)| {
        let records: Vec<Vec<(i64, &[u8])>> = chunks
            .iter()
            .map(|(_, chunk)| chunk.iter().map(|(time, body)| (*time, body.as_slice())).collect())
            .collect();
        let chunks: Vec<_> =
            chunks.iter().zip(&records).map(|((kind, _), records)| (*kind, records.as_slice())).collect();
        let bench = &mut *bench.borrow_mut();
        runtime.block_on(async {
            let events = bench.events(log_key, &chunks).await;
            let count = bench.caller.count(borrow(&events)).await.unwrap();
            let sizes = bench.sizes(&events, 0, count).await;
            let times = bench.caller.times(borrow(&events), 0, count).await.unwrap();
            prop_assert_eq!((sizes.len(), times.len()), (count as usize, count as usize));
            let mut expected = Vec::new();
            let mut numbers = Vec::new();
            for (number, (size, time)) in (0..).zip(sizes.into_iter().zip(times)) {
                let message = bench.caller.read(borrow(&events), number, 0, u32::MAX).await.unwrap();
                if size == NO_MESSAGE {
                    prop_assert!(message.is_err());
                    continue;
                }
                let message = String::from_utf8(message.unwrap()).unwrap();
                prop_assert_eq!(message.len(), size as usize);
                numbers.push(number);
                expected.push((time, message));
            }
            numbers.reverse();
            expected.reverse();
            if !numbers.is_empty() {
                bench.put(&events, order(&numbers)).await.unwrap();
                let seen = bench.seen.lock().unwrap().pop().unwrap();
                prop_assert_eq!(sent(&seen), expected);
            }
            bench.caller.table.delete(events).unwrap();
            Ok(())
        })
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
