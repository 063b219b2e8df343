//! `wharf convert`: a Fluent Bit configuration as one of Wharf.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;

use super::{Ended, counted, print, say};
use crate::config::Draft;

/// What a text is called in places that has no file: `standard output:23:16`.
const ON_OUTPUT: &str = "standard output";

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
        Some(path) => write(path, &converted.text).map_err(Ended::Failed)?,
    }
    for warning in &converted.warnings {
        say(warning);
    }
    let name = args.output.as_deref().unwrap_or(Path::new(ON_OUTPUT));
    // What the environment will hold is not known here; that it is there is told by `wharf validate`.
    let draft = Draft::parse(&converted.text, name, &|_| Some("1".into()));
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

/// Writes a file that is not there yet.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|cause| match cause.kind() {
        ErrorKind::AlreadyExists => {
            format!(
                "{} is there already and is not overwritten: give another name to -o, or move it away",
                path.display()
            )
        }
        _ => format!("{} cannot be written: {cause}", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_is_not_overwritten_and_the_message_says_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wharf.yaml");
        write(&path, "one").unwrap();
        let name = path.display();
        assert_eq!(
            write(&path, "two").unwrap_err(),
            format!("{name} is there already and is not overwritten: give another name to -o, or move it away")
        );
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        assert!(
            write(&dir.path().join("no/wharf.yaml"), "").unwrap_err().contains("wharf.yaml cannot be written: No such")
        );
    }

    #[test]
    fn a_place_in_a_text_without_a_file_is_one_on_standard_output() {
        let draft = Draft::parse("sources: { a: { type: x } }\n", Path::new(ON_OUTPUT), &|_| None);
        let fault = draft.faults().first().map(ToString::to_string).unwrap_or_default();
        assert!(fault.starts_with("standard output:1:"), "{fault}");
    }
}
