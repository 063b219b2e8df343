//! Stores come and go, in every way in which they end, and leave nothing behind.
//!
//! 1,000 here; as many as `WHARF_RECYCLES` says where that is set, and then the process's memory counts as well, so let nothing else run beside it:
//! `WHARF_RECYCLES=100000 cargo test --workspace --lib -- recycle --nocapture`.

use super::*;

/// Memory of this process, bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().split(' ').next().unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn stores_leave_memory_and_pool_where_they_began() {
    let asked = std::env::var("WHARF_RECYCLES").ok().map(|text| text.parse::<u64>().unwrap());
    let host = PluginHost::new(options()).unwrap();
    let plugin = host.load(&PluginSource::File(component().with_file_name("hostile.wasm"))).await.unwrap();
    let bench = Bench::with_plugin(plugin, AwsConfig::default()).await;
    let mut batches = vec![];
    for tag in ["ok", "trap", "grow_8_mib", "forge_a_handle", "hoard_bodies"] {
        batches.push(bench.batch(tag, &["a"]).await);
    }
    let recycle = async |times: u64| {
        for n in 0..times {
            let (worker, _) = bench.plugin.start(bench.context("{}")).await.unwrap();
            let batch = batches[usize::try_from(n).unwrap() % batches.len()].clone();
            match worker.deliver(batch).await {
                // Half of those that live are dropped as they are, as a stop does.
                (_, Some(worker)) if n % 2 == 0 => worker.close().await,
                (_, worker) => drop(worker),
            }
        }
    };
    // The pool's places, the allocator and what the runtime keeps come to what they will be.
    recycle(500).await;
    let (pool, memory) = (host.in_use(), resident());
    assert_eq!((pool.stores, pool.memory_bytes), (0, 0), "{pool:?}");
    let times = asked.unwrap_or(1_000);
    recycle(times).await;
    let (pool_after, memory_after) = (host.in_use(), resident());
    println!(
        "{times} stores: resident {memory} bytes before, {memory_after} after; {pool:?} before, {pool_after:?} after"
    );
    assert_eq!(pool_after, pool);
    if asked.is_some() {
        assert!(memory_after < memory + (32 << 20), "{memory} {memory_after}");
    }
}
