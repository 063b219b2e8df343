//! Which outputs want a chunk: those of its tenant whose `match` has its tag.
//!
//! A chunk is its source's tenant's. What an operator's source takes in is that of the first tenant which claims its tag, else the
//! operator's own. No output sees a chunk of another tenant, whatever it matches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::pattern::Pattern;
use crate::config::{Config, TenantLimits, tenant_in};
use crate::queue::{Queue, WhenFull};

/// Tags that are remembered with their outputs. Past it, all are forgotten: tags made up without end must not fill memory.
const REMEMBERED_TAGS: usize = 4096;

/// What is routed where.
#[derive(Debug, Default)]
pub struct Routing {
    /// Tenants, each with patterns of tags: what comes from a source of no tenant with such a tag is the first one's that has it.
    pub claims: Vec<(Arc<str>, Vec<String>)>,
    /// What each tenant may take in. A tenant that is not among them has no limit.
    pub limits: Vec<(Arc<str>, TenantLimits)>,
    /// Queues, each with the patterns of the tags that it wants (`*` is any characters, `?` is one). A queue is of the tenant that its
    /// output's name begins with.
    pub outputs: Vec<(Vec<String>, Queue)>,
}

impl From<Vec<(Vec<String>, Queue)>> for Routing {
    fn from(outputs: Vec<(Vec<String>, Queue)>) -> Self {
        Self { outputs, ..Self::default() }
    }
}

impl Routing {
    /// As a configuration says it. `queues` are those of its outputs, in its order.
    #[must_use]
    pub fn of(config: &Config, queues: Vec<Queue>) -> Self {
        let matches = config.outputs.iter().map(|output| output.matches.clone());
        Self {
            claims: config.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.tags.clone())).collect(),
            limits: config.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.limits)).collect(),
            outputs: matches.zip(queues).collect(),
        }
    }
}

/// The tenant whose a record with this tag is that an operator's source takes in.
#[must_use]
pub fn claimant<'a>(config: &'a Config, tag: &str) -> Option<&'a str> {
    let mut tenants = config.tenants.iter();
    tenants.find(|tenant| super::wants(&tenant.tags, tag)).map(|tenant| &*tenant.name)
}

/// An output's `match` that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("output {0} has an empty match: no tag is ever empty; write `*` for all tags")]
pub struct EmptyMatch(Arc<str>);

/// A [`Routing`] at work.
#[derive(Debug)]
pub(super) struct Routes {
    claims: Vec<(Arc<str>, Vec<Pattern>)>,
    /// Outputs that can say "full" stand before those that then drop: what is dropped is counted once.
    outputs: Vec<(Vec<Pattern>, Queue)>,
    /// By the source's tenant (empty where it has none) and the tag.
    remembered: Mutex<HashMap<String, ByTag>>,
}

type ByTag = HashMap<Arc<str>, Wanted>;

/// Whose a chunk is, and who wants it.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    /// None: the operator's.
    pub(super) tenant: Option<Arc<str>>,
    /// The queues that want it.
    pub(super) queues: Arc<[Queue]>,
    /// All queues of its tenant.
    pub(super) of_tenant: Arc<[Queue]>,
}

fn patterns(texts: &[String]) -> Vec<Pattern> {
    texts.iter().map(|text| Pattern::new(text)).collect()
}

impl Routes {
    pub(super) fn new(routing: Routing) -> Result<Self, EmptyMatch> {
        let mut outputs = Vec::new();
        for (texts, queue) in routing.outputs {
            if texts.iter().any(String::is_empty) {
                return Err(EmptyMatch(queue.output().clone()));
            }
            outputs.push((patterns(&texts), queue));
        }
        outputs.sort_by_key(|(_, queue): &(Vec<Pattern>, Queue)| queue.when_full() == WhenFull::DropNewest);
        let claims = routing.claims.into_iter().map(|(tenant, texts)| (tenant, patterns(&texts))).collect();
        Ok(Self { claims, outputs, remembered: Mutex::default() })
    }

    /// This output alone, whatever it wants.
    pub(super) fn output(&self, output: &str) -> Option<Wanted> {
        let queue = self.outputs.iter().map(|(_, queue)| queue).find(|queue| **queue.output() == *output)?;
        let tenant = tenant_in(output);
        Some(Wanted {
            tenant: tenant.map(Arc::from),
            queues: [queue.clone()].into(),
            of_tenant: self.of_tenant(tenant).map(|(_, queue)| queue.clone()).collect(),
        })
    }

    /// Whose a chunk of this tag is, and which queues want it. `of_source` is the tenant that its source, or its sender, is of.
    pub(super) fn wanted(&self, of_source: Option<&str>, tag: &Arc<str>) -> Wanted {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let key = of_source.unwrap_or_default();
        if let Some(wanted) = remembered.get(key).and_then(|by_tag| by_tag.get(tag)) {
            return wanted.clone();
        }
        let tenant = of_source.or_else(|| self.claimed_by(tag));
        let wants = |(patterns, _): &&(Vec<Pattern>, Queue)| patterns.iter().any(|pattern| pattern.matches(tag));
        let wanted = Wanted {
            tenant: tenant.map(Arc::from),
            queues: self.of_tenant(tenant).filter(wants).map(|(_, queue)| queue.clone()).collect(),
            of_tenant: self.of_tenant(tenant).map(|(_, queue)| queue.clone()).collect(),
        };
        let by_tag = remembered.entry(key.to_owned()).or_default();
        if by_tag.len() >= REMEMBERED_TAGS {
            by_tag.clear();
        }
        by_tag.insert(tag.clone(), wanted.clone());
        wanted
    }

    fn of_tenant(&self, tenant: Option<&str>) -> impl Iterator<Item = &(Vec<Pattern>, Queue)> {
        self.outputs.iter().filter(move |(_, queue)| tenant_in(queue.output()) == tenant)
    }

    fn claimed_by(&self, tag: &str) -> Option<&str> {
        let mut claims = self.claims.iter();
        claims.find(|(_, patterns)| patterns.iter().any(|pattern| pattern.matches(tag))).map(|(tenant, _)| &**tenant)
    }
}
