//! Files that are rotated, compressed, truncated, renamed, deleted and made anew, at random and under load; and Wharf killed meanwhile.
//!
//! `WHARF_ROTATION_KILLS` says how often it is killed (5 by default). `WHARF_SEED` repeats a run, as far as the clocks let it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use wharf_e2e::{Chance, Place, Wharf, line};
use wharf_local_aws::S3;

use crate::support::{assert_no_overwrites, delivered, s3, tail_place};

/// How many times something happens to a file.
const OPERATIONS: u64 = 500;

/// And how many times between two kills.
const OPERATIONS_A_KILL: u64 = 100;

/// Files that are written to at a time.
const FILES: u64 = 4;

/// What was written between two beginnings of a file. Its lines are called `NAME-00000000` and so on.
struct Stretch {
    name: String,
    lines: u64,
    /// Whether it ended by a truncation: then its last lines may have been gone before they could be read.
    truncated: bool,
    /// Whether its file was moved away or deleted: from then on only who has it open can read it.
    gone: bool,
    /// Whether it was gone when Wharf was killed that may not have read all of it.
    killed: bool,
}

impl Stretch {
    /// Its last line, if it has one.
    fn end(&self) -> Option<String> {
        (self.lines > 0).then(|| format!("{}-{:08}", self.name, self.lines - 1))
    }

    /// Whether lines of it may be lost.
    fn may_lose(&self) -> bool {
        self.truncated || self.killed
    }
}

/// A file that was rotated to a name that matches as well.
struct Rotated {
    path: PathBuf,
    stretch: usize,
    compressed: bool,
}

/// A file and who writes to it.
struct Writer {
    path: PathBuf,
    file: File,
    /// The stretch that it is writing.
    stretch: usize,
}

struct Torture {
    place: Place,
    chance: Chance,
    stretches: Vec<Stretch>,
    writers: Vec<Writer>,
    rotated: Vec<Rotated>,
    names: u64,
}

fn append_to(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

/// Waits until a process has this file open: only then it can read it when its name is gone.
fn wait_followed(wharf: &mut Wharf, path: &Path) {
    let (folder, wanted) = (format!("/proc/{}/fd", wharf.id()), fs::metadata(path).unwrap());
    wharf.wait_until("the file is followed", 60, || {
        let mut open = fs::read_dir(&folder).unwrap().flatten().filter_map(|entry| fs::metadata(entry.path()).ok());
        open.any(|open| (open.dev(), open.ino()) == (wanted.dev(), wanted.ino()))
    });
}

impl Torture {
    fn new(what: &str, place: Place) -> Self {
        let mut torture = Self {
            place,
            chance: Chance::from_environment(what),
            stretches: Vec::new(),
            writers: Vec::new(),
            rotated: Vec::new(),
            names: 0,
        };
        for n in 0..FILES {
            let path = torture.place.log(&format!("app{n}.log"));
            let (file, stretch) = (append_to(&path), torture.begin(n));
            torture.writers.push(Writer { path, file, stretch });
        }
        torture
    }

    /// A new stretch of a file.
    fn begin(&mut self, file: u64) -> usize {
        let name = format!("f{file}.{}", self.stretches.len());
        self.stretches.push(Stretch { name, lines: 0, truncated: false, gone: false, killed: false });
        self.stretches.len() - 1
    }

    fn write(&mut self, n: usize, lines: u64) {
        let writer = &mut self.writers[n];
        let stretch = &mut self.stretches[writer.stretch];
        let numbers = stretch.lines..stretch.lines + lines;
        let text: String = numbers.map(|number| line(&stretch.name, number, 80) + "\n").collect();
        writer.file.write_all(text.as_bytes()).unwrap();
        stretch.lines += lines;
    }

    fn some_lines(&mut self, n: usize) {
        let lines = 1 + self.chance.below(40);
        self.write(n, lines);
    }

    fn new_name(&mut self, n: usize, folder: &str) -> PathBuf {
        self.names += 1;
        self.place.root().join(folder).join(format!("app{n}.log.{}", self.names))
    }

    /// Gives the name to a new file. Whoever wrote to the old one may not have heard of it yet.
    fn make_anew(&mut self, n: usize) {
        if self.chance.below(2) == 0 {
            self.some_lines(n);
        }
        let stretch = self.begin(n as u64);
        let writer = &mut self.writers[n];
        writer.file = append_to(&writer.path);
        writer.stretch = stretch;
    }

    /// Something happens to a file. While nobody follows them, none is moved away or deleted: what would be lost then is not to be had.
    fn something_happens(&mut self, wharf: Option<&mut Wharf>) {
        let n = self.chance.below(FILES) as usize;
        let path = self.writers[n].path.clone();
        match (self.chance.below(10), wharf) {
            // To where nobody looks for it.
            (3, Some(wharf)) => {
                wait_followed(wharf, &path);
                let to = self.new_name(n, "elsewhere");
                fs::rename(&path, to).unwrap();
                self.leave(n);
            }
            (4, Some(wharf)) => {
                wait_followed(wharf, &path);
                fs::remove_file(&path).unwrap();
                self.leave(n);
            }
            (5, Some(wharf)) if !self.rotated.is_empty() => {
                let oldest = self.rotated.remove(0);
                wait_followed(wharf, &oldest.path);
                fs::remove_file(oldest.path).unwrap();
                self.stretches[oldest.stretch].gone = true;
            }
            (6..=7, _) if self.rotated.iter().any(|it| !it.compressed) => self.compress(),
            // As copytruncate does, with a writer that appends.
            (8..=9, _) => {
                let copy = self.new_name(n, "elsewhere");
                fs::copy(&path, copy).unwrap();
                self.writers[n].file.set_len(0).unwrap();
                let stretch = self.begin(n as u64);
                let before = std::mem::replace(&mut self.writers[n].stretch, stretch);
                self.stretches[before].truncated = true;
            }
            // To a name that matches too.
            _ => {
                let to = self.new_name(n, "logs");
                fs::rename(&path, &to).unwrap();
                self.rotated.push(Rotated { path: to, stretch: self.writers[n].stretch, compressed: false });
                self.make_anew(n);
            }
        }
        self.some_lines(n);
    }

    /// The file of this writer has no name any more by which it can be found.
    fn leave(&mut self, n: usize) {
        let stretch = self.writers[n].stretch;
        self.make_anew(n);
        self.stretches[stretch].gone = true;
    }

    /// As logrotate does it: one of the rotated files becomes a compressed one.
    fn compress(&mut self) {
        let plain: Vec<usize> = (0..self.rotated.len()).filter(|n| !self.rotated[*n].compressed).collect();
        let rotated = &mut self.rotated[plain[self.chance.below(plain.len() as u64) as usize]];
        let (command, ending): (&[&str], _) =
            if self.chance.below(3) == 0 { (&["zstd", "-q", "--rm"], "zst") } else { (&["gzip"], "gz") };
        let status = Command::new(command[0]).args(&command[1..]).arg(&rotated.path).status().unwrap();
        assert!(status.success());
        rotated.path = PathBuf::from(format!("{}.{ending}", rotated.path.display()));
        rotated.compressed = true;
        assert!(rotated.path.exists());
    }

    fn go_on(&mut self, wharf: &mut Wharf, operations: u64) {
        for _ in 0..operations {
            for n in 0..FILES as usize {
                self.some_lines(n);
            }
            self.something_happens(Some(wharf));
            std::thread::sleep(Duration::from_millis(self.chance.below(20)));
        }
    }

    /// Kills Wharf and starts it again. Some things happen in between.
    fn kill(&mut self, wharf: Wharf, s3: &S3) -> Wharf {
        // What is there is on the disk. Of the rest that is gone, nobody can say how much was.
        let there = delivered(s3).distinct();
        wharf.kill9();
        for stretch in self.stretches.iter_mut().filter(|it| it.gone) {
            stretch.killed |= stretch.end().is_some_and(|end| !there.contains(&end));
        }
        for _ in 0..self.chance.below(8) {
            for n in 0..FILES as usize {
                self.some_lines(n);
            }
            self.something_happens(None);
        }
        self.place.start().unwrap()
    }

    /// Waits for the last lines, and checks all that was delivered. How many stretches lost lines though something of them was delivered.
    fn check(&self, wharf: &mut Wharf, s3: &S3) -> usize {
        // The last line of each file that is not gone too early comes last of it.
        let ends: Vec<String> = self.stretches.iter().filter(|it| !it.may_lose()).filter_map(Stretch::end).collect();
        wharf.wait_until("the last lines are delivered", 120, || {
            let there = delivered(s3).distinct();
            ends.iter().all(|end| there.contains(end))
        });
        // Files that are found to be what was read already would repeat it only now.
        let place = &self.place;
        wharf.wait_until("everything is read", 60, || is_at_rest(place));
        let all = delivered(s3);
        all.assert_none_twice();
        let mut got: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let lines = all.distinct();
        for name in &lines {
            let (stretch, number) = name.rsplit_once('-').unwrap();
            got.entry(stretch).or_default().push(number.parse().unwrap());
        }
        let (mut cut, mut unseen, mut lost) = (0, 0, 0);
        for stretch in &self.stretches {
            let numbers = got.remove(&*stretch.name).unwrap_or_default();
            assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{} has a gap", stretch.name);
            let missing = stretch.lines - numbers.len() as u64;
            let (name, all) = (&stretch.name, stretch.lines);
            assert!(missing == 0 || stretch.may_lose(), "{missing} of {all} lines of {name} are lost");
            lost += missing;
            cut += usize::from(missing > 0 && !numbers.is_empty());
            unseen += usize::from(missing > 0 && numbers.is_empty());
        }
        assert!(got.is_empty(), "there are lines that nobody wrote: {got:?}");
        let truncations = self.stretches.iter().filter(|it| it.truncated).count();
        let killed = self.stretches.iter().filter(|it| it.killed).count();
        let compressed = self.rotated.iter().filter(|it| it.compressed).count();
        println!(
            "{} lines, {lost} lost to {truncations} truncations and {killed} files that were gone at a kill: {cut} cut off, {unseen} before they \
             were seen at all; {compressed} compressed files are left",
            lines.len()
        );
        cut
    }
}

/// Whether a source took nothing new for longer than rotated files are still followed.
fn is_at_rest(place: &Place) -> bool {
    let taken = || place.metric("wharf_source_accepted_records_total", &[]);
    let before = taken();
    std::thread::sleep(Duration::from_secs(7));
    before.is_some() && before == taken() && place.all_settled()
}

fn torture(what: &str, s3: &S3) -> (Torture, Wharf) {
    let place = tail_place(s3, 2, "max_bytes: 200KB, max_age: 200ms");
    fs::create_dir(place.root().join("elsewhere")).unwrap();
    let wharf = place.start().unwrap();
    (Torture::new(what, place), wharf)
}

#[test]
fn five_hundred_rotations_lose_lines_only_to_truncation_and_repeat_none() {
    let s3 = s3();
    let (mut torture, mut wharf) = torture("rotation", &s3);
    torture.go_on(&mut wharf, OPERATIONS);
    let cut = torture.check(&mut wharf, &s3);
    let counted = ["truncated", "truncated_unseen"].map(|reason| {
        let labels = [&*format!("reason=\"{reason}\"")];
        torture.place.metric("wharf_source_discarded_records_total", &labels).unwrap_or(0.0) as usize
    });
    println!("Wharf counted {counted:?}");
    // Between two looks a file may be truncated twice; that is found once.
    assert!(cut <= counted.iter().sum(), "{cut} files lost lines, {counted:?} were counted");
    let damaged = torture.place.metric("wharf_source_discarded_records_total", &["reason=\"compressed_"]);
    assert_eq!(damaged, Some(0.0));
    assert_no_overwrites(&s3);
    wharf.stop();
}

#[test]
fn rotations_over_kills_lose_only_what_nobody_could_read_any_more_and_repeat_nothing() {
    let kills = std::env::var("WHARF_ROTATION_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5_u64);
    let s3 = s3();
    let (mut torture, mut wharf) = torture(&format!("rotation, {kills} kills"), &s3);
    for _ in 0..kills {
        let operations = OPERATIONS_A_KILL / 2 + torture.chance.below(OPERATIONS_A_KILL);
        torture.go_on(&mut wharf, operations);
        wharf = torture.kill(wharf, &s3);
    }
    torture.go_on(&mut wharf, OPERATIONS_A_KILL / 2);
    torture.check(&mut wharf, &s3);
    assert_no_overwrites(&s3);
    wharf.stop();
}
