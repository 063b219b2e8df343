//! The journal against a model of it: a map of what was acknowledged and not released.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::record::{Portion, RecordSet, Route};

/// Cases to run; `WHARF_JOURNAL_MODEL_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("WHARF_JOURNAL_MODEL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

#[derive(Debug, Clone)]
enum Step {
    /// Chunks of these sizes, handed in at once.
    Append(Vec<usize>),
    /// Every `n`th of the live ones, from an offset, is released.
    Release(usize, usize),
    /// All but every `n`th.
    Thin(usize),
    Reopen,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![4 => 0_usize..300, 4 => 1_000_usize..20_000, 1 => 50_000_usize..150_000];
    let step = prop_oneof![
        6 => prop::collection::vec(size, 1..12).prop_map(Step::Append),
        3 => (1_usize..4, 0_usize..4).prop_map(|(every, from)| Step::Release(every, from)),
        1 => (5_usize..20).prop_map(Step::Thin),
        1 => Just(Step::Reopen),
        1 => Just(Step::Crash),
    ];
    prop::collection::vec(step, 1..40)
}

/// A chunk of three records that two outputs want: one all of it, as many do, or by partitions.
fn shared_out(seed: u64, body: &[u8]) -> Chunk {
    let mut builder = ChunkBuilder::new(BodyKind::Text, "app".into());
    let (first, second) = body.split_at(body.len() / 3);
    for (time, body) in [(5, first), (3, second), (4, &[])] {
        builder.push(time, body);
    }
    let chunk = builder.finish().unwrap();
    let some = |numbers: &[u32]| RecordSet::of(numbers.iter().copied()).map(|records| chunk.part(records));
    let route =
        |output: &str, partition: &str, part| Route { output: output.into(), partition: partition.into(), part };
    let routes = match seed % 3 {
        0 => vec![route("a", "", None)],
        1 => vec![route("a", "x", some(&[0, 2])), route("a", "y", some(&[1])), route("b", "", None)],
        _ => vec![route("a", "x", some(&[1, 2])), route("b", "z", some(&[0, 1])), route("b", "w", some(&[2]))],
    };
    chunk.with_routes(routes)
}

fn run(steps: Vec<Step>) {
    let mut place = Place::new();
    let (mut journal, _) = place.open();
    let mut model: BTreeMap<u64, Chunk> = BTreeMap::new();
    let mut highest = 0;
    let mut seed = 0;
    for step in steps {
        match step {
            Step::Append(sizes) => {
                let chunks = sizes.into_iter().map(|size| {
                    seed += 1;
                    shared_out(seed, &body(seed, size))
                });
                let queued: Vec<_> = chunks.map(|chunk| (journal.append(chunk.clone()), chunk)).collect();
                for (waits, chunk) in queued {
                    let id = waits.blocking_recv().unwrap().unwrap().0;
                    assert!(id > highest, "{id} after {highest}");
                    highest = id;
                    model.insert(id, chunk);
                }
            }
            Step::Release(every, from) => {
                let gone: Vec<u64> = model.keys().copied().skip(from).step_by(every).collect();
                model.retain(|id, _| !gone.contains(id));
                journal.release(&gone.into_iter().map(ChunkId).collect::<Vec<_>>());
            }
            Step::Thin(every) => {
                let kept: Vec<u64> = model.keys().copied().step_by(every).collect();
                let gone: Vec<_> = model.keys().filter(|id| !kept.contains(id)).map(|id| ChunkId(*id)).collect();
                model.retain(|id, _| kept.contains(id));
                journal.release(&gone);
            }
            Step::Reopen | Step::Crash => {
                let copy = matches!(step, Step::Crash).then(|| place.crash(&journal));
                journal.close();
                if let Some(copy) = copy {
                    place = copy;
                }
                let (again, recovery) = place.open();
                journal = again;
                nothing_wrong(&recovery);
                let found = ids(&recovery);
                assert!(found.is_sorted());
                assert!(model.keys().all(|id| found.binary_search(id).is_ok()), "an acknowledged chunk is gone");
                assert!(found.iter().all(|id| *id <= highest));
                for (id, meta) in &recovery.chunks {
                    assert!(
                        model.get(&id.0).is_none_or(|chunk| chunk.meta() == meta),
                        "who wants chunk {id} has changed"
                    );
                }
                // What was released may be there again: the journal does not keep that; whoever released it does.
                let back: Vec<_> = found.into_iter().filter(|id| !model.contains_key(id)).map(ChunkId).collect();
                journal.release(&back);
            }
        }
        assert_eq!(journal.usage().chunks, model.len());
    }
    for (id, chunk) in &model {
        assert_eq!(journal.read(ChunkId(*id)).unwrap(), *chunk);
        for (_, portion) in Portion::each(ChunkId(*id), chunk.meta()) {
            assert_eq!(journal.read_portion(&portion).unwrap().meta().body_bytes, portion.body_bytes());
        }
    }
    settle(&journal);
    let usage = journal.usage();
    if usage.segments > 4 {
        // The active segment and the spares do not count.
        let closed = usage.disk_bytes - place.segments().pop().unwrap().metadata().unwrap().len();
        let closed = closed - place.spares() as u64 * 65536;
        assert!(usage.live_bytes * 4 >= closed, "{usage:?} uses the disk badly");
    }
    let on_disk: u64 = place.segments().iter().map(|path| path.metadata().unwrap().len()).sum();
    assert_eq!(usage.disk_bytes, on_disk + place.spares() as u64 * 65536);

    journal.release(&model.into_keys().map(ChunkId).collect::<Vec<_>>());
    settle(&journal);
    assert_eq!(journal.usage().live_bytes, 0);
    assert!(place.segments().len() <= 1);
    assert!(place.spares() <= 2);
    journal.close();
}

#[test]
fn the_journal_does_what_its_model_does() {
    let config = ProptestConfig {
        cases: cases(),
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    };
    proptest!(config, |(steps in steps())| run(steps));
}
