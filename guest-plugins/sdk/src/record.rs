//! Records, one by one. Bodies come out of the host in windows behind the scenes.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::HostError;
use crate::bindings::wharf::output::records as wit;
use crate::source::Source;

/// Bytes of bodies taken out of the host at once: crossing costs most when windows are small, and memory when they are large.
const WINDOW_BYTES: u32 = 64 * 1024;
/// Records whose sizes are asked for at once, to find where a part ends: parts are sent, so that the next one is asked for much later.
const LISTED_FOR_PARTS: u32 = 1024;

/// What a record's body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text: any bytes.
    Text,
    /// One JSON object.
    Json,
}

/// One record. It keeps the window that it came in, some 64 KiB with its neighbours: a copy of what is needed of it is better kept than
/// many records.
#[derive(Clone)]
pub struct Record<'a> {
    window: Rc<Window<'a>>,
    index: u32,
    start: usize,
    end: usize,
}

impl Record<'_> {
    /// Its number in the batch, from 0: what [`Report::reject`](crate::Report::reject) takes.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }
    /// Nanoseconds since 1970 UTC.
    #[must_use]
    pub fn time(&self) -> i64 {
        self.window.times().get(self.place()).copied().unwrap_or_default()
    }
    /// The tag that its source gave it.
    #[must_use]
    pub fn tag(&self) -> &str {
        let mut place = self.place();
        for (tag, records) in self.window.tags() {
            match place.checked_sub(*records as usize) {
                Some(further) => place = further,
                None => return tag,
            }
        }
        ""
    }
    /// What the body is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        if self.window.kinds().get(self.place()) == Some(&1) { Kind::Json } else { Kind::Text }
    }
    /// The body: text of any bytes, or one JSON object as it was written.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.window.lines.get(self.start..self.end).unwrap_or_default()
    }
    /// The body as text; what is no UTF-8 in it is U+FFFD.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }
    /// The body read as JSON, whatever its kind: a line of text that holds JSON is read as well. What is read may borrow from the record
    /// (`&str` fields).
    ///
    /// A record that cannot be read is that record's trouble and not the batch's, so the error is no [`Failure`](crate::Failure) by
    /// itself; [`Report::or_reject`](crate::Report::or_reject) makes it the reason why the record is rejected.
    ///
    /// # Errors
    /// Where the body is no JSON, or not such.
    pub fn json<'r, T: Deserialize<'r>>(&'r self) -> Result<T, RecordError> {
        serde_json::from_slice(self.bytes()).map_err(|cause| RecordError { index: self.index, cause })
    }
    /// The record as one JSON object, as [`Encoding::json_lines`](crate::Encoding::json_lines) writes it but for the time: of text
    /// `{"log": text}`.
    ///
    /// # Errors
    /// Where the body of a JSON record is no JSON after all.
    pub fn value(&self) -> Result<Value, RecordError> {
        match self.kind() {
            Kind::Json => self.json(),
            Kind::Text => Ok(json!({ "log": self.text() })),
        }
    }

    /// Its number in the window.
    fn place(&self) -> usize {
        self.index.saturating_sub(self.window.first) as usize
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").field("index", &self.index).field("text", &self.text()).finish_non_exhaustive()
    }
}

/// A record that is not what the plugin can read. Written without the record's number, so that equal faults are equal reasons.
#[derive(Debug)]
pub struct RecordError {
    index: u32,
    cause: serde_json::Error,
}

impl RecordError {
    /// The record's number in the batch.
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the record cannot be read as JSON: {}", self.cause)
    }
}

impl std::error::Error for RecordError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Some neighbouring records. Bodies are there; what else describes them is asked for when somebody wants it.
#[derive(Debug)]
struct Window<'a> {
    source: Source<'a>,
    first: u32,
    count: u32,
    /// The bodies, each with a line feed behind it.
    lines: Vec<u8>,
    times: OnceCell<Vec<i64>>,
    kinds: OnceCell<Vec<u8>>,
    tags: OnceCell<Vec<(String, u32)>>,
}

impl<'a> Window<'a> {
    fn new(source: Source<'a>, first: u32, count: u32, lines: Vec<u8>) -> Self {
        Self { source, first, count, lines, times: OnceCell::new(), kinds: OnceCell::new(), tags: OnceCell::new() }
    }
    fn times(&self) -> &[i64] {
        self.times.get_or_init(|| self.source.times(self.first, self.count))
    }
    fn kinds(&self) -> &[u8] {
        self.kinds.get_or_init(|| self.source.kinds(self.first, self.count))
    }
    fn tags(&self) -> &[(String, u32)] {
        self.tags.get_or_init(|| self.source.tags(self.first, self.count))
    }
}

/// Goes through a batch's records: what [`Batch::records`](crate::Batch::records) gives. Its memory is one window's, unless records are
/// kept; nothing is allocated for a record.
///
/// An error is the host's (it cannot read its disk), and the last item.
#[derive(Debug)]
pub struct Records<'a> {
    source: Source<'a>,
    window: Rc<Window<'a>>,
    /// The next record's number, that of the first one behind the window, and that of the first one behind the last.
    next: u32,
    window_end: u32,
    end: u32,
    /// Where the next record begins in the window.
    offset: usize,
    /// Of the next record and those behind it in the window.
    sizes: std::vec::IntoIter<u32>,
}

impl<'a> Records<'a> {
    pub(crate) fn new(source: Source<'a>, first: u32, end: u32) -> Self {
        let window = Rc::new(Window::new(source.clone(), first, 0, Vec::new()));
        Self { source, window, next: first, window_end: first, end, offset: 0, sizes: Vec::new().into_iter() }
    }

    /// Takes the next window out of the host.
    fn fill(&mut self) -> Result<(), HostError> {
        // It comes into the room that the one before leaves, unless somebody still looks at that.
        self.sizes = Vec::new().into_iter();
        if let Some(window) = Rc::get_mut(&mut self.window) {
            *window = Window::new(self.source.clone(), self.next, 0, Vec::new());
        }
        let wit::Window { sizes, lines } = self.source.read_window(self.next, WINDOW_BYTES)?;
        let bytes = sizes.iter().map(|size| u64::from(*size) + 1).sum::<u64>();
        if sizes.is_empty() || lines.len() as u64 != bytes {
            let (count, got) = (sizes.len(), lines.len());
            return Err(HostError::Unavailable(format!(
                "{count} records have {bytes} bytes with their line feeds, and the host gave {got}"
            )));
        }
        let count = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
        let window = Window::new(self.source.clone(), self.next, count, lines);
        match Rc::get_mut(&mut self.window) {
            Some(place) => *place = window,
            None => self.window = Rc::new(window),
        }
        self.window_end = self.next.saturating_add(count).min(self.end);
        self.sizes = sizes.into_iter();
        self.offset = 0;
        Ok(())
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, HostError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.window_end {
            if self.next >= self.end {
                return None;
            }
            if let Err(error) = self.fill() {
                self.end = self.next;
                return Some(Err(error));
            }
        }
        let (index, start) = (self.next, self.offset);
        let end = start + self.sizes.next()? as usize;
        self.next += 1;
        // Behind the line feed.
        self.offset = end + 1;
        Some(Ok(Record { window: Rc::clone(&self.window), index, start, end }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // Fewer where the host fails.
        (0, Some(self.end.saturating_sub(self.next) as usize))
    }
}

impl std::iter::FusedIterator for Records<'_> {}

/// A batch in parts: what [`Batch::parts`](crate::Batch::parts) gives.
#[derive(Debug)]
pub struct Parts<'a> {
    source: Source<'a>,
    count: u32,
    next: u32,
    max_records: u32,
    max_bytes: u64,
    /// Of the records from the last part's end on.
    sizes: Vec<u32>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(source: Source<'a>, max_records: u32, max_bytes: u64) -> Self {
        let count = source.count();
        Self { source, count, next: 0, max_records: max_records.max(1), max_bytes, sizes: Vec::new() }
    }
}

impl Iterator for Parts<'_> {
    type Item = Range<u32>;

    fn next(&mut self) -> Option<Range<u32>> {
        let (first, mut bytes) = (self.next, 0);
        while self.next < self.count && self.next - first < self.max_records {
            if self.sizes.is_empty() {
                self.sizes = self.source.sizes(self.next, LISTED_FOR_PARTS);
                self.sizes.reverse();
            }
            let size = u64::from(*self.sizes.last()?);
            if self.next > first && bytes + size > self.max_bytes {
                break;
            }
            self.sizes.pop();
            bytes += size;
            self.next += 1;
        }
        (self.next > first).then_some(first..self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Sample, batch};

    /// Lines of every length up to some, among them the empty one and one larger than a window.
    fn lines() -> Vec<String> {
        let mut lines: Vec<_> = (0..20_000).map(|n| format!("{n} {}", "x".repeat(n * 7919 % 97))).collect();
        lines[7] = String::new();
        lines[12_345] = "y".repeat(300_000);
        lines
    }

    #[test]
    fn every_record_comes_once_and_in_order_whatever_window_it_is_in() {
        let lines = lines();
        let batch = batch(lines.iter().map(String::as_str));
        let seen: Vec<_> = batch.records().map(|record| record.unwrap()).collect();
        assert_eq!(seen.len(), lines.len());
        for (n, (record, line)) in seen.iter().zip(&lines).enumerate() {
            assert_eq!((record.index() as usize, record.bytes()), (n, line.as_bytes()));
        }
    }

    #[test]
    fn a_part_of_the_batch_ends_where_it_should() {
        let lines = lines();
        let batch = batch(lines.iter().map(String::as_str));
        let texts =
            |range| batch.records_in(range).map(|record| record.unwrap().text().into_owned()).collect::<Vec<_>>();
        assert_eq!(texts(6..9), lines[6..9]);
        assert_eq!(texts(12_344..12_347), lines[12_344..12_347]);
        assert_eq!(texts(19_999..u32::MAX), lines[19_999..]);
        assert_eq!(texts(20_000..u32::MAX), [""; 0]);
        assert_eq!(texts(5..5), [""; 0]);
    }

    #[test]
    fn parts_are_as_large_as_they_may_be_and_hold_every_record_once() {
        let lines = lines();
        let batch = batch(lines.iter().map(String::as_str));
        let parts: Vec<_> = batch.parts(900, 40_000).collect();
        assert_eq!((parts[0].start, parts.last().unwrap().end), (0, 20_000));
        let bytes =
            |part: &Range<u32>| lines[part.start as usize..part.end as usize].iter().map(String::len).sum::<usize>();
        for (part, next) in parts.iter().zip(&parts[1..]) {
            assert_eq!(part.end, next.start);
            assert!(part.len() <= 900 && (bytes(part) <= 40_000 || part.len() == 1));
            assert!(part.len() == 900 || bytes(&(part.start..part.end + 1)) > 40_000);
        }
        assert!(parts.contains(&(12_345..12_346)), "it is larger by itself");
        assert_eq!(batch.parts(0, u64::MAX).next(), Some(0..1));
        assert_eq!(crate::testing::batch::<&str>([]).parts(1, 1).next(), None);
    }

    #[test]
    fn a_record_that_is_kept_stays_what_it_was() {
        let lines = lines();
        let batch = batch(lines.iter().map(String::as_str));
        let mut records = batch.records();
        let kept = records.next().unwrap().unwrap();
        let last = records.last().unwrap().unwrap();
        assert_eq!((kept.text(), kept.time()), ("0 ".into(), 0));
        assert_eq!(last.text(), lines[19_999]);
    }

    #[test]
    fn windows_that_nobody_keeps_take_the_place_of_one_another() {
        let lines = lines();
        let batch = batch(lines.iter().map(String::as_str));
        let mut records = batch.records();
        records.next().unwrap().unwrap();
        let place = Rc::as_ptr(&records.window);
        while records.next().is_some() {
            assert_eq!(Rc::as_ptr(&records.window), place);
        }
    }

    #[test]
    fn what_describes_a_record_is_its_own() {
        let batch = batch([
            Sample::text("a").at(5).tag("x"),
            Sample::json(json!({ "k": 1 })).at(-7).tag("y"),
            Sample::text("{\"k\":2}").at(9).tag("y"),
        ]);
        let records: Vec<_> = batch.records().map(|record| record.unwrap()).collect();
        assert_eq!(records.iter().map(Record::time).collect::<Vec<_>>(), [5, -7, 9]);
        assert_eq!(records.iter().map(Record::tag).collect::<Vec<_>>(), ["x", "y", "y"]);
        assert_eq!(records.iter().map(Record::kind).collect::<Vec<_>>(), [Kind::Text, Kind::Json, Kind::Text]);
        let values: Vec<_> = records.iter().map(|record| record.value().unwrap()).collect();
        assert_eq!(values, [json!({ "log": "a" }), json!({ "k": 1 }), json!({ "log": "{\"k\":2}" })]);
    }

    #[test]
    fn json_is_read_from_records_of_either_kind_and_may_borrow() {
        #[derive(serde::Deserialize)]
        struct Event<'a> {
            level: &'a str,
        }
        let batch = batch([Sample::text(r#"{"level":"info"}"#), Sample::json(json!({ "level": "warn" }))]);
        let levels: Vec<_> =
            batch.records().map(|record| record.unwrap().json::<Event>().unwrap().level.to_owned()).collect();
        assert_eq!(levels, ["info", "warn"]);
    }

    #[test]
    fn a_record_that_cannot_be_read_says_why() {
        let batch = batch(["no json"]);
        let record = batch.records().next().unwrap().unwrap();
        let error = record.json::<Value>().unwrap_err();
        assert_eq!(error.index(), 0);
        assert!(error.to_string().starts_with("the record cannot be read as JSON: expected"), "{error}");
    }

    #[test]
    fn text_that_is_no_utf8_is_shown_all_the_same() {
        let batch = batch([Sample::text(b"a\xffb")]);
        let record = batch.records().next().unwrap().unwrap();
        assert_eq!((record.text().as_ref(), record.bytes()), ("a\u{FFFD}b", &b"a\xffb"[..]));
    }
}
