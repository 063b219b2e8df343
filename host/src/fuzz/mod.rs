//! Bytes as nobody sends them, for every parser of what comes from outside: damaged ones, from a corpus of good ones.
//!
//! Nothing may panic, memory stays within a bound, and what was read is the same when it is written and read again. Each target is a test, the same each
//! time; `cargo xtask fuzz TARGET --iterations N` runs one for longer. The forward protocol's is beside it (`source/forward/tests/torture.rs`).
//!
//! `WHARF_FUZZ_ITERATIONS` says how many (2,000 by default), `WHARF_SEED` begins elsewhere, `WHARF_FUZZ_ALONE` says that nothing else runs in this process:
//! then its memory is looked at as a whole.

mod files;
mod sources;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The most that a target may take, in a process of its own.
const MEMORY: u64 = 1 << 30;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Bytes that mean something in one format or another.
const MEANING: &[u8] = b"\"\\{}[]<>:,= \n\0-.09eE\x0a\x12\x80\xff";

/// Says which bytes it was, where a check panics.
struct Blame<'a>(&'a [u8], u64);

impl Drop for Blame<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("iteration {}, with these bytes in hex: {}", self.1, hex::encode(self.0));
        }
    }
}

/// Checks every good input, then damaged ones.
fn run(corpus: &[&[u8]], check: impl Fn(&[u8])) {
    let mut chance = SmallRng::seed_from_u64(number("WHARF_SEED", 1));
    for bytes in corpus {
        let blame = Blame(bytes, 0);
        check(blame.0);
    }
    for iteration in 1..=number("WHARF_FUZZ_ITERATIONS", 2_000) {
        let bytes = damaged(corpus, &mut chance);
        let blame = Blame(&bytes, iteration);
        check(blame.0);
    }
    if std::env::var_os("WHARF_FUZZ_ALONE").is_some() {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(peak << 10 < MEMORY, "{peak} KiB were taken");
        println!("the most memory at once was {peak} KiB");
    }
}

fn damaged(corpus: &[&[u8]], chance: &mut SmallRng) -> Vec<u8> {
    let mut bytes = corpus[chance.random_range(0..corpus.len())].to_vec();
    for _ in 0..chance.random_range(1..8) {
        if bytes.is_empty() {
            bytes.push(chance.random());
        }
        let at = chance.random_range(0..bytes.len());
        let end = (at + chance.random_range(1..32)).min(bytes.len());
        match chance.random_range(0..9) {
            0 => bytes[at] = chance.random(),
            1 => bytes[at] ^= 1 << chance.random_range(0..8),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            // Bytes that mean something in one format or another.
            4 => bytes.insert(at, MEANING[chance.random_range(0..MEANING.len())]),
            5 => {
                let part = bytes[at..end].to_vec();
                let times = chance.random_range(1..20);
                bytes.splice(at..at, part.repeat(times));
            }
            6 => bytes[at..end].reverse(),
            _ => {
                let other = corpus[chance.random_range(0..corpus.len())];
                if !other.is_empty() {
                    let part = &other[chance.random_range(0..other.len())..];
                    bytes.splice(at..at, part.iter().copied());
                }
            }
        }
        bytes.truncate(1 << 20);
    }
    bytes
}
