//! A core module becomes a component.

use std::path::Path;

use wit_component::ComponentEncoder;

/// Why a module could not become a component.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// The file cannot be read.
    #[error("reading the module {path}: {cause}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        cause: std::io::Error,
    },
    /// It is no module, or one without the description of its imports and exports.
    #[error("making a component of {path}: {cause}. A plugin has to call `wharf_plugin::export!` once")]
    Encode {
        /// The file.
        path: String,
        /// The cause.
        cause: String,
    },
}

/// Makes a component of a core module that `wit-bindgen` has described, and validates it.
///
/// # Errors
/// See [`ComponentError`].
pub fn from_module(path: &Path) -> Result<Vec<u8>, ComponentError> {
    let name = || path.display().to_string();
    let module = std::fs::read(path).map_err(|cause| ComponentError::Read { path: name(), cause })?;
    ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|cause| ComponentError::Encode { path: name(), cause: format!("{cause:#}") })
}
