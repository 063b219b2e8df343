//! MessagePack, read from bytes: the head of a value, where a value ends in bytes that come in pieces, and values one after another.
//!
//! Nothing is allocated for what is only announced: a length or a count is a number here until its bytes have come. Names of formats
//! are those of the specification (<https://github.com/msgpack/msgpack/blob/master/spec.md>).

use rmp::Marker;

use super::fault::Fault;

/// The head of a value: all of it, for what has no length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Head {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Single(f32),
    Double(f64),
    /// `str`, and its bytes.
    Text(u32),
    /// `bin`, and its bytes.
    Binary(u32),
    /// `ext`: its type and its bytes.
    Extension(i8, u32),
    /// `array`, and its values.
    List(u32),
    /// `map`, and its pairs.
    Map(u32),
}

/// Why there is no head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHead {
    /// More bytes are needed.
    More,
    /// 0xc1, which the specification never uses.
    NeverUsed,
}

impl Head {
    /// Reads the head at the beginning of `bytes`, and gives how long it is.
    pub(crate) fn of(bytes: &[u8]) -> Result<(Self, usize), NoHead> {
        let marker = Marker::from_u8(*bytes.first().ok_or(NoHead::More)?);
        Ok(match marker {
            Marker::FixPos(number) => (Self::Unsigned(number.into()), 1),
            Marker::FixNeg(number) => (Self::Signed(number.into()), 1),
            Marker::FixMap(pairs) => (Self::Map(pairs.into()), 1),
            Marker::FixArray(values) => (Self::List(values.into()), 1),
            Marker::FixStr(length) => (Self::Text(length.into()), 1),
            Marker::Null => (Self::Nil, 1),
            Marker::Reserved => return Err(NoHead::NeverUsed),
            Marker::False => (Self::Bool(false), 1),
            Marker::True => (Self::Bool(true), 1),
            Marker::Bin8 => (Self::Binary(one(bytes)?), 2),
            Marker::Bin16 => (Self::Binary(two(bytes)?), 3),
            Marker::Bin32 => (Self::Binary(four(bytes)?), 5),
            Marker::Ext8 => (Self::Extension(kind(bytes, 2)?, one(bytes)?), 3),
            Marker::Ext16 => (Self::Extension(kind(bytes, 3)?, two(bytes)?), 4),
            Marker::Ext32 => (Self::Extension(kind(bytes, 5)?, four(bytes)?), 6),
            Marker::F32 => (Self::Single(f32::from_be_bytes(number(bytes)?)), 5),
            Marker::F64 => (Self::Double(f64::from_be_bytes(number(bytes)?)), 9),
            Marker::U8 => (Self::Unsigned(one(bytes)?.into()), 2),
            Marker::U16 => (Self::Unsigned(two(bytes)?.into()), 3),
            Marker::U32 => (Self::Unsigned(four(bytes)?.into()), 5),
            Marker::U64 => (Self::Unsigned(u64::from_be_bytes(number(bytes)?)), 9),
            Marker::I8 => (Self::Signed(i8::from_be_bytes(number(bytes)?).into()), 2),
            Marker::I16 => (Self::Signed(i16::from_be_bytes(number(bytes)?).into()), 3),
            Marker::I32 => (Self::Signed(i32::from_be_bytes(number(bytes)?).into()), 5),
            Marker::I64 => (Self::Signed(i64::from_be_bytes(number(bytes)?)), 9),
            Marker::FixExt1 => (Self::Extension(kind(bytes, 1)?, 1), 2),
            Marker::FixExt2 => (Self::Extension(kind(bytes, 1)?, 2), 2),
            Marker::FixExt4 => (Self::Extension(kind(bytes, 1)?, 4), 2),
            Marker::FixExt8 => (Self::Extension(kind(bytes, 1)?, 8), 2),
            Marker::FixExt16 => (Self::Extension(kind(bytes, 1)?, 16), 2),
            Marker::Str8 => (Self::Text(one(bytes)?), 2),
            Marker::Str16 => (Self::Text(two(bytes)?), 3),
            Marker::Str32 => (Self::Text(four(bytes)?), 5),
            Marker::Array16 => (Self::List(two(bytes)?), 3),
            Marker::Array32 => (Self::List(four(bytes)?), 5),
            Marker::Map16 => (Self::Map(two(bytes)?), 3),
            Marker::Map32 => (Self::Map(four(bytes)?), 5),
        })
    }

    /// Bytes of what comes behind the head, values inside not counted.
    fn payload(self) -> usize {
        match self {
            Self::Text(length) | Self::Binary(length) | Self::Extension(_, length) => length as usize,
            _ => 0,
        }
    }

    /// How many values are inside.
    fn inside(self) -> u64 {
        match self {
            Self::List(values) => values.into(),
            Self::Map(pairs) => 2 * u64::from(pairs),
            _ => 0,
        }
    }
}

/// The big-endian bytes behind a marker.
fn number<const N: usize>(bytes: &[u8]) -> Result<[u8; N], NoHead> {
    bytes.get(1..=N).and_then(|bytes| bytes.try_into().ok()).ok_or(NoHead::More)
}

fn one(bytes: &[u8]) -> Result<u32, NoHead> {
    Ok(u8::from_be_bytes(number(bytes)?).into())
}

fn two(bytes: &[u8]) -> Result<u32, NoHead> {
    Ok(u16::from_be_bytes(number(bytes)?).into())
}

fn four(bytes: &[u8]) -> Result<u32, NoHead> {
    Ok(u32::from_be_bytes(number(bytes)?))
}

/// An ext's type.
fn kind(bytes: &[u8], at: usize) -> Result<i8, NoHead> {
    bytes.get(at).map(|byte| byte.cast_signed()).ok_or(NoHead::More)
}

/// Finds where a value ends, in bytes of which there are more each time. What was looked at is not looked at again.
#[derive(Debug)]
pub(crate) struct Framer {
    /// Bytes that are known to belong to the value; they need not be there yet.
    at: usize,
    begun: bool,
    /// For each list and map that is open, the values that are still to come; the innermost is last.
    open: Vec<u64>,
    most_bytes: usize,
    most_depth: usize,
}

impl Framer {
    /// For values of at most so many bytes, with lists and maps at most so deep in one another.
    pub(crate) fn new(most_bytes: usize, most_depth: usize) -> Self {
        Self { at: 0, begun: false, open: Vec::new(), most_bytes, most_depth }
    }

    /// Where the value that begins `bytes` ends, or none where more bytes are needed. The next call is about the same value, with
    /// more bytes, until an end was found; then about the next one.
    pub(crate) fn end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Fault> {
        loop {
            let coming = self.at as u64 + self.open.last().copied().unwrap_or(0);
            if coming > self.most_bytes as u64 {
                return Err(Fault::TooLarge(self.most_bytes));
            }
            if self.begun && self.open.is_empty() {
                if self.at > bytes.len() {
                    return Ok(None);
                }
                self.begun = false;
                return Ok(Some(std::mem::take(&mut self.at)));
            }
            let Some(rest) = bytes.get(self.at..) else { return Ok(None) };
            let (head, length) = match Head::of(rest) {
                Ok(head) => head,
                Err(NoHead::More) => return Ok(None),
                Err(NoHead::NeverUsed) => return Err(Fault::malformed(self.at, "0xc1 begins no MessagePack value")),
            };
            self.begun = true;
            self.at = self.at.saturating_add(length).saturating_add(head.payload());
            self.count_one();
            if head.inside() > 0 {
                if self.open.len() >= self.most_depth {
                    return Err(Fault::TooDeep);
                }
                self.open.push(head.inside());
            } else {
                self.close_full();
            }
        }
    }

    /// The value whose head was read is one of those that the innermost list or map waits for.
    fn count_one(&mut self) {
        if let Some(left) = self.open.last_mut() {
            *left -= 1;
        }
    }

    fn close_full(&mut self) {
        while self.open.last() == Some(&0) {
            self.open.pop();
        }
    }
}

/// Reads values from bytes that are all there.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Whether there is nothing more.
    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// The next head, without taking it.
    pub(crate) fn peek(&self) -> Result<Head, Fault> {
        self.look().map(|(head, _)| head)
    }

    fn look(&self) -> Result<(Head, usize), Fault> {
        Head::of(self.rest()).map_err(|none| match none {
            NoHead::More => self.fault("it ends where a value should be"),
            NoHead::NeverUsed => self.fault("0xc1 begins no MessagePack value"),
        })
    }

    /// Takes a head. What is behind it is to be taken next.
    pub(crate) fn head(&mut self) -> Result<Head, Fault> {
        let (head, length) = self.look()?;
        self.at += length;
        Ok(head)
    }

    /// Takes so many bytes of a str, bin or ext.
    pub(crate) fn take(&mut self, length: u32) -> Result<&'a [u8], Fault> {
        let end = self.at.saturating_add(length as usize);
        let taken = self.bytes.get(self.at..end);
        let taken = taken.ok_or_else(|| self.fault("it ends inside a str, bin or ext"))?;
        self.at = end;
        Ok(taken)
    }

    /// Takes a str or a bin.
    pub(crate) fn text(&mut self, what: &'static str) -> Result<&'a [u8], Fault> {
        match self.head()? {
            Head::Text(length) | Head::Binary(length) => self.take(length),
            _ => Err(self.fault(what)),
        }
    }

    /// Takes a whole value, at most so deep, and gives its bytes.
    pub(crate) fn value(&mut self, most_depth: usize) -> Result<&'a [u8], Fault> {
        let rest = self.rest();
        let end = Framer::new(rest.len(), most_depth).end(rest);
        let value = match end {
            Ok(end) => end.and_then(|end| rest.get(..end)),
            // More than there is.
            Err(Fault::TooLarge(_)) => None,
            Err(fault) => return Err(fault.behind(self.at)),
        };
        let value = value.ok_or_else(|| self.fault("it ends inside a value"))?;
        self.at += value.len();
        Ok(value)
    }

    /// Something is wrong here.
    pub(crate) fn fault(&self, what: &'static str) -> Fault {
        Fault::malformed(self.at, what)
    }
}
