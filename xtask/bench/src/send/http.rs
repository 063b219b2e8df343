//! HTTP/1.1, one request under way on each connection.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context as _, ensure};
use bytes::Bytes;

use super::{PAUSE, Queue};
use crate::input::LINE_BYTES;

/// How much a request of lines carries.
pub const REQUEST_BYTES: usize = 1 << 20;

/// Lines as bodies.
pub fn requests(lines: &Bytes) -> Vec<Bytes> {
    let line = LINE_BYTES as usize;
    let each = REQUEST_BYTES / line * line;
    (0..lines.len()).step_by(each).map(|begin| lines.slice(begin..lines.len().min(begin + each))).collect()
}

/// Sends messages as bodies of this kind.
pub fn serve(path: &'static str, kind: &'static str) -> impl Fn(SocketAddr, &Queue<'_>) -> anyhow::Result<()> {
    move |to, queue| {
        let mut socket = TcpStream::connect(to)?;
        socket.set_nodelay(true)?;
        while let Some((_, body)) = queue.next() {
            loop {
                let length = body.len();
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: {to}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
                );
                socket.write_all(head.as_bytes())?;
                socket.write_all(body)?;
                match read_status(&mut socket)? {
                    200 => break,
                    503 => std::thread::sleep(PAUSE),
                    status => anyhow::bail!("Wharf answered {status}"),
                }
            }
        }
        Ok(())
    }
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
