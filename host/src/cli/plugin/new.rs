//! `wharf plugin new`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::author::build::Language;
use crate::author::new::create;
use crate::cli::{Ended, print};

const EXAMPLES: &str = "\
Examples:
  wharf plugin new to-acme
  wharf plugin new plugins/to-acme --lang c

A name begins with a lower-case letter and has lower-case letters, digits, - and _. What is there
already is never written over. See docs/plugins/tutorial.md.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The plugin's name, and the folder that is made; a path's last part is the name
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// What to write it in: rust, js, python or c
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let created = create(&args.folder, args.lang)?;
    let (folder, begin_with) = (created.folder.display(), created.begin_with);
    print(&format!(
        "{folder} is a plugin in {}, which delivers to an HTTP API. It is written in {folder}/{begin_with}. Go on with:\n\n\
         \u{20} cd {folder}\n  wharf plugin build\n  wharf plugin test\n\n{folder}/README.md says more.\n",
        args.lang.title()
    ))
}
