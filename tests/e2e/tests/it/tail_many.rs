//! Many files that are followed at once: what they cost while nothing is written to them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::time::{Duration, Instant};

use wharf_e2e::line;

use crate::support::{delivered, s3, tail_place};

/// What the kernel says of a process: its resident memory in MiB, and how long it computed so far, in ticks of 10 ms (proc(5)).
fn memory_and_ticks(process: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: u64 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    // Behind the name, which may hold anything but the last parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (kib / 1024, fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap())
}

/// `WHARF_TAIL_FILES=10000 cargo test --workspace --test it tail_many -- --nocapture` prints what that many cost.
#[test]
fn each_of_many_quiet_files_is_heard_when_it_grows() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default);
    let (files, seconds) = (number("WHARF_TAIL_FILES", 1000_u64), number("WHARF_TAIL_SECONDS", 3_u64));
    let s3 = s3();
    let place = tail_place(&s3, 1, "max_bytes: 1MB, max_age: 200ms");
    let write = |round: u64, file: u64| {
        let path = place.log(&format!("app-{file}.log"));
        let mut file_of = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file_of, "{}", line(&format!("f{file}.0"), round, 100)).unwrap();
    };
    (0..files).for_each(|file| write(0, file));
    let mut wharf = place.start().unwrap();
    wharf.wait_until("each file's line is delivered", 120, || delivered(&s3).lines() as u64 >= files);
    let (_, before) = memory_and_ticks(wharf.id());
    let began = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds));
    let (memory, after) = memory_and_ticks(wharf.id());
    let share = (after - before) as f64 / began.elapsed().as_secs_f64();
    println!("{files} files: {memory} MiB resident, {share:.2} % of a core while nothing is written");
    // Nothing but the watch tells of these so soon.
    (0..files).step_by(7).for_each(|file| write(1, file));
    let grown = files.div_ceil(7);
    wharf.wait_until("each grown file's line is delivered", 60, || delivered(&s3).lines() as u64 >= files + grown);
    let names = (0..files).flat_map(|file| (0..=u64::from(file % 7 == 0)).map(move |n| format!("f{file}.0-{n:08}")));
    delivered(&s3).assert_each_once(names);
    wharf.stop();
}
