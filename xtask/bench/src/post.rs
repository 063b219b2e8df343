//! An HTTP client that is as quick as it can be: several connections, each with one request under way.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::input::{LINE_BYTES, Records};

/// How much one request carries, and how many clients there are.
const REQUEST_BYTES: usize = 1 << 20;
const CLIENTS: usize = 4;

/// Sends a file of lines, and returns when all of it is acknowledged.
pub fn post_all(to: SocketAddr, file: &Path, records: Records) -> anyhow::Result<()> {
    let bytes = fs::read(file)?;
    let line = LINE_BYTES as usize;
    let requests: Vec<&[u8]> = bytes.chunks(REQUEST_BYTES / line * line).collect();
    let share = requests.len().div_ceil(CLIENTS).max(1);
    std::thread::scope(|scope| {
        let clients: Vec<_> =
            requests.chunks(share).map(|share| scope.spawn(move || post_each(to, share, records))).collect();
        for client in clients {
            client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        Ok(())
    })
}

fn post_each(to: SocketAddr, bodies: &[&[u8]], records: Records) -> anyhow::Result<()> {
    let kind = match records {
        Records::Text => "text/plain",
        Records::Json => "application/x-ndjson",
    };
    let mut socket = TcpStream::connect(to)?;
    socket.set_nodelay(true)?;
    for body in bodies {
        loop {
            let length = body.len();
            let head =
                format!("POST / HTTP/1.1\r\nHost: {to}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
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

pub fn read_status(socket: &mut TcpStream) -> anyhow::Result<u16> {
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
