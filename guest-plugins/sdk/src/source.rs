//! Where a batch's records come from: the host, or, in an author's native tests, memory.

use crate::HostError;
use crate::bindings::wharf::output::records as wit;

/// A batch, as the host or a test holds it.
#[derive(Debug, Clone)]
pub(crate) enum Source<'a> {
    Host(&'a wit::Batch),
    #[cfg(not(target_family = "wasm"))]
    Memory(std::rc::Rc<crate::testing::Memory>),
}

/// The same question to either.
macro_rules! ask {
    ($source:expr, $question:ident($($argument:expr),*)) => {
        match $source {
            Source::Host(batch) => batch.$question($($argument),*),
            #[cfg(not(target_family = "wasm"))]
            Source::Memory(batch) => batch.$question($($argument),*),
        }
    };
}

impl<'a> Source<'a> {
    pub(crate) fn id(&self) -> String {
        ask!(self, id())
    }
    pub(crate) fn attempt(&self) -> u32 {
        ask!(self, attempt())
    }
    pub(crate) fn tag(&self) -> String {
        ask!(self, tag())
    }
    pub(crate) fn partition(&self) -> Vec<Option<String>> {
        ask!(self, partition())
    }
    pub(crate) fn count(&self) -> u32 {
        ask!(self, count())
    }
    pub(crate) fn size(&self) -> u64 {
        ask!(self, size())
    }
    pub(crate) fn first_time(&self) -> i64 {
        ask!(self, first_time())
    }
    pub(crate) fn last_time(&self) -> i64 {
        ask!(self, last_time())
    }
    pub(crate) fn times(&self, first: u32, count: u32) -> Vec<i64> {
        ask!(self, times(first, count))
    }
    pub(crate) fn sizes(&self, first: u32, count: u32) -> Vec<u32> {
        ask!(self, sizes(first, count))
    }
    pub(crate) fn kinds(&self, first: u32, count: u32) -> Vec<u8> {
        ask!(self, kinds(first, count))
    }
    pub(crate) fn tags(&self, first: u32, count: u32) -> Vec<(String, u32)> {
        ask!(self, tags(first, count))
    }
    pub(crate) fn read_window(&self, first: u32, max_bytes: u32) -> Result<wit::Window, HostError> {
        match self {
            Self::Host(batch) => Ok(batch.read_window(first, max_bytes)?),
            #[cfg(not(target_family = "wasm"))]
            Self::Memory(batch) => Ok(batch.read_window(first, max_bytes)),
        }
    }
    pub(crate) fn encode(&self, select: &wit::Selection, how: &wit::Encoding) -> Result<wit::Encoder, HostError> {
        match self {
            Self::Host(batch) => Ok(batch.encode(select, how)?),
            #[cfg(not(target_family = "wasm"))]
            Self::Memory(_) => Err(HostError::Unavailable(crate::testing::NO_HOST.into())),
        }
    }

    /// The host's batch, for calls that name it.
    pub(crate) fn wit(&self) -> &'a wit::Batch {
        match self {
            Self::Host(batch) => batch,
            #[cfg(not(target_family = "wasm"))]
            #[expect(clippy::panic, reason = "only in native tests, where every call of the host panics")]
            Self::Memory(_) => panic!("{}", crate::testing::NO_HOST),
        }
    }
}
