//! The program as a person calls it: what it prints, where, and its exit codes.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests may")]

use std::path::Path;
use std::process::{Command, Output};

const GOOD: &str = "data_dir: DIR/data\nsources:\n  app: { type: stdin }\noutputs:\n  archive:\n    plugin: s3\n    match: \"*\"\n    config: { bucket: b, key_format: /a/$INDEX }\n";

fn wharf(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
    command.args(arguments).env_remove("WHARF_CONFIG").env_remove("WHARF_LOG");
    command.output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn write(folder: &Path, configuration: &str) -> String {
    let path = folder.join("wharf.yaml");
    std::fs::write(&path, configuration.replace("DIR", &folder.display().to_string())).unwrap();
    path.display().to_string()
}

#[test]
fn a_valid_file_is_summed_up_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), GOOD);
    let ended = wharf(&["validate", "-c", &file]);
    let shown = text(&ended.stdout);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    assert!(shown.starts_with(&format!("{file} is valid: 1 source, 1 output\n")), "{shown}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "only the file itself is there");
}

#[test]
fn faults_of_the_file_and_of_its_plugins_end_with_78() {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), &GOOD.replace("match", "matsch"));
    for command in ["validate", "run"] {
        let ended = wharf(&[command, "-c", &file]);
        assert_eq!(ended.status.code(), Some(78));
        let shown = text(&ended.stderr);
        assert!(
            shown.contains(&format!("{file}:7:5: outputs.archive: unknown key \"matsch\"; did you mean \"match\"?")),
            "{shown}"
        );
        assert!(ended.stdout.is_empty());
    }

    let file = write(
        folder.path(),
        &GOOD.replace("bucket: b", "bukcet: b").replace("outputs:", "outputs:\n  live: { plugin: no_such, match: x }"),
    );
    let ended = wharf(&["validate", "-c", &file]);
    assert_eq!(ended.status.code(), Some(78));
    let shown = text(&ended.stderr);
    assert!(shown.contains(":5:19: outputs.live.plugin: "), "{shown}");
    assert!(
        shown.contains(":9:15: outputs.archive.config: unknown key \"bukcet\"; did you mean \"bucket\"?"),
        "{shown}"
    );
    assert!(shown.ends_with("wharf: 2 faults in the configuration\n"), "{shown}");
}

#[test]
fn wrong_arguments_end_with_2_and_help_with_0() {
    assert_eq!(wharf(&["no-such-command"]).status.code(), Some(2));
    assert_eq!(wharf(&["validate"]).status.code(), Some(2));
    assert_eq!(wharf(&["dead-letter", "purge", "--data-dir", "/tmp"]).status.code(), Some(2));
    let help = wharf(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    assert!(text(&help.stdout).contains("Exit codes: 0 done, 1 failed, 2 wrong arguments, 78 wrong configuration."));
    assert_eq!(text(&wharf(&["--version"]).stdout), format!("wharf {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn dead_letters_are_listed_shown_replayed_and_purged() {
    let folder = tempfile::tempdir().unwrap();
    let letters = folder.path().join("data/dead-letters/archive");
    std::fs::create_dir_all(&letters).unwrap();
    for batch in ["aa".repeat(16), "bb".repeat(16)] {
        let line = format!(
            "{{\"output\":\"archive\",\"batch\":\"{batch}\",\"record\":4,\"time\":\"2024-05-28T12:00:00.5Z\",\"tag\":\"app\",\
             \"kind\":\"text\",\"reason\":\"too long\",\"failure\":\"rejected\",\"body\":\"hello\"}}\n"
        );
        std::fs::write(letters.join(format!("{batch}.ndjson")), line).unwrap();
    }
    let file = write(folder.path(), GOOD);
    let call = |arguments: &[&str]| {
        let ended = wharf(&[&["dead-letter"], arguments, &["-c", file.as_str()]].concat());
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {}", text(&ended.stderr));
        text(&ended.stdout)
    };
    let a = "aa".repeat(16);

    let listed = call(&["list"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert!(listed.contains("too long"), "{listed}");
    let shown = call(&["show", "--batch", &a]);
    let expected =
        format!("2024-05-28T12:00:00.500000000Z archive record 4 of {a} tag app: rejected: too long\n    hello\n");
    assert_eq!(shown, expected);
    assert_eq!(call(&["show", "--json"]).lines().count(), 2);
    assert!(call(&["replay", "--batch", &a]).starts_with("1 file handed over for replay\n"));
    let listed = call(&["list", "--json"]);
    assert!(listed.lines().next().unwrap().contains("\"state\":\"waits for replay\""), "{listed}");
    assert!(call(&["purge", "--all"]).starts_with("1 file removed\n"));
    assert_eq!(call(&["list"]).lines().count(), 2);

    let ended = wharf(&["dead-letter", "show", "--data-dir", "/no/such/directory"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("the data directory /no/such/directory cannot be read"));
}
