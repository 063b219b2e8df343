//! Cutting a block of input into lines, none longer than the limit.

use memchr::{memchr, memrchr};

use crate::config::LongLines;
use crate::record::ChunkBuilder;

/// How long a line may be, and what becomes of a longer one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Longest {
    pub(crate) bytes: usize,
    pub(crate) longer: LongLines,
}

/// What takes lines.
pub(crate) trait TakesLines {
    /// Takes the whole lines of `block`, each with its end; what is behind the last end is left. Gives how many bytes it took.
    /// `at` is where `block` begins in all that is taken at once.
    fn whole(&mut self, at: usize, block: &[u8]) -> usize;
    /// Takes a line, or a part of one, that has no end.
    fn part(&mut self, at: usize, line: &[u8]);
}

/// Every line becomes a record of its own.
pub(crate) struct Each<'a> {
    pub(crate) chunk: &'a mut ChunkBuilder,
    pub(crate) time_ns: i64,
}

impl TakesLines for Each<'_> {
    fn whole(&mut self, _at: usize, block: &[u8]) -> usize {
        self.chunk.push_lines(self.time_ns, block)
    }
    fn part(&mut self, _at: usize, line: &[u8]) {
        self.chunk.push(self.time_ns, line);
    }
}

/// What became of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Taken {
    /// Bytes that are dealt with; what is behind them is the beginning of a line whose end is not there yet.
    pub(crate) bytes: usize,
    /// Whether they end inside a line that was too long, whose rest is to be skipped.
    pub(crate) skipping: bool,
    /// Lines that were too long; where they are split, the cuts.
    pub(crate) cut: u64,
}

/// Hands the whole lines of `block` over. Of a line that is too long, as it was chosen, the beginning is taken and the rest skipped, or
/// all is skipped, or it is taken in several parts; `skipping` says that the block begins inside such a rest.
pub(crate) fn take_lines(to: &mut impl TakesLines, block: &[u8], longest: Longest, skipping: bool) -> Taken {
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
        let fitting = before_long_line(rest, longest.bytes);
        taken.bytes += to.whole(taken.bytes, rest.get(..fitting).unwrap_or_default());
        let rest = block.get(taken.bytes..).unwrap_or_default();
        if rest.len() <= longest.bytes {
            return taken;
        }
        let kept = whole_characters(rest.get(..longest.bytes).unwrap_or_default());
        if longest.longer != LongLines::Skip {
            to.part(taken.bytes, kept);
        }
        taken.bytes += kept.len();
        taken.skipping = longest.longer != LongLines::Split;
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
        chosen(LongLines::Truncate, block, max_line, skipping)
    }

    fn chosen(longer: LongLines, block: &[u8], bytes: usize, skipping: bool) -> (Vec<String>, Taken) {
        let mut chunk = ChunkBuilder::new(BodyKind::Text, "t".into());
        let mut each = Each { chunk: &mut chunk, time_ns: 1 };
        let taken = take_lines(&mut each, block, Longest { bytes, longer }, skipping);
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
    fn a_long_line_is_left_out_where_that_was_chosen() {
        assert_eq!(
            chosen(LongLines::Skip, b"x\nabcdefgh\ny\n", 4, false),
            (vec!["x".into(), "y".into()], Taken { bytes: 13, skipping: false, cut: 1 })
        );
        let (none, taken) = chosen(LongLines::Skip, b"abcdefgh", 4, false);
        assert_eq!((none.len(), taken), (0, Taken { bytes: 8, skipping: true, cut: 1 }));
    }

    #[test]
    fn a_long_line_is_split_into_records_where_that_was_chosen() {
        assert_eq!(
            chosen(LongLines::Split, b"abcdefghij\ny\n", 4, false),
            (vec!["abcd".into(), "efgh".into(), "ij".into(), "y".into()], Taken { bytes: 13, skipping: false, cut: 2 })
        );
        // What fits just so leaves no empty record behind.
        assert_eq!(chosen(LongLines::Split, b"abcdefgh\n", 4, false).0, ["abcd", "efgh"]);
        assert_eq!(chosen(LongLines::Split, "abäcd\n".as_bytes(), 4, false).0, ["abä", "cd"]);
        // The last part waits for the line's end.
        assert_eq!(chosen(LongLines::Split, b"abcdef", 4, false).1, Taken { bytes: 4, skipping: false, cut: 1 });
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
