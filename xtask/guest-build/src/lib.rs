//! Builds the built-in components: used by `host/build.rs` and by xtask. `wharf plugin build` finds its tool chain for Rust here.
//!
//! In: the repository. Out: one `<name>.wasm` component for each built-in plugin. The guests are compiled by a cargo of their own
//! to core modules, which become components here. What the surrounding cargo set up for the host (flags, target, linker) is kept
//! away from it.
//!
//! Where the tool chain at hand has no `wasm32-unknown-unknown`, a second one is looked for: Debian's `rustc-web` with
//! `rust-web-src`, which builds the standard library itself.

mod build;
mod component;
mod toolchain;

pub use build::{BUILT_IN, BuildError, FOR_BENCHES, FOR_TESTS, build_all, build_for_benches, build_for_tests, sources};
pub use component::{ComponentError, from_module};
pub use toolchain::{SetupError, TARGET, Toolchain, ToolchainError, ensure_toolchain};
