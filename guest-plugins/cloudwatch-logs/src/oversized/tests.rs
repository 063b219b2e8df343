use super::*;
use crate::fake::{Event, FakeEvents};

const MAX: usize = 1_048_550;

fn events(message: &str) -> FakeEvents {
    FakeEvents::new(vec![Event::new(0, message)])
}
fn pieces(message: &str, choice: Oversized) -> Vec<Piece> {
    parts(&events(message), 0, message.len() as u32, choice).unwrap()
}
fn text(message: &str, piece: &Piece) -> String {
    let (offset, length) = (piece.offset as usize, piece.length as usize);
    format!("{}{}{}", piece.before, &message[offset..offset + length], piece.after)
}

#[test]
fn a_cut_lies_within_no_character_and_no_escape() {
    for (message, at, expected) in [
        ("abcdef", 3, 3),
        ("aé", 2, 1),
        ("a日", 3, 1),
        ("a😀b", 2, 1),
        ("a😀b", 3, 1),
        ("a😀b", 4, 1),
        ("a😀b", 5, 5),
        (r"ab\ncd", 3, 2),
        (r"ab\ncd", 4, 4),
        (r"a\\nb", 2, 1),
        (r"a\\nb", 3, 3),
        (r"a\\nb", 4, 4),
        (r"a\\\nb", 4, 3),
        (r"a\u00e9b", 2, 1),
        (r"a\u00e9b", 6, 1),
        (r"a\u00e9b", 7, 7),
        (r"a\ud83d\ude00b", 2, 1),
        (r"a\ud83d\ude00b", 7, 1),
        (r"a\ud83d\ude00b", 9, 1),
        (r"a\ud83d\ude00b", 12, 1),
        (r"a\ud83d\ude00b", 13, 13),
        (r"a\ud83dxxxxxxx", 7, 7),
        (r"a\ud83d\u00e9b", 7, 7),
        (r"C:\users\x", 5, 5),
        (r"C:\users\x", 3, 2),
        (r"a\\ud83d\ude00", 8, 8),
    ] {
        assert_eq!(place(message.as_bytes(), at, true), Some(expected), "{message} at {at}");
    }
    assert_eq!(place(br"\\\n", 3, false), None, "three backslashes, and who knows how many before");
    assert_eq!(place(br"x\\\n", 4, false), Some(3));
}

#[test]
fn a_truncated_event_fills_the_limit_and_says_what_is_missing() {
    let message = "x".repeat(MAX + 1);
    let pieces = pieces(&message, Oversized::Truncate);
    assert_eq!(pieces.len(), 1);
    // " [truncated: 1048551 bytes cut off]" is what room is kept for; "39" takes less.
    let sent = text(&message, &pieces[0]);
    let kept = MAX - " [truncated: 1048551 bytes cut off]".len();
    assert_eq!(sent, format!("{} [truncated: {} bytes cut off]", "x".repeat(kept), MAX + 1 - kept));
    assert!(sent.len() <= MAX);
}

/// In Fluent Bit 170,000 of these make a body that is no JSON.
#[test]
fn wide_characters_and_escapes_are_never_cut_in_two() {
    for unit in ["é", "日", "😀", r"\u00e9", r"\ud83d\ude00", r"\n", r"\\", r#"\""#, r"\\n"] {
        for shift in 0..13 {
            let message = "y".repeat(shift) + &unit.repeat(2 * MAX / unit.len() + 1);
            let ends_whole = |text: &str| text.len().checked_sub(shift).is_some_and(|rest| rest % unit.len() == 0);
            let whole = |text: &str| ends_whole(text) || unit == r"\\n" && text.len() > shift;

            let cut = &pieces(&message, Oversized::Truncate)[0];
            assert!(whole(&message[..cut.length as usize]), "{unit} behind {shift}");
            assert!(text(&message, cut).len() <= MAX && text(&message, cut).len() > MAX - 20);

            let split = pieces(&message, Oversized::Split);
            let mut joined = String::new();
            for piece in &split {
                assert!(text(&message, piece).len() <= MAX);
                joined += &message[piece.offset as usize..(piece.offset + piece.length) as usize];
                assert!(whole(&joined), "{unit} behind {shift} at {}", joined.len());
            }
            assert!(joined == message, "{unit} behind {shift}: nothing is lost");
        }
    }
}

#[test]
fn a_long_run_of_backslashes_is_counted_from_where_it_begins() {
    for lead in ["", "y"] {
        let message = lead.to_owned() + &r"\".repeat(MAX + 100);
        let cut = &pieces(&message, Oversized::Truncate)[0];
        assert_eq!((cut.length as usize - lead.len()) % 2, 0, "{lead:?}");
    }
}

#[test]
fn a_split_event_is_numbered_parts_that_hold_all_of_it() {
    let message: String = (0..3 * MAX).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
    let pieces = pieces(&message, Oversized::Split);
    let marks: Vec<_> = pieces.iter().map(|piece| piece.before.as_str()).collect();
    assert_eq!(marks, ["[part 1/4] ", "[part 2/4] ", "[part 3/4] ", "[part 4/4] "]);
    assert_eq!(text(&message, &pieces[0]).len(), MAX, "a part is as large as it may be");
    let joined: String = pieces.iter().map(|piece| text(&message, piece).split_off("[part 1/4] ".len())).collect();
    assert!(joined == message);
}

#[test]
fn ten_parts_and_more_have_longer_marks_and_still_fit() {
    let message = "z".repeat(10 * MAX);
    let pieces = pieces(&message, Oversized::Split);
    assert_eq!((pieces[0].before.as_str(), pieces[10].before.as_str()), ("[part 1/11] ", "[part 11/11] "));
    assert_eq!(pieces.len(), 11);
    assert!(pieces.iter().all(|piece| text(&message, piece).len() <= MAX));
    assert_eq!(pieces.iter().map(|piece| piece.length as usize).sum::<usize>(), message.len());
}
