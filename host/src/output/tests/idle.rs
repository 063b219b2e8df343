//! A store that has nothing to do.

use super::*;

fn closed(wharf: &Wharf) -> u64 {
    wharf.count(r#"wharf_plugin_closed_total{output="archive"}"#)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_has_nothing_to_do_is_closed_and_the_next_batch_gets_another() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.store_idle = Duration::from_millis(20);
    let output = wharf.start(QUICK).await;
    for batch in 1..=3 {
        wharf.put("ok", &["a record"]).await;
        until("it is delivered", || wharf.delivered() == batch && output.is_empty()).await;
        until("its store is closed", || closed(&wharf) == batch).await;
        assert_eq!(output.status().workers, [WorkerState::Idle]);
    }
    drop(output);
    wharf.stores_end_in_peace(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_stays_for_the_batches_that_come_in_time() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    let output = wharf.start(QUICK).await;
    for batch in 1..=3 {
        wharf.put("ok", &["a record"]).await;
        until("it is delivered", || wharf.delivered() == batch && output.is_empty()).await;
    }
    assert_eq!(closed(&wharf), 0);
    drop(output);
    wharf.stores_end_in_peace(1).await;
}

impl Wharf {
    /// Stops; so many stores were closed in all, and none was lost.
    async fn stores_end_in_peace(self, stores: u64) {
        let metrics = self.metrics.clone();
        assert_eq!(self.stop(&CancellationToken::new()).await, 0);
        let text = metrics.render();
        assert!(text.contains(&format!("wharf_plugin_closed_total{{output=\"archive\"}} {stores}\n")), "{text}");
        let lost = text.lines().filter(|line| line.starts_with("wharf_worker_restarts_total") && !line.ends_with(" 0"));
        assert_eq!(lost.count(), 0, "{text}");
    }
}
