//! Whatever happens, held against a model.

use super::*;

#[derive(Debug, Clone)]
enum Op {
    /// A chunk with a record for each partition whose bit is set.
    Put(u8, u8),
    Take,
    Settle(u8),
    GiveBack(u8),
    Later(u8),
    Restart,
}

fn op() -> impl proptest::strategy::Strategy<Value = Op> {
    use proptest::prelude::*;
    prop_oneof![
        6 => (1u8..8, 1u8..150).prop_map(|(partitions, n)| Op::Put(partitions, n)),
        4 => Just(Op::Take),
        3 => any::<u8>().prop_map(Op::Settle),
        1 => any::<u8>().prop_map(Op::GiveBack),
        1 => (1u8..12).prop_map(Op::Later),
        1 => Just(Op::Restart),
    ]
}

/// Of each batch by number: its partition and chunks when it was first seen.
type Closed = std::collections::BTreeMap<u64, (Arc<str>, Vec<u64>)>;

/// Takes a batch where there is one at once, and notes what must hold of each.
async fn take(queue: &Queue, closed: &mut Closed) -> Option<Batch> {
    if matches!(peek(queue), partitions::Next::Wait(_)) {
        return None;
    }
    let batch = queue.next_batch().await.unwrap();
    let chunks = ids(&batch);
    assert!(chunks.is_sorted());
    let records: u64 = batch.portions.iter().map(|portion| u64::from(portion.records())).sum();
    assert_eq!((batch.row.records, chunks.len() as u64), (records, records), "each portion has one record");
    let seen = (batch.row.partition.clone(), chunks);
    let known = closed.entry(batch.row.number).or_insert_with(|| seen.clone());
    assert_eq!(*known, seen, "a batch has changed");
    Some(batch)
}

impl Bench {
    /// Of a chunk each partition gets one record, of `bytes` bytes.
    fn put_each(&mut self, id: u64, partitions: &[&str], bytes: u64) {
        let to: Vec<_> = partitions.iter().map(|partition| ("a", *partition)).collect();
        let mut meta = self.meta(&to, bytes * to.len() as u64, to.len() as u32);
        for (number, route) in (0..).zip(&mut meta.routes).filter(|_| to.len() > 1) {
            let records = RecordSet::of([number]).unwrap();
            let now = meta.arrival_ns;
            route.part = Some(Part { records, body_bytes: bytes, first_ns: now, last_ns: now, crc: 0 });
        }
        self.commit(id, meta);
    }
}

/// What was settled: partitions and chunks.
fn note(settled: &mut Vec<(String, u64)>, batch: &Batch) {
    settled.extend(ids(batch).into_iter().map(|id| (batch.row.partition.to_string(), id)));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 32, ..Default::default() })]

    /// The model: every portion is settled once, with the batch that it was first in; those of a partition were closed in order. Where
    /// batches go in order, no two of a partition are in hand, and portions are settled in order, too. A chunk is released when, and
    /// only when, all its portions are settled.
    #[test]
    fn whatever_happens_each_portion_is_settled_once_and_partitions_keep_their_order(
        ops in proptest::collection::vec(op(), 1..60),
        in_order in proptest::prelude::any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let wanted = || QueueOptions { in_order, ..options("a") };
            let mut bench = Bench::new();
            let mut queue = bench.queue(wanted());
            let (mut chunks, mut put, mut settled) = (0, Vec::new(), Vec::new());
            let mut closed = Closed::new();
            let mut in_hand: Vec<Batch> = Vec::new();
            let mut released = BTreeSet::new();
            for op in ops {
                match op {
                    Op::Put(wanted, bytes) => {
                        chunks += 1;
                        let names = ["x", "y", "z"];
                        let of: Vec<_> = (0..3).filter(|n| wanted & (1 << n) != 0).map(|n: usize| names[n]).collect();
                        bench.put_each(chunks, &of, u64::from(bytes));
                        put.extend(of.into_iter().map(|partition| (partition.to_owned(), chunks)));
                    }
                    Op::Take => {
                        let taken = take(&queue, &mut closed).await;
                        if in_order && let Some(taken) = &taken {
                            assert!(in_hand.iter().all(|batch| batch.row.partition != taken.row.partition));
                        }
                        in_hand.extend(taken);
                    }
                    Op::Settle(n) if !in_hand.is_empty() => {
                        let batch = in_hand.remove(usize::from(n) % in_hand.len());
                        queue.settle(&batch).unwrap();
                        note(&mut settled, &batch);
                    }
                    Op::GiveBack(n) if !in_hand.is_empty() => {
                        queue.give_back(in_hand.remove(usize::from(n) % in_hand.len()));
                    }
                    Op::Settle(_) | Op::GiveBack(_) => {}
                    Op::Later(seconds) => bench.later(i64::from(seconds)),
                    Op::Restart => {
                        in_hand.clear();
                        drop(queue);
                        released.extend(bench.released());
                        bench = bench.again();
                        queue = bench.queue(wanted());
                    }
                }
                assert_eq!(queue.records(), (put.len() - settled.len()) as u64);
                let gone: BTreeSet<u64> = released.iter().copied().chain(bench.released()).collect();
                let left = |id: &u64| put.iter().any(|portion| portion.1 == *id && !settled.contains(portion));
                assert_eq!(gone, (1..=chunks).filter(|id| !left(id)).collect());
            }
            for batch in in_hand {
                queue.give_back(batch);
            }
            queue.flush();
            while let Some(batch) = take(&queue, &mut closed).await {
                queue.settle(&batch).unwrap();
                note(&mut settled, &batch);
            }
            if in_order {
                let mut last = std::collections::HashMap::new();
                for (partition, id) in &settled {
                    assert!(last.insert(partition, id).is_none_or(|before| before < id), "{settled:?}");
                }
            }
            settled.sort_unstable();
            put.sort_unstable();
            assert_eq!(settled, put);
            assert_eq!((queue.bytes(), queue.oldest_arrival_ns()), (0, None));
            let mut last = std::collections::HashMap::new();
            for (partition, chunks) in closed.into_values() {
                for id in chunks {
                    assert!(last.insert(partition.clone(), id).is_none_or(|before| before < id));
                }
            }
        });
    }
}
