//! What ended a store: one place that sorts every way in which a call can give no answer.

use std::time::Duration;

use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap};
use wasmtime_wasi::I32Exit;

use super::call::Stopped;
use super::limits::call_bytes;
use super::store::Data;
use super::{Death, DeathCause};
use crate::capability::{HostTrouble, LimitReached, Reached, cut, one_line};
use crate::config::Limit;
use crate::journal::ReadError;

/// Longest text of a death, bytes.
const MESSAGE_BYTES: usize = 4096;
const SHORT_BYTES: usize = 256;

/// Sorts what stopped a call in a store with this data.
pub(super) fn death(stopped: &Stopped, data: &Data) -> Death {
    let Sorted { cause, message, limit } = sort(stopped, data);
    let in_short = match stopped {
        // The error's texts begin with the frames; what happened is told by the one at the root.
        Stopped::Error(error) if message.contains('\n') => error.root_cause().to_string(),
        _ => message.clone(),
    };
    Death { in_short: one_line(&in_short, SHORT_BYTES), limit: limit.map(Box::new), ..decided(cause, &message, data) }
}

/// A death that the host decides on after a call that gave an answer.
pub(super) fn decided(cause: DeathCause, message: &str, data: &Data) -> Death {
    Death {
        cause,
        message: lines(cut(message, MESSAGE_BYTES)),
        in_short: one_line(message, SHORT_BYTES),
        limit: None,
        last_log: data.caller.log.last_lines(),
    }
}

/// The lines of a text in which a guest's words stand (names of its functions, between the host's): none steers a terminal, and none can be taken
/// for a line of the log, since all but the first are set in.
fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| one_line(line, MESSAGE_BYTES)).collect();
    let set_in = |line: &String| if line.starts_with(' ') { line.clone() } else { format!("    {line}") };
    let mut told = lines.first().cloned().unwrap_or_default();
    for line in lines.iter().skip(1) {
        told.push('\n');
        told.push_str(&set_in(line));
    }
    told
}

struct Sorted {
    cause: DeathCause,
    message: String,
    limit: Option<Reached>,
}

impl Sorted {
    fn plain(cause: DeathCause, message: String) -> Self {
        Self { cause, message, limit: None }
    }

    /// `what` happened, and what followed.
    fn limit(cause: DeathCause, what: &str, reached: Reached, then: &str) -> Self {
        Self { cause, message: format!("{what}: {reached}{then}"), limit: Some(reached) }
    }
}

fn sort(stopped: &Stopped, data: &Data) -> Sorted {
    let services = &data.caller.services;
    let error = match stopped {
        Stopped::Timeout(limit) => {
            let taken = millis(*limit);
            let reached = services.reached(Limit::DeliverTimeout, taken, 0);
            // Setting up and saying good-bye have less.
            let reached = Reached { limit: taken, ..reached };
            return Sorted::limit(DeathCause::Timeout, "the call took too long", reached, "");
        }
        Stopped::Panic(text) => {
            return Sorted::plain(DeathCause::Host, format!("the host failed in a call of the plugin: {text}"));
        }
        Stopped::Error(error) => error,
    };
    if data.over_budget || error.downcast_ref::<Trap>() == Some(&Trap::Interrupt) {
        let reached = services.reached(Limit::CpuPerCall, millis(data.meter.ended()), 0);
        // With the batch's part.
        let reached = Reached { limit: millis(data.cpu_budget), ..reached };
        return Sorted::limit(DeathCause::CpuLimit, "the call took too much CPU time", reached, "");
    }
    if let Some(limit) = host_limit(error, data) {
        return limit;
    }
    // A full pool says nothing about the plugin or its batch.
    if error.is::<ReadError>() || error.is::<HostTrouble>() || error.is::<PoolConcurrencyLimitError>() {
        return Sorted::plain(DeathCause::Host, format!("{error:#}"));
    }
    if let Some((_, reached)) = data.limiter.denied() {
        let then = format!("; then: {}", error.root_cause());
        return Sorted::limit(DeathCause::OutOfMemory, "a growth was refused", reached.clone(), &then);
    }
    if error.downcast_ref::<Trap>() == Some(&Trap::StackOverflow) {
        let most = services.limits().of(Limit::Stack);
        let then = format!("; then: {}", error.root_cause());
        return Sorted::limit(DeathCause::Trap, "the stack is used up", services.reached(Limit::Stack, most, 0), &then);
    }
    match error.downcast_ref::<I32Exit>() {
        Some(I32Exit(code)) => {
            Sorted::plain(DeathCause::Trap, format!("the plugin ended itself with exit code {code}"))
        }
        // What is left are traps, and answers and arguments that could not be read out of the guest, which are its own fault too.
        None => Sorted::plain(DeathCause::Trap, format!("{error:?}")),
    }
}

/// A limit of the host that a call ran into, in this host's words: wasmtime speaks of fuel, which is no fuel that anybody knows.
fn host_limit(error: &wasmtime::Error, data: &Data) -> Option<Sorted> {
    let services = &data.caller.services;
    let limits = services.limits();
    let sorted = |what: &str, reached, then: &str| Some(Sorted::limit(DeathCause::HostLimit, what, reached, then));
    if let Some(LimitReached(reached)) = error.downcast_ref::<LimitReached>() {
        return sorted("too much was asked for", reached.clone(), "");
    }
    match error.downcast_ref::<ResourceTableError>() {
        // Where there is a way to tell the guest of it, it is told instead.
        Some(full @ ResourceTableError::Full) => {
            let most = limits.of(Limit::HostObjects);
            let reached = services.reached(Limit::HostObjects, most, 1);
            return sorted("no more host objects", reached, &format!("; {full}"));
        }
        Some(_) => return Some(Sorted::plain(DeathCause::HostLimit, format!("{error:#}"))),
        None => {}
    }
    // These two have no type of their own in wasmtime 48.
    for cause in error.chain() {
        let text = cause.to_string();
        if text.contains("handle limit exceeded") {
            let most = limits.of(Limit::Handles);
            return sorted("no more handles", services.reached(Limit::Handles, most, 1), "");
        }
        if text.contains("fuel allocated for hostcalls") {
            let most = call_bytes(limits) as u64;
            let reached = Reached { limit: most, ..services.reached(Limit::CallBytes, 0, most + 1) };
            return sorted("the plugin handed over too much in one call or one answer", reached, " or more");
        }
    }
    None
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wasmtime::ResourceLimiter as _;

    use super::*;
    use crate::capability::log::GuestLog;
    use crate::capability::share::Budget;
    use crate::capability::{Caller, Services};
    use crate::config::{Level, Limits, Unit};
    use crate::record::ChunkId;

    fn data() -> Data {
        let services = Services::detached("o".into());
        services.limited_by(&Arc::new(Limits::default().with(Limit::Memory, 1 << 20, Level::Output)));
        let all = Budget::new(Limit::TotalMemory, "all".into(), u64::MAX);
        Data::new(Caller::new(services.clone(), GuestLog::new(services, 0, "p".into())), &all, u64::MAX)
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
        assert_eq!(cause(LimitReached(Reached::fixed("a list", Unit::Count("records"), 1, 2))), DeathCause::HostLimit);
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
        let told = "a growth was refused: outputs.o.limits.max_memory is 1048576 bytes, and 2097152 were wanted; then: wasm trap: wasm `unreachable` instruction executed";
        assert_eq!(death.message, told);
        assert_eq!(death.limit.map(|limit| (limit.limit, limit.current, limit.requested)), Some((1 << 20, 0, 2 << 20)));
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

    #[test]
    fn a_name_of_a_guests_function_can_neither_begin_a_line_of_the_log_nor_steer_a_terminal() {
        let told = lines("error while executing:\n    0: 0x1 - a!b\n2026-01-01 ERROR forged\u{1b}[2J\r\nx");
        let expected = "error while executing:\n    0: 0x1 - a!b\n    2026-01-01 ERROR forged\\u{1b}[2J\n    x";
        assert_eq!(told, expected);
    }

    /// What a person reads where a limit ended a store: every text.
    #[test]
    fn a_limit_that_ends_a_store_is_told_by_its_key_and_its_numbers() {
        let told = |stopped: Stopped| death(&stopped, &data()).message;
        let error = |text: &'static str| Stopped::Error(wasmtime::Error::msg(text));
        for (stopped, text) in [
            (
                Stopped::Timeout(Duration::from_millis(300)),
                "the call took too long: plugins.limits.deliver_timeout is 300 ms, and 300 were taken",
            ),
            (
                Stopped::Error(Trap::StackOverflow.into()),
                "the stack is used up: plugins.limits.stack is 524288 bytes, and 524288 were taken; \
                 then: wasm trap: call stack exhausted",
            ),
            (
                Stopped::Error(Trap::Interrupt.into()),
                "the call took too much CPU time: plugins.limits.cpu_per_call is 0 ms, and 0 were taken",
            ),
            (
                error("cannot allocate another handle: store handle limit exceeded"),
                "no more handles: plugins.limits.handles is 1024 handles, 1024 are in use, and 1 more were wanted",
            ),
            (
                error("fuel allocated for hostcalls has been exhausted"),
                "the plugin handed over too much in one call or one answer: \
                 plugins.limits.call_bytes is 16777216 bytes, and 16777217 were wanted or more",
            ),
            (
                Stopped::Error(ResourceTableError::Full.into()),
                "no more host objects: plugins.limits.host_objects is 256 host objects, 256 are in use, and 1 more \
                 were wanted; resource table has no free keys",
            ),
        ] {
            assert_eq!(told(stopped), text);
        }
    }
}
