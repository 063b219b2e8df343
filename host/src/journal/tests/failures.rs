//! A disk that refuses to write or to sync.

use std::sync::mpsc;

use super::*;
use crate::journal::layout::{Frame, SegmentHeader};

#[test]
fn after_a_failed_sync_nothing_of_the_group_is_there_and_the_journal_recovers_by_itself() {
    let place = Place::new();
    let (journal, _) = place.open();
    append(&journal, &body(1, 2_000)).unwrap();
    journal.shared.faults.syncs.store(1, Ordering::SeqCst);
    let condition = journal.condition();
    assert!(matches!(append(&journal, &body(2, 2_000)), Err(AppendError::Io(_))));
    assert!(matches!(*condition.borrow(), Condition::Failed(_)));
    until_writable(&journal);
    let id = append(&journal, &body(3, 2_000)).unwrap();
    assert_eq!(id, 3, "the refused chunk's id is not used again");
    assert_eq!((read(&journal, 1), read(&journal, 3)), (body(1, 2_000), body(3, 2_000)));
    assert_eq!(place.segments().len(), 2, "the failed segment is not written to again");

    let copy = place.crash(&journal);
    let (again, recovery) = copy.open();
    nothing_wrong(&recovery);
    assert_eq!(ids(&recovery), [1, 3]);
    assert_eq!(append(&again, b"on").unwrap(), 4);
    again.close();
    journal.release(&[ChunkId(1)]);
    until("the failed segment is gone", || place.segments().len() == 1);
    settle(&journal);
    assert_eq!(place.spares(), 0, "a file that failed is not used again");
}

#[test]
fn a_refused_group_stays_away_even_where_the_disk_brings_the_failed_segment_back() {
    let place = Place::new();
    let (journal, _) = place.open();
    append(&journal, b"kept").unwrap();
    let segment = place.segments()[0].clone();
    let mut with_it = std::fs::read(&segment).unwrap();
    journal.shared.faults.syncs.store(1, Ordering::SeqCst);
    append(&journal, b"refused").unwrap_err();
    until_writable(&journal);

    // As if the cut had never reached the disk, while the refused group did.
    let header = SegmentHeader::decode(&with_it).unwrap();
    let first = Frame::decode(&with_it[4096..], header.generation, Some(header.salt)).unwrap();
    let (head, bodies) = chunk(b"refused").encode();
    let frame = Frame { id: 2, length: (head.len() + bodies.len()) as u64, ..first };
    let refused = [frame.encode().to_vec(), head.to_vec(), bodies.to_vec()].concat();
    let at = 4096 + first.span() as usize;
    with_it[at..at + refused.len()].copy_from_slice(&refused);
    let copy = place.crash(&journal);
    std::fs::write(copy.journal().join(segment.file_name().unwrap()), &with_it).unwrap();
    let (_again, recovery) = copy.open();
    nothing_wrong(&recovery);
    assert_eq!(ids(&recovery), [1]);
}

#[test]
fn where_no_new_segment_can_be_made_either_the_journal_keeps_trying() {
    let place = Place::new();
    let (journal, _) = place.open();
    append(&journal, b"kept").unwrap();
    journal.shared.faults.syncs.store(1, Ordering::SeqCst);
    journal.shared.faults.makes.store(3, Ordering::SeqCst);
    append(&journal, b"refused").unwrap_err();
    let copy = place.crash_now();
    assert_eq!(read(&journal, 1), b"kept");
    assert!(matches!(append(&journal, b"refused, too"), Err(AppendError::Io(_))));
    until_writable(&journal);
    append(&journal, b"taken").unwrap();
    journal.close();
    assert_eq!(ids(&place.open().1), [1, 3]);
    assert_eq!(ids(&copy.open().1), [1], "a crash before there was a new segment does not bring it back");
}

#[test]
fn what_was_queued_behind_a_refused_chunk_is_refused_with_it() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.journal(), &place.quarantine(), small()).unwrap();
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    journal.start(Box::new(move |_| {
        entered.send(()).unwrap();
        let _ = may_leave.recv();
    }));
    let first = journal.append(chunk(b"first"));
    has_entered.recv().unwrap();
    // More than one group waits now, all of it behind the one that will fail.
    let behind: Vec<_> = (0..400).map(|seed| journal.append(chunk(&body(seed, 10)))).collect();
    journal.shared.faults.syncs.store(1, Ordering::SeqCst);
    drop(leave);
    assert!(first.blocking_recv().unwrap().is_ok());
    for waits in behind {
        assert!(matches!(waits.blocking_recv().unwrap(), Err(AppendError::Io(_))));
    }
    journal.close();
    assert_eq!(ids(&place.open().1), [1]);
}

#[test]
fn a_panic_of_whoever_listens_leaves_nobody_waiting() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.journal(), &place.quarantine(), small()).unwrap();
    journal.start(Box::new(|_| panic!("on purpose")));
    let _ = journal.append(chunk(b"x")).blocking_recv();
    until("appends are refused", || append_or_gone(&journal));
    assert!(matches!(*journal.condition().borrow(), Condition::Failed(_)));
    journal.close();
}

fn append_or_gone(journal: &Journal) -> bool {
    matches!(journal.append(chunk(b"y")).blocking_recv(), Ok(Err(_)))
}
