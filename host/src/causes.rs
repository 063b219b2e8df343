//! An error and what is behind it. A library's own words often say little ("dispatch failure"); its causes say it all.

use std::error::Error as StdError;
use std::fmt::Write as _;

/// The error, and then each cause behind the one before.
pub(crate) fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// All of them in one text. Many wrappers repeat what they wrap: that is said once.
pub(crate) fn chain(error: &(dyn StdError + 'static)) -> String {
    let mut told = String::new();
    for cause in causes(error) {
        let text = cause.to_string();
        if !told.contains(&text) {
            // Writing into a String cannot fail.
            let _ = write!(told, "{}{text}", if told.is_empty() { "" } else { ": " });
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Told(&'static str, #[source] Option<Box<Told>>);

    #[test]
    fn causes_are_told_once_and_in_their_order() {
        let inner = Told("refused", None);
        let error = Told("sending", Some(Box::new(Told("connecting: refused", Some(Box::new(inner))))));
        assert_eq!(chain(&error), "sending: connecting: refused");
        assert_eq!(causes(&error).count(), 3);
    }
}
