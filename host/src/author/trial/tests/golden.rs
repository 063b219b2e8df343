//! Golden files: written by `--update`, compared where they are.

use super::super::Outcome;
use super::{run, s3, shown, told_in, written};

const TEST: &str = "\
config: { bucket: my-bucket, key_format: /logs/$INDEX.gz, compression: gzip }
records:
  - { n: 1 }
answers: { s3: { put-object: [503 SlowDown, ok] } }
";

/// Written by hand: the same on every machine, whatever the compression library makes of the bytes.
const GOLDEN: &str = "\
# What happens in it.yaml: written by `wharf plugin test --update`, compared by `wharf plugin test`.
calls:
# batch 1, attempt 1
- sequence: assign
  name: output
  number: 0
- s3: put-object
  bucket: my-bucket
  key: logs/0.gz
  headers:
    content-encoding: gzip
    content-type: application/x-ndjson
    if-none-match: \"*\"
    x-amz-meta-wharf-batch: \"00000000000000000000000000000001\"
  body: |
    {\"date\":\"2026-01-02T03:04:05.000000Z\",\"n\":1}
  answer: 503 SlowDown
# batch 1, attempt 2
- sequence: assign
  name: output
  number: 0
- s3: put-object
  bucket: my-bucket
  key: logs/0.gz
  headers:
    content-encoding: gzip
    content-type: application/x-ndjson
    if-none-match: \"*\"
    x-amz-meta-wharf-batch: \"00000000000000000000000000000001\"
  body: |
    {\"date\":\"2026-01-02T03:04:05.000000Z\",\"n\":1}
  answer: ok
batches:
- tag: test
  records: 1
  outcome: delivered
  attempts:
  - ended: throttled
    message: \"writing s3://my-bucket/logs/0.gz: S3 answered 503 SlowDown (SlowDown, as the test has it)\"
    wait: 1s
  - ended: delivered
  id: \"00000000000000000000000000000001\"
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_golden_file_is_the_whole_transcript() {
    let folder = written(TEST);
    let updated = run(s3(), vec![folder.path().to_owned()], true).await;
    assert!(matches!(updated[0].outcome, Outcome::Updated), "{}", shown(&updated[0]));
    let golden = std::fs::read_to_string(folder.path().join("it.golden.yaml")).unwrap();
    assert_eq!(golden, GOLDEN);
    // It is no test itself, and the test passes with it alone.
    let compared = run(s3(), vec![folder.path().to_owned()], false).await;
    assert_eq!(compared.len(), 1);
    assert!(matches!(compared[0].outcome, Outcome::Passed));
    let again = run(s3(), vec![folder.path().to_owned()], true).await;
    assert!(matches!(again[0].outcome, Outcome::Passed), "nothing is new");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_differs_from_the_golden_file_is_shown() {
    let folder = written(TEST);
    std::fs::write(folder.path().join("it.golden.yaml"), GOLDEN.replace("\"n\":1", "\"n\":2")).unwrap();
    let told = told_in(s3(), &folder).await;
    assert!(told.starts_with("it.golden.yaml\n"), "{told}");
    assert!(told.contains("    -     {\"date\":\"2026-01-02T03:04:05.000000Z\",\"n\":2}\n    +     {\"date\":\"2026-01-02T03:04:05.000000Z\",\"n\":1}\n"), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_report_has_a_row_for_each_batch() {
    let folder = written(&format!(
        "{TEST}batch: {{ max_records: 1 }}\nlimits: {{ cpu: 5s, memory: 32MiB }}\nexpect: {{ outcome: delivered }}\n"
    ));
    let results = run(s3(), vec![folder.path().to_owned()], false).await;
    let [usage] = results[0].usage.as_slice() else { panic!("{:?}", results[0].usage) };
    assert_eq!((usage.batch, usage.records, usage.calls), (1, 1, 2));
    assert_eq!((usage.cpu_limit.as_secs(), usage.memory_limit), (5, 32 << 20));
    // A linear memory is pages of 64 KiB; a call asks the host for the batch, the number, the encoding and the object at least.
    assert!(usage.memory > 0 && usage.memory % (64 << 10) == 0 && usage.memory <= usage.memory_limit, "{usage:?}");
    assert!(usage.host_calls >= 8 && !usage.cpu.is_zero(), "{usage:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_fails_its_own_expectation_gets_no_golden_file() {
    let folder = written(&format!("{TEST}expect: {{ outcome: rejected }}\n"));
    let updated = run(s3(), vec![folder.path().to_owned()], true).await;
    assert!(matches!(updated[0].outcome, Outcome::Failed(_)));
    assert!(updated[0].notes[0].ends_with("it.golden.yaml is not written: the test fails its own expect"));
    assert!(!folder.path().join("it.golden.yaml").exists());
}
