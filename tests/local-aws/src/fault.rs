//! Faults on demand: rules that say which requests go wrong, and how.

mod spec;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use self::spec::SpecError;
use crate::Operation;

/// How a request goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The body is read, nothing is done, and the service's error of this code is the answer.
    Error(&'static str),
    /// The same, but the answer comes before the body is read, and the connection closes: what real servers do under load.
    EarlyError(&'static str),
    /// The request is carried out, then the connection closes without an answer.
    LoseReply,
    /// The request is carried out, and the connection closes inside the answer's body, before its announced length.
    PartialReply {
        /// Bytes of body that still come.
        bytes: usize,
    },
    /// So many bytes of the body are read, then the connection is reset. Nothing is done.
    Reset {
        /// Bytes of body.
        after: usize,
    },
    /// Nothing happens for a while, then the request is carried out.
    Stall(Duration),
    /// The request is carried out, and the answer comes late.
    StallReply(Duration),
    /// The status is 200, and the body an error document, as `CompleteMultipartUpload` may answer.
    ErrorInside200 {
        /// The service's error code.
        code: &'static str,
        /// Whether the request was carried out all the same.
        performed: bool,
    },
    /// CloudWatch Logs: somebody deletes what the request names, just before it is carried out.
    Vanish(Vanish),
    /// CloudWatch Logs: `PutLogEvents` is carried out but for some events, which are named as rejected.
    Reject(Reject),
}

/// What somebody deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vanish {
    /// The log stream.
    Stream,
    /// The log group, with all its streams.
    Group,
}

/// What a `PutLogEvents` call that is accepted all the same does not take. Indexes as in
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_RejectedLogEventsInfo.html>.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reject {
    /// So many from the beginning are too old.
    pub too_old: usize,
    /// So many from the beginning are past the retention.
    pub expired: usize,
    /// So many at the end are too new.
    pub too_new: usize,
    /// The entity is rejected, for this reason.
    pub entity: Option<&'static str>,
}

#[derive(Debug, Clone, Copy)]
enum When {
    Always,
    Nth(u64),
    Next(u64),
    Every(u64),
    Percent(u64),
    For(Duration),
}

/// Which requests go wrong, and how. Build one with [`Rule::on`] or [`Rule::on_any`].
#[derive(Debug, Clone)]
pub struct Rule {
    operation: Option<Operation>,
    key_part: Option<String>,
    when: When,
    fault: Fault,
}

impl Rule {
    /// Every request of this operation; narrow it with the methods below.
    #[must_use]
    pub fn on(operation: Operation, fault: Fault) -> Self {
        Self { operation: Some(operation), key_part: None, when: When::Always, fault }
    }
    /// Every request.
    #[must_use]
    pub fn on_any(fault: Fault) -> Self {
        Self { operation: None, key_part: None, when: When::Always, fault }
    }
    /// Only where the key contains this; of CloudWatch Logs, where `GROUP:STREAM` does.
    #[must_use]
    pub fn key(mut self, part: &str) -> Self {
        self.key_part = Some(part.to_owned());
        self
    }
    /// Whether it strikes while a request's body is still unread: nothing in it has to be known, and the fault is about just that.
    fn strikes_unread(&self) -> bool {
        self.key_part.is_none() && matches!(self.fault, Fault::EarlyError(_) | Fault::Reset { .. })
    }
    /// Only the `n`-th matching request, counted from 1.
    #[must_use]
    pub fn nth(mut self, n: u64) -> Self {
        self.when = When::Nth(n);
        self
    }
    /// Only the next `count` matching requests.
    #[must_use]
    pub fn next(mut self, count: u64) -> Self {
        self.when = When::Next(count);
        self
    }
    /// Only every `n`-th matching request.
    #[must_use]
    pub fn every(mut self, n: u64) -> Self {
        self.when = When::Every(n.max(1));
        self
    }
    /// Only so many of a hundred, by chance.
    #[must_use]
    pub fn percent(mut self, percent: u64) -> Self {
        self.when = When::Percent(percent);
        self
    }
    /// Only for a while, from the first matching request on.
    #[must_use]
    pub fn lasting(mut self, time: Duration) -> Self {
        self.when = When::For(time);
        self
    }
}

/// How often a rule has struck. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Hits(Arc<AtomicU64>);

impl Hits {
    /// So often.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug)]
struct Armed {
    rule: Rule,
    seen: u64,
    first: Option<Instant>,
    hits: Hits,
}

impl Armed {
    fn strikes(&mut self, operation: Operation, key: &str, chance: &mut Chance) -> bool {
        if self.rule.operation.is_some_and(|wanted| wanted != operation)
            || self.rule.key_part.as_ref().is_some_and(|part| !key.contains(part.as_str()))
        {
            return false;
        }
        self.seen += 1;
        let first = *self.first.get_or_insert_with(Instant::now);
        match self.rule.when {
            When::Always => true,
            When::Nth(n) => self.seen == n,
            When::Next(count) => self.seen <= count,
            When::Every(n) => self.seen.is_multiple_of(n),
            When::Percent(percent) => chance.next() % 100 < percent,
            When::For(time) => first.elapsed() < time,
        }
    }
}

/// SplitMix64: chance that a seed repeats.
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// The faults in force. The first rule that strikes decides.
#[derive(Debug)]
pub struct Faults {
    armed: Mutex<(Vec<Armed>, Chance)>,
}

impl Faults {
    pub(crate) fn new(seed: u64) -> Self {
        Self { armed: Mutex::new((Vec::new(), Chance(seed))) }
    }
    /// Puts a rule in force. What it gives tells how often the rule has struck.
    pub fn add(&self, rule: Rule) -> Hits {
        let hits = Hits::default();
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        armed.0.push(Armed { rule, seen: 0, first: None, hits: hits.clone() });
        hits
    }
    /// Ends all faults.
    pub fn clear(&self) {
        self.armed.lock().unwrap_or_else(PoisonError::into_inner).0.clear();
    }
    pub(crate) fn strike(&self, operation: Operation, key: &str) -> Option<Fault> {
        self.strike_where(operation, key, |_| true)
    }
    /// The first of two steps, for a service whose requests have to be read to know what they are about.
    pub(crate) fn strike_unread(&self, operation: Operation) -> Option<Fault> {
        self.strike_where(operation, "", Rule::strikes_unread)
    }
    /// The second of them.
    pub(crate) fn strike_read(&self, operation: Operation, key: &str) -> Option<Fault> {
        self.strike_where(operation, key, |rule| !rule.strikes_unread())
    }
    fn strike_where(&self, operation: Operation, key: &str, eligible: impl Fn(&Rule) -> bool) -> Option<Fault> {
        let mut armed = self.armed.lock().unwrap_or_else(PoisonError::into_inner);
        let (rules, chance) = &mut *armed;
        let mut eligible = rules.iter_mut().filter(|armed| eligible(&armed.rule));
        let struck = eligible.find_map(|rule| rule.strikes(operation, key, chance).then_some(rule))?;
        struck.hits.0.fetch_add(1, Ordering::Relaxed);
        Some(struck.rule.fault.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(rule: Rule, requests: usize) -> String {
        let faults = Faults::new(1);
        faults.add(rule);
        (0..requests).map(|_| if faults.strike(Operation::PutObject, "a/b").is_some() { 'x' } else { '.' }).collect()
    }

    #[test]
    fn rules_strike_when_they_say() {
        let fault = Fault::Error("SlowDown");
        assert_eq!(pattern(Rule::on(Operation::PutObject, fault.clone()).nth(3), 5), "..x..");
        assert_eq!(pattern(Rule::on_any(fault.clone()).next(2), 5), "xx...");
        assert_eq!(pattern(Rule::on_any(fault.clone()).every(2), 6), ".x.x.x");
        assert_eq!(pattern(Rule::on_any(fault.clone()).key("a/"), 3), "xxx");
        assert_eq!(pattern(Rule::on_any(fault.clone()).key("c"), 3), "...");
        assert_eq!(pattern(Rule::on(Operation::UploadPart, fault), 3), "...");
    }
}
