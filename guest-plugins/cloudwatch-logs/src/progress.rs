//! What is written down of a batch, so that any later attempt, in whatever process, sends only what was not accepted.
//!
//! The row `at` says how far the batch is, what its events are made by, and which of the last call's events were refused. It is one row, so
//! that these are never at odds. Before it is written over, the refused events that it names go to a row of their own, `no/<n>`. All rows go
//! away with the batch.

use wharf_plugin::{HostError, warn};

use crate::calls::Position;
use crate::settings::{Oversized, Recipe};
use crate::world::World;

const AT: &str = "at";
const REFUSED: &str = "no/";
/// How calls are made of a batch. Another number: pieces of large events may be other ones.
const PLAN: &str = "1";
/// Bytes of ranges that one row holds: beside the longest `log_key` (256 bytes) and the rest within the host's 1,024.
const MAX_RANGES: usize = 700;
/// Bytes that are kept of what CloudWatch Logs said.
const MAX_TEXT: usize = 200;

/// Why CloudWatch Logs does not take an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// More than 14 days ago.
    TooOld,
    /// More than 2 hours ahead.
    TooNew,
    /// Older than the log group's retention.
    Expired,
    /// It was refused alone, where others were accepted.
    Refused(String),
}

impl Why {
    /// As metrics name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TooOld => "too_old",
            Self::TooNew => "too_new",
            Self::Expired => "expired",
            Self::Refused(_) => "refused",
        }
    }

    /// For a person.
    pub fn reason(&self) -> String {
        match self {
            Self::TooOld => "too_old: CloudWatch Logs takes no event of more than 14 days ago".into(),
            Self::TooNew => "too_new: CloudWatch Logs takes no event of more than 2 hours ahead".into(),
            Self::Expired => "expired: it is older than the log group's retention".into(),
            Self::Refused(text) => format!("refused: {text}"),
        }
    }
}

/// Events that were refused: places in the batch's order, from the first to before the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// First place.
    pub from: u32,
    /// Behind the last.
    pub to: u32,
    /// Why.
    pub why: Why,
}

/// How far a batch is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What is done.
    pub at: Position,
    /// What the batch's events are made by: a batch that was begun is finished with it, whatever the configuration says by then.
    pub recipe: Recipe,
    /// Refused, and in rows of their own.
    kept: Vec<Refused>,
    /// Refused since.
    recent: Vec<Refused>,
    /// How many of these the row `at` holds.
    in_row: usize,
    /// How many rows of their own there are.
    rows: usize,
}

impl Progress {
    /// What is known of the batch; `recipe` is for one that is not yet begun.
    ///
    /// # Errors
    /// Where the host cannot read it.
    pub fn read<W: World>(world: &W, recipe: &Recipe) -> Result<Self, HostError> {
        let mut progress = Self::none(recipe);
        let rows = world.progress()?;
        for (_, value) in rows.iter().filter(|(row, _)| row.starts_with(REFUSED)) {
            progress.rows += 1;
            progress.kept.extend(read_ranges(&String::from_utf8_lossy(value)));
        }
        let Some((_, at)) = rows.iter().find(|(row, _)| row == AT) else { return Ok(progress) };
        let known = progress.read_at(&String::from_utf8_lossy(at));
        if known.is_none() {
            warn!("how far a batch is cannot be read: it is sent from its beginning, and events may be there twice");
            return Ok(Self::none(recipe));
        }
        Ok(progress)
    }

    fn none(recipe: &Recipe) -> Self {
        Self {
            at: Position::default(),
            recipe: recipe.clone(),
            kept: Vec::new(),
            recent: Vec::new(),
            in_row: 0,
            rows: 0,
        }
    }

    fn read_at(&mut self, row: &str) -> Option<()> {
        let (first, rest) = row.split_once('\n')?;
        let mut fields = first.split(' ');
        let plan = fields.next()?;
        self.at.records = fields.next()?.parse().ok()?;
        let pieces = fields.next()?.parse().ok()?;
        // Pieces that another plan made are not those that this one would skip: better the event again.
        self.at.pieces = if plan == PLAN { pieces } else { 0 };
        let oversized = Oversized::named(fields.next()?)?;
        self.recent = read_ranges(rest);
        self.in_row = self.recent.len();
        let log_key = if rest.starts_with('k') { rest.get(1..) } else { rest.split_once("\nk").map(|(_, key)| key) };
        self.recipe = Recipe { log_key: log_key.map(str::to_owned), oversized };
        Some(())
    }

    /// Events were refused.
    pub fn refuse(&mut self, refused: Refused) {
        self.recent.push(refused);
    }

    /// So much is done.
    pub fn advance(&mut self, at: Position) {
        self.at = at;
    }

    /// Writes down how far the batch is. On disk when it returns.
    ///
    /// # Errors
    /// Where the host cannot write.
    pub fn write<W: World>(&mut self, world: &W) -> Result<(), HostError> {
        // What the row held so far is about to be written over.
        self.keep(world, self.in_row)?;
        self.in_row = 0;
        while fitting(&self.recent) < self.recent.len() {
            self.keep(world, fitting(&self.recent))?;
        }
        let Position { records, pieces } = self.at;
        let mut row = format!("{PLAN} {records} {pieces} {}\n", self.recipe.oversized.name());
        row.push_str(&write_ranges(&self.recent));
        if let Some(key) = &self.recipe.log_key {
            row.push('k');
            row.push_str(key);
        }
        world.set_progress(AT, row.as_bytes())?;
        self.in_row = self.recent.len();
        Ok(())
    }

    /// Gives the first ranges rows of their own.
    fn keep<W: World>(&mut self, world: &W, mut count: usize) -> Result<(), HostError> {
        while count > 0 {
            let here = fitting(self.recent.get(..count).unwrap_or_default());
            let ranges: Vec<_> = self.recent.drain(..here).collect();
            world.set_progress(&format!("{REFUSED}{:08}", self.rows), write_ranges(&ranges).as_bytes())?;
            self.rows += 1;
            self.kept.extend(ranges);
            count -= here;
        }
        Ok(())
    }

    /// All that was refused.
    pub fn refused(&self) -> impl Iterator<Item = &Refused> {
        self.kept.iter().chain(&self.recent)
    }
}

/// How many of the first ranges one row holds; at least one, where there is one.
fn fitting(ranges: &[Refused]) -> usize {
    let most = ranges.len();
    (1..=most)
        .rev()
        .find(|count| write_ranges(ranges.get(..*count).unwrap_or_default()).len() <= MAX_RANGES)
        .unwrap_or(most.min(1))
}

fn write_ranges(ranges: &[Refused]) -> String {
    let mut text = String::new();
    let mut said = "";
    for Refused { from, to, why } in ranges {
        // The same text is mostly said of all: once is enough.
        match why {
            Why::Refused(new) if new != said => {
                said = new;
                text.push_str(&format!("{from} {to} refused {new}\n"));
            }
            why => text.push_str(&format!("{from} {to} {}\n", why.name())),
        }
    }
    text
}

fn read_ranges(text: &str) -> Vec<Refused> {
    let mut said = String::new();
    let ranges = text.lines().map_while(|line| {
        let mut fields = line.splitn(4, ' ');
        let from = fields.next()?.parse().ok()?;
        let to = fields.next()?.parse().ok()?;
        let why = match fields.next()? {
            "too_old" => Why::TooOld,
            "too_new" => Why::TooNew,
            "expired" => Why::Expired,
            _ => {
                said = fields.next().map_or_else(|| said.clone(), str::to_owned);
                Why::Refused(said.clone())
            }
        };
        Some(Refused { from, to, why })
    });
    ranges.collect()
}

/// What CloudWatch Logs said, short and on one line.
pub fn short(text: &str) -> String {
    let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.len() > MAX_TEXT {
        let mut end = MAX_TEXT - "…".len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    fn recipe(log_key: Option<&str>) -> Recipe {
        Recipe { log_key: log_key.map(str::to_owned), oversized: Oversized::Truncate }
    }
    fn refused(from: u32, why: Why) -> Refused {
        Refused { from, to: from + 1, why }
    }
    fn all(progress: &Progress) -> Vec<Refused> {
        progress.refused().cloned().collect()
    }

    #[test]
    fn what_was_written_is_read_back_with_the_recipe_it_was_begun_with() {
        let other = Recipe { log_key: Some("other".into()), oversized: Oversized::Split };
        for log_key in [None, Some("log"), Some("a\nkb"), Some("k"), Some("1 2 too_old")] {
            for ranges in [vec![], vec![refused(3, Why::TooOld), refused(7, Why::Refused("a b".into()))]] {
                let fake = Fake::new(vec![]);
                let mut progress = Progress::read(&fake, &recipe(log_key)).unwrap();
                ranges.iter().cloned().for_each(|range| progress.refuse(range));
                progress.advance(Position { records: 12, pieces: 3 });
                progress.write(&fake).unwrap();
                let read = Progress::read(&fake, &other).unwrap();
                assert_eq!((read.at, &read.recipe), (Position { records: 12, pieces: 3 }, &recipe(log_key)));
                assert_eq!(all(&read), ranges);
            }
        }
    }

    #[test]
    fn what_was_refused_in_earlier_calls_is_kept_however_much_it_is() {
        let fake = Fake::new(vec![]);
        let mut progress = Progress::read(&fake, &recipe(Some(&"k".repeat(256)))).unwrap();
        let mut expected = Vec::new();
        for call in 0..20_u32 {
            for n in 0..call {
                let why = match n % 4 {
                    0 => Why::Refused(short(&format!("{call} {}", "x".repeat(300)))),
                    1 => Why::TooOld,
                    2 => Why::TooNew,
                    _ => Why::Expired,
                };
                expected.push(refused(100 * call + n, why));
                progress.refuse(expected[expected.len() - 1].clone());
            }
            progress.advance(Position { records: 100 * call, pieces: 0 });
            progress.write(&fake).unwrap();
            let mut read = Progress::read(&fake, &recipe(None)).unwrap();
            assert_eq!(all(&read), expected, "after call {call}");
            // An attempt that goes on from there loses nothing either.
            if call % 3 == 0 {
                std::mem::swap(&mut progress, &mut read);
            }
        }
    }

    #[test]
    fn pieces_of_another_plan_are_not_taken_for_this_ones() {
        let fake = Fake::new(vec![]);
        fake.shared.borrow_mut().progress.insert("at".into(), b"0 12 3 split\nklog".to_vec());
        let progress = Progress::read(&fake, &recipe(None)).unwrap();
        assert_eq!(progress.at, Position { records: 12, pieces: 0 });
    }

    #[test]
    fn what_cannot_be_read_is_a_batch_that_was_not_begun() {
        for row in ["", "1", "1 x 0 split\n", "1 5 0 shred\n", "1 5 0\n"] {
            let fake = Fake::new(vec![]);
            fake.shared.borrow_mut().progress.insert("at".into(), row.into());
            let progress = Progress::read(&fake, &recipe(Some("log"))).unwrap();
            assert_eq!((progress.at, progress.recipe), (Position::default(), recipe(Some("log"))), "{row:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(short("a\nb"), "a b");
        let cut = short(&"é".repeat(200));
        assert!(cut.len() <= 200 && cut.ends_with("é…"), "{cut}");
    }
}
