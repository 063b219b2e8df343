//! Texts that go into headers of the request as they are.

use crate::config::Config;
use wharf_plugin::Faults;

/// Header values have no line breaks and no other control characters (RFC 9110, section 5.5). An empty text would be sent as an empty
/// header, which means nothing; only for `content_encoding` it has a meaning.
pub(super) fn check(config: &Config, faults: &mut Faults) {
    let grants = config.grants.clone().unwrap_or_default();
    for (steps, text, may_be_empty) in [
        (&["content_type"][..], &config.content_type, false),
        (&["content_encoding"], &config.content_encoding, true),
        (&["kms_key_id"], &config.kms_key_id, false),
        (&["grants", "full_control"], &grants.full_control, false),
        (&["grants", "read"], &grants.read, false),
        (&["grants", "read_acp"], &grants.read_acp, false),
        (&["grants", "write_acp"], &grants.write_acp, false),
    ] {
        let Some(text) = text else { continue };
        if text.trim().is_empty() && !(may_be_empty && text.is_empty()) {
            faults.add_at(steps, "it is empty: write a value, or leave it out (`null` leaves it out too)");
        } else if let Some(control) = text.chars().find(|c| c.is_control()) {
            faults.add_at(steps, control_character(control));
        }
    }
}

/// What to say of one.
pub(super) fn control_character(control: char) -> String {
    let code = u32::from(control);
    let name = if control == '\n' || control == '\r' { ", a line break" } else { "" };
    format!(
        "it has a control character (U+{code:04X}{name}): it goes into a header of the request, which has none; leave it out"
    )
}
