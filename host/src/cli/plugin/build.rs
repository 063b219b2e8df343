//! `wharf plugin build`.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::author::build::{Language, Options, build};
use crate::cli::{Ended, print, say};
use crate::config::units::format_size;

const EXAMPLES: &str = "\
Examples:
  wharf plugin build
  wharf plugin build examples/plugins/http-json

The language is told by what is in the folder: Cargo.toml (Rust), package.json (JavaScript),
pyproject.toml (Python) or plugin.c (C). The component is dist/NAME.wasm in the folder. Tools
that are missing are named, with the command that gets each. See docs/plugins/building.md.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The project
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Its language (rust, js, python or c), where the folder does not tell it
    #[arg(long, value_name = "LANGUAGE")]
    lang: Option<Language>,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let options = Options { language: args.lang, colour: std::io::stderr().is_terminal() };
    let built = build(&args.folder, &options, &mut |line| say(line))?;
    let shown = super::shown(&built.component);
    print(&format!("{} ({}, {}; by {})\n", shown.display(), built.language.title(), format_size(built.bytes), built.by))
}
