//! An endpoint that takes what clients of S3 and CloudWatch Logs send as fast as the socket gives it, and checks nothing: a benchmark that
//! uses it measures the client. Plain threads and one buffer a connection: about 0.13 CPU seconds a gigabyte.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::Operation;

/// A running sink. Dropping it closes the port; connections end when their clients do.
pub struct Sink {
    port: u16,
    counts: Arc<Counts>,
}

/// Hears each body as a whole, before it is answered.
type Hears = Box<dyn Fn(&[u8]) + Send + Sync>;

#[derive(Default)]
struct Counts {
    hears: Option<Hears>,
    /// How long every answer waits, as if the service were far away.
    distance: Duration,
    requests: AtomicU64,
    put_log_events: AtomicU64,
    body_bytes: AtomicU64,
    stopping: AtomicBool,
}

impl Sink {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// Where no port can be had.
    pub fn start() -> io::Result<Self> {
        Self::far_away(Duration::ZERO)
    }
    /// The same, but every answer comes so much later. A connection that waits costs nothing.
    ///
    /// # Errors
    /// Where no port can be had.
    pub fn far_away(distance: Duration) -> io::Result<Self> {
        Self::with(Counts { distance, ..Counts::default() })
    }
    /// One that tells what came: bodies are in memory then, and whoever hears them takes time before the answer.
    ///
    /// # Errors
    /// Where no port can be had.
    pub fn heard_by(hears: impl Fn(&[u8]) + Send + Sync + 'static) -> io::Result<Self> {
        Self::with(Counts { hears: Some(Box::new(hears)), ..Counts::default() })
    }
    fn with(counts: Counts) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let counts = Arc::new(counts);
        let shared = Arc::clone(&counts);
        std::thread::Builder::new().name("sink".into()).spawn(move || {
            for socket in listener.incoming() {
                if shared.stopping.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                let counts = Arc::clone(&shared);
                let _ =
                    std::thread::Builder::new().name("sink-connection".into()).spawn(move || serve(socket, &counts));
            }
        })?;
        Ok(Self { port, counts })
    }
    /// `http://127.0.0.1:PORT`
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
    /// Requests answered so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::Relaxed)
    }
    /// Calls of PutLogEvents among them.
    #[must_use]
    pub fn put_log_events(&self) -> u64 {
        self.counts.put_log_events.load(Ordering::Relaxed)
    }
    /// Bytes of bodies so far.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.counts.body_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.counts.stopping.store(true, Ordering::Relaxed);
        // Wakes the accepting thread, which then sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn serve(mut socket: TcpStream, counts: &Counts) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut buffer = vec![0_u8; 256 << 10];
    let mut filled = 0;
    loop {
        let head_end = loop {
            if let Some(at) = find(buffer.get(..filled).unwrap_or_default(), b"\r\n\r\n") {
                break at + 4;
            }
            let room = buffer.get_mut(filled..).unwrap_or_default();
            if room.is_empty() {
                return Err(io::Error::other("a request head is longer than the buffer"));
            }
            match socket.read(room)? {
                0 => return Ok(()),
                read => filled += read,
            }
        };
        let head = Head::parse(buffer.get(..head_end).unwrap_or_default());
        if head.expects_continue {
            socket.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut missing = head.length;
        let behind = filled - head_end;
        let of_this = missing.min(behind as u64) as usize;
        missing -= of_this as u64;
        let mut body = Vec::new();
        if counts.hears.is_some() {
            body.extend_from_slice(buffer.get(head_end..head_end + of_this).unwrap_or_default());
        }
        while missing > 0 {
            let most = missing.min(buffer.len() as u64) as usize;
            match socket.read(buffer.get_mut(..most).unwrap_or_default())? {
                0 => return Ok(()),
                read => {
                    missing -= read as u64;
                    if counts.hears.is_some() {
                        body.extend_from_slice(buffer.get(..read).unwrap_or_default());
                    }
                }
            }
        }
        if let Some(hears) = &counts.hears {
            hears(&body);
        }
        // What came behind this request's body is the beginning of the next one.
        if behind > of_this {
            buffer.copy_within(head_end + of_this..filled, 0);
        }
        filled = behind - of_this;
        // Counted before the answer: whoever has that finds it counted.
        counts.body_bytes.fetch_add(head.length, Ordering::Relaxed);
        if head.operation == Operation::PutLogEvents {
            counts.put_log_events.fetch_add(1, Ordering::Relaxed);
        }
        if !counts.distance.is_zero() {
            std::thread::sleep(counts.distance);
        }
        socket.write_all(head.answer(counts.requests.fetch_add(1, Ordering::Relaxed)).as_bytes())?;
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

struct Head {
    method: String,
    query: String,
    length: u64,
    expects_continue: bool,
    /// What `X-Amz-Target` names; other where there is none, as for S3.
    operation: Operation,
    is_logs: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let mut request = lines.next().unwrap_or_default().split(' ');
        let method = request.next().unwrap_or_default().to_owned();
        let query = request.next().and_then(|target| target.split_once('?')).map_or("", |(_, query)| query).to_owned();
        let mut head =
            Self { method, query, length: 0, expects_continue: false, operation: Operation::Other, is_logs: false };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                head.length = value.trim().parse().unwrap_or(0);
            } else if name.eq_ignore_ascii_case("expect") {
                head.expects_continue = true;
            } else if name.eq_ignore_ascii_case("x-amz-target") {
                head.is_logs = true;
                head.operation = Operation::of_target(value.trim());
            }
        }
        head
    }
    /// What the service would say to somebody who is always welcome.
    fn answer(&self, number: u64) -> String {
        let ok = |body: &str| {
            let length = body.len();
            format!("HTTP/1.1 200 OK\r\nETag: \"{number:032x}\"\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let has = |name: &str| self.query.split('&').any(|pair| pair.split('=').next() == Some(name));
        match self.method.as_str() {
            "POST" if self.is_logs => ok("{}"),
            "POST" if has("uploads") => ok(&format!(
                "<InitiateMultipartUploadResult><UploadId>u{number}</UploadId></InitiateMultipartUploadResult>"
            )),
            "POST" => ok(&format!(
                "<CompleteMultipartUploadResult><ETag>\"{number:032x}\"</ETag></CompleteMultipartUploadResult>"
            )),
            "GET" if has("uploads") => ok("<ListMultipartUploadsResult></ListMultipartUploadsResult>"),
            "GET" => ok("<ListBucketResult></ListBucketResult>"),
            "HEAD" => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(),
            "DELETE" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
            _ => ok(""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(sink: &Sink, request: &str) -> String {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, sink.port)).unwrap();
        socket.write_all(request.as_bytes()).unwrap();
        socket.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn both_services_hear_what_they_expect_and_calls_of_put_log_events_are_counted() {
        let sink = Sink::start().unwrap();
        let logs = |operation: &str| {
            let target = format!("Logs_20140328.{operation}");
            format!("POST / HTTP/1.1\r\nX-Amz-Target: {target}\r\nContent-Length: 5\r\n\r\n{{   }}")
        };
        for operation in ["CreateLogStream", "PutLogEvents"] {
            let answer = ask(&sink, &logs(operation));
            assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n{}"), "{answer}");
        }
        let answer = ask(&sink, "POST /b/k?uploads HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
        assert!(answer.contains("<UploadId>"), "{answer}");
        assert_eq!((sink.requests(), sink.put_log_events(), sink.body_bytes()), (3, 1, 10));
    }
}
