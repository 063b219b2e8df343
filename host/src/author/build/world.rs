//! The WIT package as a project needs it: a world that imports what the project's code imports, and no more. Tool chains of languages that
//! cannot leave out by themselves what nobody calls would otherwise ask for everything, and the operator is shown what a plugin asks for.

use std::collections::BTreeSet;
use std::path::Path;

use super::{BuildError, write};
use crate::author::embedded;

/// What the world's own export speaks of.
const ALWAYS: [&str; 2] = ["types", "records"];
/// The file with the world.
const WORLD: &str = "output.wit";

/// Writes the package into a folder, with a world that imports only these interfaces. `named_in` is what imports them, for messages.
///
/// # Errors
/// [`BuildError::Project`] where there is no such interface, [`BuildError::Write`].
pub(super) fn write_package(folder: &Path, used: &BTreeSet<String>, named_in: &Path) -> Result<(), BuildError> {
    for (name, text) in embedded::wit() {
        let text = if name == WORLD {
            narrowed(text, used).map_err(|what| BuildError::Project { path: named_in.to_owned(), what })?
        } else {
            text.to_owned()
        };
        write(&folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

fn narrowed(text: &str, used: &BTreeSet<String>) -> Result<String, String> {
    let known: Vec<&str> = text.lines().filter_map(imported).collect();
    if let Some(strange) = used.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("it imports wharf:output/{strange}, which is none of the host's: {}", known.join(", ")));
    }
    let kept = |line: &&str| imported(line).is_none_or(|name| ALWAYS.contains(&name) || used.contains(name));
    Ok(text.lines().filter(kept).flat_map(|line| [line, "\n"]).collect())
}

/// The interface that a line of a world imports.
fn imported(line: &str) -> Option<&str> {
    line.trim().strip_prefix("import ")?.strip_suffix(';')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "interface output {}\nworld plugin {\n  import types;\n  import records;\n  import s3;\n  import log;\n  export output;\n}\n";

    fn used(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_world_imports_what_is_used_and_what_its_export_speaks_of() {
        assert_eq!(
            narrowed(TEXT, &used(&["log"])).unwrap(),
            "interface output {}\nworld plugin {\n  import types;\n  import records;\n  import log;\n  export output;\n}\n"
        );
        assert_eq!(narrowed(TEXT, &used(&["s3", "log"])).unwrap(), TEXT);
    }

    #[test]
    fn an_interface_that_is_not_there_is_told_with_those_that_are() {
        assert_eq!(
            narrowed(TEXT, &used(&["kafka"])).unwrap_err(),
            "it imports wharf:output/kafka, which is none of the host's: types, records, s3, log"
        );
    }
}
