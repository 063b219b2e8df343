//! Counters: `$INDEX`. A number is bound to a batch in the transaction that takes it from the counter.

use super::change::{Inner, Writer};
use super::handle::{Handle, Trouble};
use super::rows::{self, Table, Writes};
use super::{BatchId, Flushed, Quota, StateError};

impl Inner {
    pub(super) fn assign(
        &self,
        quota: Option<Quota>,
        output: &str,
        name: &str,
        batch: BatchId,
        start: u64,
    ) -> Result<Flushed<u64>, StateError> {
        rows::check(name, None)?;
        self.change_within(quota, |writer, handle| {
            let binding = rows::batch_key(output, batch, name)?;
            if let Some(number) = handle.number(Table::Bindings, &binding)? {
                return Ok((Writes::new(), number));
            }
            self.require_open(output, batch)?;
            take(writer, handle, output, name, binding, start)
        })
    }

    pub(super) fn reassign(
        &self,
        output: &str,
        name: &str,
        batch: BatchId,
        taken: u64,
    ) -> Result<Flushed<u64>, StateError> {
        rows::check(name, None)?;
        self.change(|writer, handle| {
            let binding = rows::batch_key(output, batch, name)?;
            match handle.number(Table::Bindings, &binding)? {
                None => Err(invalid(format!("batch {batch} has no number in counter {name:?} that could be taken"))),
                // A repeated call: it was given another number for this one before.
                Some(number) if taken < number => Ok((Writes::new(), number)),
                Some(number) if taken > number => {
                    Err(invalid(format!("batch {batch} has number {number} in counter {name:?}, not {taken}")))
                }
                Some(number) => take(writer, handle, output, name, binding, number.saturating_add(1)),
            }
        })
    }
}

/// Takes the counter's next number, at least `least`.
fn take(
    writer: &mut Writer,
    handle: &Handle,
    output: &str,
    name: &str,
    binding: Vec<u8>,
    least: u64,
) -> Result<(Writes, u64), Trouble> {
    let counter = rows::key(output, name.as_bytes())?;
    let kept = handle.number(Table::Sequences, &counter)?;
    let number = writer.reserve.next(output, name, kept, least);
    let next = number.checked_add(1).ok_or_else(|| invalid(format!("counter {name:?} has reached its end")))?;
    writer.reserve.cover(output, name, number)?;
    Ok((
        vec![
            (Table::Sequences, counter, Some(next.to_be_bytes().to_vec())),
            (Table::Bindings, binding, Some(number.to_be_bytes().to_vec())),
        ],
        number,
    ))
}

fn invalid(cause: String) -> Trouble {
    StateError::Invalid(cause).into()
}
