//! Lines for the host's log, rate limited there. The macros format nothing that would not be written.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::bindings::wharf::output::log as wit;

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is lost or stands still.
    Error,
    /// Something needs attention.
    Warn,
    /// What happens in the normal course.
    Info,
    /// For finding out why.
    Debug,
    /// Everything.
    Trace,
}

/// Not asked yet.
const UNKNOWN: u8 = u8::MAX;
static MAX_LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Whether lines of this level are written at all. Asks the host once.
#[must_use]
pub fn enabled(level: Level) -> bool {
    if cfg!(not(target_family = "wasm")) {
        return false;
    }
    let mut max = MAX_LEVEL.load(Ordering::Relaxed);
    if max == UNKNOWN {
        max = wit::max_level() as u8;
        MAX_LEVEL.store(max, Ordering::Relaxed);
    }
    level as u8 <= max
}

/// Writes a line with fields. Outside of a host (in tests) it goes nowhere.
pub fn write(level: Level, message: &str, fields: &[(&str, &str)]) {
    if cfg!(not(target_family = "wasm")) {
        return;
    }
    let level = match level {
        Level::Error => wit::Level::Error,
        Level::Warn => wit::Level::Warn,
        Level::Info => wit::Level::Info,
        Level::Debug => wit::Level::Debug,
        Level::Trace => wit::Level::Trace,
    };
    let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    wit::write(level, message, &fields);
}

/// `error!("…", args; name = value, …)`: a line about something lost or standing still.
#[macro_export]
macro_rules! error { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Error, $($line)+) }; }
/// A line about something that needs attention.
#[macro_export]
macro_rules! warn { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Warn, $($line)+) }; }
/// A line about the normal course.
#[macro_export]
macro_rules! info { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Info, $($line)+) }; }
/// A line for finding out why.
#[macro_export]
macro_rules! debug { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Debug, $($line)+) }; }

#[doc(hidden)]
#[macro_export]
macro_rules! __line {
    ($level:expr, $format:literal $(, $arg:expr)* $(; $($name:ident = $value:expr),+ $(,)?)?) => {
        if $crate::log::enabled($level) {
            $crate::log::write(
                $level,
                &::std::format!($format $(, $arg)*),
                &[$($((::core::stringify!($name), &*::std::string::ToString::to_string(&$value))),+)?],
            );
        }
    };
}
