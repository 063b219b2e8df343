//! A plugin tried at the desk: its tests, one real run, and what a production output could not deliver as a test.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;
use wharf_e2e::{command, wharf_binary};
use wharf_local_aws::{Fault, Operation, Rule};

use crate::logs_support::{MAKE_GROUPS, http_place, live, logs, post_objects, wait_settled};
use crate::support::s3;

fn plugin(arguments: &[&str]) -> Command {
    let mut asked = command(wharf_binary().unwrap());
    // Compiled components are not kept among those of whoever runs the tests.
    asked.env("XDG_CACHE_HOME", std::env::temp_dir().join("wharf-e2e-cache")).arg("plugin").args(arguments);
    asked
}

fn ended(mut asked: Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = asked.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

const CONFIG: &str = "config: { bucket: my-bucket, key_format: /logs/$INDEX }\n";

#[test]
fn a_suite_tells_what_passed_and_what_is_not_as_expected() {
    let folder = tempfile::tempdir().unwrap();
    let tests = folder.path().join("tests");
    write(
        &tests,
        "good.yaml",
        &format!("description: All is well\n{CONFIG}records: [a]\nexpect: {{ outcome: delivered }}\n"),
    );
    write(&tests, "wrong.yaml", &format!("{CONFIG}records: [a]\nexpect: {{ outcome: rejected }}\n"));
    write(&tests, "faulty.yaml", "records: [a]\nexpects: {}\n");
    let asked = |more: &[&str]| {
        let mut asked = plugin(&["test", "--plugin", "s3", folder.path().to_str().unwrap()]);
        asked.args(more);
        ended(asked)
    };
    let (code, told, said) = asked(&["--report"]);
    assert_eq!(code, Some(1), "{told}{said}");
    assert!(told.contains("ok    good    All is well\n"), "{told}");
    assert!(
        told.contains(
            "wrong.yaml:3:9: expect (- expected, + happened)\n    - outcome: rejected\n    + outcome: delivered\n"
        ),
        "{told}"
    );
    assert!(told.contains("faulty.yaml:2:1: unknown key \"expects\"; did you mean \"expect\"?"), "{told}");
    assert!(told.contains("HOST CALLS\n") && told.contains("\n3 tests: 1 passed, 2 failed\n"), "{told}");
    assert!(!told.contains('\u{1b}'), "colours where nobody sees them: {told}");
    assert_eq!(said, "wharf: 2 tests failed\n");

    let (code, told, _) = asked(&["--filter", "good", "--update"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("\n1 test: 1 passed, 0 failed, 1 golden file written\n"), "{told}");
    assert!(tests.join("good.golden.yaml").is_file());
}

#[test]
fn a_component_that_is_missing_or_older_than_its_sources_is_to_be_built() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    write(folder.path(), "tests/first.yaml", "records: []\n");
    let (code, _, said) = ended(plugin(&["test", root]));
    assert!(code == Some(1) && said.contains(&format!("build it with `wharf plugin build {root}`")), "{said}");
    write(folder.path(), "dist/it.wasm", "");
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    let changed = |file: &str| {
        write(folder.path(), file, "");
        std::fs::File::open(folder.path().join(file)).unwrap().set_modified(later).unwrap();
        ended(plugin(&["test", root])).2
    };
    // What is no source makes nothing old: here the empty component is what is wrong.
    let said = changed("received.jsonl");
    assert!(!said.contains("older") && said.contains("it is empty"), "{said}");
    let said = changed("src/words.txt");
    assert!(said.contains("it.wasm is older than") && said.contains("src/words.txt"), "{said}");
}

#[test]
fn one_run_delivers_to_the_real_destination_and_tells_what_was_asked() {
    let s3 = s3();
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "lines.ndjson", "{\"a\":1}\n\"a line\"\n");
    write(folder.path(), "config.yaml", "bucket: logs\nkey_format: /${WHERE}/$INDEX\n");
    let run = || {
        let mut asked =
            plugin(&["run", "s3", "--config", "config.yaml", "--aws-endpoint", &s3.endpoint(), "lines.ndjson"]);
        asked.current_dir(folder.path()).env("WHERE", "once");
        ended(asked)
    };
    let (code, told, said) = run();
    assert_eq!(code, Some(0), "{told}{said}");
    assert!(told.contains("- s3: put-object\n  bucket: logs\n  key: once/0\n"), "{told}");
    assert!(told.contains("\nbatch 1: 2 records: delivered\n"), "{told}");
    let object = s3.object("logs", "once/0").unwrap();
    assert!(object.body.starts_with(b"{\"date\":") && object.body.ends_with(b"\"log\":\"a line\"}\n"));
    // The next run is another batch, which finds the key taken.
    let (code, told, _) = run();
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("answer: \"412\"") && s3.object("logs", "once/1").is_some(), "{told}");
    s3.faults().add(Rule::on(Operation::PutObject, Fault::Error("SlowDown")));
    let (code, told, said) = run();
    assert_eq!((code, said.as_str()), (Some(1), "wharf: not everything was delivered\n"), "{told}");
    assert!(
        told.contains("batch 1: 2 records: throttled: ") && told.contains("(Wharf would try again in 1s)"),
        "{told}"
    );
}

/// A component that is no built-in one may touch what it is granted on the command line, and what a grant looks like is told.
#[test]
fn a_grant_that_is_none_is_told_with_its_form() {
    let (code, _, said) = ended(plugin(&["run", "my.wasm", "--grant", "everything", "/dev/null"]));
    assert!(code == Some(1) && said.contains("write s3=BUCKET/PREFIX"), "{said}");
}

#[test]
fn what_production_could_not_deliver_fails_at_the_desk_in_the_same_way() {
    let logs = logs();
    let config = ["log_group_name: \"${TRIAL_GROUP:-/e2e}\"", "log_stream_name: s", "log_key: log", MAKE_GROUPS];
    let (place, mut wharf, to) = http_place(&logs.endpoint(), &live(1, "max_age: 200ms", &config));
    post_objects(to, &[json!({ "log": "fine" }), json!({ "other": 1 }), json!({ "log": "" })]);
    wait_settled(&mut wharf, &place, 3);
    wharf.stop();
    let tests = place.root().join("tests");
    let mut asked = command(wharf_binary().unwrap());
    asked.args(["dead-letter", "export", "--output", "live", "--to"]).arg(&tests).arg("-c").arg(place.config());
    let (code, told, said) = ended(asked);
    assert!(code == Some(0) && told.starts_with("1 test written\n"), "{told}{said}");
    let test = |group: &str| {
        let mut asked = plugin(&["test", "--plugin", "cloudwatch_logs", tests.to_str().unwrap()]);
        asked.env("TRIAL_GROUP", group);
        ended(asked)
    };
    let (code, told, said) = test("/e2e");
    assert!(code == Some(0) && told.contains("1 test: 1 passed"), "{told}{said}");
    // With a plugin that takes them, the test fails and says that they are no dead letters any more.
    let written = std::fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().path());
    let file = written.into_iter().find(|path| path.extension().is_some_and(|e| e == "yaml")).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("log_group_name: \"${TRIAL_GROUP}\""), "{text}");
    std::fs::write(&file, text.replace("  log_key: log\n", "")).unwrap();
    let (code, told, _) = test("/e2e");
    assert!(code == Some(1) && told.contains("dead_letters: []"), "{told}");
}
