//! What Wharf is held against, two programs that do the same work and nothing else.
//!
//! *In turn* is the simplest that could exist: read a piece of the file, write it to a copy and `fdatasync` that, send it over loopback, and
//! so on. *Side by side* does it as fast as the machine lets it: a thread reads the file, one writes a copy and syncs it, one sends what is
//! synced; syncs are shared by as much as came meanwhile (a group commit), the copy goes to preallocated space that is written again once its
//! bytes are sent, memory is used again. Nothing is looked at, split, encoded or confirmed record by record in either.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use rustix::fs::{FallocateFlags, fallocate};
use wharf_local_aws::Sink;

use crate::input::Input;
use crate::measure::{Measured, Usage};

/// How this program is told to be a limit: `wharf-bench --limit in-turn INPUT COPY HOST:PORT`.
pub const COMMAND: &str = "--limit";

/// How a limit does its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    /// One after the other, piece by piece.
    InTurn,
    /// All at the same time.
    SideBySide,
}

impl Steps {
    pub const ALL: [Self; 2] = [Self::InTurn, Self::SideBySide];

    /// As on the command line.
    fn word(self) -> &'static str {
        match self {
            Self::InTurn => "in-turn",
            Self::SideBySide => "side-by-side",
        }
    }

    /// As in the table.
    pub fn title(self) -> &'static str {
        match self {
            Self::InTurn => "the limit: read, copy with fdatasync, send, in turn",
            Self::SideBySide => "the same side by side, in reused space and memory",
        }
    }
}

/// How much is read at a time, as by Wharf's `tail`.
const PIECE: usize = 1 << 20;

/// How many pieces there are: what is between the reader and the sender is bounded by them.
const PIECES: usize = 32;

/// Most pieces that share a sync, and a request: 8 MiB, as in Wharf's journal and in the parts of its uploads.
const GROUP: usize = 8;

/// Pieces that the copy has room for. More than are ever unsent, so nothing is written over before it is sent.
const COPY: usize = 4 * PIECES;

/// Does the work, says so, and waits to be measured.
pub fn run(steps: &str, input: &Path, copy: &Path, sink: &str) -> anyhow::Result<()> {
    match Steps::ALL.into_iter().find(|known| known.word() == steps) {
        Some(Steps::InTurn) => work_in_turn(input, copy, sink)?,
        Some(Steps::SideBySide) => work(input, copy, sink)?,
        None => anyhow::bail!("{steps} is no way to do the steps"),
    }
    println!("done");
    // Until the other end is closed: the measuring is over then.
    let _ = std::io::stdin().read(&mut [0]);
    Ok(())
}

fn work_in_turn(input: &Path, copy: &Path, sink: &str) -> anyhow::Result<()> {
    let mut from = File::open(input).with_context(|| format!("opening {}", input.display()))?;
    let mut to = File::create(copy).with_context(|| format!("making {}", copy.display()))?;
    let mut socket = connect(sink)?;
    let mut piece = Vec::new();
    while fill(&mut from, &mut piece, GROUP * PIECE)? {
        to.write_all(&piece)?;
        to.sync_data()?;
        write_head(&mut socket, piece.len())?;
        socket.write_all(&piece)?;
        read_answer(&mut socket)?;
    }
    Ok(())
}

fn connect(sink: &str) -> anyhow::Result<TcpStream> {
    let socket = TcpStream::connect(sink).with_context(|| format!("connecting to {sink}"))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Fills a piece with what comes next, up to `bytes`. Whether there was something.
fn fill(from: &mut File, piece: &mut Vec<u8>, bytes: usize) -> anyhow::Result<bool> {
    piece.resize(bytes, 0);
    let mut filled = 0;
    while let Some(room) = piece.get_mut(filled..).filter(|room| !room.is_empty()) {
        match from.read(room)? {
            0 => break,
            read => filled += read,
        }
    }
    piece.truncate(filled);
    Ok(filled > 0)
}

fn write_head(socket: &mut TcpStream, length: usize) -> anyhow::Result<()> {
    Ok(write!(socket, "PUT /limit/object HTTP/1.1\r\nHost: limit\r\nContent-Length: {length}\r\n\r\n")?)
}

fn work(input: &Path, copy: &Path, sink: &str) -> anyhow::Result<()> {
    let from = File::open(input).with_context(|| format!("opening {}", input.display()))?;
    let to = File::create(copy).with_context(|| format!("making {}", copy.display()))?;
    fallocate(&to, FallocateFlags::empty(), 0, (COPY * PIECE) as u64)
        .with_context(|| format!("reserving room for {}", copy.display()))?;
    to.sync_all()?;
    let socket = connect(sink)?;

    let (give_back, empty) = channel();
    for _ in 0..PIECES {
        give_back.send(vec![0; PIECE])?;
    }
    let (read, filled) = channel();
    let (synced, durable) = channel();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read_all(from, &empty, &read));
        let writer = scope.spawn(move || write_all(&to, &filled, &synced));
        let sender = scope.spawn(move || send_all(socket, &durable, &give_back));
        // The first that fails ends the others, who then say only that nobody listens any more.
        for (what, thread) in [("sending", sender), ("writing", writer), ("reading", reader)] {
            thread.join().map_err(|_| anyhow::anyhow!("{what} panicked"))?.context(what)?;
        }
        Ok(())
    })
}

/// Fills pieces with the file; all but the last are full.
fn read_all(mut from: File, empty: &Receiver<Vec<u8>>, to: &Sender<Vec<u8>>) -> anyhow::Result<()> {
    for mut piece in empty {
        if !fill(&mut from, &mut piece, PIECE)? {
            break;
        }
        to.send(piece).context("nobody writes any more")?;
    }
    Ok(())
}

/// Writes pieces, and syncs as many as are there at a time.
fn write_all(copy: &File, from: &Receiver<Vec<u8>>, to: &Sender<Vec<Vec<u8>>>) -> anyhow::Result<()> {
    let mut place = 0;
    for first in from {
        let group: Vec<Vec<u8>> = std::iter::once(first).chain(from.try_iter().take(GROUP - 1)).collect();
        for piece in &group {
            copy.write_all_at(piece, (place * PIECE) as u64)?;
            place = (place + 1) % COPY;
        }
        copy.sync_data()?;
        to.send(group).context("nobody sends any more")?;
    }
    Ok(())
}

/// Sends each group as an object.
fn send_all(mut socket: TcpStream, from: &Receiver<Vec<Vec<u8>>>, give_back: &Sender<Vec<u8>>) -> anyhow::Result<()> {
    for group in from {
        let length: usize = group.iter().map(Vec::len).sum();
        write_head(&mut socket, length)?;
        for piece in group {
            socket.write_all(&piece)?;
            // Where the file is at its end nobody wants it.
            let _ = give_back.send(piece);
        }
        read_answer(&mut socket)?;
    }
    Ok(())
}

fn read_answer(socket: &mut TcpStream) -> anyhow::Result<()> {
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        ensure!(socket.read(&mut byte)? == 1, "the sink closed the connection");
        answer.extend_from_slice(&byte);
    }
    Ok(())
}

/// Measures it with an input of one file.
pub fn measure(steps: Steps, input: &Input, disk: &Path) -> anyhow::Result<Measured> {
    let sink = Sink::start()?;
    let folder = tempfile::tempdir_in(disk)?;
    let address = sink.endpoint().trim_start_matches("http://").to_owned();
    let began = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .args([COMMAND, steps.word()])
        .args(input.paths())
        .arg(folder.path().join("copy"))
        .arg(address)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut said = String::new();
    let output = child.stdout.take().context("the limit has no output")?;
    BufReader::new(output).read_line(&mut said)?;
    let wall = began.elapsed();
    ensure!(said.trim() == "done", "the limit program failed");
    let usage = Usage::of(child.id())?;
    drop(child.stdin.take());
    child.wait()?;
    Ok(Measured {
        input_bytes: input.bytes(),
        received_bytes: input.bytes(),
        records: input.lines(),
        sent_bytes: sink.body_bytes(),
        wall,
        usage,
        guest_seconds: None,
        calls: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_written_in_order_and_sent() {
        // Some pieces and a part of one.
        let bytes: Vec<u8> = (0..(5 * PIECE + 1234) as u64 / 8).flat_map(u64::to_le_bytes).collect();
        let folder = tempfile::tempdir().unwrap();
        let (input, copy) = (folder.path().join("input"), folder.path().join("copy"));
        std::fs::write(&input, &bytes).unwrap();
        let sink = Sink::start().unwrap();
        work(&input, &copy, sink.endpoint().trim_start_matches("http://")).unwrap();
        assert_eq!(sink.body_bytes(), bytes.len() as u64);
        let copied = std::fs::read(&copy).unwrap();
        assert_eq!(copied.len(), COPY * PIECE);
        assert!(copied.starts_with(&bytes));

        work_in_turn(&input, &copy, sink.endpoint().trim_start_matches("http://")).unwrap();
        assert_eq!(sink.body_bytes(), 2 * bytes.len() as u64);
        assert_eq!(std::fs::read(&copy).unwrap(), bytes);
    }

    #[test]
    fn a_sink_that_hangs_up_is_an_error_and_not_a_wait() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("input");
        std::fs::write(&input, vec![b'x'; 2 * PIECES * PIECE]).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let hang_up = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let error = work(&input, &folder.path().join("copy"), &address).unwrap_err();
        hang_up.join().unwrap();
        assert!(format!("{error:#}").starts_with("sending: "), "{error:#}");
    }
}
