//! Chunks that wait to be written: a lane for each tenant, and what of them goes into the next group.
//!
//! Within a lane chunks keep their order. Between lanes it is deficit round robin over bytes (Shreedhar and Varghese, 1995): lanes
//! take turns, at each a lane is credited some bytes for its share, and it sends chunks while its credit lasts. So a tenant with a thousand chunks waiting takes
//! no more of the disk than its share while others have something to write, and all of it when they have not.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::shared::Waiting;
use crate::fair::{Tenant, WaitFor};

/// A group ends when it has so many bytes or chunks: large enough that the sync's cost does not show, small enough that nobody
/// waits long for the others.
pub(super) const GROUP_BYTES: u64 = 8 << 20;
/// The same where several tenants have something to write: whoever comes next waits for a whole group.
const SHARED_GROUP_BYTES: u64 = 2 << 20;
const GROUP_CHUNKS: usize = 256;
/// Bytes that a lane is credited at its turn, for each part of its share.
const CREDIT: u64 = 64 << 10;

/// A tenant's way to the disk.
#[derive(Debug)]
pub(super) struct Lane {
    tenant: Tenant,
    /// How many times chunks of it were refused; raised before any of them hears of it.
    refusals: AtomicU64,
}

impl Lane {
    pub(super) fn new(tenant: Tenant) -> Arc<Self> {
        Arc::new(Self { tenant, refusals: AtomicU64::new(0) })
    }
    pub(super) fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::SeqCst)
    }
    /// Chunks of it are about to be refused.
    pub(super) fn count_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::SeqCst);
    }
}

/// What waits in all lanes.
#[derive(Default)]
pub(super) struct Lanes {
    /// Lanes that have something; the first is at its turn.
    busy: VecDeque<Busy>,
}

struct Busy {
    lane: Arc<Lane>,
    waiting: VecDeque<Waiting>,
    /// Bytes that it may still send at its turn.
    credit: u64,
}

impl Busy {
    fn credited(&self) -> u64 {
        CREDIT * u64::from(self.lane.tenant.share())
    }
}

impl Lanes {
    pub(super) fn is_empty(&self) -> bool {
        self.busy.is_empty()
    }

    /// Behind all that wait in the same lane.
    pub(super) fn push(&mut self, mut waiting: Waiting) {
        waiting.wait = Some(waiting.lane.tenant.waits(WaitFor::Journal));
        match self.busy.iter_mut().find(|busy| Arc::ptr_eq(&busy.lane, &waiting.lane)) {
            Some(busy) => busy.waiting.push_back(waiting),
            None => {
                let mut busy = Busy { lane: Arc::clone(&waiting.lane), waiting: VecDeque::from([waiting]), credit: 0 };
                busy.credit = busy.credited();
                self.busy.push_back(busy);
            }
        }
    }

    /// The next group: not empty, where anything waits.
    pub(super) fn take_group(&mut self) -> VecDeque<Waiting> {
        let (mut group, mut bytes) = (VecDeque::new(), 0);
        let most = if self.busy.len() > 1 { SHARED_GROUP_BYTES } else { GROUP_BYTES };
        while let Some(mut busy) = self.busy.pop_front() {
            let alone = self.busy.is_empty();
            while let Some(length) = busy.waiting.front().map(Waiting::length) {
                if !alone && length > busy.credit {
                    break;
                }
                // The first one always goes.
                if !group.is_empty() && (bytes + length > most || group.len() >= GROUP_CHUNKS) {
                    self.busy.push_front(busy);
                    return group;
                }
                busy.credit = busy.credit.saturating_sub(length);
                bytes += length;
                group.extend(busy.waiting.pop_front().map(|it| Waiting { wait: None, ..it }));
            }
            // What a lane did not use is not saved up: it had nothing to send.
            if !busy.waiting.is_empty() {
                busy.credit += busy.credited();
                self.busy.push_back(busy);
            }
        }
        group
    }

    /// Bytes that wait, by tenant; those of none are the operator's.
    pub(super) fn bytes(&self) -> HashMap<Option<Arc<str>>, u64> {
        let mut bytes = HashMap::new();
        for busy in &self.busy {
            *bytes.entry(busy.lane.tenant.name().cloned()).or_default() +=
                busy.waiting.iter().map(Waiting::length).sum::<u64>();
        }
        bytes
    }

    /// All that waits.
    pub(super) fn take_all(&mut self) -> VecDeque<Waiting> {
        std::mem::take(&mut self.busy).into_iter().flat_map(|busy| busy.waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BodyKind, ChunkBuilder};

    /// A lane of a tenant of this name with this share.
    fn lane(name: &str, share: u32) -> Arc<Lane> {
        let tenant = Tenant::named(Some(name));
        tenant.set_share(share);
        Lane::new(tenant)
    }

    fn waiting(lane: &Arc<Lane>, bytes: usize) -> Waiting {
        let mut builder = ChunkBuilder::new(BodyKind::Text, "app".into());
        builder.push(0, &vec![b'x'; bytes]);
        Waiting::new(&builder.finish().unwrap(), lane, None, tokio::sync::oneshot::channel().0)
    }

    fn bytes_of(group: &VecDeque<Waiting>, lane: &Arc<Lane>) -> u64 {
        group.iter().filter(|it| Arc::ptr_eq(&it.lane, lane)).map(Waiting::length).sum()
    }

    #[test]
    fn one_chunk_beside_a_backlog_is_in_the_next_group() {
        let (flood, other) = (lane("lanes/flood", 1), lane("lanes/other", 1));
        let mut lanes = Lanes::default();
        (0..500).for_each(|_| lanes.push(waiting(&flood, 1 << 20)));
        assert!(bytes_of(&lanes.take_group(), &flood) > 7 << 20, "alone it has whole groups");
        lanes.push(waiting(&other, 40_000));
        assert!(bytes_of(&lanes.take_group(), &other) > 0);
        assert!(bytes_of(&lanes.take_group(), &flood) > 7 << 20);
    }

    #[test]
    fn bytes_are_shared_out_by_share_whatever_the_size_of_chunks() {
        let (large, small) = (lane("lanes/large", 1), lane("lanes/small", 3));
        let mut lanes = Lanes::default();
        (0..200).for_each(|_| lanes.push(waiting(&large, 1 << 20)));
        (0..20_000).for_each(|_| lanes.push(waiting(&small, 10_000)));
        let (mut of_large, mut of_small) = (0, 0);
        for _ in 0..60 {
            let group = lanes.take_group();
            of_large += bytes_of(&group, &large);
            of_small += bytes_of(&group, &small);
        }
        let ratio = of_small as f64 / of_large as f64;
        assert!((ratio - 3.0).abs() < 0.3, "{of_small} to {of_large}");
    }

    #[test]
    fn a_lane_keeps_its_order_and_nothing_is_lost() {
        let lanes_of = [lane("lanes/a", 1), lane("lanes/b", 2), lane("lanes/c", 5)];
        let mut lanes = Lanes::default();
        // Sizes ascend within each lane, so that they tell the order.
        for n in 0..300 {
            lanes_of.iter().for_each(|lane| lanes.push(waiting(lane, 1_000 + n * 500)));
        }
        let mut seen = [0, 0, 0];
        let mut last = [0, 0, 0];
        while !lanes.is_empty() {
            let group = lanes.take_group();
            assert!(!group.is_empty() && group.len() <= GROUP_CHUNKS);
            for it in group {
                let n = lanes_of.iter().position(|lane| Arc::ptr_eq(lane, &it.lane)).unwrap();
                assert!(it.length() > last[n]);
                last[n] = it.length();
                seen[n] += 1;
            }
        }
        assert_eq!(seen, [300, 300, 300]);
    }

    /// A tenant may have several lanes, one for each source; what waits in them is told together.
    #[test]
    fn what_waits_is_told_by_tenant_and_has_waited_when_it_goes() {
        let [one, two, other] = ["lanes/told", "lanes/told", "lanes/told-other"].map(|name| lane(name, 1));
        let mut lanes = Lanes::default();
        lanes.push(waiting(&one, 10_000));
        lanes.push(waiting(&two, 20_000));
        lanes.push(waiting(&other, 40_000));
        let bytes = lanes.bytes();
        let of = |lane: &Arc<Lane>| (bytes[&lane.tenant.name().cloned()], lane.tenant.waited(WaitFor::Journal).now);
        assert!((30_000..31_000).contains(&of(&one).0) && of(&one) == of(&two), "{bytes:?}");
        assert!((40_000..41_000).contains(&of(&other).0), "{bytes:?}");
        assert_eq!((of(&one).1, of(&other).1), (2, 1));
        let group = lanes.take_group();
        assert_eq!(group.len(), 3);
        let waited = [&one, &other].map(|lane| lane.tenant.waited(WaitFor::Journal));
        assert_eq!(waited.map(|it| (it.now, it.times)), [(0, 2), (0, 1)], "it does not wait in its lane any more");
        assert!(lanes.bytes().is_empty());
        lanes.push(waiting(&other, 1_000));
        drop(lanes.take_all());
        assert_eq!(other.tenant.waited(WaitFor::Journal).now, 0);
    }

    #[test]
    fn a_chunk_larger_than_any_credit_goes_when_it_has_been_saved_up() {
        let (large, small) = (lane("lanes/huge", 1), lane("lanes/tiny", 1));
        let mut lanes = Lanes::default();
        lanes.push(waiting(&large, 20 << 20));
        (0..10_000).for_each(|_| lanes.push(waiting(&small, 5_000)));
        let groups = (0..40).position(|_| bytes_of(&lanes.take_group(), &large) > 0);
        assert!(groups.is_some_and(|n| n >= 8), "{groups:?}");
    }
}
