//! The host's side against a CloudWatch Logs that enforces what AWS documents, signatures included.

use wharf_local_aws::logs::{Clock, Options};
use wharf_local_aws::{ACCESS_KEY, Logs, SECRET_KEY};

use super::*;
use crate::capability::bindings::cloudwatch_logs::Entity;

/// 2026-01-01T00:00:00Z
const NOW_MS: i64 = 1_767_225_600_000;
const HOUR_NS: i64 = 3_600_000_000_000;

fn pair(name: &str, value: &str) -> (String, String) {
    (name.into(), value.into())
}

#[tokio::test]
async fn a_strict_service_takes_what_is_sent_and_tells_what_it_rejects() {
    let logs = Logs::start(Options { clock: Clock::at(NOW_MS), ..Options::default() }).unwrap();
    let aws = AwsConfig { endpoint: Some(logs.endpoint()), ..AwsConfig::default() };
    let credentials = Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "test");
    let mut bench = Bench::over(Connection::with_credentials(aws, credentials), Arc::default());

    assert_eq!(service(bench.put_one().await).code, "ResourceNotFoundException");
    let tags = vec![pair("team", "a b")];
    bench.caller.create_log_group("/app".into(), Some("STANDARD".into()), tags, None).await.unwrap().unwrap();
    bench.caller.create_log_stream("/app".into(), "host".into()).await.unwrap().unwrap();
    bench.caller.put_retention_policy("/app".into(), 30).await.unwrap().unwrap();
    let again = bench.caller.create_log_stream("/app".into(), "host".into()).await.unwrap();
    assert_eq!(service(again).code, "ResourceAlreadyExistsException");

    // 1,048,576 bytes with 26 for each event.
    let half = "\0".repeat(524_262);
    let now = NOW_MS * 1_000_000;
    let records: [(i64, &[u8]); 6] = [
        (now - 15 * 24 * HOUR_NS, b"older than 14 days"),
        (now, b"a\xffb\"\\\n"),
        (now + 1_999_999, "😀".as_bytes()),
        (now + 3 * HOUR_NS, b"more than 2 hours ahead"),
        (now, half.as_bytes()),
        (now, half.as_bytes()),
    ];
    let events = bench.events(Some("log"), &[(BodyKind::Text, &records)]).await;
    let entity = Entity {
        key_attributes: vec![pair("Type", "Service"), pair("Name", "web \"1\"")],
        attributes: vec![pair("PlatformType", "Generic")],
    };
    let what = Put { log_format: Some("json/emf".into()), entity: Some(entity), ..order(&[0, 1, 2, 3]) };
    let accepted = bench.put(&events, what).await.unwrap();
    assert_eq!((accepted.too_old_end, accepted.too_new_start, accepted.rejected_entity), (Some(1), Some(3), None));
    bench.put(&events, order(&[4, 5])).await.unwrap();

    let found: Vec<_> = logs.events("/app", "host").into_iter().map(|event| (event.timestamp, event.message)).collect();
    let expected = [(NOW_MS, "a\u{FFFD}b\"\\\n"), (NOW_MS + 1, "😀"), (NOW_MS, &half), (NOW_MS, &half)];
    assert_eq!(found, expected.map(|(time, message)| (time, message.to_owned())));
    let first = &logs.calls("/app", "host")[0];
    let [keys, attributes] = first.entity.as_ref().unwrap();
    assert_eq!((first.log_format.as_deref(), keys["Name"].as_str()), (Some("json/emf"), "web \"1\""));
    assert_eq!(attributes["PlatformType"], "Generic");
    let refused: Vec<_> = logs.refused().into_iter().filter_map(|request| request.code).collect();
    assert_eq!(refused, ["ResourceNotFoundException", "ResourceAlreadyExistsException"]);
}
