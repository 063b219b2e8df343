//! Power cuts: any sectors of the group that was under way reach the disk, and any do not.

use std::collections::BTreeMap;
use std::ffi::OsString;

use proptest::prelude::*;

use super::*;

type Files = BTreeMap<OsString, Vec<u8>>;

const SECTOR: usize = 512;

fn files_of(place: &Place) -> Files {
    let file = |file: std::fs::DirEntry| (file.file_name(), std::fs::read(file.path()).unwrap());
    std::fs::read_dir(place.journal()).unwrap().map(|entry| file(entry.unwrap())).collect()
}

/// Of the sectors that the group changed, those of `arrived` are on the disk. What was written for a new segment is synced before the
/// group, and so is there.
fn cut(before: &Files, after: &Files, arrived: &[bool]) -> Files {
    let mut arrived = arrived.iter().cycle();
    let newest = after.keys().filter(|name| name.to_str().unwrap().ends_with(".seg")).max().unwrap();
    let mut disk = after.clone();
    let file = disk.get_mut(newest).unwrap();
    let old = before.get(newest).cloned().unwrap_or_else(|| {
        let mut new = file.clone();
        new[4096 + 48..].fill(0);
        new
    });
    for (now, then) in file.chunks_mut(SECTOR).zip(old.chunks(SECTOR)) {
        if now != then && !arrived.next().unwrap() {
            now.copy_from_slice(then);
        }
    }
    disk
}

fn run(committed: &[usize], under_way: &[usize], arrived: &[bool]) {
    let place = Place::new();
    let (journal, _) = place.open();
    for (n, size) in committed.iter().enumerate() {
        append(&journal, &body(n as u64 + 1, *size)).unwrap();
    }
    let before = files_of(&place.crash(&journal));
    journal.close();

    // The same again from the crash, with one more group.
    let again = Place::new();
    let write = |files: &Files| {
        std::fs::create_dir_all(again.journal()).unwrap();
        for (name, bytes) in files {
            std::fs::write(again.journal().join(name), bytes).unwrap();
        }
    };
    write(&before);
    let (journal, _) = Journal::open(&again.journal(), &again.quarantine(), small()).unwrap();
    let first = committed.len() as u64 + 1;
    let waits: Vec<_> =
        (first..).zip(under_way).map(|(seed, size)| journal.append(chunk(&body(seed, *size)))).collect();
    journal.start(Box::new(|_| {}));
    let given: Vec<_> = waits.into_iter().map(|waits| waits.blocking_recv().unwrap().unwrap().0).collect();
    assert_eq!(given, (first..first + under_way.len() as u64).collect::<Vec<_>>());
    let after = files_of(&again.crash(&journal));
    journal.close();

    write(&cut(&before, &after, arrived));
    let (journal, recovery) = again.open();
    let found = ids(&recovery);
    for (id, size) in (1..).zip(committed) {
        assert!(found.contains(&id), "chunk {id} was acknowledged and is gone");
        assert_eq!(read(&journal, id), body(id, *size));
    }
    for id in &found {
        let size = committed.iter().chain(under_way).nth(*id as usize - 1).unwrap();
        assert_eq!(read(&journal, *id), body(*id, *size));
    }
    assert!(recovery.quarantined.iter().all(|one| one.id.is_none_or(|id| id.0 >= first)));
    assert!(recovery.cut.iter().all(|cut| cut.segment == *again.segments().last().unwrap()));
    let id = append(&journal, b"on").unwrap();
    assert!(id >= first && found.iter().all(|found| *found < id));
    journal.close();
    let (_journal, recovery) = again.open();
    nothing_wrong(&recovery);
    assert_eq!(ids(&recovery), [found, vec![id]].concat());
}

#[test]
fn a_power_cut_takes_nothing_that_was_acknowledged() {
    let cases = std::env::var("WHARF_JOURNAL_MODEL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24);
    let config =
        ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 300, ..ProptestConfig::default() };
    let committed = prop::collection::vec(0_usize..9_000, 0..20);
    let under_way = prop::collection::vec(0_usize..5_000, 1..10);
    let arrived = prop_oneof![
        prop::collection::vec(any::<bool>(), 61),
        prop::collection::vec(prop::bool::weighted(0.95), 61),
        prop::collection::vec(prop::bool::weighted(0.05), 61),
    ];
    proptest!(config, |(committed in committed, under_way in under_way, arrived in arrived)| {
        run(&committed, &under_way, &arrived);
    });
}
