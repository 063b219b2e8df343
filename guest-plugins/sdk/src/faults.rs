//! What is wrong with a configuration, collected so that everything is told at once.

use crate::ConfigFault;

/// Faults, collected.
#[derive(Debug, Default)]
pub struct Faults(Vec<ConfigFault>);

impl Faults {
    /// Adds one of an option; of one inside another, written `outer/inner`.
    pub fn add(&mut self, option: &str, message: impl Into<String>) {
        let steps: Vec<_> = option.split('/').collect();
        self.add_at(&steps, message);
    }

    /// Adds one of something inside an option, by its steps, whatever letters they have.
    pub fn add_at(&mut self, steps: &[&str], message: impl Into<String>) {
        self.0.push(ConfigFault::at(steps, message));
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them.
    #[must_use]
    pub fn into_all(self) -> Vec<ConfigFault> {
        self.0
    }

    /// The value, or the fault noted and a stand-in, so that the rest can be checked as well.
    pub fn note<T>(&mut self, option: &str, result: Result<T, String>, stand_in: T) -> T {
        result.unwrap_or_else(|message| {
            self.add(option, message);
            stand_in
        })
    }

    /// One of some names; the first is the default.
    pub fn one_of<'a>(&mut self, option: &str, value: Option<&'a str>, known: &[&'a str]) -> &'a str {
        let default = known.first().copied().unwrap_or_default();
        let value = value.unwrap_or(default);
        if value.is_empty() {
            self.add(option, format!("it is empty: write {}, or leave it out", listed(known)));
            return default;
        }
        if !known.contains(&value) {
            self.add(option, format!("`{value}` is not known: write {}", listed(known)));
            return default;
        }
        value
    }
}

/// Names as a sentence lists them.
#[must_use]
pub fn listed(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}
