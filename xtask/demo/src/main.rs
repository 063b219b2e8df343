//! The demo: the whole way of a log line, on one machine, in about ten seconds. `cargo xtask demo` builds everything and runs it.
//!
//! Usage: `wharf-demo PATH-OF-WHARF`

mod logs;
mod report;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use wharf_e2e::{Delivered, LogWriter};
use wharf_local_aws::{Options, S3};

use wharf_task_kit::show::{self, Progress};

use crate::logs::Logs;
use crate::stage::Stage;

const BUCKET: &str = "wharf-demo";
const PREFIX: &str = "logs/demo/segment_";

fn main() -> ExitCode {
    let Some(binary) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: wharf-demo PATH-OF-WHARF (cargo xtask demo does everything)");
        return ExitCode::from(2);
    };
    match run(&binary) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{}: {error:#}", show::bad("The demo failed"));
            ExitCode::FAILURE
        }
    }
}

fn run(binary: &Path) -> anyhow::Result<()> {
    show::step(3, 4, "Files are written, Wharf delivers them, stops half way, and goes on");
    let stage = Stage::set(binary)?;
    let options = Options { buckets: vec![BUCKET.to_owned()], directory: Some(stage.objects()), ..Options::default() };
    let s3 = S3::start(options)?;
    stage.configure(&s3.endpoint())?;
    let played = play(&stage, &s3).with_context(|| format!("Wharf's own log is {}", stage.wharf_log().display()))?;

    show::step(4, 4, "What was delivered");
    report::show(&stage, &s3, &played)
}

/// What happened.
struct Played {
    writers: Vec<LogWriter>,
    /// How many objects there were when Wharf had stopped.
    objects_before_restart: usize,
    /// How many lines were written while it was down.
    lines_while_down: u64,
}

fn play(stage: &Stage, s3: &S3) -> anyhow::Result<Played> {
    let logs = Logs::begin(&stage.logs())?;
    let mut progress = Progress::new(logs.total(), "lines delivered");
    let delivered = || Delivered::of(s3, PREFIX);

    progress.message("Wharf starts (the component is compiled for this machine once)");
    let mut wharf = stage.start()?;
    wharf.try_wait_until("half of the lines are delivered", 120, || {
        let lines = delivered().lines() as u64;
        progress.at(lines);
        progress.message("Wharf follows three files that are being written; one of them is rotated");
        logs.check().is_err() || lines * 2 >= logs.total()
    })?;

    progress.message("SIGTERM: what is open is delivered, then Wharf ends");
    wharf.sigterm();
    let status = wharf.try_wait_exit(60)?;
    anyhow::ensure!(status.success(), "after SIGTERM Wharf ended with {status}");
    drop(wharf);
    let objects_before_restart = delivered().objects.len();
    let lines_before = logs.written();
    progress.at(delivered().lines() as u64);
    progress.message("Wharf is down; the files go on growing");
    logs.wait_for(lines_before + logs.total() / 10)?;
    let lines_while_down = logs.written() - lines_before;

    progress.message("Wharf starts again on the same data directory");
    let mut wharf = stage.start()?;
    wharf.try_wait_until("all lines are delivered", 120, || {
        let lines = delivered().lines() as u64;
        progress.at(lines);
        logs.check().is_err() || lines >= logs.total()
    })?;
    wharf.sigterm();
    let status = wharf.try_wait_exit(60)?;
    anyhow::ensure!(status.success(), "after SIGTERM Wharf ended with {status}");
    let lines = progress.position();
    progress.done(&format!("{lines} lines delivered"));
    Ok(Played { writers: logs.end()?, objects_before_restart, lines_while_down })
}

/// A path for a person: relative where that is shorter.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).map_or_else(|_| path.display().to_string(), |inside| format!("./{}", inside.display()))
}
