//! Uploads that batches left behind: a batch that was given up, or settled in the moment before its upload's record was deleted.
//! S3 keeps, and bills, their parts until they are aborted.

use wharf_plugin::{HostError, debug, warn};

use crate::ledger::{self, Owner, UPLOADS};
use crate::world::World;

/// Aborts uploads whose batches the host does not hold any more. Best effort.
pub fn sweep<W: World>(world: &W) {
    if let Err(error) = try_sweep(world) {
        warn!("looking for uploads that were left behind: {}", error);
    }
}

fn try_sweep<W: World>(world: &W) -> Result<(), HostError> {
    let mut after: Option<String> = None;
    loop {
        let rows = world.stored_rows(UPLOADS, after.as_deref())?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        after = Some(last.clone());
        for (row, value) in &rows {
            let id = row.strip_prefix(UPLOADS).unwrap_or_default();
            let Some(owner) = Owner::from_row(value) else {
                world.store(row, None)?;
                continue;
            };
            if world.is_open(&owner.batch) {
                continue;
            }
            abort(world, id, &owner)?;
        }
    }
}

/// Aborts the batch's own upload: the host gives the batch up.
pub fn abandon<W: World>(world: &W) {
    let abandoned = ledger::current(world).and_then(|id| {
        let Some(id) = id else { return Ok(()) };
        match world.stored(&format!("{UPLOADS}{id}"))?.as_deref().and_then(Owner::from_row) {
            Some(owner) => abort(world, &id, &owner),
            None => Ok(()),
        }
    });
    if let Err(error) = abandoned {
        debug!("aborting the upload of a batch that is given up: {}", error);
    }
}

fn abort<W: World>(world: &W, id: &str, owner: &Owner) -> Result<(), HostError> {
    match world.abort(&owner.bucket, &owner.key, id) {
        Ok(()) => {
            debug!("aborted an upload that was left behind", bucket = owner.bucket, key = owner.key);
            ledger::ended(world, id)
        }
        Err(error) => {
            warn!(
                "an upload that was left behind could not be aborted: {}",
                error,
                bucket = owner.bucket,
                key = owner.key,
                upload_id = id
            );
            Ok(())
        }
    }
}
