//! Which outputs want a chunk: those of its tenant whose `match` has its tag.
//!
//! A chunk is its source's tenant's. What an operator's source takes in is that of the first tenant which claims its tag, else the
//! operator's own. No output sees a chunk of another tenant, whatever it matches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::pattern::Pattern;
use crate::config::tenant_in;
use crate::queue::{Queue, WhenFull};

/// Tags that are remembered with their outputs. Past it, all are forgotten: tags made up without end must not fill memory.
const REMEMBERED_TAGS: usize = 4096;

/// What is routed where.
#[derive(Debug, Default)]
pub struct Routing {
    /// Tenants, each with patterns of tags: what comes from a source of no tenant with such a tag is the first one's that has it.
    pub claims: Vec<(Arc<str>, Vec<String>)>,
    /// Queues, each with the patterns of the tags that it wants (`*` is any characters, `?` is one). A queue is of the tenant that its
    /// output's name begins with.
    pub outputs: Vec<(Vec<String>, Queue)>,
}

impl From<Vec<(Vec<String>, Queue)>> for Routing {
    fn from(outputs: Vec<(Vec<String>, Queue)>) -> Self {
        Self { claims: vec![], outputs }
    }
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

type ByTag = HashMap<Arc<str>, Arc<[Queue]>>;

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

    /// The queue of this output.
    pub(super) fn queue(&self, output: &str) -> Option<Queue> {
        self.outputs.iter().map(|(_, queue)| queue).find(|queue| **queue.output() == *output).cloned()
    }

    /// The queues that want a chunk of this tag, from a source of this tenant.
    pub(super) fn queues_for(&self, of_source: Option<&str>, tag: &Arc<str>) -> Arc<[Queue]> {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        let key = of_source.unwrap_or_default();
        if let Some(queues) = remembered.get(key).and_then(|by_tag| by_tag.get(tag)) {
            return queues.clone();
        }
        let tenant = of_source.or_else(|| self.claimed_by(tag));
        let wanted = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(tag));
        let of_tenant = self.outputs.iter().filter(|(_, queue)| tenant_in(queue.output()) == tenant);
        let queues: Arc<[Queue]> =
            of_tenant.filter(|(patterns, _)| wanted(patterns)).map(|(_, queue)| queue.clone()).collect();
        let by_tag = remembered.entry(key.to_owned()).or_default();
        if by_tag.len() >= REMEMBERED_TAGS {
            by_tag.clear();
        }
        by_tag.insert(tag.clone(), queues.clone());
        queues
    }

    fn claimed_by(&self, tag: &str) -> Option<&str> {
        let mut claims = self.claims.iter();
        claims.find(|(_, patterns)| patterns.iter().any(|pattern| pattern.matches(tag))).map(|(tenant, _)| &**tenant)
    }
}
