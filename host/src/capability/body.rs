//! Bodies: encoded bytes that stay in the host, and the budget that bounds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::bindings::types::HostError;

/// Bytes that stay in the host, and that a guest has a handle of.
#[derive(Debug, Clone)]
pub struct Body {
    pub(crate) bytes: Bytes,
    /// Slices share their body's memory, so they share its charge.
    charge: Arc<Charge>,
}

/// How much the bodies of one store hold, the ones on their way included. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct BodyBudget {
    most: u64,
    used: Arc<AtomicU64>,
}

/// A share of the budget, given back when dropped.
#[derive(Debug)]
pub(crate) struct Charge {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl BodyBudget {
    pub(crate) fn new(most: u64) -> Self {
        Self { most, used: Arc::default() }
    }

    /// Sets `bytes` aside.
    ///
    /// # Errors
    /// How much is used, where that would be too much.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<Charge, u64> {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= self.most)
        });
        taken.map(|_| Charge { used: Arc::clone(&self.used), bytes })
    }
}

impl Charge {
    /// Gives back what is over `bytes`.
    fn shrink_to(&mut self, bytes: u64) {
        let over = self.bytes.saturating_sub(bytes);
        self.used.fetch_sub(over, Ordering::Relaxed);
        self.bytes -= over;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Body {
    /// A body of bytes that `charge` was reserved for; what was reserved too much is given back.
    pub(crate) fn new(bytes: Bytes, mut charge: Charge) -> Self {
        charge.shrink_to(bytes.len() as u64);
        Self { bytes, charge: Arc::new(charge) }
    }

    /// A part of it, sharing its memory.
    pub(crate) fn slice(&self, offset: u64, length: u64) -> Result<Self, HostError> {
        let size = self.bytes.len() as u64;
        let outside = || {
            HostError::Invalid(format!(
                "offset {offset} and length {length} lie outside the body, which has {size} bytes"
            ))
        };
        let end = offset.checked_add(length).filter(|end| *end <= size).ok_or_else(outside)?;
        // Both fit: the body's length is a usize.
        let (from, to) =
            (usize::try_from(offset).map_err(|_| outside())?, usize::try_from(end).map_err(|_| outside())?);
        Ok(Self { bytes: self.bytes.slice(from..to), charge: Arc::clone(&self.charge) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(budget: &BodyBudget, bytes: &'static [u8]) -> Body {
        Body::new(Bytes::from_static(bytes), budget.reserve(1000).unwrap())
    }

    fn used(budget: &BodyBudget) -> u64 {
        budget.used.load(Ordering::Relaxed)
    }

    #[test]
    fn a_body_is_charged_by_its_real_size_until_its_last_slice_is_dropped() {
        let budget = BodyBudget::new(256 << 20);
        let whole = body(&budget, b"0123456789");
        assert_eq!(used(&budget), 10);
        let part = whole.slice(2, 3).unwrap();
        assert_eq!(&part.bytes[..], b"234");
        drop(whole);
        assert_eq!(used(&budget), 10);
        drop(part);
        assert_eq!(used(&budget), 0);
    }

    #[test]
    fn a_slice_outside_the_body_is_invalid() {
        let budget = BodyBudget::new(256 << 20);
        let whole = body(&budget, b"0123456789");
        assert!(whole.slice(10, 0).is_ok());
        for (offset, length) in [(0, 11), (11, 0), (5, 6), (u64::MAX, 2), (2, u64::MAX)] {
            assert!(matches!(whole.slice(offset, length), Err(HostError::Invalid(_))), "{offset} {length}");
        }
    }

    #[test]
    fn the_budget_refuses_what_would_pass_it_and_says_how_much_is_used() {
        let budget = BodyBudget::new(256 << 20);
        let held = budget.reserve(200 << 20).unwrap();
        assert_eq!(budget.reserve(57 << 20).unwrap_err(), 200 << 20);
        assert_eq!(budget.reserve(u64::MAX).unwrap_err(), 200 << 20);
        drop(held);
        assert!(budget.reserve(57 << 20).is_ok());
    }
}
