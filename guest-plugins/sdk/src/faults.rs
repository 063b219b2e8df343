//! What is wrong with a configuration, collected so that everything is told at once.

use std::fmt;
use std::ops::Deref;

/// One thing wrong in the configuration. Name other options in backquotes in the message (`` `key_format` ``): where such an option could not
/// be read, the host leaves a fault out that may only come of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// JSON Pointer into `config`, "" for the whole.
    pub path: String,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl ConfigFault {
    /// A fault of one top-level option.
    pub fn of(option: &str, message: impl Into<String>) -> Self {
        Self::at(&[option], message)
    }

    /// A fault of something inside an option: `&["tags", "team"]`.
    pub fn at(steps: &[&str], message: impl Into<String>) -> Self {
        let escaped = steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1")));
        Self { path: escaped.collect(), message: message.into() }
    }
}

/// Faults, collected; and the error of [`Output::configure`](crate::Output::configure).
///
/// ```
/// use wharf_plugin::Faults;
///
/// fn check(url: &str, batch_size: u32) -> Result<(), Faults> {
///     let mut faults = Faults::default();
///     if !url.starts_with("https://") {
///         faults.add("url", "it must begin with `https://`");
///     }
///     if batch_size == 0 {
///         faults.add("batch_size", "0: write a number from 1");
///     }
///     faults.finish()
/// }
/// assert_eq!(check("ftp://x", 0).unwrap_err().len(), 2);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(Vec<ConfigFault>);

impl Faults {
    /// One, of a top-level option.
    pub fn of(option: &str, message: impl Into<String>) -> Self {
        ConfigFault::of(option, message).into()
    }

    /// Goes on where there are none.
    ///
    /// # Errors
    /// Where there are some: these.
    pub fn finish(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }

    /// Adds one of an option; of one inside another, written `outer/inner`.
    pub fn add(&mut self, option: &str, message: impl Into<String>) {
        let steps: Vec<_> = option.split('/').collect();
        self.add_at(&steps, message);
    }

    /// Adds one of something inside an option, by its steps, whatever letters they have.
    pub fn add_at(&mut self, steps: &[&str], message: impl Into<String>) {
        self.0.push(ConfigFault::at(steps, message));
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

impl Deref for Faults {
    type Target = [ConfigFault];

    fn deref(&self) -> &[ConfigFault] {
        &self.0
    }
}

impl From<ConfigFault> for Faults {
    fn from(fault: ConfigFault) -> Self {
        Self(vec![fault])
    }
}

impl From<Vec<ConfigFault>> for Faults {
    fn from(faults: Vec<ConfigFault>) -> Self {
        Self(faults)
    }
}

impl IntoIterator for Faults {
    type Item = ConfigFault;
    type IntoIter = std::vec::IntoIter<ConfigFault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// Any error as the fault of an option, so that `?` works in [`Output::configure`](crate::Output::configure).
///
/// ```
/// use wharf_plugin::units::Size;
/// use wharf_plugin::{Faults, OrFault};
///
/// fn limit(size: &Size) -> Result<u64, Faults> {
///     size.bytes().or_fault("max_body")
/// }
/// # assert_eq!(limit(&Size::Text("many".into())).unwrap_err()[0].path, "/max_body");
/// ```
pub trait OrFault<T> {
    /// The value, or what is wrong with the option.
    ///
    /// # Errors
    /// The error's text as the option's fault.
    fn or_fault(self, option: &str) -> Result<T, Faults>;
}

impl<T, E: fmt::Display> OrFault<T> for Result<T, E> {
    fn or_fault(self, option: &str) -> Result<T, Faults> {
        self.map_err(|error| Faults::of(option, error.to_string()))
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
