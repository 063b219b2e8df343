//! What container runtimes wrap around a line: the stream, and whether the line goes on in the next entry.
//!
//! CRI (containerd, CRI-O): `TIME STREAM TAGS LINE`, where the first of the tags, set apart by colons, is `P` for a part and `F` for the
//! last one (kubernetes/kubernetes, `cri-client/pkg/logs`). Docker: a JSON object whose `log` ends in a line feed only where the line does.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::config::Frame;

/// A line and what it is wrapped in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Framed<'a> {
    /// Lines of different streams do not belong together.
    pub(crate) stream: Cow<'a, [u8]>,
    /// Whether the line goes on in this stream's next entry.
    pub(crate) partial: bool,
    /// What stands before the line in a record, behind it, and the line as it stands there.
    pub(crate) before: Cow<'a, [u8]>,
    pub(crate) raw: &'a [u8],
    pub(crate) behind: &'a [u8],
    /// The line that rules look at.
    pub(crate) line: Cow<'a, [u8]>,
    /// What stands between two lines of one record.
    pub(crate) between: &'static [u8],
}

/// Takes an entry apart. What is none is a line of its own, without a stream.
pub(crate) fn framed(frame: Option<Frame>, entry: &[u8]) -> Framed<'_> {
    let framed = match frame {
        Some(Frame::Cri) => cri(entry),
        Some(Frame::Docker) => docker(entry),
        None => None,
    };
    framed.unwrap_or(Framed {
        stream: Cow::Borrowed(b""),
        partial: false,
        before: Cow::Borrowed(b""),
        raw: entry,
        behind: b"",
        line: Cow::Borrowed(entry),
        between: b"\n",
    })
}

fn cri(entry: &[u8]) -> Option<Framed<'_>> {
    let mut parts = entry.splitn(4, |byte| *byte == b' ');
    let (time, stream, tags) = (parts.next()?, parts.next()?, parts.next()?);
    let raw = parts.next().unwrap_or_default();
    let tag = tags.split(|byte| *byte == b':').next()?;
    if !matches!(stream, b"stdout" | b"stderr") || !matches!(tag, b"P" | b"F") {
        return None;
    }
    let before = if tag == b"F" {
        Cow::Borrowed(entry.get(..entry.len() - raw.len()).unwrap_or_default())
    } else {
        // What is joined is whole.
        Cow::Owned([time, b" ", stream, b" F ".as_slice()].concat())
    };
    let line = Cow::Borrowed(raw);
    Some(Framed { stream: Cow::Borrowed(stream), partial: tag == b"P", before, raw, behind: b"", line, between: b"\n" })
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    log: &'a RawValue,
    #[serde(borrow, default)]
    stream: Cow<'a, str>,
}

fn docker(entry: &[u8]) -> Option<Framed<'_>> {
    let text = std::str::from_utf8(entry).ok()?;
    let parsed: Entry<'_> = serde_json::from_str(text).ok()?;
    let log = parsed.log.get();
    // Within its quotes.
    let at = (log.as_ptr() as usize).checked_sub(text.as_ptr() as usize)? + 1;
    let raw = log.strip_prefix('"')?.strip_suffix('"')?;
    let line: String = serde_json::from_str(log).ok()?;
    let (partial, line) = match line.strip_suffix('\n') {
        Some(line) => (false, line.as_bytes().to_vec()),
        None => (true, line.into_bytes()),
    };
    Some(Framed {
        stream: Cow::Owned(parsed.stream.into_owned().into_bytes()),
        partial,
        before: Cow::Borrowed(entry.get(..at)?),
        raw: raw.as_bytes(),
        behind: entry.get(at + raw.len()..)?,
        line: Cow::Owned(line),
        // The line's own end is in it.
        between: b"",
    })
}
