//! Lines that become objects on their way from a source to the intake: JSON, what a regular expression finds, logfmt, and the format of container
//! runtimes, with the record's time out of one of their keys.
//!
//! It stands between a source and its sink, so that sources without `parse` pay nothing for it. A line that cannot be parsed goes on as text and is
//! counted; so is one whose time cannot be read, which keeps that key and has the time of reading.
//!
//! Records that say which file they are of have their line in an object already, under `log`: there, what is parsed takes the line's place in it.
//!
//! A chunk has one kind of bodies. So lines that were parsed and those that were not leave as two chunks, the position of both with the second, which is handed in
//! when the first is durable: a crash between them repeats the first, and loses nothing.

mod formats;
#[cfg(test)]
mod tests;
mod time;

use std::borrow::Cow;
use std::sync::Arc;

use self::formats::{Parsed, Parser};
use super::sink::{Durable, Later, Sink};
use crate::config::ParseConfig;
use crate::intake::Refused;
use crate::record::{BodyKind, Chunk, ChunkBuilder, Position};

/// Chunks up to this size are parsed on the spot; larger ones would hold up others.
const PARSE_ON_THE_SPOT: u64 = 32 << 10;

/// The key of the line in a record that says more than that, behind others, and the quote that the line begins with.
const LINE: &[u8] = b",\"log\":\"";
/// The same where there is nothing more to say.
const ONLY_LINE: &[u8] = b"{\"log\":\"";

/// A sink that parses text before another one takes it.
pub(super) struct Parsing {
    source: Arc<str>,
    config: Arc<ParseConfig>,
    /// Whether records are objects that have their line under [`LINE`].
    within: bool,
    sink: Arc<dyn Sink>,
}

/// A chunk, parsed.
pub(super) struct Split {
    /// At most two; where there are positions, the last one has them.
    pub(super) chunks: Vec<Chunk>,
    without_format: u64,
    without_time: u64,
}

impl Parsing {
    /// `within`: records are objects that have their line under `log`, as the last key of several.
    pub(super) fn new(source: Arc<str>, config: Arc<ParseConfig>, within: bool, sink: Arc<dyn Sink>) -> Self {
        Self { source, config, within, sink }
    }

    /// Whether there are lines in it to be parsed.
    fn is_for(&self, chunk: &Chunk) -> bool {
        chunk.meta().kind == BodyKind::Text || self.within
    }

    fn count(source: &str, sink: &dyn Sink, split: &Split) {
        for (reason, records) in [("format", split.without_format), ("time", split.without_time)] {
            if records > 0 {
                sink.count_unparsed(source, reason, records);
            }
        }
    }
}

async fn split(config: Arc<ParseConfig>, chunk: Chunk) -> Split {
    if chunk.meta().body_bytes <= PARSE_ON_THE_SPOT {
        return parse(&config, &chunk);
    }
    let whole = chunk.clone();
    let parsed = tokio::task::spawn_blocking(move || parse(&config, &chunk)).await;
    // A fault of ours in a parser costs the parsing, not the records.
    parsed.unwrap_or_else(|_| {
        let records = u64::from(whole.meta().records);
        Split { chunks: vec![whole], without_format: records, without_time: 0 }
    })
}

/// Parses the lines of records that are objects with the line under [`LINE`], their last key: `{"file":"/a","log":"the line"}`.
fn parse_within(config: &ParseConfig, chunk: &Chunk) -> Split {
    let meta = chunk.meta();
    let mut json = ChunkBuilder::arrived(BodyKind::Json, meta.tag.clone(), meta.arrival_ns);
    let (mut parser, mut out, mut record) = (Parser::new(config), Vec::new(), Vec::new());
    let (mut without_format, mut without_time) = (0, 0);
    let whole = |without_format| Split { chunks: vec![chunk.clone()], without_format, without_time: 0 };
    for it in chunk.iter() {
        out.clear();
        record.clear();
        let found = line_of(it.body);
        let parsed = match &found {
            Some((_, line)) => parser.parse(line.as_bytes(), &mut out),
            None => Parsed::Text,
        };
        let time_ns = match parsed {
            Parsed::Object(time_ns) => time_ns.unwrap_or(it.time_ns),
            Parsed::Timeless => {
                without_time += 1;
                it.time_ns
            }
            Parsed::Text => {
                without_format += 1;
                out.clear();
                it.time_ns
            }
        };
        match (found, out.get(1..)) {
            (Some((begins, _)), Some(b"}")) => {
                // An object without keys: a comma before its place goes.
                let before = it.body.get(..begins).unwrap_or_default();
                record.extend_from_slice(before.strip_suffix(b",").unwrap_or(before));
                record.push(b'}');
            }
            (Some((begins, _)), Some(keys)) => {
                record.extend_from_slice(it.body.get(..begins).unwrap_or_default());
                record.extend_from_slice(keys);
            }
            _ => record.extend_from_slice(it.body),
        }
        if !json.push(time_ns, &record) {
            return whole(u64::from(meta.records));
        }
    }
    for position in &meta.positions {
        json.position(position.clone());
    }
    match json.finish() {
        Some(chunk) => Split { chunks: vec![chunk], without_format, without_time },
        None => whole(0),
    }
}

/// Where the key of the line begins in a record, and the line. Quotes within values are escaped, so nothing else is like this key.
fn line_of(body: &[u8]) -> Option<(usize, Cow<'_, str>)> {
    let begins = if body.starts_with(ONLY_LINE) { 1 } else { memchr::memmem::find(body, LINE)? + 1 };
    let text = body.get(begins + LINE.len() - 2..body.len().checked_sub(1)?)?;
    let line = match serde_json::from_slice::<&str>(text) {
        Ok(line) => Cow::Borrowed(line),
        Err(_) => Cow::Owned(serde_json::from_slice(text).ok()?),
    };
    Some((begins, line))
}

pub(super) fn parse(config: &ParseConfig, chunk: &Chunk) -> Split {
    if chunk.meta().kind == BodyKind::Json {
        return parse_within(config, chunk);
    }
    let meta = chunk.meta();
    let builder = |kind| ChunkBuilder::arrived(kind, meta.tag.clone(), meta.arrival_ns);
    let (mut json, mut text) = (builder(BodyKind::Json), builder(BodyKind::Text));
    json.reserve(usize::try_from(meta.body_bytes).unwrap_or(0));
    let (mut parser, mut out) = (Parser::new(config), Vec::new());
    let (mut without_format, mut without_time) = (0, 0);
    for record in chunk.iter() {
        out.clear();
        let fits = match parser.parse(record.body, &mut out) {
            Parsed::Object(time_ns) => json.push(time_ns.unwrap_or(record.time_ns), &out),
            Parsed::Timeless => {
                without_time += 1;
                json.push(record.time_ns, &out)
            }
            Parsed::Text => {
                without_format += 1;
                text.push(record.time_ns, record.body)
            }
        };
        if !fits {
            let records = u64::from(meta.records);
            return Split { chunks: vec![chunk.clone()], without_format: records, without_time: 0 };
        }
    }
    let last = if text.is_empty() { &mut json } else { &mut text };
    for position in &meta.positions {
        last.position(position.clone());
    }
    let chunks = [json, text].into_iter().filter_map(ChunkBuilder::finish).collect();
    Split { chunks, without_format, without_time }
}

impl Sink for Parsing {
    fn enqueue(&self, chunk: Chunk) -> Later<'_, Result<Durable, Refused>> {
        if !self.is_for(&chunk) {
            return self.sink.enqueue(chunk);
        }
        Box::pin(async move {
            let split = split(Arc::clone(&self.config), chunk).await;
            let mut under_way = Vec::with_capacity(split.chunks.len());
            for chunk in &split.chunks {
                // A position must not be on the disk before all that it stands for.
                if !chunk.meta().positions.is_empty()
                    && let Some(first) = under_way.pop()
                {
                    let first: Durable = first;
                    first.await?;
                }
                under_way.push(self.sink.enqueue(chunk.clone()).await?);
            }
            Self::count(&self.source, &*self.sink, &split);
            Ok(all(under_way))
        })
    }

    /// The refusal, where there is one, comes with the end of what this gives: it is parsed before there can be one.
    fn try_enqueue(&self, chunk: Chunk) -> Result<Durable, Refused> {
        if !self.is_for(&chunk) {
            return self.sink.try_enqueue(chunk);
        }
        let (source, config, sink) = (self.source.clone(), Arc::clone(&self.config), Arc::clone(&self.sink));
        Ok(Box::pin(async move {
            let split = split(config, chunk).await;
            let mut under_way = Vec::with_capacity(split.chunks.len());
            for chunk in &split.chunks {
                under_way.push(sink.try_enqueue(chunk.clone())?);
            }
            Self::count(&source, &*sink, &split);
            all(under_way).await
        }))
    }

    fn refuses(&self) -> Option<Refused> {
        self.sink.refuses()
    }
    fn positions(&self, source: &str) -> Vec<Position> {
        self.sink.positions(source)
    }
    fn keep(&self, positions: Vec<Position>) -> Later<'_, bool> {
        self.sink.keep(positions)
    }
    fn forget<'a>(&'a self, source: &'a str, keys: Vec<String>) -> Later<'a, ()> {
        self.sink.forget(source, keys)
    }
    fn of_tenant(&self, tenant: &Arc<str>) -> Arc<dyn Sink> {
        let (source, config, sink) = (self.source.clone(), Arc::clone(&self.config), self.sink.of_tenant(tenant));
        Arc::new(Self { source, config, within: self.within, sink })
    }
    fn count_discarded(&self, source: &str, reason: &'static str, records: u64) {
        self.sink.count_discarded(source, reason, records);
    }
    fn count_unparsed(&self, source: &str, reason: &'static str, records: u64) {
        self.sink.count_unparsed(source, reason, records);
    }
    fn count_refused(&self, source: &str, reason: &'static str) {
        self.sink.count_refused(source, reason);
    }
    fn count_connections(&self, source: &str, change: i64) {
        self.sink.count_connections(source, change);
    }
}

/// Ends when all of them have.
fn all(mut under_way: Vec<Durable>) -> Durable {
    match under_way.len() {
        1 => under_way.remove(0),
        _ => Box::pin(async move {
            for durable in under_way {
                durable.await?;
            }
            Ok(())
        }),
    }
}

/// A line as [`crate::fuzz`] has it parsed: the objects that it is by every format.
#[cfg(test)]
pub(crate) fn fuzzed(line: &[u8]) -> Vec<String> {
    use crate::config::{ParseFormat, TimeFormat};

    static REGEX: std::sync::LazyLock<regex::bytes::Regex> =
        std::sync::LazyLock::new(|| regex::bytes::Regex::new(r"(?<host>\S+) \[(?<time>[^\]]+)\] (?<rest>.*)").unwrap());
    let formats = [ParseFormat::Json, ParseFormat::Logfmt, ParseFormat::Cri, ParseFormat::Regex(REGEX.clone())];
    let times = [TimeFormat::Auto, TimeFormat::Epoch(1_000_000), TimeFormat::Pattern("%d/%b/%Y:%H:%M:%S %z".into())];
    let mut found = Vec::new();
    for (format, time_format) in formats.iter().flat_map(|format| times.iter().map(move |time| (format, time))) {
        let (format, time_format) = (format.clone(), time_format.clone());
        let time_zone = jiff::tz::TimeZone::UTC;
        let config =
            ParseConfig { format, time_key: Some("time".into()), time_format, time_zone, keep_time_key: false };
        let mut out = Vec::new();
        if Parser::new(&config).parse(line, &mut out) != Parsed::Text {
            found.push(String::from_utf8(out).unwrap());
        }
    }
    found
}
