//! One batch, one object.

use wharf_plugin::{Failure, Report, Selection, debug, metrics, warn};

use crate::conflict::{self, End, Whose, whose};
use crate::multipart::{self, Step};
use crate::naming::{Name, name, next_name};
use crate::parts::Parts;
use crate::settings::{OnConflict, Settings};
use crate::single;
use crate::world::{Bytes, Pieces, World};

/// Uploads begun anew within one call. More would mean that somebody keeps taking them away.
const MAX_STARTS: u32 = 3;
/// Numbers found taken within one call; the next call goes on behind them.
const MAX_TAKEN: u32 = 1000;
/// The host names at most so many records without `log_key` at a time.
const MAX_SKIPPED: usize = 10_000;

/// Delivers a batch.
///
/// # Errors
/// Where its object is not there for certain.
pub fn deliver<W: World>(world: &W, settings: &Settings) -> Result<Report, Failure> {
    let mut pieces = world.encode(&Selection::All, &settings.encoding)?;
    let first = pieces.next(settings.threshold)?;
    // Where no record has the `log_key` there is nothing to write, and no number is used up.
    if pieces.finished() {
        let report = report(world, settings, &mut pieces)?;
        if report.rejections() as u64 == u64::from(world.count()) {
            return Ok(report);
        }
    }
    let Some(first) = first else { return Ok(Report::all_delivered()) };

    let mut name = name(world, settings)?;
    let mut encoded = Some((first, pieces));
    let (mut taken, mut starts) = (0, 0);
    while taken < MAX_TAKEN && starts < MAX_STARTS {
        let (first, pieces) = match encoded.take() {
            Some(encoded) => encoded,
            None => encode_again(world, settings)?,
        };
        let (step, mut pieces) = if pieces.finished() {
            let end = single::put(world, &settings.target, &name.key, &first)?;
            if end == End::Taken {
                encoded = Some((first, pieces));
                name = another_name(world, settings, &name)?;
                taken += 1;
                continue;
            }
            metrics::add("put_bytes", first.size(), &[]);
            (Step::Ended(end), pieces)
        } else {
            let mut parts = Parts::new(first, pieces, settings.part_size);
            let step = multipart::upload(world, settings, &name.key, &mut parts)?;
            (step, parts.into_pieces())
        };
        match step {
            Step::Ended(End::Written) => {
                metrics::add("objects_written", 1, &[]);
                debug!("object written", key = name.key, batch = world.facts().id, records = world.count());
                return report(world, settings, &mut pieces);
            }
            Step::Ended(End::Taken) => {
                name = another_name(world, settings, &name)?;
                taken += 1;
            }
            Step::Anew => starts += 1,
        }
    }
    let place = format!("s3://{}/{}", settings.target.bucket, name.key);
    Err(Failure::transient(if starts == MAX_STARTS {
        format!(
            "{place}: its unfinished upload vanished {starts} times: does a lifecycle rule or another program abort uploads?"
        )
    } else {
        format!("{taken} keys in a row are taken by other objects, and the next would be {place}")
    }))
}

/// The same bytes from the beginning: they are a function of the batch.
fn encode_again<W: World>(world: &W, settings: &Settings) -> Result<(W::Body, W::Pieces), Failure> {
    let mut pieces = world.encode(&Selection::All, &settings.encoding)?;
    let first = pieces.next(settings.threshold)?;
    let first =
        first.ok_or_else(|| Failure::transient("the host encoded the batch to nothing, which it had not before"))?;
    Ok((first, pieces))
}

/// The key is somebody else's.
fn another_name<W: World>(world: &W, settings: &Settings, taken: &Name) -> Result<Name, Failure> {
    metrics::add("conflicts", 1, &[]);
    let refused = || conflict::refuse(settings.on_conflict, &settings.target, &taken.key);
    if settings.on_conflict != OnConflict::NextIndex {
        return Err(refused());
    }
    let mut name = next_name(world, settings, taken)?.ok_or_else(refused)?;
    // Asking is cheaper than sending the bytes to hear no, where many numbers in a row are taken.
    for _ in 0..MAX_TAKEN {
        match whose(world, &name.key) {
            Ok(Whose::Foreign) => name = next_name(world, settings, &name)?.ok_or_else(refused)?,
            Ok(Whose::Ours | Whose::Nobody) | Err(_) => break,
        }
    }
    warn!(
        "a key was taken by another object: the batch goes to the next free number",
        taken = taken.key,
        key = name.key
    );
    Ok(name)
}

/// Records that lack the `log_key` are not in the object: they become dead letters.
fn report<W: World>(world: &W, settings: &Settings, pieces: &mut W::Pieces) -> Result<Report, Failure> {
    let Some(log_key) = &settings.log_key else { return Ok(Report::all_delivered()) };
    let mut numbers = skipped(settings, pieces)?;
    let mut found = numbers.len();
    while found >= MAX_SKIPPED {
        let next = numbers.last().map_or(0, |last| last + 1);
        let selection = Selection::Range { first: next, count: world.count().saturating_sub(next) };
        let more = skipped(settings, &mut world.encode(&selection, &settings.encoding)?)?;
        found = more.len();
        numbers.extend(more);
    }
    let reason = format!("the record has no key `{log_key}`");
    let mut report = Report::all_delivered();
    for record in numbers {
        report.reject(record, &reason);
    }
    Ok(report)
}

fn skipped<P: Pieces>(settings: &Settings, pieces: &mut P) -> Result<Vec<u32>, Failure> {
    while !pieces.finished() && pieces.next(settings.part_size)?.is_some() {}
    Ok(pieces.skipped())
}

#[cfg(test)]
mod tests;
