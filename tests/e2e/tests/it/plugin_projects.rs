//! Plugins as their authors make them: `wharf plugin new`, `build` and `test` in an empty folder, then the project's own `wharf.yaml`
//! against `wharf dev-http`; and the examples, built and tested. What compiles is the machine's own tool chain, or the tests' own for C.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use wharf_e2e::{command, deadline, free_port, skip, tools, wharf_binary};
use wharf_task_kit::repository;

#[test]
fn a_new_project_in_rust_builds_passes_its_tests_and_delivers() {
    let Some(search) = rust("a new plugin project in Rust") else { return };
    a_new_project_delivers("rust", &search);
}

#[test]
fn a_new_project_in_c_builds_passes_its_tests_and_delivers() {
    let Some(search) = c("a new plugin project in C") else { return };
    a_new_project_delivers("c", &search);
}

#[test]
fn the_examples_in_rust_build_and_pass_their_tests() {
    let Some(search) = rust("the example plugins in Rust") else { return };
    for example in ["http-json", "storage-sequence"] {
        builds_and_passes(&repository().unwrap().join("examples/plugins").join(example), &search);
    }
}

#[test]
fn the_example_in_c_builds_and_passes_its_tests() {
    let Some(search) = c("the example plugin in C") else { return };
    builds_and_passes(&repository().unwrap().join("examples/plugins/c-http"), &search);
}

fn a_new_project_delivers(language: &str, search: &OsString) {
    let place = tempfile::tempdir().unwrap();
    let project = place.path().join("to-acme");
    wharf(place.path(), search, &["plugin", "new", "to-acme", "--lang", language]);
    builds_and_passes(&project, search);

    let port = free_port().unwrap();
    let api = Running::api(&project, port);
    let config = fs::read_to_string(project.join("wharf.yaml")).unwrap();
    fs::write(project.join("wharf.yaml"), config.replace(":8088", &format!(":{port}"))).unwrap();
    fs::write(project.join("lines"), "first\nsecond\n").unwrap();
    // It ends by itself when standard input has ended and everything is delivered.
    let output = command(wharf_binary().unwrap())
        .args(["run", "-c", "wharf.yaml"])
        .current_dir(&project)
        .stdin(File::open(project.join("lines")).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    drop(api);
    let got = fs::read_to_string(project.join("api.log")).unwrap();
    for part in ["POST /v1/events  2 records", "\"log\":\"first\"", "\"log\":\"second\""] {
        assert_eq!(got.matches(part).count(), 1, "{part}: {got}");
    }
}

fn builds_and_passes(project: &Path, search: &OsString) {
    wharf(project, search, &["plugin", "build"]);
    let told = wharf(project, search, &["plugin", "test"]);
    assert!(told.contains("0 failed") && !told.contains("0 tests"), "{told}");
}

/// Runs the binary in a folder, and gives what it says.
fn wharf(folder: &Path, search: &OsString, arguments: &[&str]) -> String {
    let output = command(wharf_binary().unwrap())
        .args(arguments)
        .current_dir(folder)
        .env("PATH", search)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "wharf {} in {}:\n{told}{said}", arguments.join(" "), folder.display());
    told
}

/// `PATH`, where it leads to what compiles Rust; without, the test says that it did not run.
fn rust(test: &str) -> Option<OsString> {
    let asked = Command::new("cargo").arg("--version").output();
    if asked.is_err() {
        skip::skip(test, "there is no cargo on PATH: install Rust", false);
        return None;
    }
    std::env::var_os("PATH")
}

/// `PATH`, with the tests' own Python in front, which has a C compiler for WASI.
fn c(test: &str) -> Option<OsString> {
    let venv = match tools::venv() {
        Ok(venv) => venv,
        Err(error) => {
            skip::skip(test, &format!("the tests' tools cannot be had: {error:#}"), false);
            return None;
        }
    };
    let search = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::iter::once(venv.join("bin")).chain(std::env::split_paths(&search)).collect();
    std::env::join_paths(folders).ok()
}

/// A process that ends with the test.
struct Running(Child);

impl Running {
    /// `wharf dev-http`, once it listens.
    fn api(project: &Path, port: u16) -> Self {
        let log = project.join("api.log");
        let child = command(wharf_binary().unwrap())
            .args(["dev-http", "--show", "--listen", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .stdout(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let running = Self(child);
        let end = deadline(30);
        while !fs::read_to_string(&log).is_ok_and(|told| told.contains("An HTTP destination on")) {
            assert!(Instant::now() < end, "dev-http does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
