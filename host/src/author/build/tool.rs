//! Running the tools of a language: found on `PATH`, their messages passed on line by line.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::BuildError;

/// Where a program is, by `PATH`.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let search = std::env::var_os("PATH")?;
    std::env::split_paths(&search).map(|folder| folder.join(program)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Runs a tool to its end. What it writes to standard error goes to `report` as it comes; what it writes to standard output is given back.
///
/// # Errors
/// [`BuildError::Start`] and [`BuildError::Failed`].
pub(super) fn run(what: &str, command: &mut Command, report: &mut dyn FnMut(&str)) -> Result<Vec<u8>, BuildError> {
    let shown = shown(command);
    let start = |cause| BuildError::Start { command: shown.clone(), cause };
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(start)?;
    let output = child.stdout.take().map(|mut stdout| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // A pipe that breaks shows in how the tool ends.
            let _ = stdout.read_to_end(&mut bytes);
            bytes
        })
    });
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            report(String::from_utf8_lossy(&line).trim_end());
        }
    }
    let status = child.wait().map_err(start)?;
    let output = output.and_then(|thread| thread.join().ok()).unwrap_or_default();
    if status.success() {
        return Ok(output);
    }
    Err(BuildError::Failed { what: what.to_owned(), command: shown, status: status.to_string() })
}

/// A command line, for a person. Long ones are cut: what counts is at the beginning.
fn shown(command: &Command) -> String {
    let words: Vec<_> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(OsStr::to_string_lossy).collect();
    let line = words.join(" ");
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{} …", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_says_is_passed_on_and_how_it_ends_is_told() {
        let mut said = Vec::new();
        let output = run("saying", Command::new("sh").args(["-c", "echo out; echo err >&2"]), &mut |line| {
            said.push(line.to_owned())
        });
        assert_eq!((output.unwrap(), said), (b"out\n".to_vec(), vec!["err".to_owned()]));
        let error = run("ending", Command::new("sh").args(["-c", "exit 3"]), &mut |_| {}).unwrap_err().to_string();
        assert_eq!(error, "ending failed: `sh -c exit 3` ended with exit status: 3; its messages are above");
    }

    #[test]
    fn a_tool_that_is_not_there_is_named() {
        assert_eq!(find("no-such-tool-of-wharf"), None);
        let error = run("trying", &mut Command::new("no-such-tool-of-wharf"), &mut |_| {}).unwrap_err().to_string();
        assert!(error.starts_with("starting `no-such-tool-of-wharf`: "), "{error}");
    }
}
