//! An endpoint that takes what S3 clients send as fast as the socket gives it, and checks nothing: a benchmark that uses it measures the
//! client. Plain threads and one buffer a connection: about 0.13 CPU seconds a gigabyte.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A running sink. Dropping it closes the port; connections end when their clients do.
pub struct Sink {
    port: u16,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    requests: AtomicU64,
    body_bytes: AtomicU64,
    stopping: AtomicBool,
}

impl Sink {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// Where no port can be had.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let counts = Arc::new(Counts::default());
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
        while missing > 0 {
            let most = missing.min(buffer.len() as u64) as usize;
            match socket.read(buffer.get_mut(..most).unwrap_or_default())? {
                0 => return Ok(()),
                read => missing -= read as u64,
            }
        }
        // What came behind this request's body is the beginning of the next one.
        if behind > of_this {
            buffer.copy_within(head_end + of_this..filled, 0);
        }
        filled = behind - of_this;
        socket.write_all(head.answer(counts.requests.fetch_add(1, Ordering::Relaxed)).as_bytes())?;
        counts.body_bytes.fetch_add(head.length, Ordering::Relaxed);
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
}

impl Head {
    fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let mut request = lines.next().unwrap_or_default().split(' ');
        let method = request.next().unwrap_or_default().to_owned();
        let query = request.next().and_then(|target| target.split_once('?')).map_or("", |(_, query)| query).to_owned();
        let mut head = Self { method, query, length: 0, expects_continue: false };
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            if name.eq_ignore_ascii_case("content-length") {
                head.length = value.trim().parse().unwrap_or(0);
            } else if name.eq_ignore_ascii_case("expect") {
                head.expects_continue = true;
            }
        }
        head
    }
    /// What S3 would say to somebody who is always welcome.
    fn answer(&self, number: u64) -> String {
        let ok = |body: &str| {
            let length = body.len();
            format!("HTTP/1.1 200 OK\r\nETag: \"{number:032x}\"\r\nContent-Length: {length}\r\n\r\n{body}")
        };
        let has = |name: &str| self.query.split('&').any(|pair| pair.split('=').next() == Some(name));
        match self.method.as_str() {
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
