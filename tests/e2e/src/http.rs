//! Just enough HTTP/1.1 to be a client of Wharf: one request a connection.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::Context as _;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Status line and headers.
    pub head: String,
    /// Body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
    /// A header's value.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find_map(|(key, value)| key.trim().eq_ignore_ascii_case(name).then_some(value.trim()))
    }
}

/// GET.
///
/// # Errors
/// Where there is no whole answer.
pub fn get(to: SocketAddr, path: &str) -> anyhow::Result<Answer> {
    request(to, "GET", path, &[], b"")
}

/// POST.
///
/// # Errors
/// Where there is no whole answer.
pub fn post(to: SocketAddr, path: &str, content_type: &str, body: &[u8]) -> anyhow::Result<Answer> {
    request(to, "POST", path, &[("Content-Type", content_type)], body)
}

/// Any request.
///
/// # Errors
/// Where there is no whole answer.
pub fn request(
    to: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> anyhow::Result<Answer> {
    let mut socket = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    socket.set_write_timeout(Some(Duration::from_secs(30)))?;
    let length = body.len();
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nContent-Length: {length}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    socket.write_all(&bytes)?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    parse(&answer).context("the answer is not HTTP")
}

fn parse(answer: &[u8]) -> Option<Answer> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(answer.get(..end)?).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let raw = answer.get(end + 4..)?;
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { dechunk(raw)? } else { raw.to_vec() };
    let complete = Answer { status, head, body };
    let announced = complete.header("content-length").and_then(|length| length.parse::<usize>().ok());
    // A connection that breaks in the middle is no answer: the client must not count it as an acknowledgement.
    (announced.is_none_or(|length| length == complete.body.len())).then_some(complete)
}

fn dechunk(mut raw: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = raw.windows(2).position(|window| window == b"\r\n")?;
        let size =
            usize::from_str_radix(std::str::from_utf8(raw.get(..end)?).ok()?.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(raw.get(end + 2..end + 2 + size)?);
        raw = raw.get(end + 2 + size + 2..)?;
    }
}
