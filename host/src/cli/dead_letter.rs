//! `wharf dead-letter`.

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs, Subcommand};
use serde_json::json;

use super::table::table;
use super::{Ended, counted, print};
use crate::author::trial::{Export, ExportError, ExportedTests, export};
use crate::config::LettersPlace;
use crate::config::units::format_size;
use crate::dead_letter::{DeadLetters, Filter, Kept, LetterFile, StoredLetter};

const EXAMPLES: &str = "\
Examples:
  wharf dead-letter list -c wharf.yaml
  wharf dead-letter show --data-dir /var/lib/wharf --output archive
  wharf dead-letter show --data-dir /var/lib/wharf --json | jq .reason
  wharf dead-letter export -c wharf.yaml --output archive --to my-plugin/tests
  wharf dead-letter replay -c wharf.yaml --output archive
  wharf dead-letter purge -c wharf.yaml --batch 0123456789abcdef0123456789abcdef

All of it works while Wharf runs and while it does not. Replayed records are taken in by the
running Wharf, or the next one that starts, for the output that could not deliver them.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the files of dead letters: output, batch, records, reasons
    List(Selected),
    /// Show the records and why each could not be delivered
    Show(Selected),
    /// Write them as tests of their plugin: `wharf plugin test` replays exactly these records
    Export(Exported),
    /// Hand them to the running (or next started) Wharf again, for their own output
    Replay(Chosen),
    /// Remove them for good
    Purge(Chosen),
}

/// Where they are.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("where").required(true).args(["config", "data_dir"]))]
struct Place {
    /// The configuration, for its data_dir
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The data directory itself
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
struct Selected {
    #[command(flatten)]
    place: Place,
    /// Only those of this output
    #[arg(long, value_name = "NAME", value_parser = output_name)]
    output: Option<String>,
    /// Only those of this batch
    #[arg(long, value_name = "ID", value_parser = batch_id)]
    batch: Option<String>,
    /// JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// As [`Selected`], but everything has to be said.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("which").required(true).multiple(true).args(["output", "batch", "all"]))]
struct Chosen {
    #[command(flatten)]
    place: Place,
    /// Those of this output
    #[arg(long, value_name = "NAME", value_parser = output_name)]
    output: Option<String>,
    /// Those of this batch
    #[arg(long, value_name = "ID", value_parser = batch_id)]
    batch: Option<String>,
    /// All of them
    #[arg(long, conflicts_with_all = ["output", "batch"])]
    all: bool,
}

#[derive(Debug, ClapArgs)]
struct Exported {
    /// The configuration: its data_dir has the dead letters, and the output's `config` goes into the tests
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// The output whose dead letters they are
    #[arg(long, value_name = "NAME", value_parser = output_name)]
    output: String,
    /// Only those of this batch
    #[arg(long, value_name = "ID", value_parser = batch_id)]
    batch: Option<String>,
    /// Where the tests are written: a plugin's folder tests/
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
}

pub(super) fn run(args: Args) -> Result<(), Ended> {
    match args.action {
        Action::List(selected) => list(selected),
        Action::Show(selected) => show(selected),
        Action::Export(exported) => export_tests(exported),
        Action::Replay(chosen) => replay(chosen),
        Action::Purge(chosen) => purge(chosen),
    }
}

/// A name that no output can have is a wrong argument.
fn output_name(text: &str) -> Result<String, String> {
    Filter::new(Some(text.to_owned()), None).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// So is what no batch can be called.
fn batch_id(text: &str) -> Result<String, String> {
    Filter::new(None, Some(text.to_owned())).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// The dead letters of a place, and which of them are meant: an output or a batch that is not there is an error, not nothing.
fn find(place: Place, output: Option<String>, batch: Option<String>) -> Result<(DeadLetters, Filter), Ended> {
    let (letters, configured) = open(place)?;
    if let Some(output) = &output {
        let mut known = letters.outputs()?;
        let is_known = known.contains(output) || configured.as_ref().is_some_and(|names| names.contains(output));
        if !is_known {
            let hint = if configured.is_none() { "; those of a configuration are known with -c FILE" } else { "" };
            known.extend(configured.unwrap_or_default());
            known.sort();
            known.dedup();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Ended::Failed(format!("there is no output {output:?}; known are: {known}{hint}")));
        }
    }
    let filter = Filter::new(output.clone(), batch.clone())?;
    if let Some(batch) = batch
        && letters.list(&filter)?.is_empty()
    {
        let of = output.map(|output| format!(" of output {output}")).unwrap_or_default();
        return Err(Ended::Failed(format!(
            "there is no batch {batch} among the dead letters{of}; `wharf dead-letter list` shows those that are there"
        )));
    }
    Ok((letters, filter))
}

/// The dead letters, and the outputs of the configuration, where one is given.
fn open(place: Place) -> Result<(DeadLetters, Option<Vec<String>>), Ended> {
    let (data_dir, configured) = match (place.data_dir, place.config) {
        (Some(data_dir), _) => (data_dir, None),
        (None, Some(file)) => {
            let place = LettersPlace::load(&file).map_err(Ended::Config)?;
            (place.data_dir, Some(place.outputs))
        }
        (None, None) => return Err(Ended::Failed("give -c FILE or --data-dir DIR".into())),
    };
    match std::fs::metadata(&data_dir) {
        Ok(found) if found.is_dir() => Ok((DeadLetters::open(&data_dir), configured)),
        Ok(_) => Err(Ended::Failed(format!("{} is no directory", data_dir.display()))),
        Err(cause) => Err(Ended::Failed(format!("the data directory {} cannot be read: {cause}", data_dir.display()))),
    }
}

fn state(file: &LetterFile) -> &'static str {
    match file.kept {
        Kept::Dead => "dead",
        Kept::ForReplay => "waits for replay",
    }
}

fn written(file: &LetterFile) -> String {
    match jiff::Timestamp::try_from(file.written) {
        Ok(time) => format!("{time:.0}"),
        Err(_) => "?".into(),
    }
}

fn list(selected: Selected) -> Result<(), Ended> {
    let Selected { place, output, batch, json } = selected;
    let (letters, filter) = find(place, output, batch)?;
    let files = letters.list(&filter)?;
    let mut text = String::new();
    let mut rows = vec![];
    for file in &files {
        let (records, reasons) = (file.records()?, file.reasons());
        if json {
            let line = json!({
                "output": file.output, "batch": file.batch, "state": state(file), "records": records,
                "bytes": file.bytes, "written": written(file), "reasons": reasons, "file": file.path.display().to_string(),
            });
            text.push_str(&format!("{line}\n"));
        } else {
            let reasons: Vec<String> = reasons.iter().map(|r| short(r, 60)).collect();
            rows.push(vec![
                file.output.clone(),
                file.batch.clone(),
                records.to_string(),
                format_size(file.bytes),
                written(file),
                state(file).into(),
                reasons.join("; "),
            ]);
        }
    }
    if !json && files.is_empty() {
        text.push_str("there are no dead letters\n");
    } else if !json {
        text.push_str(&table(&["OUTPUT", "BATCH", "RECORDS", "SIZE", "WRITTEN", "STATE", "REASONS"], &rows));
    }
    print(&text)
}

fn show(selected: Selected) -> Result<(), Ended> {
    let Selected { place, output, batch, json } = selected;
    let (letters, filter) = find(place, output, batch)?;
    let files = letters.list(&filter)?;
    let mut damaged = None;
    for file in &files {
        for letter in file.letters()? {
            match letter {
                Ok(letter) if json => print(&format!("{}\n", letter.to_json()))?,
                Ok(letter) => print(&readable(&letter))?,
                Err(error) => {
                    super::say(&format!("wharf: {error}"));
                    damaged = Some(Ended::Failed("some dead letters could not be read".into()));
                }
            }
        }
    }
    if files.is_empty() && !json {
        print("there are no dead letters\n")?;
    }
    damaged.map_or(Ok(()), Err)
}

/// One record in two lines. Control characters of bodies do not reach the terminal.
fn readable(letter: &StoredLetter) -> String {
    let time = crate::dead_letter::time_text(letter.time_ns);
    let body = short(&String::from_utf8_lossy(&letter.body), 400);
    format!(
        "{time} {} record {} of {} tag {}: {}: {}\n    {}\n",
        letter.output,
        letter.record,
        letter.batch,
        short(&letter.tag, 100),
        short(&letter.failure, 40),
        short(&letter.reason, 400),
        body
    )
}

/// At most so many characters, control characters escaped.
fn short(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for c in text.chars().take(most) {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    if text.chars().nth(most).is_some() {
        shown.push('…');
    }
    shown
}

/// For a batch that was named: that it waits for its replay is why nothing was done.
fn chosen(chosen: Chosen) -> Result<(DeadLetters, Filter), Ended> {
    let Chosen { place, output, batch, all: _ } = chosen;
    let named = batch.clone();
    let (letters, filter) = find(place, output, batch)?;
    if let Some(batch) = named
        && letters.list(&filter)?.iter().all(|file| file.kept == Kept::ForReplay)
    {
        return Err(Ended::Failed(format!(
            "batch {batch} waits for its replay already: the running Wharf, or the next that starts, takes it in"
        )));
    }
    Ok((letters, filter))
}

fn export_tests(exported: Exported) -> Result<(), Ended> {
    let Exported { config, output, batch, to } = exported;
    let place = Place { config: Some(config.clone()), data_dir: None };
    let (letters, filter) = find(place, Some(output.clone()), batch)?;
    let files = letters.list(&filter)?;
    if files.is_empty() {
        return Err(Ended::Failed(format!("output {output} has no dead letters")));
    }
    let ExportedTests { written, kept } =
        export(&Export { config, output, files, to }).map_err(|error| match error {
            ExportError::Config(faults) => Ended::Config(faults),
            error => error.into(),
        })?;
    let names = |paths: &[PathBuf]| paths.iter().map(|path| format!("  {}\n", path.display())).collect::<String>();
    let mut text = format!("{} written\n{}", counted(written.len(), "test", "tests"), names(&written));
    if !kept.is_empty() {
        let there = "there already and left as it is: remove it, or write to another folder";
        text.push_str(&format!("{} {there}\n{}", counted(kept.len(), "file", "files"), names(&kept)));
    }
    print(&text)
}

fn replay(which: Chosen) -> Result<(), Ended> {
    let (letters, filter) = chosen(which)?;
    let moved = letters.request_replay(&filter)?;
    print(&format!("{} handed over for replay\n{}", counted(moved.len(), "file", "files"), names(&moved)))
}

fn purge(which: Chosen) -> Result<(), Ended> {
    let (letters, filter) = chosen(which)?;
    let gone = letters.purge(&filter)?;
    print(&format!("{} removed\n{}", counted(gone.len(), "file", "files"), names(&gone)))
}

fn names(files: &[LetterFile]) -> String {
    files.iter().map(|f| format!("  {} {}\n", f.output, f.batch)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::BodyKind;

    #[test]
    fn control_characters_of_a_body_do_not_reach_the_terminal() {
        let letter = StoredLetter {
            output: "archive".into(),
            batch: "00112233445566778899aabbccddeeff".into(),
            record: 3,
            time_ns: 0,
            tag: "app".into(),
            kind: BodyKind::Text,
            reason: "too long".into(),
            failure: "rejected".into(),
            body: b"\x1b[31mred\x07".to_vec(),
        };
        assert_eq!(
            readable(&letter),
            "1970-01-01T00:00:00.000000000Z archive record 3 of 00112233445566778899aabbccddeeff tag app: rejected: too long\n    \\u{1b}[31mred\\u{7}\n"
        );
    }
}
