//! Batches that end stores, and a plugin that dies of whatever it is given.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_traps_two_fresh_stores_becomes_dead_letters_and_the_one_behind_it_is_delivered() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("trap", &["poison", "more of it"]).await;
    wharf.put("ok", &["good"]).await;
    let output = wharf.start(QUICK).await;
    until("both have ended", || output.is_empty() && wharf.delivered() == 1 && wharf.rejected("trap") == 2).await;
    assert_eq!(wharf.stores_lost("trap"), 2);
    assert_eq!(wharf.abandoned("trap"), 1);
    assert!(!output.status().quarantined);

    let folder = place.dir.path().join("dead-letters/archive");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = std::fs::read_to_string(&files[0]).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    for (line, (number, body)) in lines.iter().zip([(0, "poison"), (1, "more of it")]) {
        assert_eq!((&line["record"], &line["body"]), (&number.into(), &body.into()));
        assert_eq!(
            (&line["output"], &line["tag"], &line["failure"]),
            (&"archive".into(), &"trap".into(), &"trap".into())
        );
        let reason = line["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("ended 2 fresh stores of the plugin: ") && reason.contains("unreachable"),
            "{reason}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_ends_two_fresh_stores_is_named_in_the_dead_letters() {
    for (tag, cause, why) in [
        ("spin", "cpu_limit", "plugins.limits.cpu_per_call"),
        ("eat_memory", "out_of_memory", "plugins.limits.max_memory"),
        ("reject_outside", "invalid_report", "rejects record 1, and the batch has 1"),
    ] {
        let place = Place::new();
        let mut wharf = place.archive().await;
        wharf.put(tag, &["poison"]).await;
        wharf.put("ok", &["good"]).await;
        let output = wharf.start(QUICK).await;
        until(tag, || output.is_empty() && wharf.delivered() == 1 && wharf.rejected(cause) == 1).await;
        let letters = wharf.letters();
        assert_eq!((letters.len(), &*letters[0].failure), (1, cause));
        assert!(letters[0].reason.contains(why), "{}", letters[0].reason);
        assert_eq!(wharf.stores_lost(cause), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_three_poisonous_batches_in_a_row_the_plugin_is_quarantined_and_the_rest_is_held() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    for body in ["1", "2", "3", "4", "5"] {
        wharf.put("trap", &[body]).await;
    }
    // Held however old they are.
    let output = wharf.start(NO_SECOND_CHANCE).await;
    until("the plugin is quarantined", || output.status().quarantined).await;
    let bodies: Vec<_> = wharf.told().into_iter().map(|(_, body, _)| body).collect();
    assert_eq!(bodies, ["1", "2"]);
    assert_eq!(wharf.rejected("trap"), 2);
    until("the worker waits", || output.status().workers == [WorkerState::WaitingForRetry]).await;
    let retries = output.status().retries.unwrap();
    assert!(retries.why.contains("quarantined"), "{retries:?}");
    let lost = wharf.stores_lost("trap");
    wharf.put("ok", &["6"]).await;
    drop(output);

    // A stop does not wait for a plugin that is quarantined; all that it was not given is still there.
    let (dead_letters, metrics) = (wharf.dead_letters.clone(), wharf.metrics.clone());
    assert_eq!(wharf.stop(&CancellationToken::new()).await, 4);
    let again = Wharf { metrics, dead_letters, ..place.archive().await };
    assert_eq!(again.letters().len(), 2);
    assert_eq!((again.stores_lost("trap"), again.delivered()), (lost, 0));
    assert_eq!(again.queue("archive").records(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_is_bad_in_two_outputs_is_known_as_such_in_the_third_and_one_delivery_clears_it() {
    let place = Place::new();
    let outputs = ["a", "b", "archive"];
    let mut wharf = place.open(&outputs, 1).await;
    for output in ["a", "b"] {
        for body in ["1", "2"] {
            wharf.put_for(output, "trap", &[body]).await;
        }
    }
    let a = wharf.start_with("a", "there", "{}", QUICK).await;
    let b = wharf.start_with("b", "there", "{}", QUICK).await;
    until("both are quarantined", || a.status().quarantined && b.status().quarantined).await;
    let archive = wharf.start(QUICK).await;
    let status = archive.status();
    assert!(status.quarantined, "it has never delivered");
    assert_eq!(status.quarantined_with.iter().map(|output| &**output).collect::<Vec<_>>(), ["a", "b"]);
    wharf.put("ok", &["good"]).await;
    until("it waits for its turn", || archive.status().workers == [WorkerState::WaitingForRetry]).await;
    assert_eq!(wharf.delivered(), 0);
    // A person ends it.
    let released = archive.end_quarantine().unwrap();
    assert_eq!(released.with, ["a".into(), "b".into()]);
    until("it is delivered", || wharf.delivered() == 1 && archive.is_empty()).await;
    assert!(!archive.status().quarantined);
    assert_eq!(archive.end_quarantine(), None, "there is none any more");
    let ended = |output: &str| {
        wharf.count(&format!(r#"wharf_output_plugin_quarantines_ended_total{{output="{output}",by="hand"}}"#))
    };
    assert_eq!(["a", "b", "archive"].map(ended), [1, 1, 1]);
}

/// A batch that was held is not taken to be poison for what it died of before a person said that it may be tried: it has two fresh stores again. That the
/// component is as bad as it was is then found out as the first time.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_held_is_tried_anew_at_once_when_a_person_ends_the_quarantine() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    for body in ["1", "2", "3", "4", "5"] {
        wharf.put("trap", &[body]).await;
    }
    let output = wharf.start(QUICK).await;
    until("the plugin is quarantined", || output.status().quarantined && output.status().retries.is_some()).await;
    let told = output.status().next_probe.unwrap();
    assert!(told > tokio::time::Instant::now() + Duration::from_secs(60), "the next probe is two minutes off");
    let lost = wharf.stores_lost("trap");
    assert_eq!(output.end_quarantine().map(|released| released.batches), Some(1));
    until("it is quarantined again", || output.status().quarantined && wharf.stores_lost("trap") >= lost + 6).await;
    let bodies: Vec<_> = wharf.told().into_iter().map(|(_, body, _)| body).collect();
    assert_eq!(bodies, ["1", "2", "3", "4"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_that_does_not_wait_makes_dead_letters_while_its_plugin_is_quarantined() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.on_quarantine = OnQuarantine::DeadLetter;
    for body in ["1", "2", "3", "4", "5"] {
        wharf.put("trap", &[body]).await;
    }
    let output = wharf.start(QUICK).await;
    until("nothing is left", || output.is_empty() && wharf.rejected("quarantined") == 3).await;
    assert!(output.status().quarantined);
    assert_eq!(wharf.rejected("trap"), 2);
    assert!(wharf.told().last().unwrap().2.contains("on_quarantine: dead_letter"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_of_a_store_is_counted_by_its_class_beside_the_plugin_that_ran() {
    let place = Place::new();
    let mut wharf = place.archive().await;
    wharf.put("trap", &["1"]).await;
    wharf.put("transient", &["2"]).await;
    wharf.put("put_elsewhere", &["3"]).await;
    wharf.start(NEVER_AGAIN).await;
    let failed = |class: &str| {
        wharf.count(&format!(r#"wharf_output_plugin_failures_total{{output="archive",class="{class}"}}"#))
    };
    until("each was tried", || failed("trap") == 1 && failed("guest_error") == 1 && failed("refused") == 1).await;
    let digest = plugin().await.digest().to_owned();
    let runs =
        format!(r#"wharf_output_plugin{{output="archive",plugin="misbehaving",version="0.1.0",digest="{digest}"}}"#);
    assert_eq!(wharf.count(&runs), 1);
    assert_eq!(wharf.count(r#"wharf_output_plugin_refused_total{output="archive",capability="s3"}"#), 1);
}
