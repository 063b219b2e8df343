//! Turning cached machine code back into a component: one of the few places with `unsafe`, which `docs/architecture.md` lists.

use wasmtime::Engine;
use wasmtime::component::Component;

/// Proof that bytes are machine code which this host itself made: only [`super::cache`] makes one, after it has verified their
/// authentication code.
pub(super) struct Authentic<'a>(&'a [u8]);

impl<'a> Authentic<'a> {
    /// Vouches for `code`. Call it for bytes alone whose authentication code was just verified, in memory, so that nobody could
    /// have changed them since.
    pub(super) fn vouch_for(code: &'a [u8]) -> Self {
        Self(code)
    }
}

/// The component.
///
/// # Errors
/// Where the code was made by another wasmtime, or for another processor or configuration.
pub(super) fn component(engine: &Engine, code: &Authentic<'_>) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` must get what `Component::serialize` gave, unchanged; otherwise the process runs whatever code is in
    // there. The bytes were authenticated with a key that only this host's user can read, which was used for nothing but
    // results of `serialize`. wasmtime itself checks version, target and settings.
    #[expect(unsafe_code, reason = "cached code is loaded here and nowhere else, after it was authenticated")]
    unsafe {
        Component::deserialize(engine, code.0)
    }
}
