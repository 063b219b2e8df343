//! JavaScript, by componentize-js.

use std::path::Path;

use super::{BuildError, Made, Options};

pub(super) fn component(folder: &Path, _: &Options, _: &mut dyn FnMut(&str)) -> Result<Made, BuildError> {
    Err(BuildError::Project { path: folder.to_owned(), what: "plugins in JavaScript cannot be built yet".into() })
}
