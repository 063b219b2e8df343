//! A server that takes JSON arrays by POST and keeps what came: the destination of plugins that speak HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, bail};

/// The server. It answers until the process ends.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    requests: usize,
    bodies: Vec<Vec<u8>>,
    /// What was no request.
    faults: Vec<String>,
}

impl Collector {
    /// Starts it on a port of its own. It answers 429 to the very first request, with a second to wait, and 200 `{}` to all others: these are what
    /// it keeps.
    ///
    /// # Errors
    /// Where there is no port.
    pub fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let taken = Arc::new(Mutex::new(Taken::default()));
        let of_server = Arc::clone(&taken);
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let taken = Arc::clone(&of_server);
                std::thread::spawn(move || {
                    if let Err(error) = serve(&connection, &taken) {
                        lock(&taken).faults.push(format!("{error:#}"));
                    }
                });
            }
        });
        Ok(Self { address, taken })
    }
    /// `http://127.0.0.1:<port>`
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
    /// How many requests there were, refused ones included.
    #[must_use]
    pub fn requests(&self) -> usize {
        lock(&self.taken).requests
    }
    /// All events of all bodies.
    ///
    /// # Errors
    /// Where a body is no JSON array, or something came that was no request.
    pub fn events(&self) -> anyhow::Result<Vec<serde_json::Value>> {
        let taken = lock(&self.taken);
        if let Some(fault) = taken.faults.first() {
            bail!("something came that is no request: {fault}");
        }
        let mut events = Vec::new();
        for body in &taken.bodies {
            let array: Vec<serde_json::Value> = serde_json::from_slice(body)
                .with_context(|| format!("no JSON array: {}", String::from_utf8_lossy(body)))?;
            events.extend(array);
        }
        Ok(events)
    }
}

fn lock(taken: &Mutex<Taken>) -> std::sync::MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Request after request of one connection.
fn serve(connection: &TcpStream, taken: &Mutex<Taken>) -> anyhow::Result<()> {
    let mut reader = BufReader::new(connection);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let mut length = None;
        let request = line.trim_end().to_owned();
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            match header.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = Some(value.trim().parse::<usize>().context("content-length")?);
                }
                Some(_) => {}
                None => break,
            }
        }
        let length = length.with_context(|| format!("{request} has no content-length"))?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).context("the body is cut off")?;
        let first = {
            let mut taken = lock(taken);
            taken.requests += 1;
            let first = taken.requests == 1;
            if !first {
                taken.bodies.push(body);
            }
            first
        };
        let answer: &[u8] = if first {
            b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"
        } else {
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
        };
        (&mut &*connection).write_all(answer)?;
    }
}
