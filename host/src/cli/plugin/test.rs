//! `wharf plugin test`.

use std::io::IsTerminal as _;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Ended, counted, print};
use crate::author::desk_cache;
use crate::author::trial::{BatchUsage, Options, Outcome, Project, Suite, TestResult};
use crate::cli::table::table;
use crate::config::units::{format_duration, format_size};

const EXAMPLES: &str = "\
Examples:
  wharf plugin test                            tests/*.yaml of this folder with dist/*.wasm
  wharf plugin test ../my-plugin --filter throttled
  wharf plugin test tests/first.yaml --update  write down what happens, as tests/first.golden.yaml
  wharf plugin test my.wasm tests/             a component that lies elsewhere
  wharf plugin test --report                   CPU, memory and host calls against the limits

A test gives records and a configuration, says what the services answer, and expects what must have
been asked of them. docs/plugins/testing.md has the format. Exit codes: 0 all passed, 1 not.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A project, a component (.wasm), test files or folders of them; this folder where there is none
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The component, or the name of a built-in one
    #[arg(long, value_name = "FILE")]
    plugin: Option<String>,
    /// Only tests with this in their name
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Write what happens into golden files (tests/NAME.golden.yaml) instead of comparing with them
    #[arg(long)]
    update: bool,
    /// Show what each batch took, against the limits
    #[arg(long)]
    report: bool,
    /// Tests at a time; as many as there are processors where it is left out
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let project = Project::find(&args.paths, args.plugin.as_deref())?;
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(2, usize::from));
    let options = Options {
        plugin: project.plugin,
        tests: project.tests,
        filter: args.filter.clone(),
        update: args.update,
        jobs,
        cache: desk_cache(),
    };
    let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let results = runtime.block_on(async {
        let suite = Suite::open(options).await?;
        let width = suite.widest_name();
        let mut printed = Ok(());
        let results = suite
            .run(|result| {
                if printed.is_ok() {
                    printed = print(&told(result, width, colours));
                }
            })
            .await;
        printed.map(|()| results)
    })?;
    if args.report {
        print(&report(&results))?;
    }
    let bad = results.iter().filter(|result| !result.is_good()).count();
    let updated = results.iter().filter(|result| matches!(result.outcome, Outcome::Updated)).count();
    let updated = if updated > 0 {
        format!(", {} written", counted(updated, "golden file", "golden files"))
    } else {
        String::new()
    };
    print(&format!(
        "\n{}: {} passed, {bad} failed{updated}\n",
        counted(results.len(), "test", "tests"),
        results.len() - bad
    ))?;
    if bad > 0 { Err(Ended::Failed(format!("{} failed", counted(bad, "test", "tests")))) } else { Ok(()) }
}

/// One test in a line, and what was not as expected in several.
fn told(result: &TestResult, width: usize, colours: bool) -> String {
    let (word, colour) = match &result.outcome {
        Outcome::Passed => ("ok  ", "\u{1b}[32m"),
        Outcome::Updated => ("new ", "\u{1b}[33m"),
        _ => ("FAIL", "\u{1b}[31m"),
    };
    let (on, off) = if colours { (colour, "\u{1b}[0m") } else { ("", "") };
    let description = result.description.as_deref().map(|text| format!("  {text}")).unwrap_or_default();
    let line = format!("{on}{word}{off}  {:width$}{description}", result.name);
    let mut text = format!("{}\n", line.trim_end());
    match &result.outcome {
        Outcome::Passed | Outcome::Updated => {}
        Outcome::Failed(unlike) => {
            for unlike in unlike {
                text.push_str(&format!(
                    "  {} (- expected, + happened)\n{}",
                    unlike.to,
                    unlike.difference.render(colours)
                ));
            }
        }
        Outcome::Faulty(faults) => {
            for fault in faults.iter() {
                text.push_str(&format!("  {fault}\n"));
            }
        }
        Outcome::Broken(what) => text.push_str(&format!("  {what}\n")),
    }
    for line in &result.why {
        text.push_str(&format!("  {line}\n"));
    }
    for note in &result.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    text
}

fn report(results: &[TestResult]) -> String {
    let rows: Vec<Vec<String>> =
        results.iter().flat_map(|result| result.usage.iter().map(|usage| row(&result.name, usage))).collect();
    let head = ["TEST", "BATCH", "RECORDS", "CALLS", "CPU", "OF", "MEMORY", "OF", "HOST CALLS"];
    format!("\n{}", table(&head, &rows))
}

fn row(name: &str, usage: &BatchUsage) -> Vec<String> {
    vec![
        name.to_owned(),
        usage.batch.to_string(),
        usage.records.to_string(),
        usage.calls.to_string(),
        format!("{:.1?}", usage.cpu),
        format_duration(usage.cpu_limit),
        format_size(usage.memory),
        format_size(usage.memory_limit),
        usage.host_calls.to_string(),
    ]
}
