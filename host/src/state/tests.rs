//! What the state promises, through its door.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

const OUT: &str = "archive";

fn id(n: u64) -> BatchId {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&n.to_be_bytes());
    BatchId(id)
}

fn row(number: u64, first: u64, last: u64) -> BatchRow {
    BatchRow {
        id: id(number),
        output: OUT.into(),
        partition: "".into(),
        number,
        first: ChunkId(first),
        last: ChunkId(last),
        records: 1,
        bytes: 10,
        closed_ns: 1,
    }
}

fn position(key: &str, value: &str) -> Position {
    Position { source: "app".into(), key: key.into(), value: value.into() }
}

fn open(dir: &Path) -> State {
    State::open(dir).unwrap().0
}

/// A state with batches 0 to `count` open.
fn with_batches(dir: &Path, count: u64) -> State {
    let state = open(dir);
    for n in 0..count {
        state.close_batch(&row(n, n + 1, n + 1), &[]).unwrap();
    }
    state
}

fn assign(state: &State, batch: u64) -> u64 {
    state.assign(OUT, "index", id(batch), 1).unwrap().get()
}

fn copy_dir(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(target).unwrap();
        } else if entry.file_name() != "ballast" {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A counter is never removed, so what is known of their number is known again after a restart.
#[test]
fn counters_are_counted_by_output_over_restarts_and_those_that_are_there_go_on_at_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let quota = |counters| Quota { output: Most { counters, ..Most::ANY }, tenant: Most::ANY };
    let state = with_batches(dir.path(), 2);
    let made = |state: &State, name: &str, batch, most| state.within(quota(most)).assign(OUT, name, id(batch), 1);
    made(&state, "a", 0, 2).unwrap();
    made(&state, "b", 0, 2).unwrap();
    // The same batch again is no other counter, and a batch's failure to get one makes none.
    made(&state, "a", 0, 2).unwrap();
    for _ in 0..2 {
        let error = made(&state, "c", 0, 2).unwrap_err();
        assert_eq!(error.to_string(), "there are 2 counters, and one more would pass the limit of 2");
    }
    drop(state);
    let state = open(dir.path());
    assert!(matches!(
        made(&state, "c", 0, 2),
        Err(StateError::TooManyCounters { of_tenant: false, limit: 2, current: 2 })
    ));
    assert_eq!(made(&state, "a", 1, 2).unwrap().get(), 2);
    assert_eq!(made(&state, "c", 0, 3).unwrap().get(), 1);
}

#[test]
fn a_first_open_is_new_and_a_second_is_intact() {
    let dir = tempfile::tempdir().unwrap();
    let (state, opened) = State::open(dir.path()).unwrap();
    assert_eq!(opened, Opened::New);
    drop(state);
    assert_eq!(State::open(dir.path()).unwrap().1, Opened::Intact);
}

#[test]
fn a_second_opener_is_refused_and_nothing_is_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let _held = open(dir.path());
    let Err(StateError::Store { cause, .. }) = State::open(dir.path()) else { panic!("it was opened twice") };
    assert!(cause.contains("another process"), "{cause}");
    assert!(dir.path().join("state").exists());
}

#[test]
fn batches_cursors_and_positions_come_back_after_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 3);
    state.settle_batch(OUT, id(1), &[(position("f", "7"), ChunkId(2))]).unwrap();
    state.skip_chunks(OUT, &[("tag.b".into(), ChunkId(9))], &[]).unwrap();
    drop(state);
    let loaded = open(dir.path()).load().unwrap();
    assert_eq!(loaded.batches, [row(0, 1, 1), row(2, 3, 3)]);
    assert_eq!(loaded.cursors, [(OUT.into(), "".into(), ChunkId(3)), (OUT.into(), "tag.b".into(), ChunkId(9))]);
    assert_eq!(loaded.positions, [(position("f", "7"), ChunkId(2))]);
    assert_eq!(loaded.next_numbers, [(OUT.into(), 3)]);
}

#[test]
fn a_lower_chunks_position_never_replaces_a_higher_ones() {
    let dir = tempfile::tempdir().unwrap();
    let state = open(dir.path());
    state.put_positions(&[(position("f", "new"), ChunkId(8)), (position("f", "old"), ChunkId(3))]).unwrap();
    state.put_positions(&[(position("f", "older"), ChunkId(2))]).unwrap();
    assert_eq!(state.load().unwrap().positions, [(position("f", "new"), ChunkId(8))]);
    state.delete_positions("app", &["f".into()]).unwrap();
    assert!(state.load().unwrap().positions.is_empty());
}

#[test]
fn settling_ends_a_batch_with_its_number_and_progress_and_can_be_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 2);
    assert_eq!(assign(&state, 0), 1);
    state.progress_put(OUT, id(0), "upload", Some(b"u1")).unwrap();
    state.progress_put(OUT, id(1), "upload", Some(b"u2")).unwrap();
    assert!(state.is_open(OUT, id(0)).unwrap());
    for _ in 0..2 {
        state.settle_batch(OUT, id(0), &[]).unwrap();
        assert!(!state.is_open(OUT, id(0)).unwrap());
        assert_eq!(state.progress_list(OUT, id(0), "").unwrap(), []);
    }
    assert_eq!(state.progress_list(OUT, id(1), "up").unwrap(), [("upload".into(), b"u2".to_vec())]);
    assert!(matches!(state.assign(OUT, "index", id(0), 1), Err(StateError::Invalid(_))));
    assert!(matches!(state.progress_put(OUT, id(0), "x", Some(b"")), Err(StateError::Invalid(_))));
    assert_eq!(assign(&state, 1), 2);
}

#[test]
fn a_taken_number_is_replaced_by_the_next_free_one_and_the_answer_is_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 2);
    assert_eq!(assign(&state, 0), 1);
    assert_eq!(assign(&state, 1), 2);
    assert_eq!(state.reassign(OUT, "index", id(0), 1).unwrap().get(), 3);
    assert_eq!(state.reassign(OUT, "index", id(0), 1).unwrap().get(), 3);
    assert_eq!(assign(&state, 0), 3);
    assert_eq!(state.reassign(OUT, "index", id(0), 3).unwrap().get(), 4);
    assert!(matches!(state.reassign(OUT, "index", id(0), 9), Err(StateError::Invalid(_))));
    assert!(matches!(state.reassign(OUT, "other", id(0), 1), Err(StateError::Invalid(_))));
}

#[test]
fn rows_of_one_output_are_not_seen_by_another() {
    let dir = tempfile::tempdir().unwrap();
    let state = open(dir.path());
    let set = |key: &str, value: &str| Change::Set(key.into(), value.into());
    state.apply("a", &[set("k1", "v"), set("k2", "w"), set("l", "x")]).unwrap();
    state.apply("ab", &[set("k1", "other")]).unwrap();
    assert_eq!(state.get("a", "k1").unwrap().unwrap(), b"v");
    assert_eq!(state.list("a", "k", None, 10).unwrap(), [("k1".into(), b"v".to_vec()), ("k2".into(), b"w".to_vec())]);
    assert_eq!(state.list("a", "", Some("k1"), 1).unwrap(), [("k2".into(), b"w".to_vec())]);
    assert_eq!(state.stored_bytes("a"), 3 + 3 + 2);
    state.apply("a", &[Change::Delete("k1".into()), set("l", "xyz"), Change::Delete("absent".into())]).unwrap();
    assert_eq!(state.stored_bytes("a"), 3 + 4);
    drop(state);
    let state = open(dir.path());
    assert_eq!(state.stored_bytes("a"), 3 + 4);
    assert_eq!(state.get("a", "k1").unwrap(), None);
    assert_eq!(state.get("ab", "k1").unwrap().unwrap(), b"other");
}

/// `acme/archive` begins like the operator's `acme`, and ends like globex's: what is theirs is theirs all the same.
#[test]
fn counters_rows_and_progress_of_outputs_with_one_name_are_apart_by_tenant() {
    let dir = tempfile::tempdir().unwrap();
    let state = open(dir.path());
    let outputs = ["archive", "acme", "acme/archive", "globex/archive"];
    for (n, output) in outputs.into_iter().enumerate() {
        // The same batch number, and the same batch, of each.
        state.close_batch(&BatchRow { output: output.into(), ..row(1, 1, 1) }, &[]).unwrap();
        assert_eq!(state.assign(output, "index", id(1), 1).unwrap().get(), 1, "{output}");
        for taken in 1..=n as u64 {
            assert_eq!(state.reassign(output, "index", id(1), taken).unwrap().get(), taken + 1);
        }
        state.apply(output, &[Change::Set("key".into(), output.into())]).unwrap();
        state.progress_put(output, id(1), "at", Some(output.as_bytes())).unwrap();
    }
    let check = |state: &State| {
        for (n, output) in outputs.into_iter().enumerate() {
            assert_eq!(state.assign(output, "index", id(1), 1).unwrap().get(), n as u64 + 1, "{output}");
            assert_eq!(state.list(output, "", None, 10).unwrap(), [("key".into(), output.as_bytes().to_vec())]);
            assert_eq!(state.progress_get(output, id(1), "at").unwrap().as_deref(), Some(output.as_bytes()));
            assert!(state.is_open(output, id(1)).unwrap());
        }
    };
    check(&state);
    drop(state);
    check(&open(dir.path()));
    let state = open(dir.path());
    state.settle_batch("acme/archive", id(1), &[]).unwrap();
    assert!(!state.is_open("acme/archive", id(1)).unwrap());
    assert!(state.is_open("globex/archive", id(1)).unwrap() && state.is_open("archive", id(1)).unwrap());
}

#[test]
fn compare_and_set_changes_only_what_is_as_expected() {
    let dir = tempfile::tempdir().unwrap();
    let state = open(dir.path());
    let cas = |expected: Option<&str>, new: Option<&str>| {
        let bytes = |s: Option<&str>| s.map(|s| s.as_bytes().to_vec());
        state.compare_and_set(OUT, "k", bytes(expected).as_deref(), bytes(new).as_deref()).unwrap().get()
    };
    assert!(!cas(Some("x"), Some("y")));
    assert!(cas(None, Some("y")));
    assert!(!cas(None, Some("z")));
    assert!(cas(Some("y"), None));
    assert_eq!(state.get(OUT, "k").unwrap(), None);
}

#[test]
fn keys_and_values_past_their_limits_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 1);
    let long = "k".repeat(513);
    assert!(matches!(state.get(OUT, &long), Err(StateError::Invalid(_))));
    assert!(matches!(state.assign(OUT, &long, id(0), 0), Err(StateError::Invalid(_))));
    assert!(matches!(state.apply(OUT, &[Change::Set("k".into(), vec![0; 1025])]), Err(StateError::Invalid(_))));
    assert!(matches!(state.progress_put(OUT, id(0), "k", Some(&[0; 1025])), Err(StateError::Invalid(_))));
    let longest = "k".repeat(512);
    state.apply(OUT, &[Change::Set(longest.clone(), vec![1; 1024])]).unwrap();
    state.progress_put(OUT, id(0), &longest, Some(&[2; 1024])).unwrap();
    assert_eq!(state.assign(OUT, &longest, id(0), 4).unwrap().get(), 4);
}

#[test]
fn a_copy_taken_at_any_moment_between_calls_opens_with_everything_that_was_answered() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 12);
    for n in 0..12 {
        assert_eq!(assign(&state, n), n + 1);
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        let (killed, opened) = State::open(copy.path()).unwrap();
        assert_eq!(opened, Opened::Intact);
        for m in 0..=n {
            assert_eq!(assign(&killed, m), m + 1);
        }
        if n < 11 {
            assert_eq!(assign(&killed, 11), n + 2);
        }
    }
}

#[test]
fn a_vanished_directory_is_rebuilt_with_counters_above_all_used_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 8);
    assert_eq!(assign(&state, 0), 1);
    state.put_positions(&[(position("f", "1"), ChunkId(1))]).unwrap();
    state.snapshot().unwrap();
    let highest = (1..8).map(|n| assign(&state, n)).max().unwrap();
    drop(state);
    fs::remove_dir_all(dir.path().join("state")).unwrap();

    let (state, opened) = State::open(dir.path()).unwrap();
    assert!(matches!(opened, Opened::Rebuilt { set_aside: None, .. }), "{opened:?}");
    let loaded = state.load().unwrap();
    assert_eq!(loaded.batches.len(), 8);
    assert_eq!(loaded.positions, [(position("f", "1"), ChunkId(1))]);
    // Bound before the snapshot: still the same. Bound after it: forgotten, and a higher one is given.
    assert_eq!(assign(&state, 0), 1);
    assert!(assign(&state, 1) > highest);
    drop(state);
    assert_eq!(State::open(dir.path()).unwrap().1, Opened::Intact);
}

#[test]
fn without_a_snapshot_and_without_sled_counters_still_resume_above() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 3);
    let highest = (0..3).map(|n| assign(&state, n)).max().unwrap();
    drop(state);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    fs::remove_file(dir.path().join("state.snapshot")).unwrap();
    let state = with_batches(dir.path(), 1);
    assert!(assign(&state, 0) > highest);
}

#[test]
fn without_reservations_a_rebuilt_counter_leaves_a_wide_gap() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 3);
    assign(&state, 0);
    state.snapshot().unwrap();
    drop(state);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    fs::remove_file(dir.path().join("sequences.reserve")).unwrap();
    let state = open(dir.path());
    assert_eq!(assign(&state, 1), 1002);
    // An unknown state of affairs is survived twice.
    drop(state);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    assert!(assign(&open(dir.path()), 2) > 1002);
}

#[test]
fn an_older_sled_that_opens_without_complaint_is_noticed_and_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 6);
    assign(&state, 0);
    drop(state);
    let old = tempfile::tempdir().unwrap();
    copy_dir(&dir.path().join("state"), &old.path().join("state"));
    let state = open(dir.path());
    let highest = (1..5).map(|n| assign(&state, n)).max().unwrap();
    drop(state);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    copy_dir(&old.path().join("state"), &dir.path().join("state"));

    let (state, opened) = State::open(dir.path()).unwrap();
    let Opened::Rebuilt { reason, set_aside: Some(aside) } = opened else { panic!("{opened:?}") };
    assert!(reason.contains("fallen back"), "{reason}");
    assert!(aside.exists());
    // What the old one still had is kept; the numbers go on.
    assert_eq!(state.load().unwrap().batches.len(), 6);
    assert_eq!(assign(&state, 0), 1);
    assert!(assign(&state, 5) > highest);
}

#[test]
fn an_emptied_directory_is_not_taken_for_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 2);
    state.snapshot().unwrap();
    let highest = assign(&state, 0);
    drop(state);
    fs::remove_dir_all(dir.path().join("state")).unwrap();
    fs::create_dir(dir.path().join("state")).unwrap();
    let (state, opened) = State::open(dir.path()).unwrap();
    assert!(matches!(opened, Opened::Rebuilt { .. }));
    assert!(assign(&state, 1) > highest);
}

#[test]
fn a_half_written_snapshot_of_sled_does_not_count_as_damage() {
    let dir = tempfile::tempdir().unwrap();
    drop(with_batches(dir.path(), 2));
    fs::write(dir.path().join("state/snap.0000000000001234.generating"), b"half").unwrap();
    assert_eq!(State::open(dir.path()).unwrap().1, Opened::Intact);
}

#[test]
fn whatever_bytes_of_sled_are_damaged_no_number_is_given_twice() {
    for (at, damage) in [(0u64, 4096usize), (8192, 64), (100_000, 4096), (512 * 1024, 4096), (0, 1 << 20)] {
        let dir = tempfile::tempdir().unwrap();
        let state = with_batches(dir.path(), 40);
        let mut used: HashSet<u64> = (0..20).map(|n| assign(&state, n)).collect();
        state.snapshot().unwrap();
        used.extend((20..30).map(|n| assign(&state, n)));
        drop(state);
        let db = dir.path().join("state/db");
        let mut bytes = fs::read(&db).unwrap();
        let end = bytes.len().min(at as usize + damage);
        for byte in bytes.get_mut(at as usize..end).unwrap_or_default() {
            *byte = !*byte;
        }
        fs::write(&db, bytes).unwrap();
        let (state, opened) = State::open(dir.path()).unwrap();
        let held: Vec<_> = state.load().unwrap().batches.iter().map(|batch| batch.id).collect();
        for n in 30..40 {
            if held.contains(&id(n)) {
                assert!(used.insert(assign(&state, n)), "damage at {at}, {opened:?}");
            }
        }
        assert!(state.load().unwrap().next_numbers.iter().all(|(_, next)| *next <= 40));
    }
}

#[test]
fn a_truncated_sled_is_rebuilt_or_refuses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 20);
    let highest = (0..10).map(|n| assign(&state, n)).max().unwrap();
    state.snapshot().unwrap();
    drop(state);
    let db = fs::OpenOptions::new().write(true).open(dir.path().join("state/db")).unwrap();
    db.set_len(3000).unwrap();
    let (state, opened) = State::open(dir.path()).unwrap();
    assert!(matches!(opened, Opened::Rebuilt { .. }), "{opened:?}");
    assert_eq!(state.load().unwrap().batches.len(), 20);
    assert_eq!(assign(&state, 9), 10);
    assert!(assign(&state, 10) > highest);
}

#[test]
fn after_an_error_of_sled_the_state_is_opened_again_and_knows_everything() {
    let dir = tempfile::tempdir().unwrap();
    let state = with_batches(dir.path(), 3);
    assert_eq!(assign(&state, 0), 1);
    state.apply(OUT, &[Change::Set("k".into(), b"v".to_vec())]).unwrap();
    let broken = std::io::Error::new(std::io::ErrorKind::StorageFull, "full");
    let failed = state.inner.change::<()>(|_, _| Err(handle::Trouble::Sled(sled::Error::Io(broken))));
    assert!(matches!(failed, Err(StateError::DiskFull)));
    let panicked = loop {
        // It is refused for a moment, then open again.
        let answer = state.inner.change::<()>(|_, _| panic!("sled met something strange"));
        if !matches!(&answer, Err(StateError::Store { doing: "reopened", .. })) {
            break answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert!(panicked.unwrap_err().to_string().contains("strange"));
    let number = loop {
        match state.assign(OUT, "index", id(1), 1) {
            Ok(number) => break number.get(),
            Err(StateError::Store { doing: "reopened", .. }) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Err(e) => panic!("{e}"),
        }
    };
    assert_eq!(number, 2);
    // The row, and the counter: its name and a number of eight bytes.
    assert_eq!(state.stored_bytes(OUT), 2 + 5 + 8);
    assert!(state.is_open(OUT, id(2)).unwrap());
}

/// A small file system, where the machine lets us make one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(dir.path())
            .status();
        if mount.is_ok_and(|status| status.success()) {
            return Some(Self(dir));
        }
        eprintln!("skipped: no tmpfs can be mounted here (that needs root)");
        None
    }
    /// Takes all the room there is.
    fn fill(&self) {
        use std::io::Write;
        let mut file = fs::File::create(self.0.path().join("filler")).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        while file.write_all(&[1]).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn on_a_full_disk_settling_works_from_the_reserve_and_the_rest_recovers_by_itself() {
    let Some(disk) = SmallDisk::new("32m") else { return };
    let dir = disk.0.path().join("data");
    let state = with_batches(&dir, 20);
    disk.fill();
    // What was closed can be numbered, delivered and settled.
    for n in 0..10 {
        assert_eq!(assign(&state, n), n + 1);
        state.settle_batch(OUT, id(n), &[]).unwrap();
    }
    // Now somebody takes the reserve, too.
    let filler = disk.0.path().join("filler");
    fs::rename(&filler, disk.0.path().join("more")).unwrap();
    disk.fill();
    assert!(matches!(state.settle_batch(OUT, id(10), &[]), Err(StateError::DiskFull)));
    assert!(matches!(state.assign(OUT, "index", id(11), 1), Err(StateError::DiskFull)));
    assert!(matches!(state.snapshot(), Err(StateError::DiskFull)));
    assert!(state.is_open(OUT, id(10)).unwrap());
    fs::remove_file(filler).unwrap();
    state.settle_batch(OUT, id(10), &[]).unwrap();
    assert_eq!(assign(&state, 11), 11);
    drop(state);
    let (state, opened) = State::open(&dir).unwrap();
    assert_eq!(opened, Opened::Intact);
    assert_eq!(state.load().unwrap().batches.len(), 9);
}

#[test]
fn a_state_opens_on_a_full_disk_from_its_reserve() {
    let Some(disk) = SmallDisk::new("32m") else { return };
    let dir = disk.0.path().join("data");
    drop(with_batches(&dir, 5));
    disk.fill();
    let (state, opened) = State::open(&dir).unwrap();
    assert_eq!(opened, Opened::Intact);
    assert_eq!(assign(&state, 0), 1);
    state.settle_batch(OUT, id(0), &[]).unwrap();
}

#[derive(Debug, Clone)]
enum Op {
    Close,
    Assign(u8, bool),
    Reassign(u8, bool),
    Settle(u8),
    Snapshot,
    Reopen,
    Lose,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Close),
        6 => (any::<u8>(), any::<bool>()).prop_map(|(b, n)| Op::Assign(b, n)),
        3 => (any::<u8>(), any::<bool>()).prop_map(|(b, n)| Op::Reassign(b, n)),
        2 => any::<u8>().prop_map(Op::Settle),
        1 => Just(Op::Snapshot),
        1 => Just(Op::Reopen),
        1 => Just(Op::Lose),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// The model: a counter is the highest number given; a batch keeps its number until it is settled or replaced.
    /// After a loss of sled only "never twice, never lower" remains.
    #[test]
    fn numbers_are_bound_once_and_only_grow(ops in proptest::collection::vec(op(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let mut state = open(dir.path());
        let mut open_batches: Vec<u64> = Vec::new();
        let mut closed = 0;
        let mut bound: HashMap<(u64, &str), u64> = HashMap::new();
        let mut highest: HashMap<&str, u64> = HashMap::new();
        let mut lost = false;
        for op in ops {
            let pick = |n: u8| open_batches.get(usize::from(n) % open_batches.len().max(1)).copied();
            let name = |second: bool| if second { "b" } else { "a" };
            match op {
                Op::Close => {
                    state.close_batch(&row(closed, closed + 1, closed + 1), &[]).unwrap();
                    open_batches.push(closed);
                    closed += 1;
                }
                Op::Assign(n, second) => if let Some(batch) = pick(n) {
                    let name = name(second);
                    let given = state.assign(OUT, name, id(batch), 5).unwrap().get();
                    match bound.get(&(batch, name)) {
                        Some(number) => prop_assert_eq!(given, *number),
                        None => {
                            let next = highest.get(name).map_or(5, |n| n + 1);
                            if lost { prop_assert!(given >= next) } else { prop_assert_eq!(given, next) }
                            highest.insert(name, given);
                            bound.insert((batch, name), given);
                        }
                    }
                }
                Op::Reassign(n, second) => if let Some(batch) = pick(n) {
                    let name = name(second);
                    if let Some(number) = bound.get(&(batch, name)).copied() {
                        let given = state.reassign(OUT, name, id(batch), number).unwrap().get();
                        let next = highest[name] + 1;
                        if lost { prop_assert!(given >= next) } else { prop_assert_eq!(given, next) }
                        prop_assert_eq!(state.reassign(OUT, name, id(batch), number).unwrap().get(), given);
                        highest.insert(name, given);
                        bound.insert((batch, name), given);
                    }
                }
                Op::Settle(n) => if let Some(batch) = pick(n) {
                    state.settle_batch(OUT, id(batch), &[]).unwrap();
                    open_batches.retain(|b| *b != batch);
                    bound.retain(|(b, _), _| *b != batch);
                }
                Op::Snapshot => state.snapshot().unwrap(),
                Op::Reopen => {
                    drop(state);
                    let (again, opened) = State::open(dir.path()).unwrap();
                    prop_assert_eq!(opened, Opened::Intact);
                    state = again;
                }
                Op::Lose => {
                    drop(state);
                    fs::remove_dir_all(dir.path().join("state")).unwrap();
                    let (again, opened) = State::open(dir.path()).unwrap();
                    let rebuilt = matches!(opened, Opened::Rebuilt { .. });
                    prop_assert!(rebuilt);
                    state = again;
                    lost = true;
                    let rows = state.load().unwrap().batches;
                    open_batches = rows.iter().map(|row| row.number).collect();
                    // What is bound now is the snapshot's business; it must not be new.
                    bound.clear();
                    for batch in &open_batches {
                        for name in ["a", "b"] {
                            let given = state.assign(OUT, name, id(*batch), 5).unwrap().get();
                            highest.entry(name).and_modify(|n| *n = (*n).max(given)).or_insert(given);
                            bound.insert((*batch, name), given);
                        }
                    }
                }
            }
        }
        let distinct: HashSet<_> = bound.iter().map(|((_, name), number)| (name, number)).collect();
        prop_assert_eq!(distinct.len(), bound.len());
    }
}
