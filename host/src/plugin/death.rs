//! What ended a store: one place that sorts every way in which a call can give no answer.

use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap};
use wasmtime_wasi::I32Exit;

use super::call::Stopped;
use super::store::Data;
use super::{Death, DeathCause};
use crate::capability::{HostTrouble, LimitReached, cut, one_line};
use crate::journal::ReadError;

/// Longest text of a death, bytes.
const MESSAGE_BYTES: usize = 4096;
const SHORT_BYTES: usize = 256;

/// Sorts what stopped a call in a store with this data.
pub(super) fn death(stopped: &Stopped, data: &Data) -> Death {
    let (cause, message) = sort(stopped, data);
    let in_short = match stopped {
        // The error's texts begin with the frames; what happened is told by the one at the root.
        Stopped::Error(error) if message.contains('\n') => error.root_cause().to_string(),
        _ => message.clone(),
    };
    Death { in_short: one_line(&in_short, SHORT_BYTES), ..decided(cause, &message, data) }
}

/// A death that the host decides on after a call that gave an answer.
pub(super) fn decided(cause: DeathCause, message: &str, data: &Data) -> Death {
    Death {
        cause,
        message: cut(message, MESSAGE_BYTES).to_owned(),
        in_short: one_line(message, SHORT_BYTES),
        last_log: data.caller.log.last_lines(),
    }
}

fn sort(stopped: &Stopped, data: &Data) -> (DeathCause, String) {
    let error = match stopped {
        Stopped::Timeout(limit) => {
            let text = format!("the call took longer than {limit:?} (plugins.deliver_timeout)");
            return (DeathCause::Timeout, text);
        }
        Stopped::Panic(text) => return (DeathCause::Host, format!("the host failed in a call of the plugin: {text}")),
        Stopped::Error(error) => error,
    };
    if data.over_budget || error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) {
        let (used, limit) = (data.meter.ended(), data.cpu_budget);
        let text = format!("the call took {used:.1?} of CPU time, and may take {limit:.1?} (plugins.cpu_per_call)");
        return (DeathCause::CpuLimit, text);
    }
    if is_host_limit(error) {
        return (DeathCause::HostLimit, format!("{error:#}"));
    }
    // A full pool says nothing about the plugin or its batch.
    if error.is::<ReadError>() || error.is::<HostTrouble>() || error.is::<PoolConcurrencyLimitError>() {
        return (DeathCause::Host, format!("{error:#}"));
    }
    if let Some(denied) = data.limiter.denied() {
        let text = format!(
            "the plugin wanted {} {}, and may have {} (plugins.max_memory); then: {}",
            denied.wanted,
            denied.what,
            denied.limit,
            error.root_cause()
        );
        return (DeathCause::OutOfMemory, text);
    }
    if let Some(I32Exit(code)) = error.downcast_ref::<I32Exit>() {
        return (DeathCause::Trap, format!("the plugin ended itself with exit code {code}"));
    }
    // What is left are traps, and answers and arguments that could not be read out of the guest, which are its own fault too.
    (DeathCause::Trap, format!("{error:?}"))
}

fn is_host_limit(error: &wasmtime::Error) -> bool {
    if error.is::<LimitReached>() || error.is::<ResourceTableError>() {
        return true;
    }
    // These two have no type of their own in wasmtime 48.
    error.chain().any(|cause| {
        let text = cause.to_string();
        text.contains("fuel allocated for hostcalls") || text.contains("handle limit exceeded")
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wasmtime::ResourceLimiter as _;

    use super::*;
    use crate::capability::log::GuestLog;
    use crate::capability::{Caller, Services};
    use crate::record::ChunkId;

    fn data() -> Data {
        let services = Services::detached("o".into());
        Data::new(Caller::new(services.clone(), GuestLog::new(services, 0, "p".into())), 1 << 20)
    }

    fn cause(error: impl Into<wasmtime::Error>) -> DeathCause {
        death(&Stopped::Error(error.into()), &data()).cause
    }

    #[test]
    fn every_way_to_die_has_its_cause() {
        assert_eq!(cause(Trap::UnreachableCodeReached), DeathCause::Trap);
        assert_eq!(cause(Trap::StackOverflow), DeathCause::Trap);
        assert_eq!(cause(wasmtime::Error::msg("invalid utf-8 sequence")), DeathCause::Trap);
        assert_eq!(cause(I32Exit(3)), DeathCause::Trap);
        assert_eq!(cause(Trap::Interrupt), DeathCause::CpuLimit);
        assert_eq!(cause(LimitReached("too many".into())), DeathCause::HostLimit);
        assert_eq!(cause(ResourceTableError::Full), DeathCause::HostLimit);
        assert_eq!(cause(ReadError::Missing(ChunkId(7))), DeathCause::Host);
        assert_eq!(cause(HostTrouble("shutting down".into())), DeathCause::Host);
        assert_eq!(death(&Stopped::Timeout(Duration::from_secs(1)), &data()).cause, DeathCause::Timeout);
        assert_eq!(death(&Stopped::Panic("bug".into()), &data()).cause, DeathCause::Host);
    }

    #[test]
    fn a_trap_after_a_refused_growth_is_out_of_memory_with_the_numbers() {
        let mut data = data();
        assert!(!data.limiter.memory_growing(0, 2 << 20, None).unwrap());
        let death = death(&Stopped::Error(Trap::UnreachableCodeReached.into()), &data);
        assert_eq!(death.cause, DeathCause::OutOfMemory);
        assert!(death.message.contains("2097152") && death.message.contains("1048576"), "{}", death.message);
    }

    #[test]
    fn the_context_around_an_error_does_not_hide_it() {
        let error = wasmtime::Error::from(ResourceTableError::Full).context("error while executing at wasm backtrace");
        assert_eq!(cause(error), DeathCause::HostLimit);
    }

    #[test]
    fn the_last_lines_of_the_log_come_along() {
        let data = data();
        data.caller.log.write(crate::capability::bindings::log::Level::Error, "about to fall", &[]);
        let death = death(&Stopped::Error(Trap::UnreachableCodeReached.into()), &data);
        assert_eq!(death.last_log, ["error: about to fall"]);
    }
}
