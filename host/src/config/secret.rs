//! Values that are shown nowhere.

use std::fmt;
use std::path::PathBuf;

/// A text that no message, log line or debug output shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for where it has to go and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Where a secret is had from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// The configuration, or the environment.
    Given(Secret),
    /// A file, read again when it changes.
    File(PathBuf),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        assert_eq!(format!("{:?}", SecretSource::Given(Secret::new("hush"))), "Given((secret))");
    }
}
