//! Wharf's own log: to standard error, as text for people or as JSON lines for machines.

use std::io::{IsTerminal, Write};

use tracing_subscriber::EnvFilter;

use crate::config::LogConfig;

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter makes no sense.
    #[error(
        "{place} {filter:?} is not a log filter: {cause}; write a level such as info, or info,wharf::journal=debug"
    )]
    Filter {
        /// `log.level` or `WHARF_LOG`
        place: &'static str,
        /// As written.
        filter: String,
        /// Why.
        cause: String,
    },
    /// There is one already.
    #[error("the log is set up already: {0}")]
    Twice(String),
}

/// Sets the process's log up. The environment variable `WHARF_LOG` overrides the level.
///
/// # Errors
/// See [`LogError`].
pub fn init_logging(config: &LogConfig) -> Result<(), LogError> {
    let from_environment = std::env::var("WHARF_LOG").ok().filter(|level| !level.is_empty());
    let filter = filter(from_environment.as_deref(), &config.level)?;
    // The convention of no-color.org.
    let colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Unheard(std::io::stderr()))
        .log_internal_errors(false);
    let set = if config.json {
        log.json().flatten_event(true).with_current_span(false).try_init()
    } else {
        log.with_ansi(colours).try_init()
    };
    set.map_err(|cause| LogError::Twice(cause.to_string()))
}

/// Standard error, whose reader may be gone or whose disk may be full: what cannot be said is not said, and nothing stops for it.
struct Unheard<W>(W);

impl<W: Write> Write for Unheard<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.write_all(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        let _ = self.0.flush();
        Ok(())
    }
}

fn filter(from_environment: Option<&str>, level: &str) -> Result<EnvFilter, LogError> {
    let (place, filter) = match from_environment {
        Some(filter) => ("WHARF_LOG", filter),
        None => ("log.level", level),
    };
    EnvFilter::builder().parse(filter).map_err(|cause| LogError::Filter {
        place,
        filter: filter.into(),
        cause: cause.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_overrides_the_configured_level() {
        assert_eq!(filter(None, "warn").unwrap().to_string(), "warn");
        assert_eq!(filter(Some("debug"), "warn").unwrap().to_string(), "debug");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_no_error() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut log = Unheard(full);
        assert_eq!(log.write(b"a line\n").unwrap(), 7);
        assert!(log.flush().is_ok());
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_named_with_its_place() {
        let error = filter(Some("a=b=c"), "info").unwrap_err().to_string();
        assert!(error.starts_with("WHARF_LOG \"a=b=c\" is not a log filter"), "{error}");
        let error = filter(None, "wharf=loud").unwrap_err().to_string();
        assert!(error.starts_with("log.level \"wharf=loud\" is not a log filter"), "{error}");
    }
}
