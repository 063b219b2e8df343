//! The admin server of a Wharf on this machine, as a command asks it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::Ended;
use crate::config::Draft;

/// Where it is.
#[derive(Debug, ClapArgs)]
#[group(required = true, multiple = true)]
pub(super) struct AdminServer {
    /// The configuration, which says where the admin server is
    #[arg(short, long, value_name = "FILE", env = "WHARF_CONFIG")]
    config: Option<PathBuf>,
    /// The admin server, where the file does not say where it is
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
}

/// What it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: String,
}

/// How long an answer may take: for a reload components are compiled.
const PATIENCE: Duration = Duration::from_secs(600);

impl AdminServer {
    pub(super) fn get(&self, path: &str) -> Result<Answer, Ended> {
        self.ask(&format!("GET {path}"), "", "")
    }

    /// Sends JSON.
    pub(super) fn post(&self, path: &str, body: &str) -> Result<Answer, Ended> {
        let headers = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len());
        self.ask(&format!("POST {path}"), &headers, body)
    }

    fn ask(&self, what: &str, headers: &str, body: &str) -> Result<Answer, Ended> {
        let admin = here(self.address()?);
        let request = format!("{what} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n{headers}\r\n{body}");
        exchange(admin, &request).map_err(|cause| {
            Ended::Failed(format!("the admin server at {admin} does not answer: {cause}; does Wharf run?"))
        })
    }

    /// The file may have faults: what is asked may be about them.
    fn address(&self) -> Result<SocketAddr, Ended> {
        if let Some(admin) = self.admin {
            return Ok(admin);
        }
        let draft = self.config.as_deref().map(Draft::load);
        let admin = draft.as_ref().and_then(Draft::config).and_then(|config| config.admin.as_ref());
        admin.map(|admin| admin.listen).ok_or_else(|| {
            Ended::Failed(
                "the file does not say where the admin server is (admin.listen): name it with --admin ADDRESS".into(),
            )
        })
    }
}

/// The same server, over the loopback where it listens on every address.
fn here(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listen.port())
}

fn exchange(with: SocketAddr, request: &str) -> std::io::Result<Answer> {
    let mut socket = TcpStream::connect_timeout(&with, Duration::from_secs(5))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.write_all(request.as_bytes())?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let none = || std::io::Error::other("what came is no HTTP answer");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(none)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(none)?;
    Ok(Answer { status, body: body.to_owned() })
}

/// What an answer that is not the wanted one says.
pub(super) fn why_not(answer: &Answer) -> String {
    let error = serde_json::from_str::<serde_json::Value>(&answer.body).ok();
    let why = error.as_ref().and_then(|error| error.get("error")).and_then(|error| error.as_str());
    why.map_or_else(|| format!("HTTP status {}", answer.status), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_every_address_is_asked_over_the_loopback() {
        for (listen, to) in [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:2", "[::1]:2"),
            ("127.0.0.1:3", "127.0.0.1:3"),
            ("10.0.0.1:4", "10.0.0.1:4"),
        ] {
            assert_eq!(here(listen.parse().unwrap()), to.parse().unwrap());
        }
    }

    #[test]
    fn an_answer_says_why_not_or_at_least_its_status() {
        for (body, why) in
            [("{\"error\": \"busy\"}", "busy"), ("{}", "HTTP status 409"), ("no JSON", "HTTP status 409")]
        {
            assert_eq!(why_not(&Answer { status: 409, body: body.into() }), why);
        }
    }
}
