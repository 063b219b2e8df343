//! One way through Wharf.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use wharf_e2e::{Place, Wharf, free_port};
use wharf_local_aws::Sink;

use crate::input::Input;
use crate::measure::{Measured, Usage};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Tail,
    Http,
}

#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    pub source: Source,
    compression: &'static str,
    workers: u32,
}

/// How much one request of the HTTP client carries, and how many clients there are.
const REQUEST_BYTES: usize = 1 << 20;
const CLIENTS: usize = 4;

impl Scenario {
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for source in [Source::Tail, Source::Http] {
            for compression in ["none", "gzip", "zstd"] {
                all.extend([1, 2].map(|workers| Self { source, compression, workers }));
            }
        }
        all
    }
    pub fn name(&self) -> String {
        let source = if self.source == Source::Tail { "tail" } else { "http" };
        let plural = if self.workers == 1 { "" } else { "s" };
        format!("{source} → S3, {}, {} worker{plural}", self.compression, self.workers)
    }
    fn output(&self) -> String {
        format!(
            "outputs:\n  archive:\n    plugin: s3\n    match: \"*\"\n    workers: {}\n    batch: {{ max_bytes: 32MiB, max_age: 500ms }}\n    \
             config:\n      bucket: bench\n      key_format: /bench/segment_$INDEX\n      compression: {}\n",
            self.workers, self.compression
        )
    }
    pub fn run_tail(&self, wharf: &Path, input: &Input, disk: &Path) -> anyhow::Result<Measured> {
        let path = input.path();
        let source = format!("sources:\n  app:\n    type: tail\n    paths: [\"{}\"]\n", path.display());
        self.run(wharf, input, disk, &source, |_| Ok(()))
    }
    pub fn run_http(&self, wharf: &Path, input: &Input, disk: &Path) -> anyhow::Result<Measured> {
        let port = free_port()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let source = format!("sources:\n  app:\n    type: http\n    listen: \"{address}\"\n");
        self.run(wharf, input, disk, &source, |input| post_all(address, input))
    }
    fn run(
        &self,
        binary: &Path,
        input: &Input,
        disk: &Path,
        source: &str,
        feed: impl FnOnce(&Input) -> anyhow::Result<()>,
    ) -> anyhow::Result<Measured> {
        let sink = Sink::start()?;
        let folder = tempfile::tempdir_in(disk)?;
        let place = Place::at(folder.path())?;
        // The component is compiled and cached before anything is measured, as on every start of a real host but the first.
        let idle = format!("{}{}", place.tail("nothing"), self.output());
        place.configure(&sink.endpoint(), &idle)?;
        place.start_binary(binary)?.stop();
        let before = sink.body_bytes();

        place.configure(&sink.endpoint(), &format!("{source}{}", self.output()))?;
        let began = Instant::now();
        let mut wharf = place.start_binary(binary)?;
        feed(input)?;
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
        let sent_bytes = sink.body_bytes() - before;
        Ok(Measured { input_bytes: input.bytes(), sent_bytes, wall, usage, guest_seconds })
    }
}

fn stop(mut wharf: Wharf) -> anyhow::Result<()> {
    wharf.sigterm();
    let status = wharf.try_wait_exit(60)?;
    ensure!(status.success(), "after SIGTERM Wharf ended with {status}");
    Ok(())
}

/// Several clients, each with one connection and one request under way.
fn post_all(address: SocketAddr, input: &Input) -> anyhow::Result<()> {
    let bytes = fs::read(input.path())?;
    let line = crate::input::LINE_BYTES as usize;
    let request = REQUEST_BYTES / line * line;
    let requests: Vec<&[u8]> = bytes.chunks(request).collect();
    std::thread::scope(|scope| {
        let share = requests.len().div_ceil(CLIENTS);
        let clients: Vec<_> =
            requests.chunks(share.max(1)).map(|share| scope.spawn(move || post_each(address, share))).collect();
        for client in clients {
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(())
    })
}

fn post_each(address: SocketAddr, bodies: &[&[u8]]) -> anyhow::Result<()> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    for body in bodies {
        loop {
            let head = format!(
                "POST / HTTP/1.1\r\nHost: {address}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            socket.write_all(head.as_bytes())?;
            socket.write_all(body)?;
            match read_status(&mut socket)? {
                200 => break,
                503 => std::thread::sleep(Duration::from_millis(20)),
                status => anyhow::bail!("Wharf answered {status}"),
            }
        }
    }
    Ok(())
}

fn read_status(socket: &mut TcpStream) -> anyhow::Result<u16> {
    let mut answer = Vec::new();
    let mut piece = [0_u8; 1024];
    loop {
        let read = socket.read(&mut piece)?;
        ensure!(read > 0, "Wharf closed the connection");
        answer.extend_from_slice(piece.get(..read).unwrap_or_default());
        let text = String::from_utf8_lossy(&answer);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
            });
            if body.len() >= length.unwrap_or(0) {
                return head
                    .split(' ')
                    .nth(1)
                    .and_then(|status| status.parse().ok())
                    .context("no status in the answer");
            }
        }
    }
}
