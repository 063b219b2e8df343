//! A batch's key, and the number in it.

use wharf_plugin::Failure;

use crate::settings::{IndexScope, Settings};
use crate::template::{KeyTooLong, MAX_KEY_BYTES, hash};
use crate::world::World;

/// A counter's name may have 512 bytes; a longer rest of a key is hashed.
const MAX_COUNTER_BYTES: usize = 400;

/// A batch's key, and where its number comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The key.
    pub key: String,
    number: Option<Number>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Number {
    counter: String,
    value: u64,
}

/// The batch's name. The number in it, if any, is bound to the batch for ever.
///
/// # Errors
/// Where the key cannot be made, or the number cannot be had.
pub fn name<W: World>(world: &W, settings: &Settings) -> Result<Name, Failure> {
    let key = |number| settings.key.key(world.facts(), number).map_err(|error| too_long(settings, &error));
    if !settings.key.uses_index() {
        return Ok(Name { key: key(None)?, number: None });
    }
    // A key that is too long in any case must not use up a number.
    key(Some(settings.index_start))?;
    let counter = counter(world, settings);
    let value = world.assign(&counter, settings.index_start)?;
    Ok(Name { key: key(Some(value))?, number: Some(Number { counter, value }) })
}

/// The batch's name with the next free number; none where it has no number.
///
/// # Errors
/// As for [`name`].
pub fn next_name<W: World>(world: &W, settings: &Settings, name: &Name) -> Result<Option<Name>, Failure> {
    let Some(Number { counter, value }) = &name.number else { return Ok(None) };
    let value = world.reassign(counter, *value)?;
    let key = settings.key.key(world.facts(), Some(value)).map_err(|error| too_long(settings, &error))?;
    Ok(Some(Name { key, number: Some(Number { counter: counter.clone(), value }) }))
}

fn counter<W: World>(world: &W, settings: &Settings) -> String {
    match settings.index_scope {
        IndexScope::Output => "output".into(),
        IndexScope::Key => {
            let rest = settings.key.key_without_index(world.facts());
            if rest.len() <= MAX_COUNTER_BYTES {
                format!("key:{rest}")
            } else {
                // Two hashes of different texts: 128 bits, so that two keys do not share a counter by chance.
                format!("hash:{:016x}{:016x}", hash(&rest), hash(&format!("{rest}\n")))
            }
        }
    }
}

fn too_long(settings: &Settings, KeyTooLong { bytes }: &KeyTooLong) -> Failure {
    let text = format!("the key would have {bytes} bytes, and S3 takes {MAX_KEY_BYTES}");
    if settings.key.uses_tag() {
        Failure::rejected(format!("{text}: the tag in `key_format` is too long"))
    } else {
        Failure::misconfigured(format!("{text}: shorten `key_format`"))
    }
}
