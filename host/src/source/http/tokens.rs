//! Who may send: tokens, and whose the records are that come with each.
//!
//! A token is kept and compared as its SHA-256, all of them at each request, so that the time an answer takes says neither how much of a
//! token was right nor which one it was. A token in a file is read again when the file may have changed: what is replaced there is good
//! at once, and what was there before is not for long.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tracing::warn;

use super::super::sink::Sink;
use super::answer::{Denied, Unauthorized};
use crate::config::{HttpToken, SecretSource};
use crate::record::now_ns;

/// For how long a token is good that was taken out of its file.
const GOOD_FOR: Duration = Duration::from_secs(10);
/// How old a change has to be for another one to be told from it.
const STAMP_SAYS_NOTHING: Duration = Duration::from_secs(1);
/// A token's file is no longer.
const LONGEST: u64 = 8 << 10;

type Hash = [u8; 32];

/// What tells one content of a file from another without reading it: device, inode, size, and the times of its last change.
type Stamp = [i128; 5];

/// The tokens of a source.
pub(crate) struct Tokens {
    source: Arc<str>,
    all: Arc<[Token]>,
    /// When files were last read; none where there are none.
    read: Option<Mutex<Instant>>,
}

struct Token {
    known: Mutex<Known>,
    file: Option<PathBuf>,
    /// Whose the records are that come with it; none: the source's, or that of the tenant which claims their tag.
    tenant: Option<Arc<str>>,
    /// Where they go.
    sink: Arc<dyn Sink>,
}

/// What is known of a token: both of one content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Known {
    /// None: its file cannot be read, or has none in it.
    hash: Option<Hash>,
    /// What its file looked like when it was read; none where that says nothing.
    stamp: Option<Stamp>,
}

/// Whose token a request carries.
pub(crate) struct Sender {
    /// None: the source's, or that of the tenant which claims their tag.
    pub(crate) tenant: Option<Arc<str>>,
    /// Where its records go.
    pub(crate) sink: Arc<dyn Sink>,
}

fn hash(token: &[u8]) -> Hash {
    Sha256::digest(token).into()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tokens {
    /// None where a request needs none.
    pub(crate) fn new(source: &Arc<str>, tokens: &[HttpToken], sink: &Arc<dyn Sink>) -> Option<Self> {
        let token = |token: &HttpToken| {
            let (known, file) = match &token.token {
                SecretSource::Given(secret) => (Some(hash(secret.expose().as_bytes())), None),
                SecretSource::File(path) => (None, Some(path.clone())),
            };
            let sink = token.tenant.as_ref().map_or_else(|| Arc::clone(sink), |tenant| sink.of_tenant(tenant));
            let known = Mutex::new(Known { hash: known, stamp: None });
            Token { known, file, tenant: token.tenant.clone(), sink }
        };
        let all: Arc<[Token]> = tokens.iter().map(token).collect();
        let has_files = all.iter().any(|token| token.file.is_some());
        let this = Self { source: source.clone(), all, read: has_files.then(|| Mutex::new(Instant::now())) };
        read_again(this.all.iter(), source);
        (!this.all.is_empty()).then_some(this)
    }

    /// Who sends a request.
    ///
    /// # Errors
    /// Where it has no token, or none that is known.
    pub(crate) async fn sender(&self, headers: &HeaderMap) -> Result<Sender, Denied> {
        let sent = hash(bearer(headers).map_err(Denied::Unauthorized)?);
        self.read_old().await;
        if let Some(sender) = self.find(&sent) {
            return Ok(sender);
        }
        // It may be a new one.
        self.read_changed().await;
        self.find(&sent).ok_or(Denied::Unauthorized(Unauthorized::Unknown))
    }

    fn find(&self, sent: &Hash) -> Option<Sender> {
        let mut found = None;
        let mut whose = vec![];
        for token in self.all.iter() {
            if lock(&token.known).hash.is_some_and(|known| same(&known, sent)) {
                found = Some(Sender { tenant: token.tenant.clone(), sink: Arc::clone(&token.sink) });
                whose.push(&token.tenant);
            }
        }
        // Nobody can say whose the records are.
        if whose.iter().any(|tenant| Some(tenant) != whose.first()) {
            let names: Vec<&str> = whose.iter().map(|tenant| tenant.as_deref().unwrap_or("the operator")).collect();
            warn!(source = %self.source, "a token is that of {} at once, and is refused: give each its own", names.join(" and "));
            return None;
        }
        found
    }

    /// Reads files again that were not read for long.
    async fn read_old(&self) {
        let Some(read) = &self.read else { return };
        {
            let mut read = lock(read);
            if read.elapsed() < GOOD_FOR {
                return;
            }
            *read = Instant::now();
        }
        self.on_disk(|all, source| read_again(all, source)).await;
    }

    /// Reads files again that have changed. Whoever sends tokens that are not known has files looked at, not read.
    async fn read_changed(&self) {
        if self.read.is_some() {
            self.on_disk(|all, source| {
                let has_changed = |token: &&Token| {
                    let Known { hash, stamp: before } = *lock(&token.known);
                    match token.file.as_deref().and_then(stamp) {
                        // It was not there before either, and that was said.
                        None => token.file.is_some() && hash.is_some(),
                        now => now != before,
                    }
                };
                read_again(all.iter().filter(has_changed), source);
            })
            .await;
        }
    }

    async fn on_disk(&self, read: impl FnOnce(&[Token], &str) + Send + 'static) {
        let (all, source) = (Arc::clone(&self.all), self.source.clone());
        // Where it panicked, what was known is known still.
        let _ = tokio::task::spawn_blocking(move || read(&all, &source)).await;
    }
}

fn read_again<'a>(tokens: impl IntoIterator<Item = &'a Token>, source: &str) {
    for token in tokens {
        let Some(path) = &token.file else { continue };
        // Before it is read: what changes from here on is seen.
        let before = stamp(path);
        let found = from_file(path);
        if let Err(why) = &found {
            warn!(source, "the token in {} is not known now, and whoever sends it is refused: {why}", path.display());
        }
        // What changes twice within a tick of the file system's clock looks the same.
        let is_old = |stamp: &Stamp| i128::from(now_ns()) - stamp[4] > STAMP_SAYS_NOTHING.as_nanos().cast_signed();
        *lock(&token.known) = Known { hash: found.ok(), stamp: before.filter(is_old) };
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let it = std::fs::metadata(path).ok()?;
    let time = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    let times = (time(it.mtime(), it.mtime_nsec()), time(it.ctime(), it.ctime_nsec()));
    Some([it.dev().into(), it.ino().into(), it.size().into(), times.0, times.1])
}

/// The one token of a request, if there is one (RFC 6750, section 2.1).
fn bearer(headers: &HeaderMap) -> Result<&[u8], Unauthorized> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(Unauthorized::NoToken)?.as_bytes();
    if values.next().is_some() {
        return Err(Unauthorized::Several);
    }
    let (scheme, token) = value.split_at_checked("bearer ".len()).ok_or(Unauthorized::NoToken)?;
    let token = token.trim_ascii();
    let is_one = scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty();
    if is_one { Ok(token) } else { Err(Unauthorized::NoToken) }
}

/// Whether both are the same, in a time that says nothing of where they differ.
fn same(ours: &Hash, theirs: &Hash) -> bool {
    ours.iter().zip(theirs).fold(0, |found, (a, b)| std::hint::black_box(found | (a ^ b))) == 0
}

fn from_file(path: &Path) -> Result<Hash, String> {
    let bytes = crate::regular_file::read(path, LONGEST).map_err(|cause| cause.to_string())?;
    let token = std::str::from_utf8(bytes.trim_ascii()).map_err(|_| "it is no text".to_owned())?;
    match crate::config::what_is_wrong_with_token(token) {
        None => Ok(hash(token.as_bytes())),
        Some(what) => Err(format!("it {what}")),
    }
}
