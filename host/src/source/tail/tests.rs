//! Following real files.

mod compressed;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::identity::FileId;
use super::position::FilePosition;
use crate::config::{JoinRule, LinePatterns, LongLines, Multiline, SourceConfig, SourceKind, TailConfig};
use crate::intake::Refused;
use crate::record::{BodyKind, Position};
use crate::source::testing::{FakeSink, eventually};
use crate::source::{Running, SourceEnded, SourceError, spawn_into};

/// A directory with log files.
struct Logs(TempDir);

impl Logs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
    fn append(&self, name: &str, text: impl AsRef<[u8]>) {
        append(&self.path(name), text);
    }
    /// The configuration that follows these patterns.
    fn config(&self, patterns: &[&str]) -> TailConfig {
        TailConfig {
            refresh_interval: Duration::from_millis(100),
            rotate_wait: Duration::from_millis(50),
            ..TailConfig::of(patterns.iter().map(|pattern| self.path(pattern).display().to_string()).collect())
        }
    }
}

fn append(path: &Path, text: impl AsRef<[u8]>) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_ref()).unwrap();
}

/// A tail source at work.
struct Tail {
    running: Running,
    shutdown: CancellationToken,
}

impl Tail {
    fn start(config: TailConfig, sink: &Arc<FakeSink>) -> Self {
        let source = SourceConfig {
            name: "app".into(),
            tenant: None,
            parse: None,
            tag: "app.tag".into(),
            kind: SourceKind::Tail(config),
        };
        let shutdown = CancellationToken::new();
        let running = spawn_into(&source, Arc::new(sink.clone()), shutdown.clone()).unwrap();
        Self { running, shutdown }
    }
    async fn stop(self) {
        self.shutdown.cancel();
        assert_eq!(self.running.ended().await, SourceEnded::Stopped);
    }
    /// As a kill at this moment: what counts is what is durable now.
    async fn kill(self, sink: &FakeSink) -> (Vec<String>, Arc<FakeSink>) {
        let (lines, positions) = sink.snapshot();
        sink.allow(u64::MAX);
        self.stop().await;
        (lines, FakeSink::from_positions(positions))
    }
}

fn numbered(name: &str, numbers: std::ops::Range<usize>) -> (String, Vec<String>) {
    let lines: Vec<String> = numbers.map(|n| format!("{name} line {n}")).collect();
    (lines.iter().map(|line| format!("{line}\n")).collect(), lines)
}

#[tokio::test]
async fn lines_from_before_and_after_the_start_come_in_order() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("a.log", "one\n\ntwo\r\n");
    let tail = Tail::start(logs.config(&["*.log"]), &sink);
    sink.wait_for(3).await;
    logs.append("a.log", b"thr\xffee\n");
    sink.wait_for(4).await;
    tail.stop().await;
    let bodies: Vec<Vec<u8>> =
        sink.chunks().iter().flat_map(|c| c.iter().map(|r| r.body.to_vec()).collect::<Vec<_>>()).collect();
    assert_eq!(bodies, [&b"one"[..], b"", b"two", b"thr\xffee"]);
    for chunk in sink.chunks() {
        assert_eq!((chunk.meta().kind, &*chunk.meta().tag), (BodyKind::Text, "app.tag"));
        assert_eq!(chunk.meta().positions.len(), 1, "one file, one position");
    }
}

#[tokio::test]
async fn a_partial_line_waits_for_its_end() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("a.log", "abc");
    let tail = Tail::start(logs.config(&["*.log"]), &sink);
    logs.append("b.log", "other\n");
    sink.wait_for(1).await;
    logs.append("a.log", "def\ngh");
    sink.wait_for(2).await;
    // The position is before what has no end yet.
    let (lines, next) = tail.kill(&sink).await;
    assert_eq!(lines, ["other", "abcdef"]);
    let tail = Tail::start(logs.config(&["*.log"]), &next);
    logs.append("a.log", "i\n");
    assert_eq!(next.wait_for(1).await, ["ghi"]);
    tail.stop().await;
}

#[tokio::test]
async fn rename_rotation_under_load_loses_and_repeats_nothing() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let tail = Tail::start(logs.config(&["app.log"]), &sink);
    let mut expected = Vec::new();
    for rotation in 0..12 {
        let mut file = File::create_new(logs.path("app.log")).unwrap();
        let (first, lines) = numbered(&format!("r{rotation}"), 0..300);
        expected.extend(lines);
        file.write_all(first.as_bytes()).unwrap();
        // Only a file that was seen can be followed by its handle.
        sink.wait_for(expected.len() - 299).await;
        // The one before is deleted by this; the present one is written to some more under its new name.
        fs::rename(logs.path("app.log"), logs.path("app.log.1")).unwrap();
        for part in 0..5 {
            let (more, lines) = numbered(&format!("r{rotation}"), 300 + part * 10..310 + part * 10);
            expected.extend(lines);
            file.write_all(more.as_bytes()).unwrap();
        }
    }
    let mut lines = sink.wait_for(expected.len()).await;
    tail.stop().await;
    assert_eq!(sink.lines().len(), expected.len());
    // Files are read side by side; within each, in order.
    let file_of = |line: &String| line.split(' ').next().unwrap()[1..].parse::<u32>().unwrap();
    lines.sort_by_key(file_of);
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_file_renamed_within_the_pattern_is_not_read_again() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("app.log", "one\n");
    let tail = Tail::start(logs.config(&["app.log*"]), &sink);
    sink.wait_for(1).await;
    fs::rename(logs.path("app.log"), logs.path("app.log.1")).unwrap();
    logs.append("app.log.1", "two\n");
    logs.append("app.log", "three\n");
    let mut lines = sink.wait_for(3).await;
    // A later look at all files finds nothing new.
    logs.append("app.log", "four\n");
    sink.wait_for(4).await;
    tail.stop().await;
    lines.sort();
    assert_eq!(lines, ["one", "three", "two"]);
    assert_eq!(sink.lines().len(), 4);
}

#[tokio::test]
async fn a_last_line_without_end_is_taken_once_the_file_was_rotated() {
    for (pattern, rotated) in [("app.log", Some("app.log.1")), ("app.log*", Some("app.log.1")), ("app.log", None)] {
        let (logs, sink) = (Logs::new(), FakeSink::new());
        logs.append("app.log", "one\nunended");
        let tail = Tail::start(logs.config(&[pattern]), &sink);
        sink.wait_for(1).await;
        match rotated {
            Some(name) => fs::rename(logs.path("app.log"), logs.path(name)).unwrap(),
            None => fs::remove_file(logs.path("app.log")).unwrap(),
        }
        assert_eq!(sink.wait_for(2).await, ["one", "unended"]);
        tail.stop().await;
    }
}

#[tokio::test]
async fn a_truncated_file_is_read_from_its_beginning() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("app.log", "one\ntwo\n");
    let tail = Tail::start(logs.config(&["app.log"]), &sink);
    sink.wait_for(2).await;
    // As copytruncate does, the writer appending all the while.
    fs::copy(logs.path("app.log"), logs.path("copy")).unwrap();
    OpenOptions::new().write(true).open(logs.path("app.log")).unwrap().set_len(0).unwrap();
    logs.append("app.log", "3\n");
    sink.wait_for(3).await;
    logs.append("app.log", "four\n");
    assert_eq!(sink.wait_for(4).await, ["one", "two", "3", "four"]);
    tail.stop().await;
    assert_eq!(sink.discarded("truncated"), 0);
}

#[tokio::test]
async fn a_file_written_anew_and_longer_than_before_is_read_from_its_beginning() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("app.log", "one\ntwo\n");
    let tail = Tail::start(logs.config(&["app.log"]), &sink);
    sink.wait_for(2).await;
    // Through one handle, so that no look finds it empty.
    let file = OpenOptions::new().write(true).open(logs.path("app.log")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"another beginning\nand more\n", 0).unwrap();
    assert_eq!(sink.wait_for(4).await, ["one", "two", "another beginning", "and more"]);
    tail.stop().await;
}

#[tokio::test]
async fn the_hole_that_a_writer_leaves_after_a_truncation_is_no_record() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let mut writer = File::create(logs.path("app.log")).unwrap();
    writer.write_all(&b"x".repeat(3 << 20)).unwrap();
    writer.write_all(b"\none\n").unwrap();
    let tail = Tail::start(TailConfig { max_line_bytes: 4 << 20, ..logs.config(&["app.log"]) }, &sink);
    sink.wait_for(2).await;
    // Not opened to append: its next line is written behind three megabytes of nothing.
    writer.set_len(0).unwrap();
    writer.write_all(b"two\n").unwrap();
    assert_eq!(sink.wait_for(3).await[1..], ["one", "two"]);
    tail.stop().await;
}

#[tokio::test]
async fn a_used_again_inode_is_told_by_the_fingerprint() {
    let logs = Logs::new();
    logs.append("new.log", "this file is longer than the old one\nwas\n");
    let metadata = fs::metadata(logs.path("new.log")).unwrap();
    let id = FileId { device: metadata.dev(), inode: metadata.ino() };
    // As the old file would have left it, deleted while Wharf did not run.
    logs.append("old.log", "old content\n");
    let (mut old, _) = super::followed::Followed::open(&logs.path("old.log")).unwrap();
    old.skip_to(12);
    let left = FilePosition { id, path: logs.path("new.log").display().to_string(), ..old.position() };
    let position = Position { source: "app".into(), key: id.key(), value: left.encode() };
    let sink = FakeSink::from_positions(vec![position]);
    let tail = Tail::start(logs.config(&["new.log"]), &sink);
    assert_eq!(sink.wait_for(2).await, ["this file is longer than the old one", "was"]);
    tail.stop().await;
}

#[tokio::test]
async fn a_device_numbered_anew_does_not_repeat_its_files() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("app.log", "one\n");
    let tail = Tail::start(logs.config(&["*.log"]), &sink);
    sink.wait_for(1).await;
    let (_, next) = tail.kill(&sink).await;
    let mut position = next.kept_positions().remove(0);
    let id = FileId::parse(&position.key).unwrap();
    position.key = FileId { device: id.device + 1, ..id }.key();
    let next = FakeSink::from_positions(vec![position]);
    let tail = Tail::start(logs.config(&["*.log"]), &next);
    logs.append("app.log", "two\n");
    assert_eq!(next.wait_for(1).await, ["two"]);
    tail.stop().await;
}

#[tokio::test]
async fn a_kill_at_any_moment_loses_and_repeats_nothing() {
    let logs = Logs::new();
    let mut sink = FakeSink::new();
    let mut seen: Vec<String> = Vec::new();
    let mut expected: Vec<String> = Vec::new();
    for run in 0..8 {
        // Some files grow and some are new in each run; of what is handed in, only a part becomes durable.
        for file in 0..=run {
            let (text, lines) = numbered(&format!("f{file}-{run}"), 0..10_000);
            logs.append(&format!("{file}.log"), text + "unended ");
            logs.append(&format!("{file}.log"), "\n");
            expected.extend(lines);
            expected.push("unended ".to_owned());
        }
        sink.allow(run / 2);
        let tail = Tail::start(logs.config(&["*.log"]), &sink);
        eventually("a part is durable", || (sink.chunks().len() as u64 >= run / 2).then_some(())).await;
        let (lines, next) = tail.kill(&sink).await;
        seen.extend(lines);
        sink = next;
    }
    let tail = Tail::start(logs.config(&["*.log"]), &sink);
    seen.extend(sink.wait_for(expected.len() - seen.len()).await);
    tail.stop().await;
    seen.sort();
    expected.sort();
    assert!(seen == expected);
}

#[tokio::test]
async fn a_file_rotated_while_wharf_was_down_is_read_to_its_end() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("app.log", "one\n");
    let tail = Tail::start(logs.config(&["app.log"]), &sink);
    sink.wait_for(1).await;
    let (_, next) = tail.kill(&sink).await;
    logs.append("app.log", "two\n");
    fs::rename(logs.path("app.log"), logs.path("app.log.1")).unwrap();
    logs.append("app.log", "three\n");
    let tail = Tail::start(logs.config(&["app.log"]), &next);
    let mut lines = next.wait_for(2).await;
    lines.sort();
    assert_eq!(lines, ["three", "two"]);
    tail.stop().await;
}

#[tokio::test]
async fn a_deleted_file_is_read_to_its_end_and_forgotten() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("app.log", "one\n");
    let tail = Tail::start(logs.config(&["app.log"]), &sink);
    sink.wait_for(1).await;
    let mut file = OpenOptions::new().append(true).open(logs.path("app.log")).unwrap();
    fs::remove_file(logs.path("app.log")).unwrap();
    file.write_all(b"two\n").unwrap();
    assert_eq!(sink.wait_for(2).await, ["one", "two"]);
    // But for what it is known by, should it come back compressed.
    let forgotten = || sink.kept_positions().iter().all(|it| it.key.starts_with("was:")).then_some(());
    eventually("the position is forgotten", forgotten).await;
    assert_eq!(sink.kept_positions().len(), 1);
    tail.stop().await;
}

#[tokio::test]
async fn files_in_new_directories_are_found() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let mut config = logs.config(&["*/today/*.log", "deep/**/x.log"]);
    // Only the watch can find them in time.
    config.refresh_interval = Duration::from_secs(3600);
    let tail = Tail::start(config, &sink);
    for (n, name) in ["one/today", "two/today", "deep/a/b/c"].into_iter().enumerate() {
        fs::create_dir_all(logs.path(name)).unwrap();
        logs.append(&format!("{name}/x.log"), format!("{name}\n"));
        sink.wait_for(n + 1).await;
    }
    tail.stop().await;
    assert_eq!(sink.lines(), ["one/today", "two/today", "deep/a/b/c"]);
}

#[tokio::test]
async fn two_hundred_files_are_followed_at_once() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let mut expected = Vec::new();
    let tail = Tail::start(logs.config(&["*.log"]), &sink);
    for round in 0..5 {
        for file in 0..200 {
            let (text, lines) = numbered(&format!("f{file}"), round * 20..(round + 1) * 20);
            logs.append(&format!("{file}.log"), text);
            expected.extend(lines);
        }
    }
    let mut lines = sink.wait_for(expected.len()).await;
    tail.stop().await;
    // Their few lines share chunks, each with the positions of its files.
    let chunks = sink.chunks();
    assert!(chunks.iter().any(|chunk| chunk.meta().positions.len() > 1));
    assert_eq!(sink.kept_positions().len(), 200);
    for file in 0..200 {
        let of_file = |lines: &[String]| -> Vec<String> {
            let prefix = format!("f{file} ");
            lines.iter().filter(|line| line.starts_with(&prefix)).cloned().collect()
        };
        assert_eq!(of_file(&lines), of_file(&expected));
    }
    lines.sort();
    expected.sort();
    assert!(lines == expected);
}

#[tokio::test]
async fn read_from_end_leaves_out_what_is_old_and_nothing_else() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("quiet.log", "old\n");
    logs.append("busy.log", "old\n");
    let config = || TailConfig { read_from_beginning: false, ..logs.config(&["*.log"]) };
    let tail = Tail::start(config(), &sink);
    // A file that appears while Wharf runs is read whole; once it is, the first look is over.
    eventually("the first look", || {
        logs.append("later.log", "later\n");
        (!sink.lines().is_empty()).then_some(())
    })
    .await;
    logs.append("busy.log", "new\n");
    eventually("the new line", || sink.lines().contains(&"new".to_owned()).then_some(())).await;
    let (lines, next) = tail.kill(&sink).await;
    assert!(!lines.contains(&"old".to_owned()));
    // The quiet file gave no record, yet the next start knows that its old content is left out.
    logs.append("quiet.log", "awake\n");
    let tail = Tail::start(config(), &next);
    eventually("the awakened file", || next.lines().contains(&"awake".to_owned()).then_some(())).await;
    tail.stop().await;
    assert!(!next.lines().contains(&"old".to_owned()));
}

#[tokio::test]
async fn where_files_begin_is_kept_as_soon_as_it_can_be_though_they_give_no_record() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("quiet.log", "old\n");
    let config = || TailConfig { read_from_beginning: false, ..logs.config(&["*.log"]) };
    sink.keep_nothing(1);
    let tail = Tail::start(config(), &sink);
    eventually("the file's end is kept", || (sink.kept_positions().len() == 2).then_some(())).await;
    let (lines, next) = tail.kill(&sink).await;
    assert!(lines.is_empty());
    logs.append("quiet.log", "while stopped\n");
    let tail = Tail::start(config(), &next);
    assert_eq!(next.wait_for(1).await, ["while stopped"]);
    tail.stop().await;
}

#[tokio::test]
async fn a_file_with_several_names_is_read_once_and_what_is_no_file_not_at_all() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("a.log", "one\n");
    symlink(logs.path("a.log"), logs.path("b.log")).unwrap();
    fs::hard_link(logs.path("a.log"), logs.path("c.log")).unwrap();
    symlink(logs.path("nowhere"), logs.path("d.log")).unwrap();
    fs::create_dir(logs.path("e.log")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(logs.path("f.log")).unwrap();
    let tail = Tail::start(logs.config(&["*.log", "?.log"]), &sink);
    sink.wait_for(1).await;
    // The link gets its file.
    logs.append("nowhere", "two\n");
    sink.wait_for(2).await;
    logs.append("a.log", "three\n");
    sink.wait_for(3).await;
    tail.stop().await;
    assert_eq!(sink.lines(), ["one", "two", "three"]);
}

#[tokio::test]
async fn excluded_files_are_left_out() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("a.log", "one\n");
    logs.append("a.log.gz", "no\n");
    let mut config = logs.config(&["a*"]);
    config.exclude = vec!["*.gz".to_owned()];
    let tail = Tail::start(config, &sink);
    sink.wait_for(1).await;
    logs.append("a.log", "two\n");
    sink.wait_for(2).await;
    tail.stop().await;
    assert_eq!(sink.lines(), ["one", "two"]);
}

#[tokio::test]
async fn a_long_line_is_cut_and_counted_also_over_a_restart_in_its_middle() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let config = || TailConfig { max_line_bytes: 3 << 20, ..logs.config(&["*.log"]) };
    // Longer than a block, and still whole.
    let fitting = "y".repeat(3 << 20);
    logs.append("a.log", format!("a\n{fitting}\n{}", "x".repeat(5 << 20)));
    let tail = Tail::start(config(), &sink);
    let lengths: Vec<usize> = sink.wait_for(3).await.iter().map(String::len).collect();
    assert_eq!(lengths, [1, 3 << 20, 3 << 20]);
    let (_, next) = tail.kill(&sink).await;
    assert_eq!(sink.discarded("line_too_long"), 1);
    logs.append("a.log", "x".repeat(2 << 20) + "\nb\n");
    let tail = Tail::start(config(), &next);
    assert_eq!(next.wait_for(1).await, ["b"]);
    tail.stop().await;
}

#[tokio::test]
async fn long_lines_are_split_or_left_out_where_that_was_chosen_also_over_blocks_and_restarts() {
    for (long_lines, reason, expected) in
        [(LongLines::Split, "line_split", &[1, 3 << 20, 2 << 20, 1][..]), (LongLines::Skip, "line_skipped", &[1, 1])]
    {
        let (logs, sink) = (Logs::new(), FakeSink::new());
        let config = || TailConfig { max_line_bytes: 3 << 20, long_lines, ..logs.config(&["*.log"]) };
        logs.append("a.log", format!("a\n{}", "x".repeat(4 << 20)));
        let tail = Tail::start(config(), &sink);
        eventually("the line is found too long", || (sink.discarded(reason) == 1).then_some(())).await;
        let (mut lines, next) = tail.kill(&sink).await;
        logs.append("a.log", "x".repeat(1 << 20) + "\nb\n");
        let tail = Tail::start(config(), &next);
        eventually("the last line", || next.lines().contains(&"b".to_owned()).then_some(())).await;
        tail.stop().await;
        lines.extend(next.lines());
        let lengths: Vec<usize> = lines.iter().map(String::len).collect();
        assert_eq!(lengths, expected, "{long_lines:?}");
    }
}

#[tokio::test]
async fn joined_lines_are_one_record_over_restarts_and_a_rotation_or_a_pause_ends_them() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let start = regex::bytes::Regex::new("^>").ok();
    let rule = JoinRule::Patterns(LinePatterns { start, goes_on: None, end: None });
    let config = |timeout| TailConfig {
        multiline: Some(Arc::new(Multiline { frame: None, rule: Some(rule.clone()), max_bytes: 1 << 20, timeout })),
        ..logs.config(&["app.log"])
    };
    let long = Duration::from_secs(3600);
    logs.append("app.log", ">a\nb\n>c\nd\n");
    let tail = Tail::start(config(long), &sink);
    assert_eq!(sink.wait_for(1).await, [">a\nb"]);
    // The position is before the record that is open.
    let (_, next) = tail.kill(&sink).await;
    let tail = Tail::start(config(long), &next);
    logs.append("app.log", "e\n>f\n");
    assert_eq!(next.wait_for(1).await, [">c\nd\ne"]);
    fs::rename(logs.path("app.log"), logs.path("app.log.1")).unwrap();
    logs.append("app.log.1", "g");
    assert_eq!(next.wait_for(2).await[1], ">f\ng");
    let (_, next) = tail.kill(&next).await;
    let tail = Tail::start(config(Duration::from_millis(50)), &next);
    logs.append("app.log", ">h\ni\n");
    assert_eq!(next.wait_for(1).await, [">h\ni"]);
    tail.stop().await;
}

#[tokio::test]
async fn a_container_is_followed_through_its_link_over_the_kubelets_rotation() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    fs::create_dir(logs.path("containers")).unwrap();
    fs::create_dir_all(logs.path("pods/ns_web-1_uid-7/app")).unwrap();
    let file = |name: &str| format!("pods/ns_web-1_uid-7/app/{name}");
    logs.append(&file("0.log"), "T stdout F one\n");
    let id = "0123456789abcdef".repeat(4);
    symlink(logs.path(&file("0.log")), logs.path(&format!("containers/web-1_ns_app-{id}.log"))).unwrap();
    let config = || TailConfig {
        kubernetes: true,
        path_key: Some("file".to_owned()),
        // Only the watch can find what is written in time, where the link leads to.
        refresh_interval: Duration::from_secs(3600),
        ..logs.config(&["containers/*.log"])
    };
    let tail = Tail::start(config(), &sink);
    sink.wait_for(1).await;
    logs.append(&file("0.log"), "T stdout F two\n");
    sink.wait_for(2).await;
    fs::rename(logs.path(&file("0.log")), logs.path(&file("0.log.20240102-030405"))).unwrap();
    logs.append(&file("0.log.20240102-030405"), "T stdout F three\n");
    logs.append(&file("0.log"), "T stdout F four\n");
    let mut records = sink.wait_for(4).await;
    let (_, next) = tail.kill(&sink).await;
    records.sort();
    let said = |line: &str| {
        let path = logs.path(&format!("containers/web-1_ns_app-{id}.log"));
        format!(
            "{{\"file\":\"{}\",\"kubernetes\":{{\"namespace_name\":\"ns\",\"pod_name\":\"web-1\",\"pod_id\":\"uid-7\",\
             \"container_name\":\"app\",\"container_id\":\"{id}\"}},\"log\":\"T stdout F {line}\"}}",
            path.display()
        )
    };
    assert_eq!(records, [said("four"), said("one"), said("three"), said("two")]);
    assert_eq!(sink.lines().len(), 4);
    assert!(sink.kinds().iter().all(|kind| *kind == BodyKind::Json));
    // Rotated while Wharf is down: it is found beside where the link leads.
    logs.append(&file("0.log"), "T stdout F five\n");
    fs::rename(logs.path(&file("0.log")), logs.path(&file("0.log.20240102-040506"))).unwrap();
    logs.append(&file("0.log"), "T stdout F six\n");
    let tail = Tail::start(config(), &next);
    let mut records = next.wait_for(2).await;
    tail.stop().await;
    records.sort();
    assert!(
        records[1].ends_with("\"log\":\"T stdout F five\"}") && records[1].contains("\"pod_id\":\"uid-7\""),
        "{records:?}"
    );
    assert_eq!(records[0], said("six"));
    assert_eq!(next.lines().len(), 2);
}

#[tokio::test]
async fn a_file_that_is_old_is_read_once_somebody_writes_to_it() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("old.log", "old\n");
    let hours_ago = std::time::SystemTime::now() - Duration::from_secs(7200);
    File::options().write(true).open(logs.path("old.log")).unwrap().set_modified(hours_ago).unwrap();
    let config = || TailConfig { ignore_older: Some(Duration::from_secs(3600)), ..logs.config(&["*.log"]) };
    let tail = Tail::start(config(), &sink);
    logs.append("new.log", "new\n");
    sink.wait_for(1).await;
    assert_eq!(sink.lines(), ["new"]);
    logs.append("old.log", "again\n");
    assert_eq!(sink.wait_for(3).await, ["new", "old", "again"]);
    // One that was read before goes on where it was, however old it is.
    let (_, next) = tail.kill(&sink).await;
    File::options().write(true).open(logs.path("old.log")).unwrap().set_modified(hours_ago).unwrap();
    let tail = Tail::start(config(), &next);
    logs.append("old.log", "and again\n");
    assert_eq!(next.wait_for(1).await, ["and again"]);
    tail.stop().await;
}

#[tokio::test]
async fn a_file_of_another_encoding_is_read_once_over_restarts() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let config = || TailConfig { encoding: Some(encoding_rs::UTF_16LE), ..logs.config(&["app.log"]) };
    logs.append("app.log", wide("\u{feff}ä\u{a0a}\r\nb"));
    let tail = Tail::start(config(), &sink);
    assert_eq!(sink.wait_for(1).await, ["ä\u{a0a}"]);
    let (_, next) = tail.kill(&sink).await;
    logs.append("app.log", wide("c\n\u{a0a}end"));
    let tail = Tail::start(config(), &next);
    assert_eq!(next.wait_for(1).await, ["bc"]);
    fs::remove_file(logs.path("app.log")).unwrap();
    assert_eq!(next.wait_for(2).await, ["bc", "\u{a0a}end"]);
    tail.stop().await;
}

#[tokio::test]
async fn reading_stops_where_nothing_becomes_durable_and_goes_on_after() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let (text, lines) = numbered("a", 0..1_000_000);
    assert!(text.len() > 12 << 20);
    logs.append("a.log", text);
    sink.allow(0);
    let tail = Tail::start(logs.config(&["*.log"]), &sink);
    eventually("some chunks are under way", || (sink.handed_in() >= 8).then_some(())).await;
    // 8 MiB of chunks of a little less than 1 MiB.
    assert!(sink.handed_in() <= 9);
    sink.allow(u64::MAX);
    let got = sink.wait_for(lines.len()).await;
    tail.stop().await;
    assert!(got == lines);
}

#[tokio::test]
async fn refused_and_failed_chunks_are_handed_in_again_in_order() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let (text, lines) = numbered("a", 0..300_000);
    logs.append("a.log", text);
    let soon = Duration::from_millis(1);
    sink.refuse_next(Refused::DiskFull { retry_after: soon });
    sink.refuse_next(Refused::Full { what: "output x".into(), retry_after: soon });
    for _ in 0..3 {
        sink.fail_next(Refused::DiskFull { retry_after: soon });
    }
    let tail = Tail::start(logs.config(&["*.log"]), &sink);
    let got = sink.wait_for(lines.len()).await;
    tail.stop().await;
    assert_eq!(got.len(), lines.len());
    let mut sorted = got.clone();
    sorted.sort();
    let mut expected = lines.clone();
    expected.sort();
    assert!(sorted == expected);
}

#[tokio::test]
async fn a_stop_waits_for_what_was_handed_in() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("a.log", "one\n");
    sink.allow(0);
    let tail = Tail::start(logs.config(&["*.log"]), &sink);
    eventually("the chunk is under way", || (sink.handed_in() == 1).then_some(())).await;
    tail.shutdown.cancel();
    sink.allow(1);
    assert_eq!(tail.running.ended().await, SourceEnded::Stopped);
    assert_eq!(sink.lines(), ["one"]);
}

#[tokio::test]
async fn a_pattern_that_is_none_is_an_error_at_the_start() {
    let config = Logs::new().config(&["[x"]);
    let source = SourceConfig {
        name: "app".into(),
        tenant: None,
        parse: None,
        tag: "app".into(),
        kind: SourceKind::Tail(config),
    };
    let error = spawn_into(&source, Arc::new(FakeSink::new()), CancellationToken::new()).unwrap_err();
    assert!(matches!(&error, SourceError::Pattern { .. }));
    assert!(error.to_string().contains("unclosed character class"), "{error}");
}
