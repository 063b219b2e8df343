//! A plugin that attacks its host and its neighbours, for the host's tests: `host/src/plugin/tests/hostile` has a test for each attack.
//!
//! It speaks the WIT interface as it is, without the SDK's types between, since what it says is what no honest type would let it say. A
//! batch's tag names the attack, with an argument behind a blank, so that the batch behind a bad one can be a good one. What goes wrong in
//! `configure` and `close` is named in the configuration: `{"configure": …, "close": …}`. An attack that the host refused comes back as a
//! failure with the host's words.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code, reason = "natively nobody calls it"))]
#![expect(unsafe_code, reason = "it forges handles and texts, which is what it is for")]
#![expect(clippy::panic, reason = "it traps, which is what it is for")]

mod answers;
mod calls;
mod memory;
mod network;
mod objects;

use std::cell::RefCell;

use serde_json::Value;
use wharf_plugin::__private::{Descriptor, Guest, WitBatch, WitContext, WitFailure, WitFault, WitPlan, WitReport};
use wharf_plugin::bindings::wharf::output::types::FailureKind;

/// What a delivery ends with.
type Answer = Result<WitReport, WitFailure>;

thread_local! {
    /// The configuration, and what is kept over calls.
    static KEPT: RefCell<Kept> = RefCell::default();
}

#[derive(Default)]
struct Kept {
    close: String,
    objects: Vec<objects::Hoarded>,
}

struct Hostile;

impl Guest for Hostile {
    fn describe() -> Descriptor {
        let config_schema = r#"{"type":"object"}"#.to_owned();
        Descriptor { name: "hostile".into(), version: "0.1.0".into(), config_schema }
    }

    fn configure(config: String, _: WitContext) -> Result<WitPlan, Vec<WitFault>> {
        std::panic::set_hook(Box::new(|panic| calls::say(&panic.to_string())));
        let config: Value = serde_json::from_str(&config).unwrap_or_default();
        let attack = |call: &str| config.get(call).and_then(Value::as_str).unwrap_or_default().to_owned();
        KEPT.with_borrow_mut(|kept| kept.close = attack("close"));
        match attack("configure").as_str() {
            "spin" => spin(),
            "trap" => trap("configure"),
            "ask" => Err(calls::ask_for_all_that_is_not_allowed()),
            "million_faults" => Err(answers::million_faults()),
            plan => Ok(answers::plan(plan)),
        }
    }

    fn deliver(batch: &WitBatch) -> Answer {
        let tag = batch.tag();
        let (attack, argument) = tag.split_once(' ').unwrap_or((&tag, ""));
        match attack {
            "ok" => delivered(),
            "spin" => spin(),
            "trap" => trap("deliver"),
            "recurse" => {
                std::hint::black_box(recurse(0));
                delivered()
            }
            _ => None
                .or_else(|| answers::attack(attack, batch))
                .or_else(|| memory::attack(attack))
                .or_else(|| objects::attack(attack, batch))
                .or_else(|| calls::attack(attack, argument, batch))
                .or_else(|| network::attack(attack, argument))
                .unwrap_or_else(|| failed(format!("no attack is called {attack}"))),
        }
    }

    fn abandon(batch: &WitBatch) {
        match batch.tag().as_str() {
            "spin" => spin(),
            "trap" => trap("abandon"),
            _ => {}
        }
    }

    fn close() {
        match KEPT.with_borrow(|kept| kept.close.clone()).as_str() {
            "spin" => spin(),
            "trap" => trap("close"),
            "drop" => KEPT.with_borrow_mut(|kept| kept.objects.push(objects::Hoarded::Bomb(objects::TrapsWhenDropped))),
            _ => {}
        }
        KEPT.take();
    }
}

fn delivered() -> Answer {
    Ok(WitReport { rejected: vec![] })
}

/// The way back of what the host said.
fn failed(message: impl Into<String>) -> Answer {
    Err(WitFailure { kind: FailureKind::Misconfigured, message: message.into(), retry_after_ms: None })
}

fn spin() -> ! {
    let mut n = 0u64;
    loop {
        n = std::hint::black_box(n).wrapping_add(1);
    }
}

fn trap(place: &str) -> ! {
    panic!("on purpose, in {place}")
}

#[expect(unconditional_recursion, reason = "it is what it is for")]
fn recurse(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 32]);
    recurse(depth + 1) + frame.first().copied().unwrap_or_default()
}

#[cfg(target_family = "wasm")]
wharf_plugin::bindings::export! { Hostile with_types_in wharf_plugin::bindings }
