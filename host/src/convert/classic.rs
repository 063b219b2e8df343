//! Reads the classic format: sections in brackets, an option a line, `@SET` and `@INCLUDE`
//! (<https://docs.fluentbit.io/manual/administration/configuring-fluent-bit/classic-mode>).

use std::path::{Path, PathBuf};

use super::ConvertError;
use super::block::{Block, DEEPEST, Given, Kind, with_defaults};

/// No configuration is larger.
const LARGEST: u64 = 4 << 20;

/// The sections of a file and of all that it includes, in their order.
pub(super) fn read(path: &Path) -> Result<Vec<Block>, ConvertError> {
    let mut reading = Reading::default();
    reading.file(path, None, 0)?;
    reading.end_section();
    Ok(with_defaults(reading.blocks, &reading.set))
}

#[derive(Default)]
struct Reading {
    blocks: Vec<Block>,
    set: Vec<(String, String)>,
    /// The section that is being read: its name, its place, its options.
    open: Option<(String, String, Vec<Given>)>,
}

impl Reading {
    fn file(&mut self, path: &Path, included_at: Option<&str>, depth: usize) -> Result<(), ConvertError> {
        let bytes =
            crate::regular_file::read(path, LARGEST).map_err(|cause| ConvertError::read(path, included_at, cause))?;
        let text = String::from_utf8_lossy(&bytes);
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for (number, line) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
            let fault = |what: &str| ConvertError::Line { path: path.to_owned(), line: number, what: what.to_owned() };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(command) = line.strip_prefix('@') {
                let (word, rest) = split(command);
                match word.to_ascii_uppercase().as_str() {
                    "SET" => {
                        let (key, value) =
                            rest.split_once('=').ok_or_else(|| fault("@SET wants NAME=VALUE behind it"))?;
                        self.set.push((key.trim().to_owned(), value.trim().to_owned()));
                    }
                    "INCLUDE" => {
                        if depth >= DEEPEST {
                            return Err(ConvertError::Depth { path: path.to_owned(), line: number, most: DEEPEST });
                        }
                        let place = format!("{}:{number}", path.display());
                        for file in included(path, rest) {
                            self.file(&file, Some(&place), depth + 1)?;
                        }
                    }
                    _ => return Err(fault("expected @SET or @INCLUDE")),
                }
            } else if let Some(section) = line.strip_prefix('[') {
                let section = section.strip_suffix(']').ok_or_else(|| fault("a section ends with a ]"))?;
                self.end_section();
                self.open = Some((section.trim().to_owned(), format!("{name}:{number}"), vec![]));
            } else {
                let (key, value) = split(line);
                let Some((_, _, options)) = &mut self.open else {
                    return Err(fault("expected a section such as [INPUT] before the first option"));
                };
                options.push(Given::new(key, value, format!("{name}:{number}")));
            }
        }
        Ok(())
    }

    fn end_section(&mut self) {
        let Some((name, place, options)) = self.open.take() else { return };
        let kind = match name.to_ascii_uppercase().as_str() {
            "SERVICE" => Kind::Service,
            "INPUT" => Kind::Input,
            "FILTER" => Kind::Filter,
            "OUTPUT" => Kind::Output,
            _ => Kind::Other,
        };
        self.blocks.push(Block::new(kind, &name, place, options));
    }
}

/// The first word, and what is behind it.
fn split(line: &str) -> (&str, &str) {
    line.split_once(char::is_whitespace).map_or((line, ""), |(key, value)| (key, value.trim()))
}

/// The files that a pattern names, from the including file's folder on, in the order of their names. A plain name is itself, so that a file
/// that is not there is told.
fn included(from: &Path, pattern: &str) -> Vec<PathBuf> {
    let path = from.parent().unwrap_or(Path::new("")).join(pattern);
    let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| name.contains(['*', '?', '[']))
    else {
        return vec![path];
    };
    let (Ok(glob), Some(folder)) = (globset::Glob::new(name), path.parent()) else { return vec![path] };
    let (glob, folder) = (glob.compile_matcher(), if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.filter(|entry| glob.is_match(entry.file_name())).map(|entry| entry.path()).collect();
    files.sort();
    files
}
