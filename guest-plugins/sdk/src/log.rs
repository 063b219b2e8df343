//! Lines for the host's log, rate limited there: [`error!`](crate::error!), [`warn!`](crate::warn!), [`info!`](crate::info!),
//! [`debug!`](crate::debug!) and [`trace!`](crate::trace!) write them.

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

/// A line about something that is lost or stands still: `error!("format {}", arguments, name = value, …)`.
///
/// What is named is a field of the line and no argument of the format; names that are in scope can be written into it (`{name}`). Nothing
/// is formatted, or evaluated, where the host writes no lines of this level.
///
/// ```
/// use wharf_plugin::{error, warn};
///
/// let (url, status) = ("https://example.com", 503);
/// error!("nobody answers");
/// warn!("{url} answered {}", status, attempt = 3);
/// warn!("the queue is long", url = url, records = 1_000);
/// ```
#[macro_export]
macro_rules! error { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Error, $($line)+) }; }
/// A line about something that needs attention: as [`error!`](crate::error!).
#[macro_export]
macro_rules! warn { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Warn, $($line)+) }; }
/// A line about the normal course: as [`error!`](crate::error!).
#[macro_export]
macro_rules! info { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Info, $($line)+) }; }
/// A line for finding out why: as [`error!`](crate::error!).
#[macro_export]
macro_rules! debug { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Debug, $($line)+) }; }
/// A line about every step: as [`error!`](crate::error!).
#[macro_export]
macro_rules! trace { ($($line:tt)+) => { $crate::__line!($crate::log::Level::Trace, $($line)+) }; }

/// Takes arguments one by one, until what follows has names.
#[doc(hidden)]
#[macro_export]
macro_rules! __line {
    ($level:expr, $format:literal $(,)?) => { $crate::__line!(@ $level, $format, [] []) };
    ($level:expr, $format:literal, $($rest:tt)+) => { $crate::__line!(@ $level, $format, [] $($rest)+) };

    (@ $level:expr, $format:literal, [$($argument:expr,)*] []) => {
        $crate::__line!(@@ $level, $format, [$($argument,)*] [])
    };
    (@ $level:expr, $format:literal, [$($argument:expr,)*]) => {
        $crate::__line!(@@ $level, $format, [$($argument,)*] [])
    };
    (@ $level:expr, $format:literal, [$($argument:expr,)*] $($name:ident = $value:expr),+ $(,)?) => {
        $crate::__line!(@@ $level, $format, [$($argument,)*] [$(($name, $value))+])
    };
    (@ $level:expr, $format:literal, [$($argument:expr,)*] $next:expr) => {
        $crate::__line!(@@ $level, $format, [$($argument,)* $next,] [])
    };
    (@ $level:expr, $format:literal, [$($argument:expr,)*] $next:expr, $($rest:tt)*) => {
        $crate::__line!(@ $level, $format, [$($argument,)* $next,] $($rest)*)
    };

    (@@ $level:expr, $format:literal, [$($argument:expr,)*] [$(($name:ident, $value:expr))*]) => {
        if $crate::log::enabled($level) {
            $crate::log::write(
                $level,
                &::std::format!($format $(, $argument)*),
                &[$((::core::stringify!($name), &*::std::string::ToString::to_string(&$value))),*],
            );
        }
    };
}
