//! The program as a person calls it: what it prints, where, and its exit codes.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests may")]

use std::path::Path;
use std::process::{Command, Output};

const GOOD: &str = "data_dir: DIR/data\nsources:\n  app: { type: stdin }\noutputs:\n  archive:\n    plugin: s3\n    match: \"*\"\n    config: { bucket: my-bucket, key_format: /a/$INDEX }\n";

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
        &GOOD
            .replace("bucket: my-bucket", "bukcet: my-bucket")
            .replace("outputs:", "outputs:\n  live: { plugin: no_such, match: x }"),
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

/// The same batch of two tenants' outputs of one name: one in the configuration, one in a file of its own.
#[test]
fn dead_letters_of_a_tenant_are_named_with_it_and_exported_with_its_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let batch = "aa".repeat(16);
    for output in ["acme/archive", "globex/archive"] {
        let letters = folder.path().join("data/dead-letters").join(output);
        std::fs::create_dir_all(&letters).unwrap();
        let line = format!(
            "{{\"output\":\"{output}\",\"batch\":\"{batch}\",\"record\":4,\"time\":\"2024-05-28T12:00:00.5Z\",\"tag\":\"app\",\
             \"kind\":\"text\",\"reason\":\"too long\",\"failure\":\"rejected\",\"body\":\"of {output}\"}}\n"
        );
        std::fs::write(letters.join(format!("{batch}.ndjson")), line).unwrap();
    }
    let output = |bucket: &str| {
        format!("outputs: {{ archive: {{ plugin: s3, match: \"*\", config: {{ bucket: {bucket} }} }} }}")
    };
    std::fs::create_dir(folder.path().join("tenants.d")).unwrap();
    std::fs::write(folder.path().join("tenants.d/globex.yaml"), output("globex-bucket")).unwrap();
    let text_of_it =
        format!("data_dir: DIR/data\ntenants_dir: tenants.d\ntenants:\n  acme: {{ {} }}\n", output("acme-bucket"));
    let file = write(folder.path(), &text_of_it);
    let call = |arguments: &[&str]| wharf(&[&["dead-letter"], arguments, &["-c", file.as_str()]].concat());
    let done = |arguments: &[&str]| {
        let ended = call(arguments);
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {}", text(&ended.stderr));
        text(&ended.stdout)
    };
    assert_eq!(done(&["list"]).lines().count(), 3);
    let shown = done(&["show", "--output", "acme/archive"]);
    assert!(shown.contains("of acme/archive") && !shown.contains("globex"), "{shown}");
    for (output, bucket) in [("acme/archive", "acme-bucket"), ("globex/archive", "globex-bucket")] {
        let to = folder.path().join(bucket);
        done(&["export", "--output", output, "--to", &to.display().to_string()]);
        let test = std::fs::read_to_string(to.join(format!("{batch}.yaml"))).unwrap();
        assert!(test.contains(bucket), "{test}");
    }
    assert!(done(&["replay", "--output", "acme/archive"]).starts_with("1 file handed over for replay\n"));
    assert!(folder.path().join(format!("data/dead-letters/replay/acme~archive__{batch}.ndjson")).is_file());
    assert!(folder.path().join(format!("data/dead-letters/globex/archive/{batch}.ndjson")).is_file());
    let unknown = call(&["list", "--output", "acme/other"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("known are: acme/archive, globex/archive"), "{}", text(&unknown.stderr));
    assert_eq!(call(&["list", "--output", "acme/../archive"]).status.code(), Some(2));
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

    // What was handed over is there, but not for a second replay, nor to be purged.
    for command in ["replay", "purge"] {
        let ended = wharf(&["dead-letter", command, "--batch", &a, "-c", file.as_str()]);
        assert_eq!(ended.status.code(), Some(1));
        assert!(text(&ended.stderr).contains(&format!("batch {a} waits for its replay already")));
    }

    let ended = wharf(&["dead-letter", "show", "--data-dir", "/no/such/directory"]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(text(&ended.stderr).contains("the data directory /no/such/directory cannot be read"));
}

#[test]
fn an_output_or_a_batch_that_is_not_there_is_an_error_and_not_nothing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("data/dead-letters/gone")).unwrap();
    let file = write(folder.path(), GOOD);
    let data = folder.path().join("data").display().to_string();
    let absent = "ab".repeat(16);
    for command in ["list", "show", "replay", "purge"] {
        let call = |arguments: &[&str]| {
            let ended = wharf(&[&["dead-letter", command], arguments].concat());
            (ended.status.code(), text(&ended.stderr))
        };
        let (code, said) = call(&["-c", &file, "--output", "archiv"]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("there is no output \"archiv\"") && said.contains("known are: archive, gone"), "{said}");
        let (code, said) = call(&["--data-dir", &data, "--output", "archive"]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("known are: gone"), "{said}");
        // One that is configured, and one that had some: there is nothing to do.
        for known in [["-c", &file, "--output", "archive"], ["--data-dir", &data, "--output", "gone"]] {
            assert_eq!(call(&known), (Some(0), String::new()));
        }
        let (code, said) = call(&["-c", &file, "--batch", &absent]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("there is no batch {absent} among the dead letters")), "{said}");
        for wrong in [["--batch", "zz"], ["--output", "a/b/c"]] {
            let (code, said) = call(&[&["-c", file.as_str()], wrong.as_slice()].concat());
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains(&format!("invalid value '{}' for '{}", wrong[1], wrong[0])), "{said}");
        }
    }
}

#[test]
fn what_is_kept_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let aws = "aws: { region: us-east-1, endpoint: \"http://127.0.0.1:9\" }\n";
    let file = write(folder.path(), &format!("{aws}{GOOD}"));
    // The standard input is at its end, so this ends by itself.
    let ended = wharf(&["run", "-c", &file]);
    assert_eq!(ended.status.code(), Some(0), "{}", text(&ended.stderr));
    let mut seen = 0;
    for entry in walkdir::WalkDir::new(folder.path().join("data")) {
        let entry = entry.unwrap();
        let wanted = if entry.file_type().is_dir() { 0o700 } else { 0o600 };
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, wanted, "{} has mode {mode:o}", entry.path().display());
        seen += 1;
    }
    assert!(seen > 5, "only {seen} files and folders");
}

/// A component file: the built-in S3 output, as if it were somebody's own.
fn own_component(path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, wharf::plugin::builtin::component("s3").unwrap()).unwrap();
}

#[test]
fn components_are_found_beside_the_configuration_and_by_name_and_only_the_pinned_one_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    own_component(&folder.path().join("plugins/own.wasm"));
    own_component(&folder.path().join("plugins/s3.wasm"));
    let inspected =
        wharf(&["plugin", "inspect", &folder.path().join("plugins/own.wasm").display().to_string(), "--json"]);
    assert_eq!(inspected.status.code(), Some(0), "{}", text(&inspected.stderr));
    let inspected: serde_json::Value = serde_json::from_slice(&inspected.stdout).unwrap();
    let digest = inspected["sha256"].as_str().unwrap();

    let with = |plugin: &str| {
        let grants = "grants: { s3: [{ bucket: my-bucket }] }";
        let output = GOOD.replace("plugin: s3", &format!("{plugin}\n    {grants}"));
        write(folder.path(), &format!("plugins: {{ dir: plugins }}\n{output}"))
    };
    for plugin in ["plugin: own", "plugin: ./plugins/own.wasm", &format!("plugin: own\n    sha256: {digest}")] {
        let ended = wharf(&["validate", "-c", &with(plugin)]);
        assert_eq!(ended.status.code(), Some(0), "{plugin}: {}", text(&ended.stderr));
        let warned = "warning: plugins.dir has s3.wasm, and the name of a built-in always means the built-in";
        assert!(text(&ended.stdout).contains(warned), "{}", text(&ended.stdout));
    }
    let other = "0".repeat(63) + "1";
    let file = with(&format!("plugin: own\n    sha256: \"{other}\""));
    for command in ["validate", "run"] {
        let ended = wharf(&[command, "-c", &file]);
        assert_eq!(ended.status.code(), Some(78));
        let shown = text(&ended.stderr);
        assert!(shown.contains(&format!("{file}:8:13: outputs.archive.sha256: plugin ")), "{shown}");
        assert!(
            shown.contains(&format!("is pinned to the SHA-256 {other}, and what is there has {digest}")),
            "{shown}"
        );
        assert!(shown.contains(&format!("write sha256: {digest}")), "{shown}");
    }
    for (path, help) in [
        ("./nowhere.wasm", "help: a relative path begins at the configuration file's folder"),
        ("own.wasm", "help: what lies in plugins.dir is named without .wasm: write plugin: own"),
    ] {
        let shown = text(&wharf(&["validate", "-c", &with(&format!("plugin: {path}"))]).stderr);
        assert!(shown.contains(help), "{shown}");
    }
    let ended = wharf(&["validate", "-c", &with("plugin: owm")]);
    assert!(text(&ended.stderr).contains("help: did you mean \"own\"?"), "{}", text(&ended.stderr));
}

#[test]
fn what_is_no_plugin_is_inspected_as_far_as_it_goes_and_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.wasm");
    std::fs::write(&file, b"\0asm\x01\0\0\0").unwrap();
    let ended = wharf(&["plugin", "inspect", &file.display().to_string()]);
    assert_eq!(ended.status.code(), Some(1));
    let shown = text(&ended.stdout);
    assert!(shown.contains("8 bytes") && shown.contains("it is a core WebAssembly module"), "{shown}");
    assert_eq!(wharf(&["plugin", "inspect", "no_such"]).status.code(), Some(1));
}

/// A Wharf without input takes in what was handed over, cannot deliver it, and says so.
#[test]
fn a_replay_is_taken_in_before_a_wharf_whose_input_has_ended_stops_and_dead_letters_are_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let letters = folder.path().join("data/dead-letters/archive");
    std::fs::create_dir_all(&letters).unwrap();
    let batch = "aa".repeat(16);
    let line = |record: u32| {
        format!(
            "{{\"output\":\"archive\",\"batch\":\"{batch}\",\"record\":{record},\"time\":\"2024-05-28T12:00:00.5Z\",\"tag\":\"app\",\
             \"kind\":\"text\",\"reason\":\"too long\",\"failure\":\"rejected\",\"body\":\"hello\"}}\n"
        )
    };
    std::fs::write(letters.join(format!("{batch}.ndjson")), line(0) + &line(1)).unwrap();
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = format!(
        "retry: {{ max_age: 0s }}\n    aws: {{ region: us-east-1, endpoint: \"http://{nobody}\" }}\n    config:"
    );
    let file = write(folder.path(), &GOOD.replace("config:", &away));
    let replayed = wharf(&["dead-letter", "replay", "-c", &file, "--all"]);
    assert_eq!(replayed.status.code(), Some(0), "{}", text(&replayed.stderr));

    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
    command.args(["run", "-c", &file]).stdin(std::process::Stdio::null()).env_remove("WHARF_LOG");
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    let ended = command.output().unwrap();
    let told = text(&ended.stdout) + &text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{told}");
    let end = "stopped; nothing is left to deliver; 2 records became dead letters in this run (wharf dead-letter list)";
    assert!(told.contains(end), "{told}");
    let listed = text(&wharf(&["dead-letter", "list", "-c", &file, "--json"]).stdout);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    assert!(listed.contains("\"state\":\"dead\"") && !listed.contains(&batch), "{listed}");
}

#[test]
fn dead_letters_are_listed_and_replayed_without_the_variables_of_secrets() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let secret =
        "credentials: { key: { type: bearer, token: \"${WHARF_TEST_NOT_SET}\", to: [\"https://a.example\"] } }\n";
    let file = write(folder.path(), &format!("{secret}{GOOD}"));
    for arguments in [&["list"][..], &["show"], &["replay", "--output", "archive"], &["purge", "--all"]] {
        let ended = wharf(&[&["dead-letter"], arguments, &["-c", file.as_str()]].concat());
        assert_eq!(ended.status.code(), Some(0), "{arguments:?}: {}", text(&ended.stderr));
    }
    assert_eq!(wharf(&["run", "-c", &file]).status.code(), Some(78));
}
