//! The demo: the whole way of a log line, on one machine, in about ten seconds. `cargo xtask demo` builds everything and runs it.
//!
//! Usage: `wharf-demo PATH-OF-WHARF`

mod events;
mod logs;
mod objects;
mod report;
mod stage;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use wharf_e2e::{Delivered, LogWriter, Wharf};
use wharf_local_aws::{Aws, Options, logs as service};
use wharf_task_kit::show::{self, Progress};

use crate::logs::Logs;
use crate::stage::Stage;

const BUCKET: &str = "wharf-demo";
const PREFIX: &str = "logs/demo/segment_";
const GROUP: &str = "/wharf/demo";

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
    let aws = Aws::start(options, service::Options::default())?;
    stage.configure(&aws.endpoint())?;
    let played = play(&stage, &aws).with_context(|| format!("Wharf's own log is {}", stage.wharf_log().display()))?;

    show::step(4, 4, "What was delivered");
    report::show(&stage, &aws, &played)
}

/// What happened.
struct Played {
    writers: Vec<LogWriter>,
    /// How many objects there were when Wharf had stopped.
    objects_before_restart: usize,
    /// How many calls of PutLogEvents had been accepted by then.
    calls_before_restart: u64,
    /// How many lines were written while it was down.
    lines_while_down: u64,
}

impl Played {
    /// Every line that was written, by name.
    fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.writers.iter().flat_map(LogWriter::names)
    }
}

fn play(stage: &Stage, aws: &Aws) -> anyhow::Result<Played> {
    let logs = Logs::begin(&stage.logs())?;
    let mut progress = Progress::new(logs.total(), "lines delivered to both");
    let objects = || Delivered::of(aws.s3(), PREFIX);
    let calls = || aws.logs().totals();
    // A line counts when it is in both.
    let delivered = || calls().events.min(objects().lines() as u64);

    progress.message("Wharf starts (the components are compiled for this machine once)");
    let mut wharf = stage.start()?;
    wharf.try_wait_until("half of the lines are delivered", 120, || {
        let lines = delivered();
        progress.at(lines);
        progress.message("Wharf follows three files that are being written; one of them is rotated");
        logs.check().is_err() || lines * 2 >= logs.total()
    })?;

    progress.message("SIGTERM: what is open is delivered, then Wharf ends");
    stop(wharf)?;
    let (objects_before_restart, calls_before_restart) = (objects().objects.len(), calls().calls);
    let lines_before = logs.written();
    progress.at(delivered());
    progress.message("Wharf is down; the files go on growing");
    logs.wait_for(lines_before + logs.total() / 10)?;
    let lines_while_down = logs.written() - lines_before;

    progress.message("Wharf starts again on the same data directory");
    let mut wharf = stage.start()?;
    wharf.try_wait_until("all lines are delivered", 120, || {
        let lines = delivered();
        progress.at(lines);
        logs.check().is_err() || lines >= logs.total()
    })?;
    stop(wharf)?;
    let lines = progress.position();
    progress.done(&format!("{lines} lines delivered to both"));
    Ok(Played { writers: logs.end()?, objects_before_restart, calls_before_restart, lines_while_down })
}

fn stop(mut wharf: Wharf) -> anyhow::Result<()> {
    wharf.sigterm();
    let status = wharf.try_wait_exit(60)?;
    anyhow::ensure!(status.success(), "after SIGTERM Wharf ended with {status}");
    Ok(())
}

/// A path for a person: relative where that is shorter.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).map_or_else(|_| path.display().to_string(), |inside| format!("./{}", inside.display()))
}
