//! One tenant with a steady load, alone and beside another one that behaves badly.
//!
//! The steady one asks for less than half of the machine, so that what it has alone is what it has with its share. Wharf runs on all cores but
//! one; this program, which makes the load and stands for S3, on that one: what it takes does not come out of either tenant's part.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use wharf_e2e::{Place, Wharf, free_port};
use wharf_local_aws::Sink;
use wharf_task_kit::show;

use crate::send::http::read_status;
use crate::steady::{self, Arrivals, Steady};

const AFTER: Duration = Duration::from_secs(3);
const FLOOD_BYTES: usize = 1 << 20;

/// What the other tenant does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbour {
    None,
    Flood,
    Gzip,
    Backlog,
    Spin,
    Connections,
    DeadLetters,
}

impl Neighbour {
    const ALL: [Self; 7] =
        [Self::None, Self::Flood, Self::Gzip, Self::Backlog, Self::Spin, Self::Connections, Self::DeadLetters];

    fn name(self) -> &'static str {
        match self {
            Self::None => "alone",
            Self::Flood => "flood: 8 clients send all they can",
            Self::Gzip => "gzip: the same, compressed by 8 workers",
            Self::Backlog => "backlog: the same, and its destination is down",
            Self::Spin => "spin: 8 workers whose plugin never ends",
            Self::Connections => "connections: 1,000 idle, and a new one for each line",
            Self::DeadLetters => "dead letters: every record refused, batches of 100",
        }
    }

    /// Its one output.
    fn output(self, sink: &Sink, plugin: &Path) -> String {
        let s3 = |more: &str, endpoint: &str| {
            format!(
                "{{ plugin: s3, match: \"*\", workers: 8, batch: {{ max_bytes: 8MB, max_age: 1s }}, aws: {{ endpoint: \"{endpoint}\" }}, \
                 queue: {{ max_size: 400MB }}, config: {{ bucket: b, key_format: \"/bad/$INDEX\"{more} }} }}"
            )
        };
        let own = |records: u32| {
            format!(
                "{{ plugin: \"{}\", match: \"*\", workers: 8, batch: {{ max_records: {records}, max_age: 1s }}, \
                 grants: {{ s3: [{{ bucket: bucket, key_prefix: \"logs/\" }}], cloudwatch_logs: [], http: [] }}, config: {{}} }}",
                plugin.display()
            )
        };
        match self {
            Self::None | Self::Flood | Self::Connections => s3("", &sink.endpoint()),
            Self::Gzip => s3(", compression: gzip", &sink.endpoint()),
            // Nothing listens on the port of discard.
            Self::Backlog => s3("", "http://127.0.0.1:9"),
            Self::Spin => own(1),
            Self::DeadLetters => own(100),
        }
    }

    /// The tag of its records, which tells the plugin what to do.
    fn tag(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::DeadLetters => "reject_all",
            _ => "bad",
        }
    }

    /// Does it until it is told to stop.
    fn work(self, to: SocketAddr, stop: &AtomicBool) {
        let line = format!("{}\n", "a line like others ".repeat(10));
        match self {
            Self::None => {}
            Self::Flood | Self::Gzip | Self::Backlog => {
                let body = line.repeat(FLOOD_BYTES / line.len());
                at_once(8, || send(to, body.as_bytes(), stop));
            }
            Self::Spin => send_some(to, line.as_bytes(), 32, stop),
            Self::DeadLetters => {
                let body = line.repeat(200);
                at_once(4, || send(to, body.as_bytes(), stop));
            }
            Self::Connections => {
                let idle: Vec<_> = (0..1000).filter_map(|_| TcpStream::connect(to).ok()).collect();
                at_once(16, || {
                    while !stop.load(Ordering::Relaxed) {
                        send_some(to, line.as_bytes(), 1, stop);
                    }
                });
                drop(idle);
            }
        }
    }
}

fn at_once(threads: u32, work: impl Fn() + Sync) {
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(&work))));
}

/// Sends a body again and again.
fn send(to: SocketAddr, body: &[u8], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        send_some(to, body, u32::MAX, stop);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a body so many times over one connection. What Wharf says about it is its own affair.
fn send_some(to: SocketAddr, body: &[u8], times: u32, stop: &AtomicBool) {
    let Ok(mut socket) = TcpStream::connect(to) else { return };
    // Whoever is told to wait forever must still hear that it is over.
    let _ = socket.set_read_timeout(Some(Duration::from_secs(30)));
    let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    for _ in 0..times {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let sent = socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body));
        match sent.map_err(Into::into).and_then(|()| read_status(&mut socket)) {
            Ok(200) => {}
            Ok(_) => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => return,
        }
    }
}

/// How it is run.
#[derive(Debug)]
pub struct Bench<'a> {
    pub wharf: &'a Path,
    pub disk: &'a Path,
    pub window: Duration,
    pub filters: &'a [String],
}

impl Bench<'_> {
    pub fn run(&self) -> anyhow::Result<()> {
        let folder = tempfile::tempdir_in(self.disk)?;
        let plugin = misbehaving(folder.path(), self.disk)?;
        let wharf = apart(self.wharf, folder.path())?;
        println!(
            "\n{}",
            show::strong(
                "beside                                              | records/s |       | p50 ms |       | p99 ms |       | answered p99 ms | Wharf's CPU"
            )
        );
        let mut alone: Option<Steady> = None;
        for neighbour in Neighbour::ALL {
            let chosen = self.filters.is_empty() || self.filters.iter().any(|it| neighbour.name().contains(&**it));
            if neighbour != Neighbour::None && !chosen {
                continue;
            }
            let (steady, cpu) = self.one(neighbour, &wharf, &plugin).with_context(|| neighbour.name())?;
            println!("{}", row(neighbour, &steady, alone.as_ref(), cpu));
            alone.get_or_insert(steady);
        }
        println!(
            "\nBehind each figure: how it compares with alone. A record's delay is from when it was due to be sent until its object was there;"
        );
        println!("batches close after 500 ms.");
        Ok(())
    }

    fn one(&self, neighbour: Neighbour, wharf: &Path, plugin: &Path) -> anyhow::Result<(Steady, f64)> {
        let folder = tempfile::tempdir_in(self.disk)?;
        let place = Place::at(folder.path())?;
        let (arrivals, bad_sink) = (Arrivals::default(), Sink::start()?);
        let good_sink = arrivals.sink()?;
        let address = || anyhow::Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?)));
        let (good, bad) = (address()?, address()?);
        let text = format!(
            "plugins: {{ cpu_per_call: 10m }}\n\
             tenants:\n  good:\n    sources:\n      in: {{ type: http, listen: \"{good}\" }}\n    outputs:\n      \
             out: {{ plugin: s3, match: \"*\", workers: 2, batch: {{ max_age: 500ms }}, config: {{ bucket: b, key_format: \"/good/$INDEX\" }} }}\n  \
             bad:\n    sources:\n      in: {{ type: http, listen: \"{bad}\", tag: \"{}\" }}\n    outputs:\n      out: {}\n",
            neighbour.tag(),
            neighbour.output(&bad_sink, plugin)
        );
        place.configure(&good_sink.endpoint(), &text)?;
        let mut running = place.start_binary(wharf)?;
        running.try_wait_until("Wharf is ready", 120, || {
            TcpStream::connect(good).is_ok() && TcpStream::connect(bad).is_ok()
        })?;
        let stop = AtomicBool::new(false);
        let (before, began) = (cpu_seconds(&running), Instant::now());
        let warm_up = Duration::from_secs(4);
        std::thread::scope(|scope| {
            scope.spawn(|| neighbour.work(bad, &stop));
            let steady = steady::run(good, &arrivals, warm_up, self.window, AFTER);
            stop.store(true, Ordering::Relaxed);
            let took = (cpu_seconds(&running) - before) / began.elapsed().as_secs_f64();
            // What waits for it is not waited for.
            running.kill9();
            steady.map(|steady| (steady, took))
        })
    }
}

fn cpu_seconds(wharf: &Wharf) -> f64 {
    crate::measure::Usage::of(wharf.id()).map_or(0.0, |usage| usage.cpu_seconds)
}

fn row(neighbour: Neighbour, steady: &Steady, alone: Option<&Steady>, cpu: f64) -> String {
    let millis = |of: &[Duration], part: f64| steady::part(of, part).map_or(f64::NAN, |it| it.as_secs_f64() * 1e3);
    let p = |part: f64| (millis(&steady.delays, part), alone.map(|alone| millis(&alone.delays, part)));
    let against =
        |value: f64, alone: Option<f64>| alone.map_or_else(String::new, |alone| format!("{:.2}", value / alone));
    let rate = steady.records_a_second;
    let ((p50, p50_alone), (p99, p99_alone)) = (p(0.5), p(0.99));
    format!(
        "{:<51} | {rate:>9.0} | {:>5} | {p50:>6.0} | {:>5} | {p99:>6.0} | {:>5} | {:>15.1} | {:>4.2} cores",
        neighbour.name(),
        against(rate, alone.map(|alone| alone.records_a_second)),
        against(p50, p50_alone),
        against(p99, p99_alone),
        millis(&steady.answers, 0.99),
        cpu
    )
}

/// The plugin of the host's own tests that does what a plugin must not do.
fn misbehaving(into: &Path, disk: &Path) -> anyhow::Result<PathBuf> {
    let repository = wharf_task_kit::repository()?;
    let built = wharf_guest_build::build_for_tests(&repository, into, &disk.join("guests"))?;
    built.into_iter().next().context("the misbehaving plugin was not built")
}

/// A program that runs Wharf on all cores but one; this process stays on that one.
fn apart(wharf: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let cores = std::thread::available_parallelism()?.get();
    let (own, process) = (cores - 1, std::process::id().to_string());
    let pinned = cores > 1
        && Command::new("taskset")
            .args(["-a", "-c", "-p", &own.to_string(), &process])
            .output()
            .is_ok_and(|it| it.status.success());
    if !pinned {
        println!("One core, or no taskset: Wharf and what makes its load share the cores, and the figures say less.");
        return Ok(wharf.to_owned());
    }
    println!("Wharf has {own} of {cores} cores, what makes its load the other.");
    let script = folder.join("wharf");
    std::fs::write(&script, format!("#!/bin/sh\nexec taskset -c 0-{} '{}' \"$@\"\n", own - 1, wharf.display()))?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
    Ok(script)
}
