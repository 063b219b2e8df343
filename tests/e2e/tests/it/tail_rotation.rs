//! Files that are rotated, truncated, renamed, deleted and made anew, at random and under load.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wharf_e2e::{Chance, Place, Wharf, line};

use crate::support::{assert_no_overwrites, delivered, s3, tail_place};

/// How many times something happens to a file.
const OPERATIONS: u64 = 500;

/// Files that are written to at a time.
const FILES: u64 = 4;

/// What was written between two beginnings of a file. Its lines are called `NAME-00000000` and so on.
struct Stretch {
    name: String,
    lines: u64,
    /// Whether it ended by a truncation: then its last lines may have been gone before they could be read.
    truncated: bool,
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
    /// Files that were rotated to names that match as well.
    rotated: Vec<PathBuf>,
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
    fn new(place: Place) -> Self {
        let mut torture = Self {
            place,
            chance: Chance::from_environment("rotation"),
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
        self.stretches.push(Stretch { name, lines: 0, truncated: false });
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

    fn something_happens(&mut self, wharf: &mut Wharf) {
        let n = self.chance.below(FILES) as usize;
        let path = self.writers[n].path.clone();
        match self.chance.below(8) {
            // To a name that matches too.
            0..=2 => {
                let to = self.new_name(n, "logs");
                fs::rename(&path, &to).unwrap();
                self.rotated.push(to);
                self.make_anew(n);
            }
            // To where nobody looks for it.
            3 => {
                wait_followed(wharf, &path);
                let to = self.new_name(n, "elsewhere");
                fs::rename(&path, to).unwrap();
                self.make_anew(n);
            }
            4 => {
                wait_followed(wharf, &path);
                fs::remove_file(&path).unwrap();
                self.make_anew(n);
            }
            5 if !self.rotated.is_empty() => {
                let oldest = self.rotated.remove(0);
                wait_followed(wharf, &oldest);
                fs::remove_file(oldest).unwrap();
            }
            // As copytruncate does, with a writer that appends.
            _ => {
                let copy = self.new_name(n, "elsewhere");
                fs::copy(&path, copy).unwrap();
                self.writers[n].file.set_len(0).unwrap();
                let stretch = self.begin(n as u64);
                let before = std::mem::replace(&mut self.writers[n].stretch, stretch);
                self.stretches[before].truncated = true;
            }
        }
        self.some_lines(n);
    }
}

#[test]
fn five_hundred_rotations_lose_lines_only_to_truncation_and_repeat_none() {
    let s3 = s3();
    let place = tail_place(&s3, 2, "max_bytes: 200KB, max_age: 200ms");
    fs::create_dir(place.root().join("elsewhere")).unwrap();
    let mut wharf = place.start().unwrap();
    let mut torture = Torture::new(place);
    for _ in 0..OPERATIONS {
        for n in 0..FILES as usize {
            torture.some_lines(n);
        }
        torture.something_happens(&mut wharf);
        std::thread::sleep(Duration::from_millis(torture.chance.below(20)));
    }
    // The last line of each file that is not gone by truncation comes last of it.
    let ends: Vec<String> = (torture.stretches.iter().filter(|it| !it.truncated && it.lines > 0))
        .map(|it| format!("{}-{:08}", it.name, it.lines - 1))
        .collect();
    wharf.wait_until("the last lines are delivered", 120, || {
        let there = delivered(&s3).distinct();
        ends.iter().all(|end| there.contains(end))
    });
    let place = &torture.place;
    let counted = ["truncated", "truncated_unseen"].map(|reason| {
        let labels = [&*format!("reason=\"{reason}\"")];
        place.metric("wharf_source_discarded_records_total", &labels).unwrap_or(0.0) as usize
    });
    let all = delivered(&s3);
    all.assert_none_twice();
    let mut got: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    let lines = all.distinct();
    for name in &lines {
        let (stretch, number) = name.rsplit_once('-').unwrap();
        got.entry(stretch).or_default().push(number.parse().unwrap());
    }
    let (mut cut, mut unseen, mut lost) = (0, 0, 0);
    for stretch in &torture.stretches {
        let numbers = got.remove(&*stretch.name).unwrap_or_default();
        assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{} has a gap", stretch.name);
        let missing = stretch.lines - numbers.len() as u64;
        assert!(
            missing == 0 || stretch.truncated,
            "{} of {} lines of {} are lost",
            missing,
            stretch.lines,
            stretch.name
        );
        lost += missing;
        cut += usize::from(missing > 0 && !numbers.is_empty());
        unseen += usize::from(missing > 0 && numbers.is_empty());
    }
    assert!(got.is_empty(), "there are lines that nobody wrote: {got:?}");
    let truncations = torture.stretches.iter().filter(|it| it.truncated).count();
    println!(
        "{} lines, {lost} lost to {truncations} truncations: {cut} cut off, {unseen} before they were seen at all; \
         Wharf counted {counted:?}",
        lines.len()
    );
    // Between two looks a file may be truncated twice; that is found once.
    assert!(cut <= counted.iter().sum(), "{cut} files lost lines, {counted:?} were counted");
    assert_no_overwrites(&s3);
    wharf.stop();
}
