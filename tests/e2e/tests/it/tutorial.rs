//! `docs/plugins/tutorial.md`, done as it is written, from an empty directory.

use std::process::Command;
use std::time::Instant;

use wharf_e2e::{skip, walkthrough, wharf_binary};
use wharf_task_kit::repository;

#[test]
fn the_tutorial_can_be_followed_as_it_is_written() {
    if Command::new("cargo").arg("--version").output().is_err() {
        return skip::skip("the tutorial", "there is no cargo on PATH: install Rust", false);
    }
    let desk = tempfile::tempdir().unwrap();
    let page = repository().unwrap().join("docs/plugins/tutorial.md");
    let programs = wharf_binary().unwrap().parent().unwrap();
    let begun = Instant::now();
    walkthrough::follow(&page, desk.path(), programs).unwrap();
    println!("the tutorial took {:.1} s", begun.elapsed().as_secs_f64());
}
