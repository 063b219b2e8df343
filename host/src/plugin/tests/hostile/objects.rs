//! Handles: too many, forged, dropped twice; and arguments that no sane caller has.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn hoarding_encoders_is_refused() {
    let told = Stage::new().await.told("hoard_encoders", GUEST_ERROR).await;
    assert!(told.contains("plugins.limits.host_objects is 256 host objects, 256 are in use, and 1 more"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hoarding_bodies_is_refused() {
    let stage = Stage::with(&[(Limit::HostObjects, 40)]).await;
    let told = stage.told("hoard_bodies", GUEST_ERROR).await;
    assert!(told.contains(&format!("{} is 40 host objects", stage.place(Limit::HostObjects))), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_handles_end_at_the_limit_of_handles() {
    let stage = Stage::with(&[(Limit::HostObjects, 1 << 20)]).await;
    let death = stage.dies("hoard_bodies", DeathCause::HostLimit).await;
    assert_eq!(
        death.message,
        "no more handles: plugins.limits.handles is 1024 handles, 1024 are in use, and 1 more were wanted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hoarding_bytes_in_the_host_is_refused() {
    let stage = Stage::with(&[(Limit::HostBytes, 10 << 20)]).await;
    let told = stage.told("hoard_bytes", GUEST_ERROR).await;
    let place = stage.place(Limit::HostBytes);
    assert!(
        told.contains(&format!(
            "after 2: HostError::Limit(\"{place} is 10485760 bytes, 8388608 are in use, and 4194304 more"
        )),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_doubles_is_refused() {
    let told = Stage::with(&[(Limit::HostBytes, 32 << 20)]).await.told("double_a_body", GUEST_ERROR).await;
    assert!(told.contains("host_bytes is 33554432 bytes"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handing_over_too_much_at_once_is_refused() {
    let stage = Stage::with(&[(Limit::Memory, 64 << 20)]).await;
    let told = stage.told("hand_over_too_much", GUEST_ERROR).await;
    assert!(told.contains("is 8388608 bytes, and 8388609 were wanted"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handing_over_far_too_much_at_once_ends_it_in_words_that_say_what_it_was() {
    let stage = Stage::with(&[(Limit::Memory, 64 << 20)]).await;
    let death = stage.dies("hand_over_far_too_much", DeathCause::HostLimit).await;
    let told = "the plugin handed over too much in one call or one answer: \
                plugins.limits.call_bytes is 16777216 bytes, and 16777217 were wanted or more";
    assert_eq!(death.message, told);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_handle_is_none() {
    Stage::new().await.dies("forge_a_handle", DeathCause::Trap).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_of_another_kind_is_none() {
    Stage::new().await.dies("forge_a_handle_of_another_kind", DeathCause::Trap).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_handle_twice_ends_it() {
    Stage::new().await.dies("drop_twice", DeathCause::Trap).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn giving_the_batch_back_twice_ends_it() {
    Stage::new().await.dies("drop_the_batch_twice", DeathCause::Trap).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pieces_of_no_size_and_of_any_size_are_refused() {
    let told = Stage::new().await.told("wild_pieces", GUEST_ERROR).await;
    assert!(told.contains("all are refused"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slice_outside_a_body_is_refused() {
    let told = Stage::new().await.told("wild_slice", GUEST_ERROR).await;
    assert!(told.contains("lie outside the body, which has 1 bytes"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_level_that_no_compressor_has_is_refused() {
    let told = Stage::new().await.told("wild_compression", GUEST_ERROR).await;
    assert!(told.contains("Invalid"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_everything_end_at_the_batchs_end() {
    let told = Stage::new().await.told("list_everything", GUEST_ERROR).await;
    assert_eq!(told, "[3, 0] Ok(0)");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_that_it_leaves_behind_end_with_its_call() {
    // It takes connections and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let aws = AwsConfig { endpoint: Some(url), region: Some("us-east-1".into()), ..AwsConfig::default() };
    Stage::reaching(&[], aws).await.is_harmless("leave_parts_behind").await;
}
