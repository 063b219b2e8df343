//! What taking lines in and writing them out costs: `cargo bench -p wharf --bench encode`. Give a part of a name to run only that.
//!
//! One thread. GB/s is of the input's bytes; each figure is the best of several rounds, so that a busy machine disturbs less.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot encode has nothing to say")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use wharf::record::encode::{Compression, Encoder, Format, Options, Selection};
use wharf::record::{BodyKind, Chunk, ChunkBuilder, DateFormat};

const PIECE: usize = 8 * 1024 * 1024;
const CHUNK: usize = 512 * 1024;
/// Little, so that a round fits between two interruptions of a busy machine.
const TOTAL: usize = 4 * 1024 * 1024;

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let plain: Vec<u8> = lines(|n| {
        let path = n * 7919 % 1000;
        format!(
            "10.0.{}.{} - - GET /api/v1/items/{path} 200 {} request took {} us and was fine\n",
            n % 256,
            n % 200,
            n % 9000,
            n * 31 % 100_000
        )
    });
    let quoted: Vec<u8> = lines(|n| {
        let path = n * 7919 % 1000;
        format!(
            "10.0.{}.{} - - \"GET /api/v1/items/{path} HTTP/1.1\" 200 {} \"-\" \"curl/8.{}.0\"\n",
            n % 256,
            n % 200,
            n % 9000,
            n % 10
        )
    });
    let returns: Vec<u8> = String::from_utf8(plain.clone()).unwrap().replace('\n', "\r\n").into();
    let bench = Bench { only };

    for (name, block) in [("lf", &plain), ("crlf", &returns)] {
        bench.run(
            &format!("push_lines {name}"),
            block.len(),
            chunks(block).iter().map(|c| c.meta().records).sum(),
            || {
                black_box(chunks(black_box(block)));
            },
        );
    }
    let texts = chunks(&plain);
    let quoted = chunks(&quoted);
    let json = json_chunks(&texts);
    let each_time = with_times(&texts);
    let encoded: Vec<_> =
        texts.iter().map(Chunk::encode).map(|(head, bodies)| [head, bodies].concat().into()).collect();
    bench.run("decode", size(&texts), count(&texts), || {
        encoded.iter().for_each(|bytes| {
            black_box(Chunk::decode(bytes)).unwrap();
        })
    });

    let json_lines = |date_key: Option<&str>, log_key: Option<&str>| Options {
        format: Format::JsonLines,
        date_key: date_key.map(str::to_owned),
        date_format: DateFormat::Iso8601,
        log_key: log_key.map(str::to_owned),
        compression: Compression::None,
    };
    let text = Options { format: Format::Text, ..json_lines(None, None) };
    bench.encode("text as text", &texts, text.clone());
    bench.encode("json as json_lines", &json, json_lines(None, None));
    bench.encode("text as json_lines, date", &texts, json_lines(Some("date"), None));
    bench.encode("text as json_lines, no date", &texts, json_lines(None, None));
    bench.encode("text as json_lines, a time each", &each_time, json_lines(Some("date"), None));
    bench.encode("text as json_lines, six escapes", &quoted, json_lines(Some("date"), None));
    bench.encode("json as json_lines, date", &json, json_lines(Some("date"), None));
    bench.encode("json as json_lines, own date", &json, json_lines(Some("level"), None));
    bench.encode("json as text, log_key", &json, Options { log_key: Some("log".into()), ..text });
    for level in [1, 2, 3, 6] {
        let compression = Compression::Gzip(level);
        bench.encode(&format!("gzip {level}"), &texts, Options { compression, ..json_lines(Some("date"), None) });
    }
    for level in [1, 3] {
        let compression = Compression::Zstd(level);
        bench.encode(&format!("zstd {level}"), &texts, Options { compression, ..json_lines(Some("date"), None) });
    }
}

fn lines(line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut all = Vec::new();
    for n in 0.. {
        if all.len() >= TOTAL {
            break;
        }
        all.extend_from_slice(line(n).as_bytes());
    }
    all
}

/// As a tail does it: blocks of a chunk's size, the rest of a line left for the next.
fn chunks(mut block: &[u8]) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    while !block.is_empty() {
        let mut builder = ChunkBuilder::arrived(BodyKind::Text, "app".into(), 0);
        let taken = builder.push_lines(1_796_056_337_123_456_789, &block[..block.len().min(CHUNK)]);
        block = &block[taken..];
        chunks.extend(builder.finish());
    }
    chunks
}

fn json_chunks(texts: &[Chunk]) -> Vec<Chunk> {
    rebuilt(texts, BodyKind::Json, |n, body| {
        let log = String::from_utf8(body.to_vec()).unwrap();
        (1_796_056_337_123_456_789, serde_json::json!({ "level": "info", "n": n, "log": log }).to_string().into())
    })
}

fn with_times(texts: &[Chunk]) -> Vec<Chunk> {
    rebuilt(texts, BodyKind::Text, |n, body| (1_796_056_337_123_456_789 + n * 1_000_003, body.to_vec()))
}

fn rebuilt(texts: &[Chunk], kind: BodyKind, record: impl Fn(i64, &[u8]) -> (i64, Vec<u8>)) -> Vec<Chunk> {
    let rebuild = |chunk: &Chunk| {
        let mut builder = ChunkBuilder::arrived(kind, "app".into(), 0);
        for (n, old) in (0..).zip(chunk.iter()) {
            let (time_ns, body) = record(n, old.body);
            builder.push(time_ns, &body);
        }
        builder.finish()
    };
    texts.iter().filter_map(rebuild).collect()
}

fn size(chunks: &[Chunk]) -> usize {
    chunks.iter().map(|chunk| chunk.bodies().len()).sum()
}

fn count(chunks: &[Chunk]) -> u32 {
    chunks.iter().map(|chunk| chunk.meta().records).sum()
}

struct Bench {
    only: String,
}

impl Bench {
    fn encode(&self, name: &str, chunks: &[Chunk], options: Options) {
        let mut made = 0;
        self.run(name, size(chunks), count(chunks), || {
            let mut encoder = Encoder::new(chunks.to_vec(), Selection::All, options.clone());
            made = 0;
            while let Some(piece) = encoder.next(PIECE).unwrap() {
                made += black_box(piece).len();
            }
        });
        if options.compression != Compression::None && made > 0 {
            println!("{:36} {:.2} bytes in for each out", "", size(chunks) as f64 / made as f64);
        }
    }
    fn run(&self, name: &str, bytes: usize, records: u32, mut once: impl FnMut()) {
        if !name.contains(&self.only) {
            return;
        }
        let mut best = Duration::MAX;
        let until = Instant::now() + Duration::from_millis(700);
        while Instant::now() < until {
            let start = Instant::now();
            once();
            best = best.min(start.elapsed());
        }
        let nanos = best.as_nanos() as f64;
        println!("{name:36} {:8.1} ns/record {:8.2} GB/s", nanos / f64::from(records), bytes as f64 / nanos);
    }
}
