//! A page of the documents, done as it is written.
//!
//! Two kinds of fenced blocks count. `` ```console `` has commands behind `$ ` (a line that ends with `\` goes on) and what they print;
//! a line `…` stands for any lines, and `…` inside a line for anything. `` ```<language> file=NAME `` is a file's content. Everything
//! else is for people. The commands share one shell, so `cd`, `export` and background jobs work as at a desk.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail, ensure};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// Run a command, and see this.
    Run { line: usize, command: String, expected: Vec<String> },
    /// Write a file, relative to where the shell is.
    Write { line: usize, file: String, content: String },
}

/// Does what the page says, in `folder`, with `programs` first in the search path.
///
/// # Errors
/// Where a command fails or prints something else, with the page's line.
pub fn follow(page: &Path, folder: &Path, programs: &Path) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(page).with_context(|| format!("reading {} failed", page.display()))?;
    let steps = steps(&text)?;
    ensure!(steps.iter().any(|step| matches!(step, Step::Run { .. })), "{} has no command", page.display());

    let printed = tempfile::tempdir()?;
    let script = script(&steps, printed.path())?;
    let path = std::env::var("PATH").unwrap_or_default();
    let ended = Command::new("bash")
        .arg("-c")
        .arg(script)
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", programs.display()))
        .env_remove("CARGO_TARGET_DIR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("running bash failed")?;
    for (number, step) in steps.iter().enumerate() {
        let Step::Run { line, command, expected } = step else { continue };
        let Ok(output) = std::fs::read_to_string(printed.path().join(number.to_string())) else {
            bail!("{}:{line}: `{command}` was not reached ({ended})", page.display());
        };
        let failed = printed.path().join(format!("{number}.failed"));
        ensure!(!failed.exists(), "{}:{line}: `{command}` failed and said:\n{output}", page.display());
        // What a job in the background prints at its end is seen by nobody at a desk.
        if expected.is_empty() && command.ends_with('&') {
            continue;
        }
        let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
        if !agree(expected, &lines) {
            bail!(
                "{}:{line}: `{command}` printed\n{}\nand the page says\n{}",
                page.display(),
                indented(&lines),
                indented(expected)
            );
        }
    }
    ensure!(ended.success(), "{}: the shell ended with {ended}", page.display());
    Ok(())
}

fn indented<T: AsRef<str>>(lines: &[T]) -> String {
    lines.iter().map(|line| format!("    {}\n", line.as_ref())).collect()
}

/// What the page says, in its order.
fn steps(text: &str) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block: Vec<(usize, &str)> = lines.by_ref().take_while(|(_, line)| *line != "```").collect();
        if info == "console" {
            steps.extend(commands(&block)?);
        } else if let Some(file) = info.split_whitespace().find_map(|word| word.strip_prefix("file=")) {
            let content = block.iter().map(|(_, line)| format!("{line}\n")).collect();
            steps.push(Step::Write { line: at, file: file.to_owned(), content });
        }
    }
    Ok(steps)
}

fn commands(block: &[(usize, &str)]) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut lines = block.iter();
    while let Some((at, line)) = lines.next() {
        if let Some(command) = line.strip_prefix("$ ") {
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                let (_, more) = lines.next().with_context(|| format!("line {at}: the command does not end"))?;
                let _ = write!(command, "\n{more}");
            }
            steps.push(Step::Run { line: *at, command, expected: Vec::new() });
        } else if let Some(Step::Run { expected, .. }) = steps.last_mut() {
            expected.push(line.trim_end().to_owned());
        } else {
            bail!("line {at}: a console block begins with a command, `$ …`");
        }
    }
    Ok(steps)
}

/// A script that does the steps, each command's output in a file of its own.
fn script(steps: &[Step], printed: &Path) -> anyhow::Result<String> {
    let printed = printed.to_str().context("the folder for output has no UTF-8 name")?;
    // A job that is left in the background ends with the page.
    let mut script = "set -u\nexport TERM=dumb\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n".to_owned();
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Run { command, .. } => {
                // `set -e` does not reach into a group whose end is looked at, so each command says itself how it ended.
                let _ = writeln!(
                    script,
                    "{{\n{command}\n}} > '{printed}/{number}' 2>&1 || {{ touch '{printed}/{number}.failed'; exit 1; }}"
                );
            }
            Step::Write { file, content, .. } => {
                let held = format!("{printed}/{number}.file");
                std::fs::write(&held, content)?;
                let _ = writeln!(script, "mkdir -p \"$(dirname '{file}')\" && cp '{held}' '{file}' || exit 1");
            }
        }
    }
    Ok(script)
}

/// Whether what was printed is what was expected.
fn agree(expected: &[String], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=printed.len()).any(|skipped| printed.get(skipped..).is_some_and(|left| agree(rest, left)))
        }
        Some((first, rest)) => match printed.split_first() {
            Some((line, left)) => matches(first, line) && agree(rest, left),
            None => false,
        },
    }
}

fn matches(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut left) = parts.next().and_then(|first| line.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return left.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        match left.split_once(part) {
            Some((_, behind)) => left = behind,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A page\n\n```console\n$ echo one \\\n  two\none two\n$ printf 'a\\nb\\nc\\n'\na\n…\nc\n```\n\nText.\n\n```yaml file=sub/a.yaml\nkey: 1\n```\n\n```sh\nexit 1\n```\n";

    #[test]
    fn commands_files_and_outputs_are_found_and_the_rest_is_for_people() {
        let steps = steps(PAGE).unwrap();
        assert_eq!(
            steps,
            [
                Step::Run { line: 4, command: "echo one \\\n  two".into(), expected: vec!["one two".into()] },
                Step::Run {
                    line: 7,
                    command: "printf 'a\\nb\\nc\\n'".into(),
                    expected: vec!["a".into(), "…".into(), "c".into()]
                },
                Step::Write { line: 15, file: "sub/a.yaml".into(), content: "key: 1\n".into() },
            ]
        );
    }

    fn followed(page: &str) -> (tempfile::TempDir, anyhow::Result<()>) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("page.md");
        std::fs::write(&file, page).unwrap();
        let result = follow(&file, dir.path(), dir.path());
        (dir, result)
    }

    #[test]
    fn a_page_that_is_true_is_followed_to_its_end() {
        let (dir, result) = followed(PAGE);
        result.unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("sub/a.yaml")).unwrap(), "key: 1\n");
    }

    #[test]
    fn the_shell_is_one_and_jobs_in_the_background_end_with_the_page() {
        let page =
            "```console\n$ mkdir d && cd d && export A=1\n$ sleep 600 &\n$ echo $A > a\n$ cd ..\n$ cat d/a\n1\n```\n";
        followed(page).1.unwrap();
    }

    #[test]
    fn what_is_printed_and_not_said_and_what_fails_is_told_with_its_line() {
        let told = |page: &str| followed(page).1.unwrap_err().to_string();
        let other = told("```console\n$ echo a\nb\n```\n");
        assert!(other.contains("page.md:2: `echo a` printed\n    a\n\nand the page says\n    b"), "{other}");
        let failed = told("text\n```console\n$ echo why; false\n$ echo a\na\n```\n");
        assert!(failed.contains("page.md:3: `echo why; false` failed and said:\nwhy"), "{failed}");
        assert!(told("```console\nno command\n```\n").contains("line 2: a console block begins with a command"));
        assert!(told("nothing").contains("no command"));
    }

    #[test]
    fn an_ellipsis_stands_for_anything_in_a_line() {
        for (expected, line, agrees) in [
            ("a…c", "abc", true),
            ("a…c", "ac", true),
            ("a…c", "abd", false),
            ("…ms, …s", "12ms, 3s", true),
            ("abc", "abcd", false),
            ("abc…", "abcd", true),
            ("…b…b", "ab", false),
        ] {
            assert_eq!(matches(expected, line), agrees, "{expected} {line}");
        }
    }
}
