//! The files that `Parsers_File` of a service names: their parsers, in whichever of the two formats each is.

use std::path::Path;

use super::block::{Block, Kind};
use super::{ConvertError, read};

/// What is found.
#[derive(Default)]
pub(super) struct Found {
    /// Sections of parsers. Fluent Bit reads no others from such a file.
    pub(super) blocks: Vec<Block>,
    /// Files that cannot be read, each with the place that names it and what to do.
    pub(super) missing: Vec<String>,
}

/// Reads the files that the services of a configuration name. They are named from the folder of the configuration on.
pub(super) fn of_services(blocks: &[Block], configuration: &Path) -> Found {
    let folder = configuration.parent().unwrap_or(Path::new(""));
    let mut found = Found::default();
    for block in blocks.iter().filter(|block| block.kind == Kind::Service) {
        for option in block.take_given("parsers_file") {
            match read(&folder.join(&option.value)) {
                Ok(blocks) => found.blocks.extend(blocks.into_iter().filter(is_of_parsers)),
                Err(error) => found.missing.push(told(&option.place, &option.value, &error)),
            }
        }
    }
    found
}

fn is_of_parsers(block: &Block) -> bool {
    block.kind == Kind::Other
        && matches!(&*block.plugin, "parser" | "parsers" | "multiline_parser" | "multiline_parsers")
}

fn told(place: &str, file: &str, error: &ConvertError) -> String {
    format!("{place}: Parsers_File {file}: {error}. Mend that and convert again, so that inputs have its parsers.")
}
