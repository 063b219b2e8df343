//! Dead letters on a real disk.

use std::path::Path;

use super::*;
use crate::record::BodyKind;
use crate::state::BatchId;

const BATCH: BatchId = BatchId([0xab; 16]);
const NAME: &str = "abababababababababababababababab";

pub(super) fn letter(record: u64, body: &[u8]) -> Letter<'_> {
    Letter { record, time_ns: 1_716_897_600_000_000_000, tag: "app", kind: BodyKind::Text, body, reason: "too long" }
}

pub(super) fn write(letters: &DeadLetters, output: &str, batch: BatchId, bodies: &[&[u8]]) {
    let mut writer = letters.writer(output, batch, "rejected").unwrap();
    for (n, body) in bodies.iter().enumerate() {
        writer.record(&letter(n as u64, body)).unwrap();
    }
    assert_eq!(writer.finish().unwrap(), bodies.len() as u64);
}

fn all() -> Filter {
    Filter::default()
}

fn only(output: &str) -> Filter {
    Filter::new(Some(output.into()), None).unwrap()
}

fn bodies(file: &LetterFile) -> Vec<String> {
    file.letters().unwrap().map(|l| String::from_utf8(l.unwrap().body).unwrap()).collect()
}

fn files_in(folder: &Path) -> Vec<String> {
    let read = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = read.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_written_is_listed_and_read_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    assert_eq!(letters.list(&all()).unwrap(), []);
    write(&letters, "archive", BATCH, &[b"one", b"two", b"\xff"]);
    write(&letters, "live", BatchId([1; 16]), &[b"three"]);

    let files = letters.list(&all()).unwrap();
    let names: Vec<_> = files.iter().map(|f| (f.output.as_str(), f.batch.as_str(), f.records().unwrap())).collect();
    assert_eq!(names, [("archive", NAME, 3), ("live", "01010101010101010101010101010101", 1)]);
    assert_eq!(files[0].reasons(), ["too long"]);
    assert_eq!(files[0].path, dir.path().join("dead-letters/archive").join(format!("{NAME}.ndjson")));
    let read: Vec<_> = files[0].letters().unwrap().map(Result::unwrap).collect();
    assert_eq!(read.iter().map(|l| l.body.as_slice()).collect::<Vec<_>>(), [&b"one"[..], b"two", b"\xff"]);
    assert_eq!(read.iter().map(|l| l.record).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!((read[0].output.as_str(), read[0].failure.as_str()), ("archive", "rejected"));
}

#[test]
fn the_same_batch_written_again_replaces_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "archive", BATCH, &[b"one", b"two"]);
    write(&letters, "archive", BATCH, &[b"one"]);
    let files = letters.list(&all()).unwrap();
    assert_eq!(files.len(), 1);
    assert_eq!(bodies(&files[0]), ["one"]);
}

#[test]
fn nothing_is_there_before_the_end_and_nothing_stays_of_a_writer_that_gave_up() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    let mut writer = letters.writer("archive", BATCH, "rejected").unwrap();
    writer.record(&letter(0, b"one")).unwrap();
    assert_eq!(letters.list(&all()).unwrap(), []);
    drop(writer);
    assert_eq!(files_in(&dir.path().join("dead-letters/archive")), Vec::<String>::new());

    let none = letters.writer("archive", BATCH, "rejected").unwrap();
    assert_eq!(none.finish().unwrap(), 0);
    assert_eq!(letters.list(&all()).unwrap(), []);
}

#[test]
fn what_a_killed_writer_left_is_swept_and_whole_files_stay() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    letters.sweep().unwrap();
    write(&letters, "archive", BATCH, &[b"one"]);
    let folder = dir.path().join("dead-letters/archive");
    std::fs::write(folder.join(".0123.tmp"), "half").unwrap();
    letters.sweep().unwrap();
    assert_eq!(files_in(&folder), [format!("{NAME}.ndjson")]);
}

#[test]
fn purge_removes_what_the_filter_admits_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "archive", BATCH, &[b"one"]);
    write(&letters, "archive", BatchId([1; 16]), &[b"two"]);
    write(&letters, "live", BATCH, &[b"three"]);
    let both = Filter::new(Some("archive".into()), Some(NAME.into())).unwrap();
    assert_eq!(letters.purge(&both).unwrap().len(), 1);
    assert_eq!(letters.list(&all()).unwrap().len(), 2);
    assert_eq!(letters.purge(&only("live")).unwrap().len(), 1);
    assert_eq!(letters.purge(&only("nobody")).unwrap(), []);
    assert_eq!(letters.list(&all()).unwrap().len(), 1);
}

#[test]
fn replay_moves_whole_files_which_purge_then_leaves_alone() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "a__b", BATCH, &[b"one"]);
    let moved = letters.request_replay(&only("a__b")).unwrap();
    assert_eq!(moved[0].path, dir.path().join("dead-letters/replay").join(format!("a__b__{NAME}.ndjson")));
    assert_eq!(letters.purge(&all()).unwrap(), []);
    let pending = letters.replay_pending().unwrap();
    assert_eq!(pending, moved);
    assert_eq!((pending[0].output.as_str(), pending[0].batch.as_str()), ("a__b", NAME));
    assert_eq!(bodies(&pending[0]), ["one"]);
    letters.replay_done(&pending[0]).unwrap();
    letters.replay_done(&pending[0]).unwrap();
    assert_eq!(letters.list(&all()).unwrap(), []);
}

#[test]
fn a_batch_that_waits_for_its_replay_is_not_overwritten_by_another_request() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "archive", BATCH, &[b"first"]);
    letters.request_replay(&all()).unwrap();
    write(&letters, "archive", BATCH, &[b"second"]);
    assert!(matches!(letters.request_replay(&all()), Err(DeadLetterError::Waiting { .. })));
    assert_eq!(bodies(&letters.replay_pending().unwrap()[0]), ["first"]);
    assert_eq!(letters.list(&all()).unwrap().len(), 2);
}

#[test]
fn a_file_with_a_line_that_is_no_record_is_not_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "archive", BATCH, &[b"one", b"two"]);
    let path = letters.list(&all()).unwrap()[0].path.clone();
    let edited = std::fs::read_to_string(&path).unwrap().replace("\"body\":\"two\"", "\"body\":\"t\\nwo\"");
    std::fs::write(&path, edited).unwrap();
    let error = letters.request_replay(&all()).unwrap_err().to_string();
    assert!(error.ends_with("line 2: the body has a line feed; a record is one line"), "{error}");
    assert!(path.exists());
}

#[test]
fn a_letter_of_another_output_is_not_smuggled_into_a_replay() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "archive", BATCH, &[b"one"]);
    let folder = dir.path().join("dead-letters/live");
    std::fs::create_dir(&folder).unwrap();
    let from = dir.path().join("dead-letters/archive").join(format!("{NAME}.ndjson"));
    std::fs::copy(from, folder.join(format!("{NAME}.ndjson"))).unwrap();
    let error = letters.request_replay(&only("live")).unwrap_err().to_string();
    assert!(error.contains("the letter is of output \"archive\""), "{error}");
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    for output in
        ["..", "../x", "/etc", "a/", "/a", "a/b/c", "a/..", "../a", "replay/a", "", "replay", "A", "a.b", "a\0b"]
    {
        assert!(letters.writer(output, BATCH, "rejected").is_err(), "{output:?}");
        assert!(Filter::new(Some(output.into()), None).is_err(), "{output:?}");
    }
    for batch in ["..", "ab", "../../../../etc/passwd", &NAME.to_uppercase(), &format!("{NAME}0")] {
        assert!(Filter::new(None, Some(batch.to_owned())).is_err(), "{batch:?}");
    }
}

#[test]
fn links_and_strange_files_are_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "archive", BATCH, &[b"one"]);
    let folder = dir.path().join("dead-letters");
    std::fs::write(outside.path().join(format!("{NAME}.ndjson")), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.join("linked")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("archive/cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd.ndjson")).unwrap();
    std::fs::write(folder.join("archive/notes.txt"), "x").unwrap();
    std::fs::create_dir_all(folder.join("replay")).unwrap();
    std::fs::write(folder.join("replay/nobody.ndjson"), "x").unwrap();
    std::fs::write(folder.join(format!("replay/..__{NAME}.ndjson")), "x").unwrap();
    assert_eq!(letters.list(&all()).unwrap().len(), 1);
}

#[test]
fn reading_goes_on_behind_a_damaged_line_and_passes_over_empty_ones() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "archive", BATCH, &[b"one", b"two"]);
    let file = letters.list(&all()).unwrap().remove(0);
    let text = std::fs::read_to_string(&file.path).unwrap();
    std::fs::write(&file.path, text.replacen('\n', "\n\n{\"half\n", 1).trim_end()).unwrap();
    let read: Vec<_> = file.letters().unwrap().collect();
    assert_eq!(read.len(), 3);
    let error = read[1].as_ref().unwrap_err().to_string();
    assert!(error.contains("line 3: not a dead letter"), "{error}");
    assert_eq!(read[2].as_ref().unwrap().body, b"two");
}

#[test]
fn outputs_of_two_tenants_with_one_name_keep_their_dead_letters_apart() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    for (output, body) in [("acme/archive", b"of acme"), ("globex/archive", b"globex."), ("archive", b"the op.")] {
        write(&letters, output, BATCH, &[body]);
    }
    let folder = dir.path().join("dead-letters");
    assert!(folder.join(format!("acme/archive/{NAME}.ndjson")).is_file());
    assert_eq!(letters.outputs().unwrap(), ["acme/archive", "archive", "globex/archive"]);
    let bodies = |output: &str| -> Vec<String> {
        let files = letters.list(&only(output)).unwrap();
        let all = files.iter().flat_map(|file| file.letters().unwrap());
        all.map(|letter| String::from_utf8(letter.unwrap().body).unwrap()).collect()
    };
    assert_eq!((bodies("acme/archive"), bodies("archive")), (vec!["of acme".to_owned()], vec!["the op.".to_owned()]));

    // The same batch of each waits for its replay at the same time.
    for output in ["acme/archive", "globex/archive"] {
        let moved = letters.request_replay(&only(output)).unwrap();
        assert_eq!(moved.len(), 1);
        assert_eq!(bodies(output).len(), 1);
    }
    let pending: Vec<String> = letters.replay_pending().unwrap().into_iter().map(|file| file.output).collect();
    assert_eq!(pending, ["acme/archive", "globex/archive"]);
    let file = letters.replay_pending().unwrap().remove(0);
    letters.replay_refused(&file).unwrap();
    assert_eq!(letters.list(&only("acme/archive")).unwrap()[0].kept, Kept::Dead);
    assert_eq!(letters.purge(&only("acme/archive")).unwrap().len(), 1);
    assert_eq!(bodies("globex/archive"), ["globex."]);
}

#[test]
fn what_a_killed_writer_of_a_tenant_left_is_swept() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "acme/archive", BATCH, &[b"one"]);
    let left = dir.path().join("dead-letters/acme/archive/.half.tmp");
    std::fs::write(&left, "x").unwrap();
    letters.sweep().unwrap();
    assert!(!left.exists());
    assert_eq!(letters.list(&all()).unwrap().len(), 1);
}
