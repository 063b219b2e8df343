//! `wharf convert`: a Fluent Bit configuration as one of Wharf.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Ended, counted, print, say};
use crate::config::Draft;

const EXAMPLES: &str = "\
Examples:
  wharf convert /etc/fluent-bit/fluent-bit.conf -o wharf.yaml
  wharf convert fluent-bit.yaml | less

Each option of the file is translated, or named in a comment that says what is here in its
place. What is left to do by hand is told on standard error. docs/migrate-from-fluent-bit.md
has the rest of the way.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Fluent Bit's configuration: `.yaml` and `.yml` in its YAML format, others in its classic one
    file: PathBuf,
    /// Where to write; the standard output where it is left out. A file that is there is not overwritten
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let converted = crate::convert::convert(&args.file)?;
    match &args.output {
        None => print(&converted.text)?,
        Some(path) => {
            let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
            let written = file.and_then(|mut file| std::io::Write::write_all(&mut file, converted.text.as_bytes()));
            written.map_err(|cause| Ended::Failed(format!("{} cannot be written: {cause}", path.display())))?;
        }
    }
    for warning in &converted.warnings {
        say(warning);
    }
    let name = args.output.clone().unwrap_or_else(|| PathBuf::from("wharf.yaml"));
    // What the environment will hold is not known here; that it is there is told by `wharf validate`.
    let draft = Draft::parse(&converted.text, &name, &|_| Some("1".into()));
    for fault in draft.faults() {
        say(&fault.to_string());
    }
    let faults = draft.faults().len();
    if faults > 0 {
        say(&format!("wharf: {} to mend by hand", counted(faults, "thing", "things")));
    }
    if converted.remarks > 0 {
        let what = counted(converted.remarks, "comment says", "comments say");
        say(&format!("wharf: {what} what means something else here or has no counterpart"));
    }
    Ok(())
}
