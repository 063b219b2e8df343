//! How many bytes an output's rows may hold.
//!
//! Rows are the output's own: nothing outside can be read or changed by them, and they are no way to anybody else. What they cost is disk of
//! the data directory, so the grant is a quota, and not a permission that each output would have to ask for: where none is written, the output's
//! limit of storage is all there is. `0` is none.

use crate::capability::bindings::types::HostError;
use crate::config::output_section;

/// Whether rows that hold `held` bytes may take `added` more. Replacing a row counts as adding it: an output close to its quota is told a
/// little early. What only frees bytes is always allowed.
pub(in crate::capability) fn check_added(
    output: &str,
    granted: Option<u64>,
    held: impl FnOnce() -> u64,
    added: u64,
) -> Result<(), HostError> {
    let Some(granted) = granted.filter(|_| added > 0) else { return Ok(()) };
    let held = held();
    if held.saturating_add(added) <= granted {
        return Ok(());
    }
    let place = format!("{}.grants.storage", output_section(output));
    Err(match granted {
        0 => HostError::Denied(format!("storage is not granted to output {output} ({place})")),
        _ => HostError::Limit(format!(
            "the output's rows hold {held} bytes, and {added} more would pass what is granted, {granted} ({place})"
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_may_hold_what_is_granted_and_no_byte_more() {
        for (granted, held, added, allowed) in [
            (None, 0, u64::MAX, true),
            (Some(100), 40, 60, true),
            (Some(100), 40, 61, false),
            (Some(100), 200, 0, true),
            (Some(1 << 30), 16 << 20, 1, true),
            (Some(0), 0, 1, false),
            (Some(0), 0, 0, true),
            (Some(u64::MAX), u64::MAX, u64::MAX, true),
        ] {
            assert_eq!(check_added("o", granted, || held, added).is_ok(), allowed, "{granted:?} {held} {added}");
        }
    }

    #[test]
    fn a_refusal_is_a_denial_where_nothing_is_granted_and_a_limit_where_it_is_full() {
        let Err(HostError::Denied(text)) = check_added("archive", Some(0), || 0, 5) else { panic!("not denied") };
        assert_eq!(text, "storage is not granted to output archive (outputs.archive.grants.storage)");
        let Err(HostError::Limit(text)) = check_added("acme/live", Some(10), || 8, 5) else { panic!("no limit") };
        assert_eq!(
            text,
            "the output's rows hold 8 bytes, and 5 more would pass what is granted, 10 (tenants.acme.outputs.live.grants.storage)"
        );
    }
}
