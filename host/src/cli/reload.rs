//! `wharf reload`: asks a running Wharf to read its configuration again, and tells what came of it.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::{Ended, print};
use crate::admin::{Parts, ReloadAsked, ReloadResult, Reloaded};
use crate::config::Draft;

const EXAMPLES: &str = "\
Examples:
  wharf reload -c /etc/wharf/wharf.yaml
  wharf reload --admin 127.0.0.1:9600 --discard old-archive

It asks the admin server (POST /reload) of a Wharf on this machine, and waits until the new
configuration is at work or was refused. Exit codes: 0 at work, 78 the configuration has faults
(the old one goes on), 1 everything else: another reload is under way, undelivered records
stand against it, nobody answers.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The configuration, which says where the admin server is
    #[arg(short, long, value_name = "FILE", env = "WHARF_CONFIG", required_unless_present = "admin")]
    config: Option<PathBuf>,
    /// The admin server, where the file does not say where it is
    #[arg(long, value_name = "ADDRESS")]
    admin: Option<SocketAddr>,
    /// Drop the undelivered records of an output or tenant that the configuration has no more (may be repeated)
    #[arg(long, value_name = "NAME")]
    discard: Vec<String>,
    /// Print the answer as it is
    #[arg(long)]
    json: bool,
}

/// How long a reload may take: components are compiled.
const PATIENCE: Duration = Duration::from_secs(600);

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let admin = here(address(args)?);
    let asked = serde_json::to_string(&ReloadAsked { discard: args.discard.clone() })?;
    let (status, body) = post(admin, &asked).map_err(|cause| {
        Ended::Failed(format!("the admin server at {admin} does not answer: {cause}; does Wharf run?"))
    })?;
    if args.json {
        print(&format!("{body}\n"))?;
    }
    let Ok(reloaded) = serde_json::from_str::<Reloaded>(&body) else {
        let error = serde_json::from_str::<serde_json::Value>(&body).ok();
        let why = error.as_ref().and_then(|error| error.get("error")).and_then(|error| error.as_str());
        return Err(Ended::Failed(format!(
            "no reload: {}",
            why.map_or_else(|| format!("HTTP status {status}"), str::to_owned)
        )));
    };
    match reloaded.result {
        ReloadResult::Applied | ReloadResult::Unchanged if args.json => Ok(()),
        ReloadResult::Applied | ReloadResult::Unchanged => print(&shown(&reloaded)),
        ReloadResult::Refused if reloaded.undelivered.is_empty() => Err(Ended::Refused(reloaded.faults)),
        ReloadResult::Refused | ReloadResult::Failed => {
            Err(Ended::Failed(format!("the configuration before it goes on:\n{}", reloaded.faults.join("\n"))))
        }
    }
}

/// Where the admin server is. The file may have faults: that is what the answer is for.
fn address(args: &Args) -> Result<SocketAddr, Ended> {
    if let Some(admin) = args.admin {
        return Ok(admin);
    }
    let draft = args.config.as_deref().map(Draft::load);
    let admin = draft.as_ref().and_then(Draft::config).and_then(|config| config.admin.as_ref());
    admin.map(|admin| admin.listen).ok_or_else(|| {
        Ended::Failed(
            "the file does not say where the admin server is (admin.listen): name it with --admin ADDRESS".into(),
        )
    })
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

fn post(to: SocketAddr, body: &str) -> std::io::Result<(u16, String)> {
    let mut socket = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    write!(
        socket,
        "POST /reload HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    let none = || std::io::Error::other("what came is no HTTP answer");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(none)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(none)?;
    Ok((status, body.to_owned()))
}

fn shown(reloaded: &Reloaded) -> String {
    let mut text = match reloaded.result {
        ReloadResult::Unchanged => format!("{} is at work already\n", reloaded.file),
        _ => format!("{} is at work, after {:.2} s\n", reloaded.file, reloaded.seconds),
    };
    for (what, parts) in [("output", &reloaded.outputs), ("source", &reloaded.sources)] {
        for line in lines(what, parts) {
            text.push_str(&line);
        }
    }
    for held in &reloaded.discarded {
        text.push_str(&format!("  dropped: {held}\n"));
    }
    for key in &reloaded.needs_restart {
        text.push_str(&format!("  needs a restart: {key}\n"));
    }
    text
}

fn lines(what: &str, parts: &Parts) -> Vec<String> {
    let added = parts.added.iter().map(|name| format!("  added: {what} {name}\n"));
    let changed = parts.changed.iter().map(|one| format!("  changed: {what} {} ({})\n", one.name, one.what.join(", ")));
    let removed = parts.removed.iter().map(|name| format!("  removed: {what} {name}\n"));
    added.chain(changed).chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{Changed, Undelivered};

    #[test]
    fn an_answer_is_told_line_by_line() {
        let outputs = Parts {
            added: vec!["live".into()],
            changed: vec![Changed { name: "archive".into(), what: vec!["plugin".into(), "workers".into()] }],
            removed: vec!["old".into()],
            unchanged: vec!["other".into()],
        };
        let reloaded = Reloaded {
            result: ReloadResult::Applied,
            file: "wharf.yaml".into(),
            trigger: "api".into(),
            seconds: 0.123,
            faults: vec![],
            undelivered: vec![],
            outputs,
            sources: Parts::default(),
            discarded: vec![Undelivered { output: "old".into(), records: 7, bytes: 900 }],
            needs_restart: vec!["journal".into()],
        };
        let expected = "wharf.yaml is at work, after 0.12 s\n  added: output live\n  changed: output archive (plugin, workers)\n  \
                        removed: output old\n  dropped: output old: 7 records, 900 bytes\n  needs a restart: journal\n";
        assert_eq!(shown(&reloaded), expected);
    }

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
}
