//! The simplest program that could do the work: read the file, write and fdatasync a copy, send it over loopback.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, ensure};
use wharf_local_aws::Sink;

use crate::input::Input;
use crate::measure::{Measured, Usage};

/// How this program is told to be the limit: `wharf-bench --limit INPUT COPY HOST:PORT`.
pub const COMMAND: &str = "--limit";

/// How much is read, synced and sent at a time.
const PIECE: usize = 8 << 20;

/// Does the work, says so, and waits to be measured.
pub fn run(input: &Path, copy: &Path, sink: &str) -> anyhow::Result<()> {
    let mut from = File::open(input)?;
    let mut to = File::create(copy)?;
    let mut socket = TcpStream::connect(sink)?;
    socket.set_nodelay(true)?;
    let mut piece = vec![0_u8; PIECE];
    loop {
        let mut filled = 0;
        while let Some(room) = piece.get_mut(filled..).filter(|room| !room.is_empty()) {
            match from.read(room)? {
                0 => break,
                read => filled += read,
            }
        }
        let Some(bytes) = piece.get(..filled).filter(|bytes| !bytes.is_empty()) else { break };
        to.write_all(bytes)?;
        to.sync_data()?;
        write!(socket, "PUT /limit/object HTTP/1.1\r\nHost: limit\r\nContent-Length: {filled}\r\n\r\n")?;
        socket.write_all(bytes)?;
        read_answer(&mut socket)?;
    }
    println!("done");
    // Until the other end is closed: the measuring is over then.
    let _ = std::io::stdin().read(&mut [0]);
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

pub fn measure(input: &Input, disk: &Path) -> anyhow::Result<Measured> {
    let sink = Sink::start()?;
    let folder = tempfile::tempdir_in(disk)?;
    let address = sink.endpoint().trim_start_matches("http://").to_owned();
    let began = Instant::now();
    let mut child = Command::new(std::env::current_exe()?)
        .arg(COMMAND)
        .args([input.path(), folder.path().join("copy")])
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
    Ok(Measured { input_bytes: input.bytes(), sent_bytes: sink.body_bytes(), wall, usage, guest_seconds: None })
}
