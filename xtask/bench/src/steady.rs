//! A steady load: so many records a second by HTTP, each with the time at which it was due, and how long after that it was delivered.
//!
//! What is late is counted as late from when it was due: a sender that waits for an answer does not hide the wait.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wharf_local_aws::Sink;

use crate::send::http::read_status;

/// Requests a second, and what one carries: 1 MB/s.
const REQUESTS: u32 = 100;
pub const RECORDS: u32 = 50;
const PADDING: usize = 160;
/// Connections, each with its part of the requests.
const CLIENTS: u32 = 4;
const KEY: &[u8] = b"\"at\":";

/// When records were delivered that were due at a time.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    /// When due and when delivered, nanoseconds since 1970.
    seen: Arc<Mutex<Vec<(u64, u64)>>>,
}

/// What became of a steady load within a window of time.
#[derive(Debug, Clone)]
pub struct Steady {
    pub records_a_second: f64,
    /// From when a record was due until it was delivered, ascending.
    pub delays: Vec<Duration>,
    /// From when a request was due until it was answered, ascending.
    pub answers: Vec<Duration>,
}

impl Arrivals {
    /// A destination that notes them.
    pub fn sink(&self) -> anyhow::Result<Sink> {
        let seen = Arc::clone(&self.seen);
        Ok(Sink::heard_by(move |body| {
            let now = now();
            let due = body.split(|byte| *byte == b'\n').filter_map(due_of).map(|due| (due, now));
            seen.lock().unwrap_or_else(PoisonError::into_inner).extend(due);
        })?)
    }

    /// Those of a window.
    fn within(&self, from: u64, until: u64) -> Vec<(u64, u64)> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().filter(|(due, _)| (from..until).contains(due)).copied().collect()
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(0)
}

fn due_of(line: &[u8]) -> Option<u64> {
    let at = line.windows(KEY.len()).position(|it| it == KEY)? + KEY.len();
    let digits: Vec<u8> = line.get(at..)?.iter().copied().take_while(u8::is_ascii_digit).collect();
    String::from_utf8(digits).ok()?.parse().ok()
}

/// Sends for `warm_up` and then for `window`, and waits `after` it for what is late. Gives what became of what was due in the window.
pub fn run(
    to: SocketAddr,
    arrivals: &Arrivals,
    warm_up: Duration,
    window: Duration,
    after: Duration,
) -> anyhow::Result<Steady> {
    let begin = Instant::now() + Duration::from_millis(100);
    let begin_ns = now() + 100_000_000;
    let requests = (warm_up + window).as_millis() * u128::from(REQUESTS) / 1000;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut answers = std::thread::scope(|scope| {
        let client = |first: u32| {
            move || -> anyhow::Result<Vec<Duration>> {
                let mut answers = vec![];
                let mut socket = TcpStream::connect(to)?;
                socket.set_nodelay(true)?;
                for n in (first..).step_by(CLIENTS as usize).take_while(|n| u128::from(*n) < requests) {
                    let due = Duration::from_secs(1) * n / REQUESTS;
                    std::thread::sleep((begin + due).saturating_duration_since(Instant::now()));
                    socket.write_all(&request(begin_ns + nanos(due)))?;
                    let status = read_status(&mut socket)?;
                    anyhow::ensure!(status == 200, "Wharf answered {status} to the steady load");
                    if due >= warm_up {
                        answers.push((begin + due).elapsed());
                    }
                }
                Ok(answers)
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|first| scope.spawn(client(first))).collect();
        let mut all = vec![];
        for client in clients {
            all.extend(client.join().map_err(|_| anyhow::anyhow!("a client panicked"))??);
        }
        anyhow::Ok(all)
    })?;
    std::thread::sleep(after);
    let from = begin_ns + nanos(warm_up);
    let seen = arrivals.within(from, from + nanos(window));
    let mut delays: Vec<Duration> =
        seen.iter().map(|(due, delivered)| Duration::from_nanos(delivered.saturating_sub(*due))).collect();
    delays.sort_unstable();
    answers.sort_unstable();
    Ok(Steady { records_a_second: seen.len() as f64 / window.as_secs_f64(), delays, answers })
}

fn request(due: u64) -> Vec<u8> {
    let record = format!("{{\"at\":{due},\"text\":\"{}\"}}\n", "x".repeat(PADDING));
    let body = record.repeat(RECORDS as usize);
    let length = body.len();
    format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The value under which this part (0 to 1) of them lies.
pub fn part(sorted: &[Duration], part: f64) -> Option<Duration> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last as f64 * part).round() as usize).copied()
}
