//! Why a test did not go as expected, for a person: what each batch ended with, and what the component said of it.
//!
//! The difference says that a batch is `waiting`; the reason is one that nobody would have expected, and so in no difference.

use serde_json::{Map, Value};

use super::case::OUTPUT;
use super::compare::fits;
use super::transcript::{BatchTold, Ended, Transcript};
use crate::capability::one_line;

/// Batches that are told of.
const MOST_BATCHES: usize = 10;
/// Rejected records of a batch that are told of.
const MOST_REJECTED: usize = 3;
/// Lines of the log that are told: the first, where it began, and the last, where a traceback has its exception.
const FIRST_LINES: usize = 10;
const LAST_LINES: usize = 20;
/// Longest line, bytes.
const LINE_BYTES: usize = 512;

/// Lines under a test that failed. `expected` is what its `expect` names.
pub(crate) fn why(expected: Option<&Map<String, Value>>, happened: &Transcript) -> Vec<String> {
    let ended = (0..).zip(&happened.batches).filter(|(n, batch)| !is_expected(expected, *n, batch));
    let mut lines: Vec<String> = ended.filter_map(|(n, batch)| of_batch(n + 1, batch)).collect();
    shorten(&mut lines, MOST_BATCHES, 0, "batches");
    lines.extend(log(&happened.log));
    // In a test there is no `outputs.test`: its grants are at the top.
    let inside = format!("outputs.{OUTPUT}.");
    lines.iter().map(|line| one_line(&line.replace(&inside, ""), LINE_BYTES)).collect()
}

/// Whether the test names this end.
fn is_expected(expected: Option<&Map<String, Value>>, n: usize, batch: &BatchTold) -> bool {
    let Some(expected) = expected else { return false };
    let named = |wanted: Option<&Value>| wanted.and_then(Value::as_str).is_some_and(|word| fits(word, batch.outcome()));
    let of_batch = expected.get("batches").and_then(|batches| batches.get(n));
    let all = expected.get("outcome");
    named(of_batch)
        || named(of_batch.and_then(|batch| batch.get("outcome")))
        || named(all)
        || named(all.and_then(|all| all.get(n)))
}

/// How it ended and of what; none where everything was delivered.
fn of_batch(number: usize, batch: &BatchTold) -> Option<String> {
    let last = batch.attempts.last();
    let said = last.and_then(|attempt| attempt.why.as_deref()).unwrap_or_default();
    let tries = match batch.attempts.len() {
        1 => "1 attempt".to_owned(),
        many => format!("{many} attempts"),
    };
    Some(match &batch.ended {
        Ended::Delivered(rejected) if rejected.is_empty() => return None,
        Ended::Delivered(rejected) => {
            let mut told: Vec<String> = rejected.iter().map(|(n, reason)| format!("record {n}: {reason}")).collect();
            shorten(&mut told, MOST_REJECTED, 0, "records");
            format!("batch {number} was delivered, but not {}", told.join("; "))
        }
        Ended::Dead { failure, reason } => format!("batch {number} ended with {failure} after {tries}: {reason}"),
        Ended::Waiting | Ended::Quarantined => {
            let ended = last.map_or("", |attempt| attempt.ended);
            format!("batch {number} is {} after {tries}, the last of which ended with {ended}: {said}", batch.outcome())
        }
    })
}

/// Errors and warnings, each once: every attempt says them anew.
fn log(all: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for line in all.iter().filter(|line| line.starts_with("error: ") || line.starts_with("warn: ")) {
        let line = format!("log: {line}");
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    shorten(&mut lines, FIRST_LINES, LAST_LINES, "lines of the log");
    lines
}

/// Leaves the first and the last, and says how many were between.
fn shorten(lines: &mut Vec<String>, first: usize, last: usize, what: &str) {
    let over = lines.len().saturating_sub(first + last);
    if over > 0 {
        lines.splice(first..first + over, [format!("… {over} more {what} …")]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_its_beginning_and_its_end_and_each_line_once() {
        let mut all: Vec<String> = (0..100).map(|n| format!("warn: {n}")).collect();
        all.extend(["warn: 99".into(), "info: not a fault".into()]);
        let told = log(&all);
        assert_eq!(told.len(), 31);
        assert_eq!((&*told[0], &*told[9], &*told[11]), ("log: warn: 0", "log: warn: 9", "log: warn: 80"));
        assert_eq!((&*told[10], &*told[30]), ("… 70 more lines of the log …", "log: warn: 99"));
    }
}
