//! One call into a guest, with everything around it that bounds it: CPU, wall time, and a net under panics of the host.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use wasmtime::Store;

use super::meter::Meter;
use super::store::Data;

/// Why a call gave no answer. The store is lost in every case.
#[derive(Debug)]
pub(super) enum Stopped {
    /// A trap, or an error of the host.
    Error(wasmtime::Error),
    /// The wall clock.
    Timeout(Duration),
    /// A panic in a host function.
    Panic(String),
}

/// Prepares a store for a call that may take so much CPU and wall time.
pub(super) fn begin(store: &mut Store<Data>, cpu: Duration, timeout: Duration) -> Meter {
    let data = store.data_mut();
    data.caller.deadline = std::time::Instant::now().checked_add(timeout);
    data.cpu_budget = cpu;
    data.over_budget = false;
    data.calls = 0;
    data.caller.refused = 0;
    data.limiter.begin_call();
    data.meter.reset();
    let meter = data.meter.clone();
    // The deadline counts from now; a store that waited has one that is long over, and would stop at once.
    store.set_epoch_deadline(1);
    meter
}

/// Makes the call.
pub(super) async fn attempt<T>(
    meter: &Meter,
    timeout: Duration,
    call: impl Future<Output = wasmtime::Result<T>>,
) -> Result<T, Stopped> {
    // The timer is around everything: a future that is dropped takes its host calls with it. Sound to go on after a panic,
    // since the store that it may have left half changed is dropped by whoever gets `Stopped`.
    let guarded = meter.measure(AssertUnwindSafe(call).catch_unwind());
    match tokio::time::timeout(timeout, guarded).await {
        Err(_) => Err(Stopped::Timeout(timeout)),
        Ok(Err(panic)) => Err(Stopped::Panic(text_of(&*panic))),
        Ok(Ok(Err(error))) => Err(Stopped::Error(error)),
        Ok(Ok(Ok(value))) => Ok(value),
    }
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("it gave no text").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::Tenant;

    #[tokio::test]
    async fn a_panic_of_a_host_function_ends_the_call_and_not_the_process() {
        let meter = Meter::new(Tenant::named(None));
        let stopped = attempt::<()>(&meter, Duration::from_secs(60), async { panic!("a bug of the host") }).await;
        assert!(matches!(stopped, Err(Stopped::Panic(text)) if text == "a bug of the host"));
    }

    /// The same through WebAssembly frames, on a fiber, as a host function that a guest calls has it.
    #[tokio::test]
    async fn a_panic_passes_through_the_guest_that_called() {
        // (module (import "" "f" (func)) (func (export "run") call 0)), by hand after the core specification's chapter 5.
        let module = b"\0asm\x01\0\0\0\
            \x01\x04\x01\x60\0\0\
            \x02\x06\x01\0\x01f\0\0\
            \x03\x02\x01\0\
            \x07\x07\x01\x03run\0\x01\
            \x0a\x06\x01\x04\0\x10\0\x0b";
        async fn fails() {
            panic!("in a host function")
        }
        let engine = wasmtime::Engine::default();
        let mut linker = wasmtime::Linker::<()>::new(&engine);
        linker.func_wrap_async("", "f", |_, (): ()| Box::new(fails())).unwrap();
        let mut store = Store::new(&engine, ());
        let module = wasmtime::Module::new(&engine, module).unwrap();
        let instance = linker.instantiate_async(&mut store, &module).await.unwrap();
        let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
        let stopped =
            attempt(&Meter::new(Tenant::named(None)), Duration::from_secs(60), run.call_async(&mut store, ())).await;
        assert!(matches!(stopped, Err(Stopped::Panic(text)) if text == "in a host function"));
    }

    #[tokio::test]
    async fn a_call_that_waits_too_long_is_given_up() {
        let meter = Meter::new(Tenant::named(None));
        let limit = Duration::from_millis(1);
        let stopped = attempt::<()>(&meter, limit, std::future::pending()).await;
        assert!(matches!(stopped, Err(Stopped::Timeout(told)) if told == limit));
    }
}
