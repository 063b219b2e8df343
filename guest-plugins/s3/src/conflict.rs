//! The key is taken: by this batch itself (an answer was lost), or by somebody else.

use wharf_plugin::s3::{Error, Head};
use wharf_plugin::{Failure, FailureKind};

use crate::object::{BATCH_METADATA, Target};
use crate::settings::OnConflict;
use crate::world::World;

/// Whose object is at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// This batch's: it is delivered.
    Ours,
    /// Somebody else's.
    Foreign,
    /// Nobody's.
    Nobody,
}

/// How writing ended, where nothing failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The object is there, and it is this batch's.
    Written,
    /// Somebody else's object is there.
    Taken,
}

/// S3 says that the key exists.
pub fn is_taken(error: &Error) -> bool {
    error.status() == Some(412) || error.code() == "PreconditionFailed"
}

/// Asks whose object is at the key.
///
/// # Errors
/// What S3 answers instead.
pub fn whose<W: World>(world: &W, key: &str) -> Result<Whose, Error> {
    Ok(recognise(world.head(key)?.as_ref(), &world.facts().id))
}

/// The metadata tell whose object it is: it is written together with the object, in one step.
pub fn recognise(head: Option<&Head>, batch_id: &str) -> Whose {
    match head {
        None => Whose::Nobody,
        Some(head) => {
            // Servers differ in the case in which they give names of metadata back.
            let ours =
                |(name, value): &(String, String)| name.eq_ignore_ascii_case(BATCH_METADATA) && value == batch_id;
            if head.metadata.iter().any(ours) { Whose::Ours } else { Whose::Foreign }
        }
    }
}

/// After S3 refused because the key exists: whose object is it?
///
/// # Errors
/// Where S3 does not say, or the object is gone again: neither is an answer to rely on.
pub fn settle_taken<W: World>(world: &W, target: &Target, key: &str) -> Result<End, Failure> {
    let place = format!("s3://{}/{key}", target.bucket);
    match whose(world, key) {
        Ok(Whose::Ours) => Ok(End::Written),
        Ok(Whose::Foreign) => Ok(End::Taken),
        Ok(Whose::Nobody) => {
            Err(Failure::transient(format!("{place}: S3 says that the object exists, and then that it does not")))
        }
        Err(error) => {
            let mut failure = Failure::from(error);
            if failure.kind == FailureKind::Auth {
                failure.message +=
                    ": to tell Wharf's own object from another one, HeadObject needs s3:GetObject (and s3:ListBucket)";
            }
            Err(failure.doing(format!("{place} exists; asking whose it is")))
        }
    }
}

/// A server that does not know conditional writes says so in many ways, most often as 501 or 400.
pub fn hint(mut failure: Failure, target: &Target) -> Failure {
    let unknown = failure.message.contains("NotImplemented") || failure.message.contains("S3 answered 501");
    if target.conditional && unknown {
        failure.message += ": where the server does not know `If-None-Match`, set `conditional_write: false`";
    }
    failure
}

/// What to do with a batch whose key is taken by somebody else and that gets no other key.
pub fn refuse(on_conflict: OnConflict, target: &Target, key: &str) -> Failure {
    let text = format!("s3://{}/{key} exists, is no object of this batch, and is not overwritten", target.bucket);
    match on_conflict {
        OnConflict::DeadLetter => Failure::rejected(text),
        OnConflict::Hold | OnConflict::NextIndex => Failure::misconfigured(format!(
            "{text}: move it away, or write `$INDEX` or `$UUID` into `key_format`, or set `on_conflict: dead_letter`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_ours_by_the_batch_id_in_its_metadata_alone() {
        let head = |metadata: &[(&str, &str)]| Head {
            metadata: metadata.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            ..Head::default()
        };
        for (head, expected) in [
            (None, Whose::Nobody),
            (Some(head(&[("wharf-batch", "b1")])), Whose::Ours),
            (Some(head(&[("team", "x"), ("Wharf-Batch", "b1")])), Whose::Ours),
            (Some(head(&[("wharf-batch", "b2")])), Whose::Foreign),
            (Some(head(&[("wharf-batch", "B1")])), Whose::Foreign),
            (Some(head(&[])), Whose::Foreign),
        ] {
            assert_eq!(recognise(head.as_ref(), "b1"), expected, "{head:?}");
        }
    }
}
