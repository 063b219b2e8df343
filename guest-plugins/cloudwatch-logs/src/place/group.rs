//! Making a log group. What only labels it never keeps it from being made; a key that encrypts it is never left out.

use wharf_plugin::cloudwatch_logs::Error;
use wharf_plugin::{Failure, FailureKind, info, warn};

use super::{ALREADY_EXISTS, failed};
use crate::settings::NewGroup;
use crate::world::World;

/// Makes a group. That somebody else made it first is success.
///
/// # Errors
/// Where it was not made, with or without class and tags.
pub(super) fn make<W: World>(world: &W, name: &str, group: &NewGroup) -> Result<(), Failure> {
    let mut refusal = None;
    for (with_class, with_tags) in [(true, true), (true, false), (false, true), (false, false)] {
        let (leaves_class, leaves_tags) = (!with_class && group.class.is_some(), !with_tags && !group.tags.is_empty());
        // Leaving out what is not there would be the same call again.
        if (!with_class && !leaves_class) || (!with_tags && !leaves_tags) {
            continue;
        }
        let class = group.class.as_deref().filter(|_| with_class);
        let tags = if with_tags { group.tags.as_slice() } else { &[] };
        match world.create_group(name, class, tags, group.kms_key_id.as_deref()) {
            Ok(()) => {
                world.count_all("groups_created", 1, &[]);
                info!("log group made", group = name);
                for (left_out, what) in [(leaves_class, "class"), (leaves_tags, "tags")] {
                    if left_out {
                        world.count_all("side_call_failures", 1, &[("call", what)]);
                        let cause = refusal.as_ref().map(Error::to_string).unwrap_or_default();
                        warn!(
                            "a log group was made without its {}, which CloudWatch Logs refused: {}",
                            what,
                            cause,
                            group = name
                        );
                    }
                }
                return Ok(());
            }
            Err(error) if error.code() == ALREADY_EXISTS => return Ok(()),
            Err(error) if may_be_about_labels(&error) => {
                refusal.get_or_insert(error);
            }
            Err(error) => return Err(failed(error, &format!("making the log group {name}"), "CreateLogGroup")),
        }
    }
    let refusal = refusal.map(|error| failed(error, &format!("making the log group {name}"), "CreateLogGroup"));
    Err(refusal.unwrap_or_else(|| Failure::transient(format!("log group {name} was not made"))))
}

/// A denied `logs:TagResource` is told like a denied `logs:CreateLogGroup`.
fn may_be_about_labels(error: &Error) -> bool {
    error.code().starts_with("AccessDenied") || error.kind() == FailureKind::Misconfigured
}
