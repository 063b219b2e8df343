//! A limit that was reached, in words that are the same wherever they are told: to the guest, in the log, in a dead letter.

use std::fmt;

use super::bindings::types::HostError;
use crate::config::Unit;

/// A limit that was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reached {
    /// As an operator writes it (`plugins.limits.max_memory`), or what it is of where nobody can change it.
    pub name: String,
    /// How much it is.
    pub limit: u64,
    /// How much was in use.
    pub current: u64,
    /// How much more was wanted; 0 where `current` is past the limit already.
    pub requested: u64,
    /// What all of that is counted in.
    pub unit: Unit,
}

impl Reached {
    /// One that nobody can change, of a thing by itself: a key, a list.
    pub(crate) fn fixed(name: &str, unit: Unit, limit: u64, requested: u64) -> Self {
        Self { name: name.to_owned(), limit, current: 0, requested, unit }
    }

    /// As the guest is told.
    pub(crate) fn refusal(&self) -> HostError {
        HostError::Limit(self.to_string())
    }

    /// The same, with what the guest's author can do about it.
    pub(crate) fn refusal_with(&self, remedy: &str) -> HostError {
        HostError::Limit(format!("{self}: {remedy}"))
    }
}

impl fmt::Display for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, limit, current, requested, unit } = self;
        write!(f, "{name} is {limit} {}, ", unit.as_str())?;
        match (current, requested) {
            (taken, 0) => write!(f, "and {taken} were taken"),
            (0, wanted) => write!(f, "and {wanted} were wanted"),
            (taken, wanted) => write!(f, "{taken} are in use, and {wanted} more were wanted"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_with_its_name_and_its_numbers() {
        let reached = |current, requested, unit| Reached { name: "n".into(), limit: 100, current, requested, unit };
        for (told, text) in [
            (reached(90, 20, Unit::Bytes), "n is 100 bytes, 90 are in use, and 20 more were wanted"),
            (reached(0, 120, Unit::Count("handles")), "n is 100 handles, and 120 were wanted"),
            (reached(123, 0, Unit::Millis), "n is 100 ms, and 123 were taken"),
        ] {
            assert_eq!(told.to_string(), text);
        }
        let HostError::Limit(text) = Reached::fixed("a key", Unit::Bytes, 512, 513).refusal_with("shorten it") else {
            panic!("another refusal")
        };
        assert_eq!(text, "a key is 512 bytes, and 513 were wanted: shorten it");
    }
}
