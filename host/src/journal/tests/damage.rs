//! Bytes that change behind the journal's back.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

use super::*;
use crate::journal::layout::{FRAME_BYTES, Frame, HEADER_BYTES, Kind, SegmentHeader, span};
use crate::journal::{Quarantined, ReadError};
use crate::record::{Portion, RecordSet, Route};

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

fn write(path: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

fn flip(path: &Path, at: u64) {
    let byte = bytes(path)[at as usize];
    write(path, at, &[byte ^ 0x20]);
}

fn header(path: &Path) -> SegmentHeader {
    SegmentHeader::decode(&bytes(path)).unwrap()
}

/// The chunk frames of a segment, by walking from the first: id, offset, length.
fn frames(path: &Path) -> Vec<(u64, u64, u64)> {
    let (all, header) = (bytes(path), header(path));
    let mut at = HEADER_BYTES;
    let mut frames = Vec::new();
    while let Some(frame) = Frame::decode(&all[at as usize..], header.generation, Some(header.salt)) {
        if frame.kind != Kind::Chunk {
            break;
        }
        frames.push((frame.id, at, frame.length));
        at += frame.span();
    }
    frames
}

/// Five chunks of 1,000 bytes in one segment.
fn five() -> (Place, Journal) {
    let place = Place::new();
    let (journal, _) = place.open();
    for seed in 1..=5 {
        append(&journal, &body(seed, 1_000)).unwrap();
    }
    (place, journal)
}

fn all_but(gone: u64, journal: &Journal) {
    for id in (1..=5).filter(|id| *id != gone) {
        assert_eq!(read(journal, id), body(id, 1_000), "chunk {id}");
    }
}

fn only(recovery: &Recovery) -> &Quarantined {
    assert_eq!(recovery.quarantined.len(), 1, "{recovery:?}");
    &recovery.quarantined[0]
}

/// Opens again after the first opening put things right.
fn quiet_next_time(place: &Place) {
    let (journal, recovery) = place.open();
    nothing_wrong(&recovery);
    journal.close();
}

#[test]
fn a_flipped_byte_in_the_middle_sets_one_chunk_aside_and_the_rest_goes_on() {
    let (place, journal) = five();
    journal.close();
    let segment = &place.segments()[0];
    let (id, at, length) = frames(segment)[2];
    flip(segment, at + FRAME_BYTES + length - 500);
    let damaged = bytes(segment)[at as usize..(at + span(length)) as usize].to_vec();

    let (journal, recovery) = place.open();
    assert_eq!(journal.usage().quarantined_records, 1);
    assert_eq!(ids(&recovery), [1, 2, 4, 5]);
    assert_eq!(recovery.cut, []);
    let aside = only(&recovery);
    assert_eq!(aside.id, Some(ChunkId(id)));
    assert_eq!(&*aside.meta.as_ref().unwrap().tag, "app");
    assert!(aside.reason.contains("content is damaged"), "{}", aside.reason);
    assert_eq!(bytes(&aside.file), damaged);
    let note = std::fs::read_to_string(aside.file.with_extension("txt")).unwrap();
    for part in [segment.to_str().unwrap(), "chunk: 3", &format!("offset: {at}"), &aside.reason] {
        assert!(note.contains(part), "{part} in {note}");
    }
    all_but(3, &journal);
    assert!(!journal.contains(ChunkId(3)));
    assert_eq!(append(&journal, b"on").unwrap(), 6);
    journal.close();
    quiet_next_time(&place);
}

#[test]
fn a_damaged_frame_header_is_skipped_to_the_next_frame() {
    let (place, journal) = five();
    journal.close();
    let segment = &place.segments()[0];
    let (_, at, length) = frames(segment)[1];
    flip(segment, at + 33);
    let (journal, recovery) = place.open();
    let aside = only(&recovery);
    assert_eq!((aside.id, aside.file.metadata().unwrap().len()), (None, span(length)));
    all_but(2, &journal);
    journal.close();
    quiet_next_time(&place);
}

#[test]
fn damage_to_the_last_chunk_after_a_clean_stop_is_damage_and_not_a_torn_tail() {
    let (place, journal) = five();
    journal.close();
    let segment = &place.segments()[0];
    let (_, at, length) = frames(segment)[4];
    flip(segment, at + FRAME_BYTES + length - 1);
    let (journal, recovery) = place.open();
    assert_eq!(only(&recovery).id, Some(ChunkId(5)));
    assert_eq!(recovery.cut, []);
    all_but(5, &journal);
    assert_eq!(append(&journal, b"on").unwrap(), 6);
    journal.close();
    quiet_next_time(&place);
}

#[test]
fn a_torn_last_group_is_cut_and_its_id_is_not_given_again() {
    let (place, journal) = five();
    let copy = place.crash(&journal);
    let segment = &copy.segments()[0];
    let (_, at, length) = frames(segment)[4];
    write(segment, at + FRAME_BYTES + 600, &[0; 300]);
    let (journal, recovery) = copy.open();
    assert_eq!(recovery.quarantined, []);
    assert_eq!(recovery.cut, [super::super::Cut { segment: segment.clone(), offset: at, bytes: span(length) }]);
    assert_eq!(ids(&recovery), [1, 2, 3, 4]);
    all_but(5, &journal);
    assert_eq!(append(&journal, &body(6, 1_000)).unwrap(), 6);
    let again = copy.crash(&journal);
    let (_journal, recovery) = again.open();
    nothing_wrong(&recovery);
    assert_eq!(ids(&recovery), [1, 2, 3, 4, 6]);
}

#[test]
fn a_shortened_file_loses_only_what_was_behind_its_new_end() {
    let (place, journal) = five();
    let copy = place.crash(&journal);
    let segment = &copy.segments()[0];
    let (_, at, _) = frames(segment)[4];
    OpenOptions::new().write(true).open(segment).unwrap().set_len(at + 100).unwrap();
    let (journal, recovery) = copy.open();
    assert_eq!((recovery.cut.len(), recovery.cut[0].offset), (1, at));
    assert!((90..=100).contains(&recovery.cut[0].bytes), "up to the last byte that is not zero");
    all_but(5, &journal);
    append(&journal, b"on").unwrap();
    assert_eq!(copy.segments().len(), 2, "a file that is not whole is not written to");
    journal.close();
    quiet_next_time(&copy);
}

#[test]
fn a_zeroed_tail_is_cut_and_said() {
    let (place, journal) = five();
    let copy = place.crash(&journal);
    let segment = &copy.segments()[0];
    let (_, at, _) = frames(segment)[3];
    write(segment, at, &vec![0; (65536 - at) as usize]);
    let (journal, recovery) = copy.open();
    assert_eq!((recovery.cut.len(), recovery.cut[0].offset, recovery.cut[0].bytes), (1, at, 0));
    assert_eq!(recovery.quarantined, []);
    assert_eq!(ids(&recovery), [1, 2, 3]);
    journal.close();
    quiet_next_time(&copy);
}

#[test]
fn a_zeroed_tail_of_an_older_segment_is_damage() {
    let (place, journal) = five();
    append(&journal, &body(6, 60_000)).unwrap();
    let copy = place.crash(&journal);
    let segment = &copy.segments()[0];
    let (_, at, _) = frames(segment)[3];
    write(segment, at, &vec![0; (65536 - at) as usize]);
    let (journal, recovery) = copy.open();
    assert_eq!(recovery.cut, []);
    assert!(only(&recovery).reason.contains("end of the segment is missing"));
    assert_eq!(ids(&recovery), [1, 2, 3, 6]);
    journal.close();
    quiet_next_time(&copy);
}

#[test]
fn pages_of_a_torn_group_that_arrived_out_of_order_are_told_apart_from_damage() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.journal(), &place.quarantine(), small()).unwrap();
    journal.start(Box::new(|_| {}));
    append(&journal, &body(1, 1_000)).unwrap();
    let before = place.crash(&journal);
    append(&journal, &body(2, 1_000)).unwrap();
    append(&journal, &body(3, 1_000)).unwrap();
    let after = place.crash(&journal);
    // The first page of the group never arrived: the old end mark stands where its first frame should.
    let segment = &after.segments()[0];
    let (_, second, length) = frames(segment)[1];
    let old = bytes(&before.segments()[0]);
    write(segment, second, &old[second as usize..(second + span(length)) as usize]);
    let (journal, recovery) = after.open();
    assert_eq!(recovery.quarantined, []);
    assert_eq!(recovery.cut.len(), 1);
    assert_eq!((recovery.cut[0].offset, recovery.cut[0].bytes), (second, span(length)));
    assert_eq!(ids(&recovery), [1, 3], "what is whole is kept, though nobody was told of it");
    assert_eq!(append(&journal, b"on").unwrap(), 4);
    journal.close();
    quiet_next_time(&after);
}

#[test]
fn a_vanished_segment_takes_only_its_own_chunks() {
    let place = Place::new();
    let (journal, _) = place.open();
    for seed in 1..=6 {
        append(&journal, &body(seed, 25_000)).unwrap();
    }
    journal.close();
    std::fs::remove_file(&place.segments()[1]).unwrap();
    let (journal, recovery) = place.open();
    assert_eq!(ids(&recovery), [1, 2, 5, 6]);
    assert_eq!(read(&journal, 5), body(5, 25_000));
    assert_eq!(append(&journal, b"on").unwrap(), 7);
}

#[test]
fn frames_of_an_earlier_life_of_a_recycled_file_are_never_taken() {
    let place = Place::new();
    let (journal, _) = place.open();
    for seed in 1..=18 {
        append(&journal, &body(seed, 10_000)).unwrap();
    }
    journal.release(&(1..=18).map(ChunkId).collect::<Vec<_>>());
    until("there are spares", || place.spares() == 2);
    settle(&journal);
    // The active one is filled up, then a recycled one is used a little.
    while place.spares() == 2 {
        append(&journal, &body(99, 10_000)).unwrap();
    }
    let copy = place.crash(&journal);
    let newest = copy.segments().pop().unwrap();
    let stale = memchr::memmem::find_iter(&bytes(&newest), b"WFRM").count();
    assert!(stale > 3, "the file does hold old frames: {stale}");
    assert_eq!(frames(&newest).len(), 1);
    let (journal, recovery) = copy.open();
    nothing_wrong(&recovery);
    let last = ids(&recovery).pop().unwrap();
    assert!(ids(&recovery).iter().all(|id| *id > 12), "{:?}", ids(&recovery));
    assert_eq!(read(&journal, last), body(99, 10_000));
}

#[test]
fn a_damaged_segment_header_costs_no_chunk() {
    let (place, journal) = five();
    journal.close();
    let segment = &place.segments()[0];
    write(segment, 0, &[0xff; 4096]);
    let (journal, recovery) = place.open();
    assert_eq!(ids(&recovery), [1, 2, 3, 4, 5]);
    assert!(only(&recovery).reason.contains("header is damaged"));
    all_but(0, &journal);
    assert_eq!(append(&journal, b"on").unwrap(), 6);
    journal.close();
    quiet_next_time(&place);
}

#[test]
fn a_segment_of_rubbish_is_set_aside_whole() {
    let (place, journal) = five();
    journal.close();
    let rubbish = body(7, 9_000);
    std::fs::write(place.journal().join("0000000000000000.seg"), &rubbish).unwrap();
    let (journal, recovery) = place.open();
    assert_eq!(bytes(&only(&recovery).file), rubbish);
    assert_eq!(ids(&recovery), [1, 2, 3, 4, 5]);
    assert_eq!(place.segments().len(), 1);
    journal.close();
    quiet_next_time(&place);
}

#[test]
fn a_chunk_damaged_while_the_journal_is_open_is_set_aside_when_it_is_read() {
    let (place, journal) = five();
    let segment = &place.segments()[0];
    let (_, at, length) = frames(segment)[1];
    flip(segment, at + FRAME_BYTES + length / 2);
    let live = journal.usage().live_bytes;
    let Err(ReadError::Corrupt { id: ChunkId(2), file, .. }) = journal.read(ChunkId(2)) else {
        panic!("damage went unnoticed")
    };
    assert_eq!(file.metadata().unwrap().len(), span(length));
    assert!(matches!(journal.read(ChunkId(2)), Err(ReadError::Missing(_))));
    assert_eq!(journal.usage().live_bytes, live - length);
    assert_eq!(journal.usage().quarantined_records, 1);
    all_but(2, &journal);
    journal.close();
    let (_journal, recovery) = place.open();
    nothing_wrong(&recovery);
    assert_eq!(ids(&recovery), [1, 3, 4, 5]);
}

#[test]
fn a_small_portion_is_read_although_the_rest_of_its_chunk_is_damaged_and_a_damaged_one_never() {
    let place = Place::new();
    let (journal, _) = place.open();
    let mut builder = ChunkBuilder::new(BodyKind::Text, "app".into());
    for seed in 0..40 {
        builder.push(seed, &body(seed as u64 + 1, 1_000));
    }
    let chunk = builder.finish().unwrap();
    let few = [7, 20, 39];
    let route = |partition: &str, numbers: Vec<u32>| Route {
        output: "a".into(),
        partition: partition.into(),
        part: RecordSet::of(numbers).map(|records| chunk.part(records)),
    };
    let routes = vec![route("few", few.to_vec()), route("many", (0..40).filter(|n| !few.contains(n)).collect())];
    let chunk = chunk.with_routes(routes);
    let meta = chunk.meta().clone();
    let id = journal.append(chunk).blocking_recv().unwrap().unwrap();
    let portions: Vec<_> = Portion::each(id, &meta).map(|(_, portion)| portion).collect();

    let path = &place.segments()[0];
    let at = |text: &[u8]| bytes(path).windows(text.len()).position(|window| window == text).unwrap() as u64;
    flip(path, at(&body(12, 1_000)) + 500);
    let read = journal.read_portion(&portions[0]).unwrap();
    let bodies: Vec<_> = read.iter().map(|record| record.body.to_vec()).collect();
    assert_eq!(bodies, few.map(|n| body(u64::from(n) + 1, 1_000)));
    flip(path, at(&body(21, 1_000)) + 500);
    assert!(matches!(journal.read_portion(&portions[0]), Err(ReadError::Corrupt { .. })));
    assert!(matches!(journal.read_portion(&portions[1]), Err(ReadError::Missing(_))));
}

#[test]
fn a_chunk_damaged_in_its_frame_is_set_aside_too() {
    let (place, journal) = five();
    let segment = &place.segments()[0];
    let (_, at, _) = frames(segment)[0];
    flip(segment, at + 24);
    assert!(matches!(journal.read(ChunkId(1)), Err(ReadError::Corrupt { .. })));
    assert_eq!(journal.usage().quarantined_records, 1, "known from before, though the frame cannot tell any more");
    all_but(1, &journal);
}

#[test]
fn a_chunk_damaged_before_it_is_copied_forward_is_set_aside_and_does_not_stop_the_copying() {
    let place = Place::new();
    let (journal, _) = place.open();
    for seed in 1..=60 {
        append(&journal, &body(seed, 6_000)).unwrap();
    }
    let segment = &place.segments()[0];
    let (_, at, length) = frames(segment)[0];
    flip(segment, at + FRAME_BYTES + length / 2);
    // The first chunk of each segment stays.
    let stay: Vec<u64> = place.segments().iter().map(|segment| frames(segment)[0].0).collect();
    journal.release(&(1..=60).filter(|id| !stay.contains(id)).map(ChunkId).collect::<Vec<_>>());
    until("live chunks were copied together", || place.segments().len() <= 4);
    settle(&journal);
    assert!(matches!(journal.read(ChunkId(1)), Err(ReadError::Missing(_))));
    assert_eq!(files(&place.quarantine(), "bin").len(), 1);
    assert_eq!(journal.usage().quarantined_records, 1);
    assert_eq!(read(&journal, stay[1]), body(stay[1], 6_000));
}

#[test]
fn text_that_looks_like_a_frame_is_not_taken_for_one() {
    let place = Place::new();
    let (journal, _) = place.open();
    append(&journal, b"first").unwrap();
    // Everything about it is right but the salt, which nobody outside can know.
    let (head, bodies) = chunk(b"forged").encode();
    let generation = header(&place.segments()[0]).generation;
    let length = (head.len() + bodies.len()) as u64;
    let mut forged = Frame { kind: Kind::Chunk, generation, salt: 1, id: 77, length }.encode().to_vec();
    forged.extend_from_slice(&head);
    forged.extend_from_slice(&bodies);
    // At each of the eight alignments.
    let text: Vec<u8> = (0..8).flat_map(|pad| [vec![b'.'; pad], forged.clone()].concat()).collect();
    append(&journal, &text).unwrap();
    append(&journal, b"third").unwrap();
    journal.close();
    let segment = &place.segments()[0];
    flip(segment, frames(segment)[1].1);
    let (_journal, recovery) = place.open();
    assert_eq!(ids(&recovery), [1, 3]);
}

#[test]
fn a_segment_of_a_later_format_is_refused_and_left_alone() {
    let (place, journal) = five();
    journal.close();
    let segment = &place.segments()[0];
    let mut page = bytes(segment)[..4096].to_vec();
    page[8] = 2;
    let crc = crc_fast::crc32_iscsi(&page[..4092]).to_le_bytes();
    page[4092..].copy_from_slice(&crc);
    write(segment, 0, &page);
    let before = bytes(segment);
    let error = Journal::open(&place.journal(), &place.quarantine(), small()).err().unwrap().to_string();
    assert!(error.contains("later Wharf"), "{error}");
    assert_eq!(bytes(segment), before);
}
