//! A Fluent Bit configuration as one of Wharf: what an operator begins with who comes from there.
//!
//! In: a configuration in either of Fluent Bit's formats. Out: the text of a `wharf.yaml` that does the same for the inputs and the two outputs
//! that Wharf has. Nothing is left out in silence: every option of the file is translated, or named in a comment that says what is here in
//! its place. Meanings are those of Fluent Bit's documentation (<https://docs.fluentbit.io/manual>), version 5.
//!
//! `classic` and `modern` read a file into [`Block`]s; `inputs`, `outputs` and `service` translate one each into a [`Map`]; `yaml` writes it.

mod block;
mod classic;
mod inputs;
mod modern;
mod outputs;
mod parsers;
mod parsers_files;
mod pattern;
mod service;
mod shared;
#[cfg(test)]
mod tests;
mod yaml;

use std::path::{Path, PathBuf};

use block::{Block, Kind};
use yaml::Map;

/// Why a file cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A file cannot be read.
    #[error("{} cannot be read: {cause}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// An included file cannot be read.
    #[error("{place}: includes {}, which cannot be read: {cause}: correct its name, or take it out", path.display())]
    Included {
        /// Where the including file names it: `fluent-bit.conf:4`.
        place: String,
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
    /// A line of a classic file is none.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A YAML file has faults.
    #[error("{0}")]
    Yaml(crate::config::Faults),
    /// Files include each other without end.
    #[error("{}:{line}: includes go deeper than {most} files: does one include itself?", path.display())]
    Depth {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// How deep they may go.
        most: usize,
    },
    /// There is nothing in it that Wharf could do.
    #[error("{} has neither an input nor an output", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
    },
}

/// What a conversion gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// A `wharf.yaml`.
    pub text: String,
    /// How many things are named in comments because they mean something else here, or have no counterpart.
    pub remarks: usize,
    /// What is to be mended in Fluent Bit's configuration, each with its place; comments say it as well.
    pub warnings: Vec<String>,
}

impl ConvertError {
    /// Why a file cannot be read that another one includes at a place, or that is the configuration itself.
    fn read(path: &Path, included_at: Option<&str>, cause: std::io::Error) -> Self {
        let path = path.to_owned();
        match included_at {
            Some(place) => Self::Included { place: place.to_owned(), path, cause },
            None => Self::Read { path, cause },
        }
    }
}

/// Converts a file, and all that it includes. Files named `.yaml` or `.yml` are read as YAML, others as the classic format.
///
/// # Errors
/// Where a file cannot be read, or is not of its format.
pub fn convert(path: &Path) -> Result<Converted, ConvertError> {
    let mut blocks = read(path)?;
    let has = |kind| blocks.iter().any(|block| block.kind == kind);
    if !has(Kind::Input) && !has(Kind::Output) {
        return Err(ConvertError::Nothing { path: path.to_owned() });
    }
    let parsers_files::Found { blocks: parsers, missing } = parsers_files::of_services(&blocks, path);
    blocks.extend(parsers);
    Ok(translated(&blocks, path, missing))
}

fn read(path: &Path) -> Result<Vec<Block>, ConvertError> {
    let is_yaml = path.extension().is_some_and(|it| it.eq_ignore_ascii_case("yaml") || it.eq_ignore_ascii_case("yml"));
    if is_yaml { modern::read(path) } else { classic::read(path) }
}

fn translated(blocks: &[Block], path: &Path, mut warnings: Vec<String>) -> Converted {
    warnings.extend(blocks.iter().filter_map(Block::fault));
    let of = |kind| blocks.iter().filter(move |block| block.kind == kind && block.fault().is_none());
    let mut top = Map::default();
    let file = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    top.say(format!("Made of {file} by `wharf convert`. Check it with `wharf validate`."));
    let any_variable = blocks.iter().flat_map(|block| &block.options).any(|option| option.value.contains("${"));
    if any_variable {
        top.say("A variable that is not set is a fault here, and not an empty text: write ${NAME:-} where it may be missing.");
    }
    for block in of(Kind::Service) {
        service::translate(block, &mut top);
    }
    let mut remarks = warnings.clone();
    let mut sources = Map::default();
    let mut tags = vec![];
    let parsers: Vec<&Block> = of(Kind::Other).filter(|block| matches!(&*block.plugin, "parser" | "parsers")).collect();
    for (number, block) in of(Kind::Input).enumerate() {
        inputs::translate(block, number, &parsers, &mut sources, &mut tags);
    }
    for block in of(Kind::Filter) {
        remarks.push(format!(
            "{}: the filter {} has no counterpart: records are delivered as they come in.",
            block.place, block.plugin
        ));
    }
    // A parser is at the sources that use it.
    for block in of(Kind::Other).filter(|block| !matches!(&*block.plugin, "parser" | "parsers")) {
        remarks.push(format!("{}: [{}] is not translated.", block.place, block.plugin));
    }
    let mut outputs = Map::default();
    for block in of(Kind::Output) {
        outputs::translate(block, &tags, &mut outputs);
    }
    for remark in remarks {
        top.remark(remark);
    }
    top.map("sources", sources);
    top.map("outputs", outputs);
    Converted { remarks: top.remarks(), text: top.written(), warnings }
}
