//! Rows, counters, batches, buckets and log groups of others; and more of its own than it may have.

use super::*;
use crate::state::{Most, Quota};

/// Every way to more rows ends at the same limit, in the transaction.
async fn ends_at_its_quota(attack: &str) {
    let stage = Stage::with(&[(Limit::Storage, 64 << 10)]).await;
    let told = stage.told(attack, GUEST_ERROR).await;
    assert!(told.contains(&format!("{} is 65536 bytes, ", stage.place(Limit::Storage))), "{told}");
    assert!(stage.hostile.state.stored_bytes(&stage.hostile.output) <= 64 << 10);
    assert_eq!(stage.count("limits_reached", ",limit=\"storage\""), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn filling_storage_ends_at_its_quota() {
    ends_at_its_quota("fill_storage").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filling_storage_in_transactions_ends_at_its_quota() {
    ends_at_its_quota("fill_storage_in_transactions").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filling_storage_by_comparing_ends_at_its_quota() {
    ends_at_its_quota("fill_storage_by_comparing").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn filling_a_batchs_progress_ends_at_its_quota() {
    ends_at_its_quota("fill_progress").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn making_up_counters_ends_at_its_quota() {
    ends_at_its_quota("fill_counters").await;
}

/// Their bytes are next to nothing, so that their number is what ends it. A counter that is there goes on counting.
#[tokio::test(flavor = "multi_thread")]
async fn making_up_counters_with_short_names_ends_at_their_number() {
    let stage = Stage::with(&[(Limit::Counters, 50)]).await;
    let told = stage.told("fill_counters short", GUEST_ERROR).await;
    let place = stage.place(Limit::Counters);
    assert!(told.contains(&format!("{place} is 50 counters, 50 are in use, and 1 more were wanted")), "{told}");
    assert_eq!(stage.count("limits_reached", ",limit=\"counters\""), 1);
    let Outcome::Failed(told) = stage.attack("count_again 7").await else { panic!("it tells") };
    assert_eq!(told.message, "Ok(1)", "the second batch's number");
}

#[tokio::test(flavor = "multi_thread")]
async fn making_up_its_tenants_counters_leaves_other_tenants_theirs() {
    let stage = Stage::with(&[(Limit::TenantCounters, 40)]).await;
    // Another output of the same tenant has ten of them.
    let sibling = services(&stage.hostile, &format!("{}-2", stage.hostile.output), usual(), AwsConfig::default());
    let sibling = stage.hostile.beside(sibling, stage.hostile.plugin.clone());
    let batch = sibling.batch("ok", &["a"]).await.id;
    for n in 0..10 {
        sibling.state.assign(&sibling.output, &n.to_string(), batch, 0).unwrap();
    }
    let told = stage.told("fill_counters short", GUEST_ERROR).await;
    assert!(told.contains("tenant_counters is 40 counters, 40 are in use, and 1 more were wanted"), "{told}");
    let (neighbour, batch) = (&stage.neighbour, stage.neighbour.batch("ok", &["a"]).await.id);
    let most = Most { counters: 40, ..Most::ANY };
    for n in 0..40 {
        let state = neighbour.state.within(Quota { output: most, tenant: most });
        state.assign(&neighbour.output, &n.to_string(), batch, 0).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filling_its_tenants_storage_leaves_other_tenants_theirs() {
    let stage = Stage::with(&[(Limit::TenantStorage, 32 << 10)]).await;
    // Another output of the same tenant has half of it.
    let sibling = format!("{}-2", stage.hostile.output);
    for n in 0..16 {
        stage.hostile.state.apply(&sibling, &[crate::state::Change::Set(n.to_string(), vec![0; 1000])]).unwrap();
    }
    let told = stage.told("fill_storage", GUEST_ERROR).await;
    assert!(told.contains("tenant_storage is 32768 bytes, "), "{told}");
    let of_both = [&*stage.hostile.output, &*sibling].map(|output| stage.hostile.state.stored_bytes(output));
    assert!(of_both.iter().sum::<u64>() <= 32 << 10, "{of_both:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_neighbour_cannot_be_read() {
    let stage = Stage::new().await;
    let neighbour = stage.neighbour.output.to_string();
    stage.hostile.state.apply(&neighbour, &[crate::state::Change::Set("secret".into(), b"hush".to_vec())]).unwrap();
    let told = stage.told(&format!("read_others_storage {neighbour} secret"), GUEST_ERROR).await;
    assert_eq!(told, "0 read, Ok(0)");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_neighbour_cannot_be_written() {
    let stage = Stage::new().await;
    let neighbour = stage.neighbour.output.to_string();
    stage.hostile.state.apply(&neighbour, &[crate::state::Change::Set("secret".into(), b"hush".to_vec())]).unwrap();
    stage.attack(&format!("write_others_storage {neighbour}")).await;
    assert_eq!(stage.hostile.state.get(&neighbour, "secret").unwrap().as_deref(), Some(&b"hush"[..]));
    assert_eq!(stage.hostile.state.list(&neighbour, "", None, 10).unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_megabyte_is_refused() {
    let told = Stage::new().await.told("huge_key", GUEST_ERROR).await;
    assert!(told.contains("a key is 512 bytes, and 1048576 were wanted"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_megabytes_is_refused() {
    let told = Stage::new().await.told("huge_value", GUEST_ERROR).await;
    assert!(told.contains("a value is 1024 bytes, and 4194304 were wanted"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_of_a_hundred_thousand_changes_is_refused() {
    let told = Stage::new().await.told("huge_transaction", GUEST_ERROR).await;
    assert!(told.contains("a transaction is 256 changes, and 100000 were wanted"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_counter_at_its_end_does_not_begin_again() {
    let told = Stage::new().await.told("counter_to_its_end", GUEST_ERROR).await;
    assert!(!told.contains("Ok(0)"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbours_batch_is_none_that_it_may_ask_about() {
    let stage = Stage::new().await;
    let batch = stage.neighbour.batch("ok", &["a"]).await;
    let told = stage.told(&format!("ask_for_others_batches {}", batch.id), GUEST_ERROR).await;
    assert_eq!(told, "[false, false, false, false, false]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbours_bucket_is_refused() {
    let stage = Stage::new().await;
    let told = stage.told("write_to_others_bucket", REFUSED).await;
    assert!(told.contains("s3://others/logs/x"), "{told}");
    assert_eq!(stage.count("plugin_refused", ",capability=\"s3\""), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_outside_its_prefix_is_refused() {
    Stage::new().await.told("write_outside_the_prefix", REFUSED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_dots_leads_nowhere_else() {
    let told = Stage::new().await.told("write_with_dots", GUEST_ERROR).await;
    assert!(told.contains("a step of only dots"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_others_cannot_be_listed() {
    Stage::new().await.told("list_others_bucket", REFUSED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_of_an_object_begins_no_header() {
    let told = Stage::new().await.told("forge_object_metadata", GUEST_ERROR).await;
    assert!(told.contains("Invalid"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_group_that_is_not_granted_is_refused() {
    let stage = Stage::new().await;
    stage.told("write_to_others_log_group", REFUSED).await;
    assert_eq!(stage.count("plugin_refused", ",capability=\"cloudwatch_logs\""), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_records_that_are_not_there_are_refused() {
    Stage::new().await.told("prepare_wild_events", GUEST_ERROR).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configure_may_ask_for_nothing() {
    let stage = Stage::new().await;
    let Err(StartError::Config { faults, .. }) = stage.start(r#"{"configure":"ask"}"#).await else {
        panic!("accepted")
    };
    assert_eq!(faults.len(), 4, "{faults:?}");
    assert_eq!(stage.hostile.state.stored_bytes(&stage.hostile.output), 0);
}
