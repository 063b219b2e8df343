//! Lies, and floods, in what a call gives back.

use super::execution::load;
use super::*;
use crate::plugin::FailureKind;
use crate::plugin::tests::odd::{Handmade, i32_const};

async fn is_worth_nothing(lie: &str) {
    Stage::new().await.dies(lie, DeathCause::InvalidReport).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejecting_a_record_twice_is_no_report() {
    is_worth_nothing("reject_twice").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejecting_a_record_for_two_reasons_is_no_report() {
    is_worth_nothing("reject_in_two_reasons").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejecting_a_record_outside_the_batch_is_no_report() {
    is_worth_nothing("reject_outside").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejecting_out_of_order_is_no_report() {
    is_worth_nothing("reject_descending").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejecting_millions_ends_at_what_one_answer_may_have() {
    let stage = Stage::with(&[(Limit::Memory, 96 << 20)]).await;
    let death = stage.dies("reject_millions", DeathCause::HostLimit).await;
    assert!(death.message.contains("plugins.limits.call_bytes is 16777216 bytes"), "{}", death.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_reasons_end_at_what_one_answer_may_have() {
    let stage = Stage::with(&[(Limit::Memory, 96 << 20)]).await;
    stage.dies("reject_with_long_reasons", DeathCause::HostLimit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn millions_of_empty_rejections_end_at_what_one_answer_may_have() {
    let stage = Stage::with(&[(Limit::Memory, 96 << 20)]).await;
    stage.dies("many_empty_rejections", DeathCause::HostLimit).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_megabytes_is_cut() {
    assert_eq!(Stage::new().await.told("long_failure", GUEST_ERROR).await.len(), 4096);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_is_no_text_ends_it() {
    Stage::new().await.dies("failure_that_is_no_text", DeathCause::Trap).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_ever_is_told_to_the_schedule_which_has_its_own_limit() {
    let outcome = Stage::new().await.attack("wait_for_ever").await;
    let Outcome::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.kind, FailureKind::Throttled);
    let tried = crate::output::decision::Tried { attempts: 1, failures: 1, fresh_deaths: 0, age: Duration::ZERO };
    let retry = crate::config::RetryConfig::default();
    let next = crate::output::decision::after_failure(&failure, tried, &retry, 1.0);
    assert_eq!(next, crate::output::decision::Next::Again(retry.max));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_a_thousand_keys_is_refused() {
    let stage = Stage::new().await;
    let Err(StartError::Died { death, .. }) = stage.start(r#"{"configure":"plan_of_a_thousand_keys"}"#).await else {
        panic!("accepted")
    };
    assert_eq!(death.cause, DeathCause::InvalidReport);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_batches_of_nothing_is_refused() {
    let stage = Stage::new().await;
    let Err(StartError::Died { death, .. }) = stage.start(r#"{"configure":"plan_of_nothing"}"#).await else {
        panic!("accepted")
    };
    assert_eq!(death.cause, DeathCause::InvalidReport);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_faults_are_told_as_a_few_or_not_at_all() {
    let stage = Stage::new().await;
    match stage.start(r#"{"configure":"million_faults"}"#).await {
        Err(StartError::Config { faults, .. }) => assert!(faults.len() <= 1000, "{}", faults.len()),
        Err(StartError::Died { death, .. }) => assert_eq!(death.cause, DeathCause::HostLimit),
        Ok(_) => panic!("accepted"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_outside_its_memory_is_refused_at_load() {
    let outside = i32_const(-8);
    let told =
        load(&Handmade { code: &[("describe", &outside)], ..Handmade::default() }).await.unwrap_err().to_string();
    assert!(told.contains("it died while it described itself (trap)"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_longer_than_its_memory_is_refused_at_load() {
    let told = load(&Handmade { name_bytes: Some(u32::MAX), ..Handmade::default() }).await.unwrap_err().to_string();
    assert!(told.contains("it died while it described itself"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_it_does_not_have_is_no_place_for_arguments() {
    let outside = i32_const(-16);
    let plugin = load(&Handmade { code: &[("cabi_realloc", &outside)], ..Handmade::default() }).await.unwrap();
    let stage = Stage::new().await;
    let Err(StartError::Died { death, .. }) = plugin.start(stage.hostile.context("{}")).await else {
        panic!("it lives")
    };
    assert_eq!(death.cause, DeathCause::Trap);
}
