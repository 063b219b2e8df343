//! The everyday: append, read, release, reopen.

use super::*;
use crate::journal::ReadError;

#[test]
fn what_was_appended_is_read_and_found_again_after_reopening() {
    let place = Place::new();
    let (journal, recovery) = place.open();
    assert!(recovery.chunks.is_empty());
    let bodies: Vec<_> = (0..40).map(|seed| body(seed, seed as usize * 331)).collect();
    let given: Vec<_> = bodies.iter().map(|body| append(&journal, body).unwrap()).collect();
    assert_eq!(given, (1..=40).collect::<Vec<_>>());
    for (id, body) in given.iter().zip(&bodies) {
        assert_eq!(&read(&journal, *id), body);
    }
    assert_eq!(journal.usage().chunks, 40);
    assert!(place.segments().len() > 1);
    journal.close();

    let (journal, recovery) = place.open();
    nothing_wrong(&recovery);
    assert_eq!(ids(&recovery), given);
    assert_eq!(&*recovery.chunks[0].1.tag, "app");
    for (id, body) in given.iter().zip(&bodies) {
        assert_eq!(&read(&journal, *id), body);
    }
    assert_eq!(append(&journal, b"next").unwrap(), 41);
}

#[test]
fn on_commit_hears_ids_ascending_and_before_whoever_waits() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.journal(), &place.quarantine(), small()).unwrap();
    // Queued before the writer starts: one group.
    let queued: Vec<_> = (0..10).map(|seed| journal.append(chunk(&body(seed, 100)))).collect();
    let (on_commit, heard) = hear();
    journal.start(on_commit);
    for (n, waits) in queued.into_iter().enumerate() {
        let id = waits.blocking_recv().unwrap().unwrap();
        assert_eq!(id.0, n as u64 + 1);
        assert!(heard.lock().unwrap().contains(&id.0));
    }
    assert_eq!(*heard.lock().unwrap(), (1..=10).collect::<Vec<_>>());
    assert_eq!(journal.usage().commits, 1);

    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let journal = journal.clone();
            std::thread::spawn(move || {
                let mut last = 0;
                for n in 0..50 {
                    let content = body(thread * 1000 + n, 700);
                    let id = append(&journal, &content).unwrap();
                    assert!(id > last);
                    last = id;
                    assert_eq!(read(&journal, id), content);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(*heard.lock().unwrap(), (1..=210).collect::<Vec<_>>());
}

#[test]
fn a_chunk_larger_than_a_segment_gets_one_of_its_own() {
    let place = Place::new();
    let (journal, _) = place.open();
    let large = body(1, 1 << 20);
    append(&journal, b"small").unwrap();
    let id = append(&journal, &large).unwrap();
    append(&journal, b"small again").unwrap();
    assert_eq!(read(&journal, id), large);
    assert_eq!(place.segments().len(), 3);
    journal.close();
    let (journal, recovery) = place.open();
    nothing_wrong(&recovery);
    assert_eq!(ids(&recovery), [1, 2, 3]);
    assert_eq!(read(&journal, id), large);
    journal.release(&[ChunkId(id)]);
    until("its segment is deleted", || place.segments().len() == 2);
    assert_eq!(place.spares(), 0);
}

#[test]
fn segments_are_recycled_and_at_most_two_wait_for_it() {
    let place = Place::new();
    let (journal, _) = place.open();
    let given: Vec<_> = (0..30).map(|seed| ChunkId(append(&journal, &body(seed, 25_000)).unwrap())).collect();
    assert_eq!(place.segments().len(), 15, "two of 25,000 bytes fit behind a header of 4 KiB, a third does not");
    journal.release(&given);
    until("all but the active are gone", || place.segments().len() == 1);
    settle(&journal);
    assert_eq!(place.spares(), 2);
    assert_eq!(journal.usage().live_bytes, 0);
    assert_eq!(journal.usage().disk_bytes, 3 * 65536);
    for seed in 0..4 {
        append(&journal, &body(seed, 25_000)).unwrap();
    }
    settle(&journal);
    assert_eq!(
        (place.segments().len(), place.spares()),
        (2, 1),
        "both spares were used, and what was active became one"
    );
}

#[test]
fn ids_never_repeat_after_everything_was_released_and_reopened() {
    let place = Place::new();
    let mut highest = 0;
    for round in 0..6 {
        let (journal, _) = place.open();
        for seed in 0..5 {
            let id = append(&journal, &body(seed, 30_000)).unwrap();
            assert!(id > highest, "round {round}: {id} after {highest}");
            highest = id;
        }
        let all: Vec<_> = (1..=highest).map(ChunkId).collect();
        journal.release(&all);
        journal.close();
        assert_eq!(place.segments().len(), 1, "only the newest is left");
    }
    assert_eq!(highest, 30);
}

#[test]
fn ids_go_on_above_what_the_caller_knows_of() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.journal(), &place.quarantine(), small()).unwrap();
    journal.raise_ids_above(ChunkId(500));
    journal.start(Box::new(|_| {}));
    assert_eq!(append(&journal, b"x").unwrap(), 501);
}

#[test]
fn a_few_live_chunks_do_not_pin_the_disk() {
    let place = Place::new();
    let (journal, _) = place.open();
    let given: Vec<_> = (0..60).map(|seed| append(&journal, &body(seed, 6_000)).unwrap()).collect();
    let before = place.segments().len();
    assert!(before >= 6);
    let (kept, gone): (Vec<u64>, Vec<u64>) = given.iter().partition(|id| *id % 10 == 0);
    journal.release(&gone.into_iter().map(ChunkId).collect::<Vec<_>>());
    until("live chunks were copied together", || place.segments().len() <= 4);
    settle(&journal);
    for id in &kept {
        assert_eq!(read(&journal, *id), body(*id - 1, 6_000));
    }
    assert_eq!(journal.usage().chunks, kept.len());

    let copy = place.crash(&journal);
    let (again, recovery) = copy.open();
    nothing_wrong(&recovery);
    for id in &kept {
        assert_eq!(read(&again, *id), body(*id - 1, 6_000));
    }
    assert!(append(&again, b"x").unwrap() > 60);
}

#[test]
fn close_commits_what_is_queued_and_refuses_more() {
    let place = Place::new();
    let (journal, _) = place.open();
    let queued: Vec<_> = (0..20).map(|seed| journal.append(chunk(&body(seed, 3_000)))).collect();
    journal.close();
    for waits in queued {
        waits.blocking_recv().unwrap().unwrap();
    }
    assert_eq!(append(&journal, b"late"), Err(AppendError::Closed));
    assert_eq!(read(&journal, 3), body(2, 3_000));
    drop(journal);
    assert_eq!(ids(&place.open().1).len(), 20);
}

#[test]
fn dropping_the_last_clone_ends_the_writer() {
    let place = Place::new();
    let (journal, _) = place.open();
    let clone = journal.clone();
    let waits = journal.append(chunk(b"x"));
    drop(journal);
    assert_eq!(append(&clone, b"y").unwrap(), 2);
    drop(clone);
    assert!(waits.blocking_recv().unwrap().is_ok());
    assert_eq!(ids(&place.open().1), [1, 2]);
}

#[test]
fn a_journal_that_never_started_refuses_what_waits_when_it_ends() {
    let place = Place::new();
    let (journal, _) = Journal::open(&place.journal(), &place.quarantine(), small()).unwrap();
    let waits = journal.append(chunk(b"x"));
    journal.close();
    assert_eq!(waits.blocking_recv().unwrap(), Err(AppendError::Closed));
}

#[test]
fn released_chunks_are_missing_and_unknown_ones_are_ignored() {
    let place = Place::new();
    let (journal, _) = place.open();
    append(&journal, b"x").unwrap();
    assert!(journal.contains(ChunkId(1)));
    journal.release(&[ChunkId(1), ChunkId(1), ChunkId(99)]);
    assert!(!journal.contains(ChunkId(1)));
    assert!(matches!(journal.read(ChunkId(1)), Err(ReadError::Missing(ChunkId(1)))));
}

#[test]
fn readers_never_see_another_chunk_while_segments_are_copied_and_recycled() {
    let place = Place::new();
    let (journal, _) = place.open();
    let newest = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let readers: Vec<_> = (0..2)
        .map(|reader| {
            let (journal, newest) = (journal.clone(), newest.clone());
            std::thread::spawn(move || {
                let mut n = reader;
                while newest.load(Ordering::SeqCst) < 600 {
                    n = (n + 7) % newest.load(Ordering::SeqCst).max(1);
                    match journal.read(ChunkId(n + 1)) {
                        Ok(chunk) => assert_eq!(body_of(&chunk), body(n + 1, 9_000)),
                        Err(ReadError::Missing(_)) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            })
        })
        .collect();
    for id in 1..=600 {
        assert_eq!(append(&journal, &body(id, 9_000)).unwrap(), id);
        newest.store(id, Ordering::SeqCst);
        if id > 20 && id % 9 != 0 {
            journal.release(&[ChunkId(id - 20)]);
        }
    }
    for reader in readers {
        reader.join().unwrap();
    }
    assert!(!place.quarantine().exists());
}

#[test]
fn a_reader_whose_segment_was_recycled_under_it_does_not_call_that_damage() {
    let place = Place::new();
    let (journal, _) = place.open();
    for seed in 1..=2 {
        append(&journal, &body(seed, 40_000)).unwrap();
    }
    let found = journal.shared.table().find(1);
    journal.release(&[ChunkId(1)]);
    until("its file is free", || place.spares() == 1);
    append(&journal, &body(3, 40_000)).unwrap();
    assert_eq!(place.spares(), 0);
    let read = super::super::reading::read_found(&journal.shared, ChunkId(1), found);
    assert!(matches!(read, Err(ReadError::Missing(_))), "{read:?}");
    assert!(!place.quarantine().exists());
}

#[test]
fn a_chunk_that_is_released_while_it_is_copied_stays_released() {
    let place = Place::new();
    let (journal, _) = place.open();
    for seed in 1..=2 {
        append(&journal, &body(seed, 40_000)).unwrap();
    }
    let mut table = journal.shared.table();
    let (from, to) = (table.place(1).unwrap(), table.place(2).unwrap());
    table.moved(1, from, to);
    assert_eq!(table.place(1), Some(to));
    table.moved(1, from, from);
    assert_eq!(table.place(1), Some(to), "it was copied from somewhere else");
    table.remove(1);
    table.moved(1, to, from);
    assert_eq!(table.place(1), None);
}
