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

    /// The bytes before what is next.
    pub(crate) fn at(&self) -> usize {
        self.at
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANY: usize = 1 << 20;

    fn framer() -> Framer {
        Framer::new(ANY, 100)
    }

    /// MessagePack specification, "Overview": the first bytes of every format, with the shortest and longest of what they stand for.
    #[test]
    fn every_format_is_known() {
        for (bytes, head, length) in [
            (&[0x00][..], Head::Unsigned(0), 1),
            (&[0x7f], Head::Unsigned(127), 1),
            (&[0x80], Head::Map(0), 1),
            (&[0x8f], Head::Map(15), 1),
            (&[0x90], Head::List(0), 1),
            (&[0x9f], Head::List(15), 1),
            (&[0xa0], Head::Text(0), 1),
            (&[0xbf], Head::Text(31), 1),
            (&[0xc0], Head::Nil, 1),
            (&[0xc2], Head::Bool(false), 1),
            (&[0xc3], Head::Bool(true), 1),
            (&[0xc4, 255], Head::Binary(255), 2),
            (&[0xc5, 1, 0], Head::Binary(256), 3),
            (&[0xc6, 0, 1, 0, 0], Head::Binary(65_536), 5),
            (&[0xc7, 9, 0xff], Head::Extension(-1, 9), 3),
            (&[0xc8, 1, 0, 5], Head::Extension(5, 256), 4),
            (&[0xc9, 0, 1, 0, 0, 0x80], Head::Extension(-128, 65_536), 6),
            (&[0xca, 0x3f, 0x80, 0, 0], Head::Single(1.0), 5),
            (&[0xcb, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0], Head::Double(-1.0), 9),
            (&[0xcc, 255], Head::Unsigned(255), 2),
            (&[0xcd, 1, 0], Head::Unsigned(256), 3),
            (&[0xce, 0, 1, 0, 0], Head::Unsigned(65_536), 5),
            (&[0xcf, 255, 255, 255, 255, 255, 255, 255, 255], Head::Unsigned(u64::MAX), 9),
            (&[0xd0, 0x80], Head::Signed(-128), 2),
            (&[0xd1, 0x80, 0], Head::Signed(-32_768), 3),
            (&[0xd2, 0x80, 0, 0, 0], Head::Signed(-2_147_483_648), 5),
            (&[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0], Head::Signed(i64::MIN), 9),
            (&[0xd4, 7], Head::Extension(7, 1), 2),
            (&[0xd5, 7], Head::Extension(7, 2), 2),
            (&[0xd6, 7], Head::Extension(7, 4), 2),
            (&[0xd7, 7], Head::Extension(7, 8), 2),
            (&[0xd8, 7], Head::Extension(7, 16), 2),
            (&[0xd9, 255], Head::Text(255), 2),
            (&[0xda, 1, 0], Head::Text(256), 3),
            (&[0xdb, 0, 1, 0, 0], Head::Text(65_536), 5),
            (&[0xdc, 0, 16], Head::List(16), 3),
            (&[0xdd, 255, 255, 255, 255], Head::List(u32::MAX), 5),
            (&[0xde, 0, 16], Head::Map(16), 3),
            (&[0xdf, 255, 255, 255, 255], Head::Map(u32::MAX), 5),
            (&[0xe0], Head::Signed(-32), 1),
            (&[0xff], Head::Signed(-1), 1),
        ] {
            assert_eq!(Head::of(bytes), Ok((head, length)), "{bytes:x?}");
            for shorter in 0..length {
                assert_eq!(Head::of(&bytes[..shorter]), Err(NoHead::More), "{bytes:x?}, cut at {shorter}");
            }
        }
        assert_eq!(Head::of(&[0xc1]), Err(NoHead::NeverUsed));
    }

    #[test]
    fn a_value_ends_behind_everything_inside() {
        // {"a": [1, {}, ["x"]], "b": nil}, and the beginning of another value.
        let bytes = [0x82, 0xa1, b'a', 0x93, 1, 0x80, 0x91, 0xa1, b'x', 0xa1, b'b', 0xc0, 0x93, 1];
        let mut framer = framer();
        assert_eq!(framer.end(&bytes), Ok(Some(12)));
        assert_eq!(framer.end(&bytes[12..]), Ok(None));
        assert_eq!(framer.end(&[0x93, 1, 2, 0x90]), Ok(Some(4)));
    }

    #[test]
    fn what_is_announced_beyond_the_limit_is_refused_before_it_comes() {
        for bytes in [
            &[0xc6, 0, 0x20, 0, 0][..],
            &[0x91, 0xdb, 255, 255, 255, 255],
            &[0xdd, 255, 255, 255, 255],
            &[0xdf, 0, 16, 0, 0],
        ] {
            assert_eq!(framer().end(bytes), Err(Fault::TooLarge(ANY)), "{bytes:x?}");
        }
        // Exactly as large as may be, and a byte more.
        assert_eq!(Framer::new(5, 9).end(&[0xa4, b'a', b'b', b'c', b'd']), Ok(Some(5)));
        assert_eq!(Framer::new(4, 9).end(&[0xa4]), Err(Fault::TooLarge(4)));
    }

    #[test]
    fn lists_are_nested_as_deep_as_they_may_be_and_not_deeper() {
        let nested = |depth: usize| [vec![0x91; depth - 1], vec![0x90]].concat();
        // An empty list holds nothing open.
        assert_eq!(Framer::new(ANY, 7).end(&nested(8)), Ok(Some(8)));
        assert_eq!(Framer::new(ANY, 7).end(&[nested(8), vec![1]].concat()), Ok(Some(8)));
        assert_eq!(Framer::new(ANY, 7).end(&nested(9)), Err(Fault::TooDeep));
    }

    /// Whatever was looked at may change: it is not looked at again.
    #[test]
    fn bytes_are_looked_at_once_however_they_come() {
        let value = [
            vec![0xdc, 1, 0],
            [0x82, 0xa2, b'k', b'1', 0xc4, 3, 0xc1, 0xc1, 0xc1, 0xa0, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0].repeat(256),
        ]
        .concat();
        let (mut bytes, mut framer) = (Vec::new(), framer());
        for (number, byte) in value.iter().enumerate() {
            bytes.push(*byte);
            let end = framer.end(&bytes).unwrap();
            assert_eq!(end, (number + 1 == value.len()).then_some(value.len()));
            let looked_at = framer.at.min(bytes.len());
            bytes[..looked_at].fill(0xc1);
        }
    }

    #[test]
    fn a_reader_takes_values_and_says_where_they_end_too_early() {
        let mut from = Reader::new(&[0x92, 1, 0xa1, b'x', 0xc0]);
        assert_eq!(from.value(9), Ok(&[0x92, 1, 0xa1, b'x'][..]));
        assert_eq!(from.head(), Ok(Head::Nil));
        assert!(from.is_empty());
        assert_eq!(from.head(), Err(Fault::malformed(5, "it ends where a value should be")));
        assert_eq!(Reader::new(&[0x92, 1]).value(9), Err(Fault::malformed(0, "it ends inside a value")));
        assert_eq!(Reader::new(&[0xa3, b'x']).value(9), Err(Fault::malformed(0, "it ends inside a value")));
        assert_eq!(
            Reader::new(&[0x92, 1, 0xc1]).value(9),
            Err(Fault::malformed(2, "0xc1 begins no MessagePack value"))
        );
        assert_eq!(
            Reader::new(&[0xa3, b'x']).text("a str"),
            Err(Fault::malformed(1, "it ends inside a str, bin or ext"))
        );
        assert_eq!(Reader::new(&[1]).text("a str"), Err(Fault::malformed(1, "a str")));
    }

    proptest! {
        /// Cut anywhere, the ends are where they are when all is there.
        #[test]
        fn pieces_have_the_same_ends(bytes in proptest::collection::vec(any::<u8>(), 0..300), cuts in proptest::collection::vec(1_usize..40, 1..20)) {
            let whole = ends(&bytes, &[bytes.len().max(1)]);
            prop_assert_eq!(ends(&bytes, &cuts), whole);
        }
    }

    /// Where the values end, and the fault that ended it, when bytes come in pieces of these sizes in turn.
    fn ends(bytes: &[u8], pieces: &[usize]) -> (Vec<usize>, Option<&'static str>) {
        let (mut framer, mut found, mut begin, mut there) = (framer(), Vec::new(), 0, 0);
        for piece in pieces.iter().cycle() {
            there = (there + piece).min(bytes.len());
            loop {
                match framer.end(&bytes[begin..there]) {
                    Ok(Some(length)) => {
                        begin += length;
                        found.push(begin);
                    }
                    Ok(None) => break,
                    Err(fault) => return (found, Some(fault.reason())),
                }
            }
            if there == bytes.len() {
                break;
            }
        }
        (found, None)
    }
}
