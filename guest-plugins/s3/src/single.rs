//! An object in one request.

use wharf_plugin::Failure;

use crate::conflict::{End, Whose, hint, is_taken, settle_taken, whose};
use crate::object::Target;
use crate::world::World;

/// Writes the object, unless the key is taken.
///
/// # Errors
/// What S3 answers instead. The write may have happened nevertheless: the next attempt finds it.
pub fn put<W: World>(world: &W, target: &Target, key: &str, body: &W::Body) -> Result<End, Failure> {
    let doing = || format!("writing s3://{}/{key}", target.bucket);
    if !target.conditional {
        match whose(world, key).map_err(|error| Failure::from(error).doing(doing()))? {
            Whose::Ours => return Ok(End::Written),
            Whose::Foreign => return Ok(End::Taken),
            Whose::Nobody => {}
        }
    }
    match world.put(key, body, &target.attributes(&world.facts().id), target.conditional) {
        Ok(()) => Ok(End::Written),
        Err(error) if is_taken(&error) => settle_taken(world, target, key),
        Err(error) => Err(hint(Failure::from(error).doing(doing()), target)),
    }
}
