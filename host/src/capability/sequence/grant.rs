//! Which counters an output may have.
//!
//! A counter is the output's own, and gives nothing but numbers, so all are granted where nothing is written; a list of names, or `false`,
//! narrows that.

use crate::capability::bindings::types::HostError;
use crate::capability::escape::one_line;
use crate::config::{SequenceGrant, output_section};

/// Whether a counter of this name may be used.
pub(super) fn check_name(output: &str, granted: &SequenceGrant, name: &str) -> Result<(), HostError> {
    let names = match granted {
        SequenceGrant::All => return Ok(()),
        SequenceGrant::Named(names) if names.iter().any(|granted| **granted == *name) => return Ok(()),
        SequenceGrant::Named(names) => names,
    };
    let may = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(HostError::Denied(format!(
        "counter {:?} is not granted to output {output}, which may have {may} ({}.grants.sequences)",
        one_line(name, 64),
        output_section(output)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_granted_by_its_whole_name() {
        let named = |names: &[&str]| SequenceGrant::Named(names.iter().map(|name| (*name).into()).collect());
        for (granted, name, allowed) in [
            (SequenceGrant::default(), "index", true),
            (SequenceGrant::All, "", true),
            (named(&["index", "part"]), "index", true),
            (named(&["index", "part"]), "part", true),
            (named(&["index"]), "index2", false),
            (named(&["index"]), "inde", false),
            (named(&["index"]), "Index", false),
            (named(&["*"]), "index", false),
            (named(&[]), "index", false),
        ] {
            assert_eq!(check_name("o", &granted, name).is_ok(), allowed, "{granted:?} {name}");
        }
    }

    #[test]
    fn a_refusal_names_the_counter_and_where_to_grant_it() {
        let Err(HostError::Denied(text)) = check_name("live", &SequenceGrant::Named(vec!["a".into()]), "b") else {
            panic!("not denied")
        };
        assert_eq!(
            text,
            "counter \"b\" is not granted to output live, which may have a (outputs.live.grants.sequences)"
        );
    }
}
