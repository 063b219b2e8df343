//! Compressed files, made by the commands `gzip` and `zstd`; Python's zlib says what can be read of damaged ones.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::config::CompressedFiles;

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success(), "{command:?}");
    output.stdout
}

/// What the command makes of this text: `["gzip", "-c"]`.
fn made_by(command: &[&str], text: &[u8]) -> Vec<u8> {
    let mut input = tempfile::NamedTempFile::new().unwrap();
    input.write_all(text).unwrap();
    output(Command::new(command[0]).args(&command[1..]).arg(input.path()))
}

const GZIP: &[&str] = &["gzip", "-c"];
const ZSTD: &[&str] = &["zstd", "-q", "-c"];

impl Logs {
    /// As logrotate does it: `NAME` becomes `NAME.gz` (`.zst`), by the real command.
    fn compress(&self, command: &str, name: &str) {
        let how: &[&str] = if command == "zstd" { &["-q", "--rm"] } else { &[] };
        output(Command::new(command).args(how).arg(self.path(name)));
        assert!(!self.path(name).exists());
    }
    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }
    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }
}

/// All that are there once a line that is written last is.
async fn lines_until_the_last(logs: &Logs, sink: &FakeSink) -> Vec<String> {
    // Not to be taken for the one before it.
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let last = format!("the last line, {}", NUMBER.fetch_add(1, Ordering::Relaxed));
    logs.append("last.log", format!("{last}\n"));
    eventually("the last line", || sink.lines().contains(&last).then_some(())).await;
    fs::remove_file(logs.path("last.log")).unwrap();
    let mut lines = sink.lines();
    lines.retain(|line| !line.starts_with("the last line"));
    lines
}

/// The position that is kept of a file, if one is.
fn position_of(logs: &Logs, sink: &FakeSink, name: &str) -> Option<FilePosition> {
    let path = logs.path(name).display().to_string();
    let positions = sink.kept_positions();
    let mut found = positions.iter().filter_map(|it| FilePosition::decode(&it.key, &it.value).ok());
    found.find(|it| it.path == path && !it.is_former)
}

/// Waits until all of a compressed file is dealt with, and that is kept.
async fn done(logs: &Logs, sink: &FakeSink, name: &str) {
    let length = fs::metadata(logs.path(name)).unwrap().len();
    let is_done = || position_of(logs, sink, name)?.member.filter(|member| member.file == length);
    eventually(&format!("{name} is dealt with"), is_done).await;
}

#[tokio::test]
async fn what_a_compressed_file_unpacks_to_becomes_records_once() {
    let joined = |parts: [Vec<u8>; 3]| parts.concat();
    let (text, expected) = numbered("a", 0..50_000);
    // A line that goes over the end of a member, and a last one without its end.
    let (one, two) = text.split_at(text.len() / 2 - 3);
    for (name, bytes) in [
        ("app.log.1.gz", made_by(GZIP, (text.clone() + "the end").as_bytes())),
        ("app.log.1.zst", made_by(ZSTD, (text.clone() + "the end").as_bytes())),
        ("members.gz", joined([one, two, "the end"].map(|part| made_by(GZIP, part.as_bytes())))),
        ("frames.zst", joined([one, two, "the end"].map(|part| made_by(ZSTD, part.as_bytes())))),
        (
            "no.name",
            joined([
                made_by(GZIP, one.as_bytes()),
                made_by(GZIP, b""),
                made_by(&["gzip", "-9c"], (two.to_owned() + "the end").as_bytes()),
            ]),
        ),
        // As tar and dd leave it.
        ("padded.gz", [made_by(GZIP, (text.clone() + "the end").as_bytes()), vec![0; 700]].concat()),
    ] {
        let (logs, sink) = (Logs::new(), FakeSink::new());
        logs.write(name, &bytes);
        let tail = Tail::start(logs.config(&["*"]), &sink);
        sink.wait_for(expected.len() + 1).await;
        done(&logs, &sink, name).await;
        // The next start has nothing to read of it, and what is appended later comes behind it.
        let (mut lines, next) = tail.kill(&sink).await;
        assert_eq!(lines.pop().unwrap(), "the end");
        assert!(lines == expected, "{name}");
        let tail = Tail::start(logs.config(&["*"]), &next);
        assert!(lines_until_the_last(&logs, &next).await.is_empty(), "{name}");
        if name.ends_with("gz") {
            logs.append(name, made_by(GZIP, b"more\n"));
            eventually("what was appended", || next.lines().contains(&"more".to_owned()).then_some(())).await;
        }
        tail.stop().await;
    }
}

#[tokio::test]
async fn a_kill_in_the_middle_of_compressed_files_loses_and_repeats_nothing() {
    let logs = Logs::new();
    let mut expected = Vec::new();
    for (name, command) in [("a.gz", GZIP), ("b.zst", ZSTD), ("c.gz", GZIP)] {
        let (text, lines) = numbered(name, 0..150_000);
        let parts = if name == "c.gz" { 5 } else { 1 };
        // Parts that end within lines.
        let parts = text.as_bytes().chunks(text.len() / parts + 1).map(|part| made_by(command, part));
        logs.write(name, &parts.collect::<Vec<_>>().concat());
        expected.extend(lines);
    }
    let (mut sink, mut seen) = (FakeSink::new(), Vec::new());
    for run in 0..6 {
        sink.allow(run % 3);
        let tail = Tail::start(logs.config(&["*"]), &sink);
        eventually("a part is durable", || (sink.chunks().len() as u64 >= run % 3).then_some(())).await;
        let (lines, next) = tail.kill(&sink).await;
        seen.extend(lines);
        sink = next;
    }
    assert!(!seen.is_empty() && seen.len() < expected.len());
    let tail = Tail::start(logs.config(&["*"]), &sink);
    sink.wait_for(expected.len() - seen.len()).await;
    seen.extend(lines_until_the_last(&logs, &sink).await);
    tail.stop().await;
    seen.sort();
    expected.sort();
    assert!(seen == expected);
}

#[tokio::test]
async fn a_file_that_is_rotated_and_compressed_while_it_is_followed_is_not_read_again() {
    for command in ["gzip", "zstd"] {
        // All names match; or only the first and the compressed.
        for patterns in [&["*"][..], &["app.log", "last.log", "*.gz", "*.zst"]] {
            let (logs, sink) = (Logs::new(), FakeSink::new());
            let packed = if command == "zstd" { "app.log.1.zst" } else { "app.log.1.gz" };
            let (text, mut expected) = numbered("first", 0..2000);
            logs.append("app.log", text);
            let tail = Tail::start(logs.config(patterns), &sink);
            sink.wait_for(1000).await;
            logs.rename("app.log", "app.log.1");
            logs.append("app.log.1", "written after the renaming\n");
            let (text, second) = numbered("second", 0..100);
            logs.append("app.log", text);
            logs.compress(command, "app.log.1");
            expected.push("written after the renaming".to_owned());
            expected.extend(second);
            sink.wait_for(expected.len()).await;
            done(&logs, &sink, packed).await;
            let mut lines = lines_until_the_last(&logs, &sink).await;
            lines.sort();
            expected.sort();
            assert!(lines == expected, "{} lines, {} expected", lines.len(), expected.len());
            // Nor by a later start.
            let (_, next) = tail.kill(&sink).await;
            let tail = Tail::start(logs.config(patterns), &next);
            assert!(lines_until_the_last(&logs, &next).await.is_empty());
            tail.stop().await;
        }
    }
}

#[tokio::test]
async fn what_was_not_read_when_wharf_went_down_is_read_from_the_compressed_file() {
    for command in ["gzip", "zstd"] {
        for patterns in [&["*"][..], &["app.log", "last.log", "*.gz", "*.zst"]] {
            let (logs, sink) = (Logs::new(), FakeSink::new());
            let packed = if command == "zstd" { "app.log.1.zst" } else { "app.log.1.gz" };
            let (text, mut expected) = numbered("read", 0..2000);
            logs.append("app.log", text);
            let tail = Tail::start(logs.config(patterns), &sink);
            sink.wait_for(2000).await;
            let (mut lines, next) = tail.kill(&sink).await;
            let (text, unread) = numbered("unread", 0..3000);
            logs.append("app.log", text);
            logs.rename("app.log", "app.log.1");
            logs.compress(command, "app.log.1");
            // The file that has its name, and nearly always its inode.
            let (text, new) = numbered("new", 0..500);
            logs.append("app.log", text);
            expected.extend(unread.into_iter().chain(new));
            let tail = Tail::start(logs.config(patterns), &next);
            next.wait_for(3500).await;
            done(&logs, &next, packed).await;
            lines.extend(lines_until_the_last(&logs, &next).await);
            lines.sort();
            expected.sort();
            assert!(lines == expected, "{} lines, {} expected", lines.len(), expected.len());
            let (_, next) = tail.kill(&next).await;
            let tail = Tail::start(logs.config(patterns), &next);
            assert!(lines_until_the_last(&logs, &next).await.is_empty());
            tail.stop().await;
        }
    }
}

/// Killed between the deletion and the look at the compressed file, with the inode given to another.
#[tokio::test]
async fn a_file_that_is_gone_is_known_again_after_a_kill_though_its_inode_has_another_file() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let (text, lines) = numbered("first", 0..100);
    logs.append("app.log", text);
    let config = || logs.config(&["app.log", "last.log", "archive/*"]);
    let tail = Tail::start(config(), &sink);
    sink.wait_for(100).await;
    logs.append("app.log", "seen at its end\n");
    output(Command::new("gzip").arg("-k").arg(logs.path("app.log")));
    fs::remove_file(logs.path("app.log")).unwrap();
    sink.wait_for(101).await;
    let was_kept = || sink.kept_positions().iter().find(|it| it.key.starts_with("was:")).cloned();
    eventually("it is remembered", was_kept).await;
    logs.append("app.log", "of another file\n");
    sink.wait_for(102).await;
    let (_, next) = tail.kill(&sink).await;
    // Moved to where it is looked for, such as another file system.
    fs::create_dir(logs.path("archive")).unwrap();
    logs.rename("app.log.gz", "archive/app.log.gz");
    let tail = Tail::start(config(), &next);
    done(&logs, &next, "archive/app.log.gz").await;
    assert!(lines_until_the_last(&logs, &next).await.is_empty());
    let remembered = || next.kept_positions().iter().all(|it| !it.key.starts_with("was:")).then_some(());
    eventually("what it was is forgotten, now that it is here", remembered).await;
    tail.stop().await;
    assert_eq!(sink.lines().len(), lines.len() + 2);
}

#[tokio::test]
async fn what_was_cut_by_copytruncate_is_read_from_the_compressed_copy_and_nothing_twice() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.append("app.log", "one\ntwo\n");
    let config = || logs.config(&["app.log", "last.log", "*.gz"]);
    let tail = Tail::start(config(), &sink);
    sink.wait_for(2).await;
    let (mut lines, next) = tail.kill(&sink).await;
    // Written, copied and cut before anybody looks.
    logs.append("app.log", "three\n");
    fs::copy(logs.path("app.log"), logs.path("copy")).unwrap();
    logs.write("app.log", b"");
    logs.append("app.log", "4\n");
    let tail = Tail::start(config(), &next);
    next.wait_for(1).await;
    logs.rename("copy", "app.log.1");
    logs.compress("gzip", "app.log.1");
    next.wait_for(2).await;
    lines.extend(lines_until_the_last(&logs, &next).await);
    tail.stop().await;
    assert_eq!(lines, ["one", "two", "4", "three"]);
}

#[tokio::test]
async fn files_that_begin_alike_are_told_apart() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    // As IIS and others begin each file.
    let header = "#Fields: date time s-ip cs-method cs-uri-stem\n".repeat(40);
    assert!(header.len() > 1024);
    logs.append("app.log", format!("{header}read\n"));
    logs.append("live.log", format!("{header}live\n"));
    let tail = Tail::start(logs.config(&["*"]), &sink);
    sink.wait_for(82).await;
    // Of these nothing was read: one is longer, one shorter, one is just the header.
    for (name, text) in [("other.gz", "else\nand more\n"), ("short.gz", "e\n"), ("header.gz", "")] {
        logs.write(name, &made_by(GZIP, format!("{header}{text}").as_bytes()));
    }
    logs.rename("app.log", "app.log.1");
    logs.compress("gzip", "app.log.1");
    sink.wait_for(82 + 3 * 40 + 3).await;
    done(&logs, &sink, "app.log.1.gz").await;
    let lines = lines_until_the_last(&logs, &sink).await;
    tail.stop().await;
    let mut others: Vec<_> = lines.iter().filter(|line| !line.starts_with('#')).collect();
    others.sort();
    assert_eq!(others, ["and more", "e", "else", "live", "read"]);
    assert_eq!(lines.len(), 5 * 40 + 5);
}

#[tokio::test]
async fn a_file_that_is_being_compressed_is_read_as_it_grows() {
    for command in [GZIP, ZSTD] {
        let (logs, sink) = (Logs::new(), FakeSink::new());
        let (text, expected) = numbered("a", 0..100_000);
        let whole = made_by(command, text.as_bytes());
        let tail = Tail::start(logs.config(&["*"]), &sink);
        // From nothing, and over the bytes that say what it is.
        let cuts = [0, 2, 3, 20, whole.len() / 2, whole.len() - 5, whole.len()];
        for (from, to) in cuts.iter().zip(&cuts[1..]) {
            logs.append("app.gz", &whole[*from..*to]);
            if *to == whole.len() / 2 {
                sink.wait_for(10_000).await;
                assert!(sink.lines().len() < expected.len());
            }
        }
        let lines = sink.wait_for(expected.len()).await;
        done(&logs, &sink, "app.gz").await;
        tail.stop().await;
        assert!(lines == expected);
        assert_eq!(sink.discarded("compressed_damaged"), 0);
    }
}

#[tokio::test]
async fn one_that_ends_too_early_is_said_to_once_and_goes_on_should_somebody_write_on() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let (text, expected) = numbered("a", 0..100_000);
    let whole = made_by(GZIP, text.as_bytes());
    logs.write("app.gz", &whole[..whole.len() / 2]);
    // More of them than are unpacked at a time, and none of which anything is to be had.
    for n in 0..6 {
        logs.write(&format!("{n}.gz"), &whole[..30]);
    }
    let tail = Tail::start(logs.config(&["*"]), &sink);
    eventually("they are found to be cut off", || (sink.discarded("compressed_cut_off") == 7).then_some(())).await;
    sink.wait_for(10_000).await;
    let (mut lines, next) = tail.kill(&sink).await;
    assert!(lines.len() < expected.len());
    let tail = Tail::start(logs.config(&["*"]), &next);
    eventually("they are found to be so again", || (next.discarded("compressed_cut_off") == 7).then_some(())).await;
    logs.append("app.gz", &whole[whole.len() / 2..]);
    lines.extend(next.wait_for(expected.len() - lines.len()).await);
    assert!(lines == expected);
    // One that is gone is as long as it was.
    fs::remove_file(logs.path("0.gz")).unwrap();
    let before = next.lines().len();
    assert_eq!(lines_until_the_last(&logs, &next).await.len(), before);
    tail.stop().await;
    assert_eq!((next.discarded("compressed_cut_off"), next.discarded("compressed_damaged")), (7, 0));
}

/// What zlib gives of a damaged file, byte for byte, up to the fault.
fn readable(damaged: &Path) -> Vec<u8> {
    let program = "import sys, zlib\n\
        d, out = zlib.decompressobj(31), sys.stdout.buffer\n\
        for byte in open(sys.argv[1], 'rb').read():\n\
        \x20try: out.write(d.decompress(bytes([byte])))\n\
        \x20except zlib.error: break\n";
    output(Command::new("python3").args(["-c", program]).arg(damaged))
}

#[tokio::test]
async fn of_a_damaged_file_what_is_before_the_damage_is_read_and_it_is_counted_once() {
    let (text, _) = numbered("a", 0..100_000);
    let (good, more) = (made_by(GZIP, text.as_bytes()), made_by(GZIP, b"behind\n"));
    let mut turned = good.clone();
    turned[good.len() / 2] ^= 0x55;
    let mut checksum = good.clone();
    checksum[good.len() - 6] ^= 1;
    let frame = made_by(ZSTD, text.as_bytes());
    let mut second = made_by(ZSTD, b"of the second frame\n");
    *second.last_mut().unwrap() ^= 1;
    let lines_of =
        |bytes: &[u8]| -> Vec<String> { String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect() };
    for (name, bytes, expected) in [
        ("turned.gz", [&turned[..], &more].concat(), None),
        ("checksum.gz", [&checksum[..], &more].concat(), Some(text.clone())),
        ("garbage.gz", [&good[..], b"no member"].concat(), Some(text.clone())),
        ("frame.zst", [&frame[..], &second].concat(), Some(text.clone())),
        ("garbage.zst", [&frame[..], b"no frame"].concat(), Some(text.clone())),
    ] {
        let (logs, sink) = (Logs::new(), FakeSink::new());
        logs.write(name, &bytes);
        let readable = expected.map_or_else(|| readable(&logs.path(name)), String::into_bytes);
        let expected = lines_of(&readable);
        let config = || logs.config(&["*"]);
        let tail = Tail::start(config(), &sink);
        eventually("the damage is found", || (sink.discarded("compressed_damaged") == 1).then_some(())).await;
        let mut lines = sink.wait_for(expected.len()).await;
        // zstd may have given its block before the checksum behind it was read.
        lines.retain(|line| line != "of the second frame");
        assert!(lines == expected, "{name}: {} lines, {} expected", lines.len(), expected.len());
        // Another start does not try again, nor does it when somebody writes on.
        let told = || position_of(&logs, &sink, name)?.member.filter(|member| member.damaged);
        eventually("that is kept", told).await;
        let (_, next) = tail.kill(&sink).await;
        let tail = Tail::start(config(), &next);
        logs.append(name, &more);
        assert!(lines_until_the_last(&logs, &next).await.is_empty(), "{name}");
        assert_eq!(next.discarded("compressed_damaged"), 0, "{name}");
        tail.stop().await;
    }
}

#[tokio::test]
async fn compressed_files_are_left_out_where_that_was_chosen() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.write("a.gz", &made_by(GZIP, b"packed\n"));
    logs.append("named.gz", "plain, whatever its name is\n");
    let config = || TailConfig { compressed: CompressedFiles::Skip, ..logs.config(&["*"]) };
    let tail = Tail::start(config(), &sink);
    logs.write("b.zst", &made_by(ZSTD, b"packed\n"));
    sink.wait_for(1).await;
    assert_eq!(lines_until_the_last(&logs, &sink).await, ["plain, whatever its name is"]);
    // One of which a plain file is made.
    logs.write("a.gz", b"plain now\n");
    eventually("the plain file", || sink.lines().contains(&"plain now".to_owned()).then_some(())).await;
    tail.stop().await;
}

#[tokio::test]
async fn read_from_end_leaves_out_the_compressed_files_that_are_there() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    logs.write("old.gz", &made_by(GZIP, b"old\n"));
    let cut = made_by(GZIP, b"old\n".repeat(1000).as_slice());
    logs.write("cut.gz", &cut[..20]);
    let config = || TailConfig { read_from_beginning: false, ..logs.config(&["*"]) };
    let tail = Tail::start(config(), &sink);
    eventually("their ends are kept", || (sink.kept_positions().len() == 3).then_some(())).await;
    let (_, next) = tail.kill(&sink).await;
    logs.write("new.gz", &made_by(GZIP, b"new\n"));
    logs.append("old.gz", made_by(GZIP, b"appended\n"));
    logs.append("cut.gz", &cut[20..]);
    let tail = Tail::start(config(), &next);
    let mut lines = next.wait_for(2).await;
    lines.sort();
    assert_eq!(lines, ["appended", "new"]);
    assert_eq!(lines_until_the_last(&logs, &next).await.len(), 2);
    tail.stop().await;
    assert_eq!(next.discarded("compressed_damaged"), 0);
}

#[tokio::test]
async fn lines_of_compressed_files_are_decoded_joined_cut_and_put_into_objects_as_others_are() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let start = regex::bytes::Regex::new("^>").ok();
    let rule = JoinRule::Patterns(LinePatterns { start, goes_on: None, end: None });
    let timeout = Duration::from_secs(3600);
    let config = || TailConfig {
        encoding: Some(encoding_rs::UTF_16LE),
        path_key: Some("file".to_owned()),
        max_line_bytes: 20,
        multiline: Some(Arc::new(Multiline { frame: None, rule: Some(rule.clone()), max_bytes: 1 << 20, timeout })),
        ..logs.config(&["*.gz"])
    };
    let text = ">ä\u{a0a}\r\nb\n>0123456789abcdef\n>the end\nwithout";
    logs.write("app.gz", &made_by(GZIP, &wide(text)));
    let tail = Tail::start(config(), &sink);
    // Its end ends the last record as well.
    let records = sink.wait_for(3).await;
    let (_, next) = tail.kill(&sink).await;
    let file = logs.path("app.gz").display().to_string();
    let said = |log: &str| serde_json::json!({ "file": file, "log": log }).to_string();
    assert_eq!(records, [said(">ä\u{a0a}\nb"), said(">012345678"), said(">the end\nwithout")]);
    assert_eq!(sink.discarded("line_too_long"), 1);
    let tail = Tail::start(config(), &next);
    logs.append("app.gz", made_by(GZIP, &wide(">more\n>last\n")));
    assert_eq!(next.wait_for(2).await, [said(">more"), said(">last")]);
    tail.stop().await;
}

#[tokio::test]
async fn many_compressed_files_are_read_a_few_at_a_time() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let mut expected = Vec::new();
    for n in 0..30 {
        let (text, lines) = numbered(&n.to_string(), 0..3000);
        logs.write(&format!("{n}.gz"), &made_by(GZIP, text.as_bytes()));
        expected.extend(lines);
    }
    let tail = Tail::start(logs.config(&["*"]), &sink);
    let mut lines = sink.wait_for(expected.len()).await;
    tail.stop().await;
    lines.sort();
    expected.sort();
    assert!(lines == expected);
}

/// As `gzip -k` makes them, of files that are followed: they wait for those, and must not keep the place of others.
#[tokio::test]
async fn compressed_copies_of_files_that_are_followed_wait_and_hold_up_no_others() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let tail = Tail::start(logs.config(&["*"]), &sink);
    let mut expected = Vec::new();
    for n in 0..10 {
        let (text, lines) = numbered(&format!("f{n}"), 0..100);
        logs.append(&format!("{n}.log"), text);
        expected.extend(lines);
    }
    sink.wait_for(expected.len()).await;
    for n in 0..10 {
        output(Command::new("gzip").arg("-k").arg(logs.path(&format!("{n}.log"))));
    }
    logs.write("another.gz", &made_by(GZIP, b"another\n"));
    sink.wait_for(expected.len() + 1).await;
    // Their files go on, and end.
    for n in 0..10 {
        logs.append(&format!("{n}.log"), format!("more of {n}\n"));
        expected.push(format!("more of {n}"));
    }
    sink.wait_for(expected.len() + 1).await;
    (0..10).for_each(|n| fs::remove_file(logs.path(&format!("{n}.log"))).unwrap());
    for n in 0..10 {
        done(&logs, &sink, &format!("{n}.log.gz")).await;
    }
    let mut lines = lines_until_the_last(&logs, &sink).await;
    tail.stop().await;
    expected.push("another".to_owned());
    lines.sort();
    expected.sort();
    assert!(lines == expected, "{} lines, {} expected", lines.len(), expected.len());
}

/// As an application does that compresses its log itself.
#[tokio::test]
async fn members_that_are_appended_are_followed() {
    let (logs, sink) = (Logs::new(), FakeSink::new());
    let tail = Tail::start(logs.config(&["*.gz"]), &sink);
    for n in 0..20 {
        logs.append("app.gz", made_by(GZIP, format!("line {n}\nhalf a ").as_bytes()));
        logs.append("app.gz", made_by(GZIP, b"line\n"));
        sink.wait_for(2 * (n + 1)).await;
    }
    tail.stop().await;
    let expected: Vec<String> = (0..20).flat_map(|n| [format!("line {n}"), "half a line".to_owned()]).collect();
    assert_eq!(sink.lines(), expected);
}
