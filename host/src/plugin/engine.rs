//! The one wasmtime engine of the process, and the clock that interrupts guests.
//!
//! Everything that an output host does not need is off: most of wasmtime's advisories are about such features.

use std::time::Duration;

use wasmtime::{
    Config, Engine, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, RegallocAlgorithm, Strategy,
};

use super::HostOptions;
use crate::config::Limit;

/// How often a running guest is looked at.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// Stack of a fiber beyond the guest's own, for host functions: one that ran over it would end the process, so it is generous.
const HOST_STACK: usize = 1536 << 10;
/// What stays resident of a memory, a table or a stack that a store gave back: nothing. The next store to have it starts in 24 µs in place of 15, and an output
/// that has nothing to do for a while takes no memory.
const KEEP_RESIDENT: usize = 0;
/// What one component may consist of. componentize-js makes four instances, componentize-py fourteen (the interpreter and its libraries are
/// linked when the component starts) and one more for each native library that a package brings. The pool only counts them.
pub(super) const CORE_INSTANCES: u32 = 64;
const MEMORIES: u32 = 2;
const TABLES: u32 = 8;

/// Makes the engine, with a pool of memories and stacks where this machine has the address space for it.
pub(super) fn engine(options: &HostOptions) -> wasmtime::Result<Engine> {
    let mut config = config(options.limits.size(Limit::Stack));
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(options)));
    let engine = match Engine::new(&config) {
        Ok(engine) => engine,
        Err(error) => {
            tracing::warn!(
                error = format!("{error:#}"),
                "no pool for plugins on this machine: their memories are made one by one, with the same limits"
            );
            config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
            Engine::new(&config)?
        }
    };
    tick(&engine)?;
    Ok(engine)
}

/// `stack` is a guest's.
fn config(stack: usize) -> Config {
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_regalloc_algorithm(RegallocAlgorithm::Backtracking)
        .wasm_component_model(true)
        .epoch_interruption(true)
        .consume_fuel(false)
        // With it on, every crossing costs three to four times as much.
        .concurrency_support(false)
        .max_wasm_stack(stack)
        .async_stack_size(stack + HOST_STACK)
        // Else a stack keeps what was on it, and the memory for that.
        .async_stack_zeroing(true)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(20))
        .shared_memory(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .wasm_shared_everything_threads(false)
        .wasm_stack_switching(false);
    config
}

/// Slots for every worker twice (an upgrade runs old and new side by side), and some for describing and validating.
fn pool(options: &HostOptions) -> PoolingAllocationConfig {
    let stores = options.workers.saturating_mul(2).saturating_add(8).min(10_000);
    let memory = usize::try_from(options.most_memory.min(4 << 30)).unwrap_or(usize::MAX).next_multiple_of(64 << 10);
    let table_elements = usize::try_from(options.most_table_elements).unwrap_or(usize::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(stores)
        .total_stacks(stores)
        .total_memories(stores.saturating_mul(MEMORIES))
        .total_tables(stores.saturating_mul(TABLES))
        .total_core_instances(stores.saturating_mul(CORE_INSTANCES))
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_memory_size(memory)
        .table_elements(table_elements)
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(KEEP_RESIDENT)
        .async_stack_keep_resident(KEEP_RESIDENT);
    pool
}

/// Ticks from a thread of its own: a runtime whose threads are all busy with guests would stop the clock that interrupts them.
/// The thread ends with the engine.
fn tick(engine: &Engine) -> wasmtime::Result<()> {
    let engine = engine.weak();
    std::thread::Builder::new()
        .name("wharf-ticks".into())
        .spawn(move || {
            while let Some(engine) = engine.upgrade() {
                engine.increment_epoch();
                drop(engine);
                std::thread::sleep(TICK);
            }
        })
        .map_err(|error| wasmtime::Error::msg(format!("the thread that ticks could not be started: {error}")))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;

    #[test]
    fn a_pool_for_a_thousand_workers_fits_or_is_done_without() {
        assert!(engine(&HostOptions::new(None, Limits::default(), 1000)).is_ok());
    }

    #[test]
    fn what_an_output_does_not_need_is_off() {
        let engine = Engine::new(&config(512 << 10)).unwrap();
        let valid = |sections: &[u8]| {
            let module: Vec<u8> = b"\0asm\x01\0\0\0".iter().chain(sections).copied().collect();
            wasmtime::Module::validate(&engine, &module).is_ok()
        };
        // Sections by hand, after the core specification's chapter 5.
        assert!(valid(&[5, 3, 1, 0, 1]), "one memory of one page");
        assert!(!valid(&[5, 5, 2, 0, 1, 0, 1]), "two memories");
        assert!(!valid(&[5, 3, 1, 4, 1]), "a memory with 64-bit addresses");
        assert!(!valid(&[5, 4, 1, 3, 1, 1]), "a shared memory");
        let function = |body: [u8; 2]| [1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 6, 1, 4, 0, body[0], body[1], 0x0b];
        assert!(valid(&function([0x10, 0])), "a call");
        assert!(!valid(&function([0x12, 0])), "a tail call");
    }
}
