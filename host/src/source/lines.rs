//! Cutting a block of input into lines, none longer than the limit.

use memchr::{memchr, memrchr};

use crate::record::ChunkBuilder;

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    /// Bytes that are dealt with; what is behind them is the beginning of a line whose end is not there yet.
    pub(crate) bytes: usize,
    /// Whether they end inside a line that was too long: its beginning was taken, its rest is to be skipped.
    pub(crate) skipping: bool,
    /// Lines that were too long.
    pub(crate) cut: u64,
}

/// Adds the whole lines of `block` to the chunk. A line of more than `max_line` bytes is cut there and the rest of it skipped;
/// `skipping` says that the block begins inside such a rest.
pub(crate) fn take_lines(
    chunk: &mut ChunkBuilder,
    time_ns: i64,
    block: &[u8],
    max_line: usize,
    skipping: bool,
) -> Taken {
    let mut taken = Taken { skipping, ..Taken::default() };
    loop {
        let rest = block.get(taken.bytes..).unwrap_or_default();
        if taken.skipping {
            match memchr(b'\n', rest) {
                Some(end) => {
                    taken.bytes += end + 1;
                    taken.skipping = false;
                    continue;
                }
                None => {
                    taken.bytes = block.len();
                    return taken;
                }
            }
        }
        let fitting = before_long_line(rest, max_line);
        taken.bytes += chunk.push_lines(time_ns, rest.get(..fitting).unwrap_or_default());
        let rest = block.get(taken.bytes..).unwrap_or_default();
        if rest.len() <= max_line {
            return taken;
        }
        let kept = whole_characters(rest.get(..max_line).unwrap_or_default());
        chunk.push(time_ns, kept);
        taken.bytes += kept.len();
        taken.skipping = true;
        taken.cut += 1;
    }
}

/// How many bytes of `block`, which begins a line, come before its first line of more than `max_line` bytes. Looks only at every
/// `max_line`th byte or so: from a line's beginning, the last line feed within reach is the beginning of a line again.
fn before_long_line(block: &[u8], max_line: usize) -> usize {
    let mut line = 0;
    loop {
        let Some(reach) = block.get(line..).and_then(|rest| rest.get(..=max_line)) else { return block.len() };
        match memrchr(b'\n', reach) {
            Some(end) => line += end + 1,
            None => return line,
        }
    }
}

/// `text` without a character at its end that the cut went through.
fn whole_characters(text: &[u8]) -> &[u8] {
    for back in 1..=text.len().min(4) {
        let at = text.len() - back;
        let Some(&byte) = text.get(at) else { break };
        let length = match byte {
            0x80..=0xbf => continue,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        // Never all of it: a record of bytes that are no text is still a record.
        return if length > back && at > 0 { text.get(..at).unwrap_or(text) } else { text };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BodyKind;

    fn lines(block: &[u8], max_line: usize, skipping: bool) -> (Vec<String>, Taken) {
        let mut chunk = ChunkBuilder::new(BodyKind::Text, "t".into());
        let taken = take_lines(&mut chunk, 1, block, max_line, skipping);
        let lines = chunk.finish().map_or_else(Vec::new, |chunk| {
            chunk.iter().map(|record| String::from_utf8_lossy(record.body).into_owned()).collect()
        });
        (lines, taken)
    }

    #[test]
    fn whole_lines_are_taken_and_the_unfinished_one_is_left() {
        assert_eq!(
            lines(b"a\n\nbc\r\nde", 10, false),
            (vec!["a".into(), String::new(), "bc".into()], Taken { bytes: 7, skipping: false, cut: 0 })
        );
    }

    #[test]
    fn a_line_of_just_the_limit_is_whole_and_one_byte_more_is_cut() {
        assert_eq!(lines(b"abcd\n", 4, false), (vec!["abcd".into()], Taken { bytes: 5, skipping: false, cut: 0 }));
        assert_eq!(
            lines(b"x\nabcde\ny\n", 4, false),
            (vec!["x".into(), "abcd".into(), "y".into()], Taken { bytes: 10, skipping: false, cut: 1 })
        );
    }

    #[test]
    fn the_rest_of_a_long_line_is_skipped_in_later_blocks() {
        let (first, taken) = lines(b"abcdefgh", 4, false);
        assert_eq!((first, taken), (vec!["abcd".into()], Taken { bytes: 8, skipping: true, cut: 1 }));
        assert_eq!(lines(b"ijkl", 4, true), (vec![], Taken { bytes: 4, skipping: true, cut: 0 }));
        assert_eq!(lines(b"m\nn\n", 4, true), (vec!["n".into()], Taken { bytes: 4, skipping: false, cut: 0 }));
    }

    #[test]
    fn an_unfinished_line_is_not_cut_before_it_is_too_long() {
        assert_eq!(lines(b"a\nabcd", 4, false).1, Taken { bytes: 2, skipping: false, cut: 0 });
    }

    #[test]
    fn a_cut_does_not_go_through_a_character() {
        assert_eq!(lines("abcä!\n".as_bytes(), 4, false).0, ["abc"]);
        assert_eq!(lines("abä!x\n".as_bytes(), 4, false).0, ["abä"]);
        assert_eq!(lines("a𝄞bcd\n".as_bytes(), 4, false).0, ["a"]);
    }

    proptest::proptest! {
        #[test]
        fn however_it_is_cut_into_blocks_the_lines_are_those_of_the_file(
            text in "[ab\n]{0,80}", max_line in 1_usize..12, blocks in proptest::collection::vec(1_usize..20, 1..40)
        ) {
            let expected: Vec<String> = text.split_inclusive('\n').filter(|l| l.ends_with('\n'))
                .map(|l| l.trim_end_matches('\n').chars().take(max_line).collect()).collect();
            let (mut got, mut at, mut skipping, mut want) = (vec![], 0, false, 0);
            for size in blocks.iter().cycle().take(400) {
                want = size.max(&want).min(&(max_line + 1)).to_owned();
                let end = (at + want).min(text.len());
                let (some, taken) = lines(&text.as_bytes()[at..end], max_line, skipping);
                got.extend(some);
                want = if taken.bytes == 0 { want + 1 } else { 0 };
                (at, skipping) = (at + taken.bytes, taken.skipping);
            }
            // A last line without an end may have been cut already.
            got.truncate(expected.len());
            proptest::prop_assert_eq!(got, expected);
        }
    }
}
