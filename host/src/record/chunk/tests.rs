use proptest::prelude::*;

use super::*;
use crate::record::ChunkBuilder;
use crate::record::portion::Part;
use crate::record::record_set::RecordSet;

fn builder(kind: BodyKind) -> ChunkBuilder {
    ChunkBuilder::arrived(kind, "app.web".into(), 1_796_055_137_000_000_000)
}

fn whole(chunk: &Chunk) -> Bytes {
    let (head, bodies) = chunk.encode();
    [head, bodies].concat().into()
}

fn bodies(chunk: &Chunk) -> Vec<&[u8]> {
    chunk.iter().map(|record| record.body).collect()
}

#[test]
fn records_come_back_in_order_with_their_times() {
    let mut builder = builder(BodyKind::Text);
    for (time, body) in [(5, &b"one"[..]), (-7, b""), (5, b"th\0ree\xff")] {
        assert!(builder.push(time, body));
    }
    assert_eq!((builder.len(), builder.body_bytes()), (3, 10));
    let chunk = builder.finish().unwrap();
    assert_eq!(chunk.bodies().as_ref(), b"one\n\nth\0ree\xff\n");
    assert_eq!(chunk.record(0), Some(RecordRef { time_ns: 5, body: b"one" }));
    assert_eq!(chunk.record(1), Some(RecordRef { time_ns: -7, body: b"" }));
    assert_eq!(chunk.record(2), Some(RecordRef { time_ns: 5, body: b"th\0ree\xff" }));
    assert_eq!(chunk.record(3), None);
    assert_eq!(chunk.record(u32::MAX), None);
    let meta = chunk.meta();
    assert_eq!((meta.first_ns, meta.last_ns, meta.records, meta.body_bytes), (-7, 5, 3, 10));
    assert_eq!(chunk.span(1, 2), 4..13);
    assert_eq!(chunk.span(1, u32::MAX), 4..13);
    assert_eq!(chunk.span(9, 9), 13..13);
}

/// Laid out by hand from the table in `layout`, with the checksum computed bit by bit.
#[test]
fn the_bytes_are_those_that_the_layout_describes() {
    let mut builder = ChunkBuilder::arrived(BodyKind::Json, "t".into(), 1);
    builder.push(2, b"{}");
    builder.position(Position { source: "s".into(), key: "k".into(), value: vec![0xff] });
    let chunk = builder.finish().unwrap();
    let chunk = chunk.with_routes(vec![Route { output: "o".into(), partition: "".into(), part: None }]);
    let mut expected = Vec::new();
    expected.extend_from_slice(b"WCHK\x01\0\x01\x01");
    expected.extend_from_slice(&[89, 0, 0, 0]);
    expected.extend_from_slice(&crc32c_bitwise(b"\x02\0\0\0\0\0\0\0\x02\0\0\0{}\n").to_le_bytes());
    expected.extend_from_slice(&[1, 0, 0, 0, 3, 0, 0, 0]);
    expected.extend_from_slice(b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0");
    expected.extend_from_slice(b"\x01\0\0\0t");
    expected.extend_from_slice(b"\x01\0\0\0\x01\0\0\0o\0\0\0\0");
    expected.extend_from_slice(b"\x01\0\0\0\x01\0\0\0s\x01\0\0\0k\x01\0\0\0\xff");
    expected.extend_from_slice(&crc32c_bitwise(&expected.clone()).to_le_bytes());
    assert_eq!(expected.len(), 89);
    expected.extend_from_slice(b"\x02\0\0\0\0\0\0\0\x02\0\0\0{}\n");
    assert_eq!(whole(&chunk), expected);
    assert_eq!(chunk.encoded_len(), expected.len() as u64);
}

/// CRC-32C by its definition (RFC 3720, appendix B.4: reflected polynomial 0x82F63B78).
fn crc32c_bitwise(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82F6_3B78 } else { crc >> 1 };
        }
    }
    !crc
}

#[test]
fn lines_are_taken_whole_and_the_rest_is_left() {
    let mut builder = builder(BodyKind::Text);
    assert_eq!(builder.push_lines(1, b"no end"), 0);
    assert!(builder.is_empty());
    assert_eq!(builder.push_lines(1, b"a\n\nbc\nrest"), 6);
    assert_eq!(builder.push_lines(1, b""), 0);
    assert_eq!(builder.push_lines(1, b"d\n"), 2);
    let chunk = builder.finish().unwrap();
    assert_eq!(bodies(&chunk), [&b"a"[..], b"", b"bc", b"d"]);
    assert!(chunk.one_time);
}

#[test]
fn a_carriage_return_before_a_line_feed_is_not_part_of_the_body() {
    let mut builder = builder(BodyKind::Text);
    builder.push_lines(1, b"first\n");
    assert_eq!(builder.push_lines(2, b"a\r\n\r\nb\rc\nd\r\r\nrest\r"), 13);
    let chunk = builder.finish().unwrap();
    assert_eq!(bodies(&chunk), [&b"first"[..], b"a", b"", b"b\rc", b"d\r"]);
    assert_eq!(chunk.iter().map(|record| record.time_ns).collect::<Vec<_>>(), [1, 2, 2, 2, 2]);
    assert_eq!(Chunk::decode(&whole(&chunk)), Ok(chunk));
}

#[test]
fn an_empty_builder_makes_no_chunk() {
    assert_eq!(builder(BodyKind::Json).finish(), None);
}

#[test]
fn a_later_position_of_the_same_source_and_key_takes_the_place_of_the_earlier() {
    let position = |key: &str, value| Position { source: "s".into(), key: key.into(), value: vec![value] };
    let mut builder = builder(BodyKind::Text);
    builder.push(0, b"x");
    for each in [position("a", 1), position("b", 2), position("a", 3)] {
        builder.position(each);
    }
    assert_eq!(builder.finish().unwrap().meta().positions, [position("a", 3), position("b", 2)]);
}

#[test]
fn a_tag_that_is_too_long_is_cut_at_a_character() {
    let mut builder = ChunkBuilder::new(BodyKind::Text, "é".repeat(40_000).into());
    builder.push(0, b"x");
    assert_eq!(&*builder.finish().unwrap().meta().tag, "é".repeat(32_768));
}

#[test]
fn every_flipped_bit_is_noticed() {
    let chunk = three();
    let part = chunk.part(RecordSet::of([0, 2]).unwrap());
    let good = whole(&chunk.with_routes(vec![of_o("p", Some(part))]));
    for bit in 0..good.len() * 8 {
        let mut bad = good.to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(Chunk::decode(&bad.into()).is_err(), "bit {bit}");
    }
}

#[test]
fn a_cut_chunk_says_how_much_is_missing() {
    let mut builder = builder(BodyKind::Text);
    builder.push(1, b"one");
    let good = whole(&builder.finish().unwrap());
    for end in 0..good.len() {
        let Err(ChunkError::Short { needed, found }) = Chunk::decode(&good.slice(..end)) else { panic!("at {end}") };
        assert_eq!(found, end as u64);
        assert!(needed > found && needed <= good.len() as u64);
    }
    let mut more = good.to_vec();
    more.extend_from_slice(b"the next chunk");
    assert_eq!(Chunk::decode(&more.into()), Chunk::decode(&good));
}

#[test]
fn other_files_and_later_versions_are_named() {
    assert_eq!(Chunk::decode_meta(&[0; 100]).unwrap_err(), ChunkError::Magic { found: 0 });
    let mut later = whole(&{
        let mut builder = builder(BodyKind::Text);
        builder.push(1, b"one");
        builder.finish().unwrap()
    })
    .to_vec();
    later[4] = 3;
    assert_eq!(Chunk::decode(&later.into()), Err(ChunkError::Version { found: 3, known: 2 }));
}

/// Three records, of 2, 0 and 3 bytes, at 5, -7 and 6.
fn three() -> Chunk {
    let mut builder = ChunkBuilder::arrived(BodyKind::Json, "t".into(), 1);
    for (time, body) in [(5, &b"{}"[..]), (-7, b""), (6, b"{ }")] {
        builder.push(time, body);
    }
    builder.finish().unwrap()
}

fn of_o(partition: &str, part: Option<Part>) -> Route {
    Route { output: "o".into(), partition: partition.into(), part }
}

/// By hand, as above.
#[test]
fn a_route_that_takes_a_part_is_written_as_the_layout_describes() {
    let chunk = three();
    let part = chunk.part(RecordSet::of([0, 2]).unwrap());
    let bytes = whole(&chunk.with_routes(vec![of_o("p", Some(part)), of_o("", None)]));
    let mut routes = b"\x02\0\0\0".to_vec();
    // Record 0; then one left out, and record 2.
    routes.extend_from_slice(b"\x01\0\0\0o\x01\0\0\0p\x02\0\0\0\x00\x02");
    routes.extend_from_slice(b"\x05\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0");
    let alone = b"\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x02\0\0\0\x06\0\0\0{}\n{ }\n";
    routes.extend_from_slice(&crc32c_bitwise(alone).to_le_bytes());
    routes.extend_from_slice(b"\x01\0\0\0o\0\0\0\0\0\0\0\0");
    assert_eq!(bytes[4..6], [2, 0]);
    assert_eq!(bytes[53..53 + routes.len()], routes);
}

#[test]
fn a_part_that_the_columns_do_not_bear_out_is_refused_although_the_checksums_agree() {
    let chunk = three();
    let part = chunk.part(RecordSet::of([1, 2]).unwrap());
    assert_eq!((part.body_bytes, part.first_ns, part.last_ns), (3, -7, 6));
    let decode = |part: Part| Chunk::decode(&whole(&chunk.clone().with_routes(vec![of_o("", Some(part))])));
    assert!(decode(part.clone()).is_ok());
    let refused = |part| assert_eq!(decode(part), Err(ChunkError::Field("part that a route takes")));
    refused(Part { body_bytes: 4, ..part.clone() });
    refused(Part { first_ns: -8, ..part.clone() });
    refused(Part { last_ns: 5, ..part.clone() });
    refused(Part { records: RecordSet::of([0, 2]).unwrap(), ..part.clone() });
    refused(Part { records: RecordSet::of([1, 3]).unwrap(), ..part });
}

#[test]
fn columns_that_do_not_fit_are_refused_although_the_checksums_agree() {
    let mut builder = builder(BodyKind::Text);
    builder.push(1, b"one");
    builder.push(2, b"two");
    let good = builder.finish().unwrap();
    let with_columns = |times: [i64; 2], ends: [u32; 2]| {
        let mut columns = Vec::new();
        columns.extend(times.iter().flat_map(|time| time.to_le_bytes()));
        columns.extend(ends.iter().flat_map(|end| end.to_le_bytes()));
        let content_crc = layout::crc32c(&[&columns, &good.bodies]);
        Chunk::decode(&whole(&Chunk { columns: columns.into(), content_crc, ..good.clone() }))
    };
    let ends = Err(ChunkError::Field("column of record ends"));
    assert_eq!(with_columns([1, 2], [3, 7]), Ok(good.clone()));
    assert_eq!(with_columns([1, 2], [7, 3]), ends);
    assert_eq!(with_columns([1, 2], [3, 3]), ends);
    assert_eq!(with_columns([1, 2], [2, 7]), ends);
    assert_eq!(with_columns([1, 2], [3, 8]), ends);
    assert_eq!(with_columns([1, 2], [3, u32::MAX]), ends);
    assert_eq!(with_columns([1, 3], [3, 7]), Err(ChunkError::Field("range of record times")));
}

/// As the journal reads, from an encoded chunk.
fn read_from(bytes: &[u8]) -> impl Fn(u64, usize) -> Result<Vec<u8>, ()> {
    move |offset, length| bytes.get(offset as usize..).and_then(|rest| rest.get(..length)).map(<[u8]>::to_vec).ok_or(())
}

/// 400 records of 100 bytes and more; each 20th, and the last 3, are wanted.
fn scattered(one_time: bool) -> (Chunk, Part) {
    let mut builder = builder(BodyKind::Text);
    for n in 0..400 {
        builder.push(if one_time { 7 } else { 1_000 - n }, format!("{n:0100}").as_bytes());
    }
    let chunk = builder.finish().unwrap();
    let part = chunk.part(RecordSet::of((0..400).filter(|n| n % 20 == 3 || *n > 396)).unwrap());
    let route = of_o("p", Some(part.clone()));
    (chunk.with_routes(vec![of_o("", None), route]), part)
}

#[test]
fn a_small_part_is_read_without_the_rest() {
    for one_time in [false, true] {
        let (chunk, part) = scattered(one_time);
        let bytes = whole(&chunk);
        let bytes_read = std::cell::Cell::new(0);
        let counting = |offset, length| {
            bytes_read.set(bytes_read.get() + length);
            read_from(&bytes)(offset, length)
        };
        let found = Chunk::read_part(chunk.meta(), &part, counting).unwrap().unwrap();
        assert_eq!(found, chunk.only(&part));
        assert_eq!(found.record(22).unwrap().body, format!("{:0100}", 399).as_bytes());
        // Columns of at most 4,800 bytes, and what lies between two that are wanted.
        assert!(bytes_read.get() < bytes.len(), "{bytes_read:?} of {}", bytes.len());
    }
}

#[test]
fn a_part_that_is_most_of_its_chunk_is_not_read_by_itself() {
    let chunk = three();
    let part = chunk.part(RecordSet::of([0, 2]).unwrap());
    assert_eq!(Chunk::read_part(chunk.meta(), &part, |_, _| Err(())), Ok(None));
}

#[test]
fn a_part_read_by_itself_is_good_or_none_whatever_is_damaged() {
    let (chunk, part) = scattered(false);
    let good = whole(&chunk);
    let only = chunk.only(&part);
    let mut noticed = 0;
    for at in (0..good.len()).step_by(7) {
        let mut bad = good.to_vec();
        bad[at] ^= 0x41;
        match Chunk::read_part(chunk.meta(), &part, read_from(&bad)) {
            Ok(Some(found)) => assert_eq!(found, only, "byte {at}"),
            Ok(None) | Err(()) => noticed += 1,
        }
    }
    // 23 bodies of 100 bytes, and their times and ends.
    assert!(noticed > 23 * 100 / 7, "{noticed}");
    for end in (0..good.len()).step_by(11) {
        let found = Chunk::read_part(chunk.meta(), &part, read_from(&good[..end]));
        assert!(matches!(found, Err(()) | Ok(None)));
    }
}

fn chunks() -> impl Strategy<Value = Chunk> {
    let body = prop::collection::vec(any::<u8>(), 0..20);
    let records = prop::collection::vec((prop_oneof![Just(3_i64), any::<i64>()], body), 1..20);
    let some = prop::collection::vec(any::<bool>(), 20);
    let routes = prop::collection::vec((".{0,5}", ".{0,5}", prop::option::of(some)), 0..4);
    let positions = prop::collection::vec((".{0,5}", ".{0,5}", prop::collection::vec(any::<u8>(), 0..9)), 0..3);
    (any::<bool>(), ".{0,9}", records, routes, positions).prop_map(|(json, tag, records, routes, positions)| {
        let kind = if json { BodyKind::Json } else { BodyKind::Text };
        let mut builder = ChunkBuilder::arrived(kind, tag.into(), 9);
        for (time, body) in records {
            builder.push(time, &body);
        }
        for (source, key, value) in positions {
            builder.position(Position { source: source.into(), key, value });
        }
        let chunk = builder.finish().unwrap();
        let part = |wanted: Vec<bool>| {
            let numbers = (0..chunk.meta().records).zip(wanted).filter_map(|(n, wanted)| wanted.then_some(n));
            RecordSet::of(numbers).map(|records| chunk.part(records))
        };
        let route = |(output, partition, wanted): (String, String, Option<Vec<bool>>)| Route {
            output: output.into(),
            partition: partition.into(),
            part: wanted.and_then(part),
        };
        let routes = routes.into_iter().map(route).collect();
        chunk.with_routes(routes)
    })
}

proptest! {
    #[test]
    fn a_decoded_chunk_is_the_one_that_was_encoded(chunk in chunks()) {
        let bytes = whole(&chunk);
        prop_assert_eq!(bytes.len() as u64, chunk.encoded_len());
        prop_assert_eq!(Chunk::decode_meta(&bytes), Ok((chunk.meta().as_ref().clone(), chunk.encoded_len())));
        prop_assert_eq!(Chunk::decode(&bytes), Ok(chunk));
    }

    #[test]
    fn a_range_is_the_same_as_skipping_and_taking(chunk in chunks(), first in 0_u32..25, count in 0_u32..25) {
        let expected: Vec<_> = chunk.iter().skip(first as usize).take(count as usize).collect();
        prop_assert_eq!(chunk.range(first, count).len(), expected.len());
        let span: Vec<u8> = expected.iter().flat_map(|record| [record.body, b"\n"].concat()).collect();
        prop_assert_eq!(&chunk.bodies()[chunk.span(first, count)], &span);
        prop_assert_eq!(chunk.range(first, count).collect::<Vec<_>>(), expected);
    }

    /// Against the plain way: a chunk built of the records that are wanted.
    #[test]
    fn a_part_is_as_a_chunk_of_those_records_alone(chunk in chunks(), wanted in prop::collection::vec(any::<bool>(), 20)) {
        let numbers: Vec<u32> = (0..chunk.meta().records).zip(wanted).filter_map(|(n, take)| take.then_some(n)).collect();
        let mut builder = ChunkBuilder::arrived(chunk.meta().kind, chunk.meta().tag.clone(), chunk.meta().arrival_ns);
        for record in numbers.iter().map(|n| chunk.record(*n).unwrap()) {
            builder.push(record.time_ns, record.body);
        }
        let Some(records) = RecordSet::of(numbers) else { return Ok(()) };
        let (part, expected) = (chunk.part(records), builder.finish().unwrap());
        let meta = expected.meta();
        prop_assert_eq!((part.body_bytes, part.first_ns, part.last_ns), (meta.body_bytes, meta.first_ns, meta.last_ns));
        let only = chunk.only(&part);
        prop_assert_eq!(only.meta(), meta);
        if let Some(found) = Chunk::read_part(chunk.meta(), &part, read_from(&whole(&chunk))).unwrap() {
            prop_assert_eq!(&found, &only);
        }
        prop_assert_eq!(only.iter().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        prop_assert_eq!(Chunk::decode(&whole(&only)), Ok(only));
    }

    #[test]
    fn any_bytes_decode_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Chunk::decode(&bytes.into()).is_err());
    }

    /// The checksums are made good again, so that the fields behind them are reached.
    #[test]
    fn mutated_chunks_decode_without_panic(
        chunk in chunks(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = whole(&chunk).to_vec();
        let header = layout::header_bytes(chunk.meta());
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        let content = crc32c_bitwise(&bytes[header..]);
        bytes[12..16].copy_from_slice(&content.to_le_bytes());
        let crc = crc32c_bitwise(&bytes[..header - 4]);
        bytes[header - 4..header].copy_from_slice(&crc.to_le_bytes());
        if let Ok(decoded) = Chunk::decode(&bytes.into()) {
            prop_assert_eq!(decoded.iter().len(), decoded.meta().records as usize);
            prop_assert_eq!(decoded.iter().count(), decoded.meta().records as usize);
            for part in decoded.meta().routes.iter().filter_map(|route| route.part.as_ref()) {
                prop_assert_eq!(decoded.only(part).iter().count(), part.records.count() as usize);
            }
        }
    }

    #[test]
    fn lines_are_those_of_a_plain_split(block in "[ab\r\n]{0,40}", before in "[a\n]{0,5}") {
        let mut builder = builder(BodyKind::Text);
        let taken = builder.push_lines(1, before.as_bytes());
        prop_assert_eq!(taken, before.rfind('\n').map_or(0, |last| last + 1));
        let mut expected: Vec<String> = before[..taken].split_terminator('\n').map(str::to_owned).collect();
        let taken = builder.push_lines(1, block.as_bytes());
        let lines = block[..taken].split_terminator('\n');
        expected.extend(lines.map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned()));
        prop_assert!(!block[taken..].contains('\n'));
        let chunk = builder.finish();
        let found = chunk.iter().flat_map(|chunk| bodies(chunk));
        prop_assert_eq!(found.map(|body| String::from_utf8(body.to_vec()).unwrap()).collect::<Vec<_>>(), expected);
    }
}
