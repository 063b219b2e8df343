//! What tests of reloads share.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use wharf_e2e::{Place, line};
use wharf_guest_build::{build_all, build_for_tests};
use wharf_task_kit::repository;

/// The components of the built-in `s3`, and of the plugin that does what plugins must not do.
pub fn components() -> &'static (PathBuf, PathBuf) {
    static BUILT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reload-components");
        let guests = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("guests");
        std::fs::create_dir_all(&out).unwrap();
        let repository = repository().unwrap();
        build_all(&repository, &out, &guests).unwrap();
        build_for_tests(&repository, &out, &guests).unwrap();
        (out.join("s3.wasm"), out.join("misbehaving.wasm"))
    })
}

/// The `s3` component in another build: what it does is the same, its bytes are not. A custom section, as the core specification's
/// binary format has it: 0, size, a name, anything.
pub fn build(number: u8) -> Vec<u8> {
    let mut component = std::fs::read(&components().0).unwrap();
    component.extend([0, 6, 4, b'n', b'o', b't', b'e', number]);
    component
}

/// Puts a component where an output names it, in one step.
pub fn put_plugin(place: &Place, component: &[u8]) {
    let new = place.root().join("new.wasm");
    std::fs::write(&new, component).unwrap();
    std::fs::rename(new, place.root().join("own.wasm")).unwrap();
}

/// A sender by HTTP with one connection that it keeps.
pub struct Sender {
    socket: TcpStream,
    source: String,
    next: u64,
}

impl Sender {
    pub fn connect(port: u16, source: &str) -> Self {
        let socket = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { socket, source: source.to_owned(), next: 0 }
    }

    /// Sends so many lines, and wants them taken.
    pub fn send(&mut self, lines: u64) {
        let body: String = (self.next..self.next + lines).map(|number| line(&self.source, number, 60) + "\n").collect();
        let length = body.len();
        write!(self.socket, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = Vec::new();
        while !is_whole(&answer) {
            let mut some = [0; 4096];
            let read = self.socket.read(&mut some).unwrap();
            assert!(read > 0, "the connection was closed after {:?}", String::from_utf8_lossy(&answer));
            answer.extend_from_slice(&some[..read]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        self.next += lines;
    }

    pub fn names(&self) -> Vec<String> {
        (0..self.next).map(|number| format!("{}-{number:08}", self.source)).collect()
    }
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.and_then(|length| length.trim().parse::<usize>().ok()).is_some_and(|length| body.len() >= length)
}
