//! Bytes as nobody sends them: damaged messages, from a corpus of good ones, in pieces. Nothing may panic, and nothing may take more memory than
//! the limits say.
//!
//! The same each time. `WHARF_FUZZ_ITERATIONS` says how many (20,000 by default), `WHARF_SEED` begins elsewhere.

use std::sync::Arc;

use bytes::BytesMut;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::pack::*;
use super::support::{config, security};
use crate::config::ForwardConfig;
use crate::record::Chunk;
use crate::source::forward::door::Door;
use crate::source::forward::gather::{Gather, Scratch, read_large};
use crate::source::forward::handshake::Challenge;
use crate::source::forward::message::{self, Message};
use crate::source::testing::FakeSink;
use tokio_util::sync::CancellationToken;

/// Small, so that limits are met.
const LIMIT: usize = 8 << 10;

fn corpus() -> Vec<Vec<u8>> {
    let metadata = list(&[list(&[event_time(5, 6), map(&[(text("m"), int(1))])]), record("with metadata")]);
    let wild = map(&[
        (int(-1), double(f64::NAN)),
        (nil(), binary(&[0, 159, 146, 150])),
        (list(&[int(1)]), ext(42, &[1, 2, 3])),
        (boolean(true), raw_text(&[0xff, 0xfe])),
        (single(1.5), uint(u64::MAX)),
        (text("deep"), (0..40).fold(nil(), |inside, _| list(&[inside]))),
        (event_time(1, 2), map(&[(text("k"), map(&[(text("k"), list(&[]))]))])),
    ]);
    let entries = [entry(1, "one"), metadata.clone(), list(&[event_time(7, 8), wild.clone()])];
    let packed = entries.concat();
    let zeros = list(&[int(1), record(&"0".repeat(100_000))]);
    let compressed = |name: &str, bytes: &[u8]| {
        list(&[text("c"), binary(bytes), map(&[(text("compressed"), text(name)), (text("chunk"), text("c1"))])])
    };
    vec![
        nil(),
        told("app.x", "hello"),
        asked("app.y", "hello", "p8n9gmxTQVC8/nh2wlKKeQ=="),
        list(&[text("t"), event_time(1_441_588_984, 1), wild]),
        list(&[text("t"), int(1), text("no map"), map(&[(text("metadata"), map(&[(text("a"), int(1))]))])]),
        list(&[text("f"), list(&entries), map(&[(text("size"), int(3)), (text("fluent_signal"), int(0))])]),
        list(&[text("p"), binary(&packed)]),
        list(&[binary(b"p"), raw_text(&packed), nil()]),
        compressed("gzip", &gzip(&packed)),
        compressed("gzip", &[gzip(&packed), gzip(&packed)].concat()),
        compressed("zstd", &zstd(&packed)),
        compressed("gzip", &gzip(&zeros)),
        compressed("zstd", &zstd(&zeros)),
        list(&[text("PING"), text("host"), text("salt"), text(&"0".repeat(128)), text("user"), text(&"0".repeat(128))]),
    ]
}

/// A damaged stream of a few messages.
fn damaged(corpus: &[Vec<u8>], chance: &mut SmallRng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..chance.random_range(1..4) {
        bytes.extend_from_slice(&corpus[chance.random_range(0..corpus.len())]);
    }
    for _ in 0..chance.random_range(0..6) {
        if bytes.is_empty() {
            break;
        }
        let at = chance.random_range(0..bytes.len());
        match chance.random_range(0..6) {
            0 => bytes[at] = chance.random(),
            1 => bytes[at] ^= 1 << chance.random_range(0..8),
            2 => bytes.truncate(at),
            3 => drop(bytes.remove(at)),
            // Heads with lengths, so that there are many.
            4 => bytes.insert(at, chance.random_range(0xc0..=0xdf)),
            _ => {
                let other = &corpus[chance.random_range(0..corpus.len())];
                let part = &other[chance.random_range(0..other.len())..];
                bytes.splice(at..at, part.iter().copied());
            }
        }
    }
    bytes
}

/// Reads a stream in pieces as a connection does, to its end or its first fault; gives the chunks.
fn read(bytes: &[u8], door: &Door, chance: &mut SmallRng) -> (Vec<Chunk>, Vec<u8>, Option<&'static str>) {
    let (mut framer, mut gather, mut scratch) = (message::framer(door.most_bytes), Gather::new(), Scratch::default());
    let (mut buffer, mut rest, mut chunks, mut answers) = (BytesMut::new(), bytes, Vec::new(), Vec::new());
    let mut fault = None;
    'stream: while !rest.is_empty() {
        let (piece, behind) = rest.split_at(chance.random_range(1..=rest.len().min(200)));
        buffer.extend_from_slice(piece);
        rest = behind;
        loop {
            let length = match framer.end(&buffer) {
                Ok(Some(length)) => length,
                Ok(None) => break,
                Err(found) => {
                    fault = Some(found.reason());
                    break 'stream;
                }
            };
            assert!((1..=LIMIT).contains(&length) && length <= buffer.len());
            let message = buffer.split_to(length);
            let outcome = match Message::read(&message) {
                Ok(None) => Ok(()),
                Ok(Some(read)) if read.is_compressed() => read_large(&message, door).map(|mut large| {
                    let large = large.take();
                    chunks.extend(large.chunks);
                    answers.extend(large.answers);
                }),
                Ok(Some(read)) => scratch.read(read, door, &mut gather),
                Err(fault) => Err(fault),
            };
            if let Err(found) = outcome {
                fault = Some(found.reason());
                break 'stream;
            }
        }
        assert!(buffer.len() <= LIMIT, "{} bytes wait for more", buffer.len());
    }
    assert!(scratch.memory() < 16 << 20, "{} bytes were taken", scratch.memory());
    let last = gather.take();
    chunks.extend(last.chunks);
    answers.extend(last.answers);
    (chunks, answers, fault)
}

fn door() -> Door {
    let forward = ForwardConfig { max_message_bytes: LIMIT as u64, ..config() };
    Door::new(&super::support::source(forward.clone()), &forward, Arc::new(FakeSink::new()), CancellationToken::new())
}

fn iterations() -> u64 {
    std::env::var("WHARF_FUZZ_ITERATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

fn seed() -> u64 {
    std::env::var("WHARF_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[test]
fn damaged_streams_end_in_records_or_in_a_fault_and_within_the_limits() {
    let (corpus, door) = (corpus(), door());
    let (mut records, mut faults) = (0_u64, std::collections::BTreeMap::new());
    for iteration in 0..iterations() {
        let mut chance = SmallRng::seed_from_u64(seed().wrapping_mul(1_000_003).wrapping_add(iteration));
        let bytes = damaged(&corpus, &mut chance);
        let (chunks, _, fault) = read(&bytes, &door, &mut chance);
        for chunk in &chunks {
            for record in chunk.iter() {
                records += 1;
                let parsed: Result<serde_json::Map<String, serde_json::Value>, _> = serde_json::from_slice(record.body);
                assert!(parsed.is_ok(), "iteration {iteration}: {}", String::from_utf8_lossy(record.body));
                assert!(!record.body.contains(&b'\n'));
            }
        }
        *faults.entry(fault.unwrap_or("none")).or_insert(0_u64) += 1;
        assert_eq!(door.room.hold().add(32 << 20), Ok(()), "iteration {iteration} did not give its memory back");
    }
    println!("{records} records; faults: {faults:?}");
    // Damage that nothing gets through, or that hurts nothing, would test nothing.
    assert!(records > iterations() / 4, "{records} records");
    assert!(faults.get("malformed").copied().unwrap_or(0) > iterations() / 20, "{faults:?}");
}

#[test]
fn good_streams_come_through_whatever_the_pieces() {
    let door = door();
    let stream = [told("a", "1"), nil(), asked("b", "2", "x"), told("a", "3"), asked("c", "4", "y")].concat();
    for seed in 0..200 {
        let (chunks, answers, fault) = read(&stream, &door, &mut SmallRng::seed_from_u64(seed));
        assert_eq!(fault, None);
        let of = |chunk: &Chunk| {
            let logs: Vec<_> = chunk.iter().map(|record| String::from_utf8(record.body.to_vec()).unwrap()).collect();
            (chunk.meta().tag.to_string(), logs.join(" "))
        };
        let expected = [("a", r#"{"log":"1"} {"log":"3"}"#), ("b", r#"{"log":"2"}"#), ("c", r#"{"log":"4"}"#)];
        let expected = expected.map(|(tag, logs)| (tag.to_owned(), logs.to_owned()));
        assert_eq!(chunks.iter().map(of).collect::<Vec<_>>(), expected);
        assert_eq!(answers, [ack("x"), ack("y")].concat());
    }
}

#[test]
fn damaged_pings_are_denied() {
    let (security, corpus) = (security(&[("alice", "pw")]), corpus());
    let challenge = Challenge::new(&security);
    for iteration in 0..iterations() {
        let mut chance = SmallRng::seed_from_u64(seed().wrapping_mul(7_368_787).wrapping_add(iteration));
        let bytes = damaged(&corpus, &mut chance);
        assert!(challenge.answer(&bytes, &security).is_err(), "iteration {iteration}");
    }
}
