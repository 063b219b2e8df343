//! Who may send: tokens, and whose the records are that come with each.
//!
//! A token is kept and compared as its SHA-256, all of them at each request, so that the time an answer takes says neither how much of a
//! token was right nor which one it was. A token in a file is read again when the file may have changed: what is replaced there is good
//! soon, and what was there before is not for long.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tracing::warn;

use super::super::sink::Sink;
use super::answer::Denied;
use crate::config::{HttpToken, SecretSource};

/// For how long a token is good that was taken out of its file.
const GOOD_FOR: Duration = Duration::from_secs(10);
/// How often files are read at most, for whoever sends tokens that are not known.
const PAUSE: Duration = Duration::from_secs(1);
/// A token's file is no longer.
const LONGEST: u64 = 8 << 10;

type Hash = [u8; 32];

/// The tokens of a source.
pub(crate) struct Tokens {
    source: Arc<str>,
    all: Arc<[Token]>,
    /// When files were last read; none where there are none.
    read: Option<Mutex<Instant>>,
}

struct Token {
    /// None: its file cannot be read, or has none in it.
    hash: Mutex<Option<Hash>>,
    file: Option<PathBuf>,
    /// Whose the records are that come with it; none: the source's, or that of the tenant which claims their tag.
    tenant: Option<Arc<str>>,
    /// Where they go.
    sink: Arc<dyn Sink>,
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
            Token { hash: Mutex::new(known), file, tenant: token.tenant.clone(), sink }
        };
        let all: Arc<[Token]> = tokens.iter().map(token).collect();
        let has_files = all.iter().any(|token| token.file.is_some());
        let this = Self { source: source.clone(), all, read: has_files.then(|| Mutex::new(Instant::now())) };
        read_again(&this.all, source);
        (!this.all.is_empty()).then_some(this)
    }

    /// Who sends a request.
    ///
    /// # Errors
    /// Where it has no token, or none that is known.
    pub(crate) async fn sender(&self, headers: &HeaderMap) -> Result<Sender, Denied> {
        let Some(sent) = bearer(headers) else { return Err(Denied::Unauthorized { sent: false }) };
        let sent = hash(sent);
        self.look(GOOD_FOR).await;
        if let Some(sender) = self.find(&sent) {
            return Ok(sender);
        }
        // It may be a new one.
        if self.look(PAUSE).await
            && let Some(sender) = self.find(&sent)
        {
            return Ok(sender);
        }
        Err(Denied::Unauthorized { sent: true })
    }

    fn find(&self, sent: &Hash) -> Option<Sender> {
        let mut found = None;
        let mut whose = vec![];
        for token in self.all.iter() {
            if lock(&token.hash).is_some_and(|known| same(&known, sent)) {
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

    /// Reads files again, where they were not read for so long. Whether it did.
    async fn look(&self, age: Duration) -> bool {
        let Some(read) = &self.read else { return false };
        {
            let mut read = lock(read);
            if read.elapsed() < age {
                return false;
            }
            *read = Instant::now();
        }
        let (all, source) = (Arc::clone(&self.all), self.source.clone());
        tokio::task::spawn_blocking(move || read_again(&all, &source)).await.is_ok()
    }
}

fn read_again(all: &[Token], source: &str) {
    for token in all {
        let Some(path) = &token.file else { continue };
        let found = from_file(path);
        if let Err(why) = &found {
            warn!(source, "the token in {} is not known now, and whoever sends it is refused: {why}", path.display());
        }
        *lock(&token.hash) = found.ok();
    }
}

/// The one token of a request, if there is one (RFC 6750, section 2.1).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next()?.as_bytes();
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_at_checked("bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
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
