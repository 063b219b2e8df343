//! Many outputs that have nothing to do: what they take of memory, threads and files, and how long a start with them takes.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use wharf_e2e::{Place, Wharf, free_port};
use wharf_local_aws::Sink;
use wharf_task_kit::show;

const OUTPUTS_EACH: u32 = 5;

/// Starts twice: the first start compiles the component and fills the cache, the second is the one that counts.
pub fn run(wharf: &Path, disk: &Path, tenants: u32) -> anyhow::Result<()> {
    let folder = tempfile::tempdir_in(disk)?;
    let sink = Sink::start()?;
    let outputs = tenants * OUTPUTS_EACH;
    println!("\n{}", show::strong(&format!("{outputs} outputs over {tenants} tenants")));
    for (title, tenants) in [("one tenant's", 1), ("all", tenants)] {
        let place = Place::at(&folder.path().join(title.replace(' ', "-")))?;
        place.configure(&sink.endpoint(), &configuration(tenants, false)?)?;
        stop(place.start_binary(wharf)?)?;
        let began = Instant::now();
        let running = place.start_binary(wharf)?;
        let ready = began.elapsed();
        println!("{title}: ready after {:.2} s; idle: {}", ready.as_secs_f64(), Taken::by(&running)?);
        stop(running)?;

        place.configure(&sink.endpoint(), &configuration(tenants, true)?)?;
        let mut running = place.start_binary(wharf)?;
        let wanted = f64::from(tenants * OUTPUTS_EACH);
        running.try_wait_until("every output delivered a record", 120, || {
            place.metric_at_least("wharf_delivered_records_total", wanted)
        })?;
        println!("{title}: each has delivered a record: {}", Taken::by(&running)?);
        let idle = Instant::now();
        while idle.elapsed() < Duration::from_secs(40) {
            std::thread::sleep(Duration::from_secs(1));
        }
        println!("{title}: 40 s later: {}", Taken::by(&running)?);
        stop(running)?;
    }
    Ok(())
}

/// Each tenant has outputs that all want the same tag. With `one_each`, a source makes one record of it.
fn configuration(tenants: u32, one_each: bool) -> anyhow::Result<String> {
    let mut text =
        format!("sources:\n  keeps-running: {{ type: http, listen: \"127.0.0.1:{}\" }}\ntenants:\n", free_port()?);
    for tenant in 0..tenants {
        let _ = writeln!(text, "  t{tenant}:");
        if one_each {
            let _ = writeln!(text, "    sources:\n      one: {{ type: generate, count: 1, tag: \"t{tenant}\" }}");
        }
        let _ = writeln!(text, "    outputs:");
        for output in 0..OUTPUTS_EACH {
            let _ = writeln!(
                text,
                "      o{output}: {{ plugin: s3, match: \"t{tenant}\", batch: {{ max_age: 200ms }}, \
                 config: {{ bucket: b{tenant}, key_format: \"/o{output}/$INDEX\" }} }}"
            );
        }
    }
    Ok(text)
}

/// What a process takes.
struct Taken {
    resident_kib: u64,
    threads: u64,
    files: usize,
}

impl Taken {
    fn by(wharf: &Wharf) -> anyhow::Result<Self> {
        let process = format!("/proc/{}", wharf.id());
        let status = std::fs::read_to_string(format!("{process}/status"))?;
        let number = |name: &str| -> anyhow::Result<u64> {
            let rest = status.lines().find_map(|line| line.strip_prefix(name)).context("the kernel does not tell")?;
            Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
        };
        Ok(Self {
            resident_kib: number("VmRSS:")?,
            threads: number("Threads:")?,
            files: std::fs::read_dir(format!("{process}/fd"))?.count(),
        })
    }
}

impl std::fmt::Display for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} MiB resident, {} threads, {} open files", self.resident_kib / 1024, self.threads, self.files)
    }
}

fn stop(mut wharf: Wharf) -> anyhow::Result<()> {
    wharf.sigterm();
    let status = wharf.try_wait_exit(60)?;
    ensure!(status.success(), "after SIGTERM Wharf ended with {status}");
    Ok(())
}
