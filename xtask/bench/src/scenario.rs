//! One way through Wharf: what comes in, what the output is, and what is measured between.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::ensure;
use wharf_e2e::{Place, Wharf, free_port};

use crate::input::{Input, Shape};
use crate::measure::{Measured, Usage};
use crate::send::{Load, Way};
use crate::service::Service;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Wharf reads the input's files.
    Tail,
    /// It is sent.
    Sent(Way),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    S3,
    Logs,
}

#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: String,
    pub from: Source,
    pub to: Destination,
    pub shape: Shape,
    /// Whether a text line is sent as `{"log": line}` in place of itself.
    pub as_objects: bool,
    /// How much later every answer comes, as over a network.
    pub distance: Duration,
    /// The `outputs` of the configuration.
    pub output: String,
}

/// `1 worker`, `2 workers`.
pub fn workers(count: u32) -> String {
    format!("{count} worker{}", if count == 1 { "" } else { "s" })
}

impl Scenario {
    /// Runs it. With `strict` CloudWatch Logs is one that keeps every rule.
    pub fn run(&self, binary: &Path, input: &Input, disk: &Path, strict: bool) -> anyhow::Result<Measured> {
        let service = Service::start(self, strict)?;
        let folder = tempfile::tempdir_in(disk)?;
        let place = Place::at(folder.path())?;
        // The component is compiled and cached before anything is measured, as on every start of a real host but the first.
        let idle = format!("{}{}", place.tail("nothing"), self.output);
        place.configure(&service.endpoint(), &idle)?;
        stop(place.start_binary(binary)?)?;
        let before = service.sent_bytes();

        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        place.configure(&service.endpoint(), &format!("{}{}", self.sources(input, address), self.output))?;
        let load = match self.from {
            Source::Tail => None,
            Source::Sent(way) => Some(Load::of(way, input)?),
        };
        let began = Instant::now();
        let mut wharf = place.start_binary(binary)?;
        if let Some(load) = &load {
            load.send(address)?;
        }
        let wanted = input.lines() as f64;
        wharf.try_wait_until("everything is delivered", 600, || {
            // Looking costs CPU too: not too often.
            std::thread::sleep(Duration::from_millis(75));
            place.metric_at_least("wharf_delivered_records_total", wanted)
        })?;
        let wall = began.elapsed();
        let usage = Usage::of(wharf.id())?;
        let guest_seconds = place.metric("wharf_worker_cpu_seconds_total", &[]);
        stop(wharf)?;
        service.check()?;
        Ok(Measured {
            input_bytes: input.bytes(),
            received_bytes: load.as_ref().map_or_else(|| input.bytes(), Load::bytes),
            records: input.lines(),
            sent_bytes: service.sent_bytes() - before,
            wall,
            usage,
            guest_seconds,
            calls: service.calls(input, self.as_objects),
        })
    }

    /// Each file has a source, and so a tag, of its own.
    fn sources(&self, input: &Input, address: SocketAddr) -> String {
        let mut text = String::from("sources:\n");
        match self.from {
            Source::Tail => {
                for (number, path) in input.paths().iter().enumerate() {
                    let _ = writeln!(text, "  app{number}: {{ type: tail, paths: [\"{}\"] }}", path.display());
                }
            }
            Source::Sent(way) => {
                let kind = match way {
                    Way::Http => format!("type: http, listen: \"{address}\""),
                    Way::Forward { .. } => format!("type: forward, listen: \"{address}\""),
                    Way::OtlpGrpc { .. } => format!("type: otlp, grpc: {{ listen: \"{address}\" }}"),
                    Way::OtlpHttp { .. } => format!("type: otlp, http: {{ listen: \"{address}\" }}"),
                };
                let _ = writeln!(text, "  app: {{ {kind} }}");
            }
        }
        text
    }
}

fn stop(mut wharf: Wharf) -> anyhow::Result<()> {
    wharf.sigterm();
    let status = wharf.try_wait_exit(60)?;
    ensure!(status.success(), "after SIGTERM Wharf ended with {status}");
    Ok(())
}
