//! Event times.
//!
//! The specification's "EventTime Ext Format": type 0, eight bytes, seconds and nanoseconds as big-endian 32-bit numbers; sent as fixext8 or as
//! ext8 of length 8. Besides, MessagePack's own timestamp, type -1.

use super::fault::Fault;
use super::msgpack::{Head, Reader};

const NANOS: i64 = 1_000_000_000;

/// What stands where an event's time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventTime {
    /// Nanoseconds since 1970 UTC.
    At(i64),
    /// None that can be used: nil, 0 (what senders mean by no time, and Fluentd reads as none), or beyond what 64 bits of nanoseconds hold.
    Arrival,
    /// No event: where Fluent Bit begins (-1) or ends (-2) a group of events.
    Group,
}

/// Reads a time.
pub(crate) fn read(from: &mut Reader<'_>) -> Result<EventTime, Fault> {
    let at = from.clone();
    let time_ns = match from.head()? {
        Head::Nil => None,
        Head::Unsigned(seconds) => i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(NANOS)),
        Head::Signed(seconds) => seconds.checked_mul(NANOS),
        Head::Single(seconds) => of_seconds(seconds.into()),
        Head::Double(seconds) => of_seconds(seconds),
        Head::Extension(kind, length) => {
            let bytes = from.take(length)?;
            if let (0, Some((u32::MAX | GROUP_END, _))) = (kind, two_words(bytes)) {
                return Ok(EventTime::Group);
            }
            match of_extension(kind, bytes) {
                None if kind == -1 && matches!(length, 4 | 8 | 12) => None,
                None => return Err(at.fault("this ext is no time: an EventTime has type 0 and 8 bytes")),
                time_ns => time_ns,
            }
        }
        _ => return Err(at.fault("a time should be here: an integer or an EventTime")),
    };
    Ok(time_ns.filter(|time_ns| *time_ns != 0).map_or(EventTime::Arrival, EventTime::At))
}

/// -2 as 32 bits.
const GROUP_END: u32 = u32::MAX - 1;

/// The time that an ext is, where it is one.
pub(crate) fn of_extension(kind: i8, bytes: &[u8]) -> Option<i64> {
    match (kind, bytes.len()) {
        (0, 8) => {
            let (seconds, nanos) = two_words(bytes)?;
            Some(i64::from(seconds) * NANOS + i64::from(nanos))
        }
        (-1, 4) => Some(i64::from(u32::from_be_bytes(bytes.try_into().ok()?)) * NANOS),
        // 30 bits of nanoseconds, 34 of seconds.
        (-1, 8) => {
            let both = u64::from_be_bytes(bytes.try_into().ok()?);
            let (nanos, seconds) = ((both >> 34) as i64, (both & 0x3_ffff_ffff) as i64);
            seconds.checked_mul(NANOS)?.checked_add(nanos)
        }
        (-1, 12) => {
            let (nanos, seconds) = bytes.split_first_chunk::<4>()?;
            let seconds = i64::from_be_bytes(seconds.try_into().ok()?);
            seconds.checked_mul(NANOS)?.checked_add(u32::from_be_bytes(*nanos).into())
        }
        _ => None,
    }
}

fn two_words(bytes: &[u8]) -> Option<(u32, u32)> {
    let (first, second) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*first), u32::from_be_bytes(second.try_into().ok()?)))
}

fn of_seconds(seconds: f64) -> Option<i64> {
    let whole = seconds.floor();
    // Of those that an i64 of nanoseconds holds, with room for the fraction.
    if !(-9.2e9..9.2e9).contains(&whole) {
        return None;
    }
    Some(whole as i64 * NANOS + ((seconds - whole) * NANOS as f64) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(bytes: &[u8]) -> Result<EventTime, Fault> {
        let mut from = Reader::new(bytes);
        let time = read(&mut from);
        assert!(time.is_err() || from.is_empty());
        time
    }

    const SECONDS: [u8; 4] = 1_441_588_984_u32.to_be_bytes();

    /// Specification, "EventTime Ext Format".
    #[test]
    fn an_event_time_is_a_fixext8_or_an_ext8_of_type_0() {
        let nanos = 123_456_789_u32.to_be_bytes();
        let expected = EventTime::At(1_441_588_984_123_456_789);
        assert_eq!(read_all(&[&[0xd7, 0x00], &SECONDS[..], &nanos].concat()), Ok(expected));
        assert_eq!(read_all(&[&[0xc7, 0x08, 0x00], &SECONDS[..], &nanos].concat()), Ok(expected));
    }

    /// Specification, "Message Modes": "time is a number of seconds since Unix epoch".
    #[test]
    fn an_integer_is_seconds() {
        let expected = EventTime::At(1_441_588_984_000_000_000);
        assert_eq!(read_all(&[&[0xce], &SECONDS[..]].concat()), Ok(expected));
        assert_eq!(read_all(&[&[0xd3, 0, 0, 0, 0], &SECONDS[..]].concat()), Ok(expected));
        assert_eq!(read_all(&[0xff]), Ok(EventTime::At(-1_000_000_000)));
    }

    #[test]
    fn floating_seconds_and_the_timestamp_of_messagepack_are_taken() {
        let double = [&[0xcb][..], &1.5_f64.to_be_bytes()].concat();
        assert_eq!(read_all(&double), Ok(EventTime::At(1_500_000_000)));
        assert_eq!(read_all(&[&[0xcb][..], &(-0.5_f64).to_be_bytes()].concat()), Ok(EventTime::At(-500_000_000)));
        assert_eq!(read_all(&[&[0xca][..], &2.25_f32.to_be_bytes()].concat()), Ok(EventTime::At(2_250_000_000)));
        // MessagePack specification, "Timestamp extension type": 32, 64 and 96 bits.
        assert_eq!(read_all(&[0xd6, 0xff, 0, 0, 0, 7]), Ok(EventTime::At(7_000_000_000)));
        let both = (999_999_999_u64 << 34 | 1 << 33).to_be_bytes();
        let expected = EventTime::At((1 << 33) * 1_000_000_000 + 999_999_999);
        assert_eq!(read_all(&[&[0xd7, 0xff][..], &both].concat()), Ok(expected));
        let bytes = [&[0xc7, 12, 0xff, 0, 0, 0, 5][..], &(-1_i64).to_be_bytes()].concat();
        assert_eq!(read_all(&bytes), Ok(EventTime::At(-999_999_995)));
    }

    #[test]
    fn no_time_and_an_impossible_one_is_that_of_arrival() {
        let huge = [&[0xcf][..], &1_796_000_000_000_000_000_u64.to_be_bytes()].concat();
        let nan = [&[0xcb][..], &f64::NAN.to_be_bytes()].concat();
        for bytes in [&[0xc0][..], &[0x00], &[0xd7, 0, 0, 0, 0, 0, 0, 0, 0, 0], &huge, &nan] {
            assert_eq!(read_all(bytes), Ok(EventTime::Arrival), "{bytes:x?}");
        }
    }

    #[test]
    fn fluent_bits_group_marks_are_no_events() {
        assert_eq!(read_all(&[0xd7, 0, 255, 255, 255, 255, 0, 0, 0, 0]), Ok(EventTime::Group));
        assert_eq!(read_all(&[0xd7, 0, 255, 255, 255, 254, 0, 0, 0, 0]), Ok(EventTime::Group));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bytes in [&[0xd7, 1, 0, 0, 0, 0, 0, 0, 0, 0][..], &[0xd6, 0, 0, 0, 0, 0], &[0xa1, b'x'], &[0xc3], &[0x90]] {
            assert!(matches!(read_all(bytes), Err(Fault::Malformed { at: 0, .. })), "{bytes:x?}");
        }
        assert!(read_all(&[0xd7, 0, 1]).is_err());
        assert!(read_all(&[]).is_err());
    }
}
