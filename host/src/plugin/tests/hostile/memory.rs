//! It takes more memory, and longer tables, than there are.

use super::execution::load;
use super::*;
use crate::plugin::tests::odd::{Handmade, i32_const};

#[tokio::test(flavor = "multi_thread")]
async fn eating_memory_ends_with_the_numbers() {
    let stage = Stage::new().await;
    let death = stage.dies("eat_memory", DeathCause::OutOfMemory).await;
    let limit = death.limit.unwrap();
    assert_eq!((limit.name, limit.limit), (stage.place(Limit::Memory), MEMORY));
    assert!(limit.current <= MEMORY && limit.current + limit.requested > MEMORY);
    assert!(stage.count("limits_reached", ",limit=\"max_memory\"") >= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn wanting_all_memory_at_once_ends_with_the_numbers() {
    let death = Stage::new().await.dies("grow_at_once", DeathCause::OutOfMemory).await;
    assert_eq!(death.limit.unwrap().requested, 1 << 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn growing_until_it_is_refused_is_allowed_and_harms_nobody() {
    let stage = Stage::new().await;
    let told = stage.told("grow_until_refused", GUEST_ERROR).await;
    let pages: u64 = told.split(' ').nth(2).unwrap().parse().unwrap();
    assert!(pages <= MEMORY >> 16 && pages > 100, "{told}");
}

/// A tenant's stores have a limit together, and only the one that passes it dies of it.
#[tokio::test(flavor = "multi_thread")]
async fn using_up_what_its_tenant_has_ends_the_store_that_passes_it_and_no_other() {
    let stage = Stage::with(&[(Limit::TenantMemory, 14 << 20)]).await;
    let witness = stage.witness().await;
    let first = stage.worker().await;
    let (outcome, first) = first.deliver(stage.hostile.batch("grow_8_mib", &["a"]).await).await;
    assert_eq!(outcome, Outcome::Delivered { rejected: vec![] });
    let second = stage.worker().await;
    let (outcome, second) = second.deliver(stage.hostile.batch("grow_8_mib", &["a"]).await).await;
    let Outcome::Died(death) = outcome else { panic!("it lives") };
    assert!(second.is_none());
    let limit = death.limit.unwrap();
    assert_eq!((death.cause, limit.limit, limit.requested), (DeathCause::OutOfMemory, 14 << 20, 8 << 20));
    assert!(limit.name.ends_with("tenant_memory"), "{}", limit.name);
    stage.all_is_well(first, witness).await;
}

/// All stores have a limit together, too.
#[tokio::test(flavor = "multi_thread")]
async fn using_up_what_all_have_ends_the_store_that_passes_it_and_no_other() {
    let host = PluginHost::new(options().with(Limit::TotalMemory, 14 << 20)).unwrap();
    let plugin = host.load(&PluginSource::File(component().with_file_name("hostile.wasm"))).await.unwrap();
    let stage = Stage::new().await;
    let bench = stage.hostile.beside(services(&stage.hostile, "all", usual(), AwsConfig::default()), plugin);
    let (one, _) = bench.plugin.start(bench.context("{}")).await.unwrap();
    let (two, _) = bench.plugin.start(bench.context("{}")).await.unwrap();
    let (outcome, one) = one.deliver(bench.batch("grow_8_mib", &["a"]).await).await;
    assert_eq!(outcome, Outcome::Delivered { rejected: vec![] });
    let (outcome, _) = two.deliver(bench.batch("grow_8_mib", &["a"]).await).await;
    let Outcome::Died(Death { cause: DeathCause::OutOfMemory, limit: Some(limit), .. }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((limit.name.as_str(), limit.limit), ("plugins.limits.total_memory", 14 << 20));
    // What the first had is given back with it.
    one.unwrap().close().await;
    let (three, _) = bench.plugin.start(bench.context("{}")).await.unwrap();
    let (outcome, _) = three.deliver(bench.batch("grow_8_mib", &["a"]).await).await;
    assert_eq!(outcome, Outcome::Delivered { rejected: vec![] });
}

#[tokio::test(flavor = "multi_thread")]
async fn growing_a_table_ends_with_the_numbers() {
    // ref.null func, i32.const 1000000, table.grow 0, drop, unreachable
    let grow = [vec![0xd0, 0x70], i32_const(1_000_000), vec![0xfc, 0x0f, 0, 0x1a, 0]].concat();
    let plugin = load(&Handmade { code: &[("configure", &grow)], ..Handmade::default() }).await.unwrap();
    let stage = Stage::new().await;
    let context = stage.hostile.context("{}");
    let Err(StartError::Died { death, .. }) = plugin.start(context).await else { panic!("it lives") };
    let limit = death.limit.unwrap();
    assert_eq!((death.cause, limit.limit, limit.requested), (DeathCause::OutOfMemory, 20_000, 1_000_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn beginning_with_too_much_memory_is_refused_at_load() {
    let told = load(&Handmade { more_pages: 1024, ..Handmade::default() }).await.unwrap_err().to_string();
    assert!(told.contains("67174400 bytes of memory") && told.contains("plugins.limits.max_memory"), "{told}");
}
