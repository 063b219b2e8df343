//! Another configuration takes over under load, and nobody notices but those that it is about.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use wharf_e2e::{Chance, Delivered, LogWriter, Place, free_port};

use crate::reload_support::{Sender, build, put_plugin};
use crate::support::{assert_no_overwrites, s3};

const RELOADS: u64 = 200;
/// Every so many reloads an output and its source come or go.
const EXTRA_EVERY: u64 = 20;
const EXTRA_RECORDS: u64 = 40;

/// The configuration of one step: `archive` is another one each time, `steady` never.
fn configuration(place: &Place, step: u64, port: u16) -> String {
    let mut text = place.tail("app");
    let _ = writeln!(text, "  posts: {{ type: http, tag: posts, listen: \"127.0.0.1:{port}\" }}");
    let with_extra = step % (2 * EXTRA_EVERY) >= EXTRA_EVERY;
    if with_extra {
        // It counts over all its runs, since its position stays.
        let made = (step / (2 * EXTRA_EVERY) + 1) * EXTRA_RECORDS;
        let _ = writeln!(text, "  made: {{ type: generate, tag: extra, count: {made}, record_size: 50B }}");
    }
    let (workers, bytes, age) = (1 + step % 3, 4000 + step % 4 * 2000, 40 + step % 5 * 20);
    let output = |name: &str, plugin: &str, tags: &str, workers: u64, batch: &str| {
        // What is built in is granted what its configuration names.
        let grants = match plugin {
            "s3" => String::new(),
            _ => format!("    grants: {{ s3: [{{ bucket: logs, key_prefix: \"{name}/\" }}] }}\n"),
        };
        format!(
            "  {name}:\n    plugin: {plugin}\n    match: \"{tags}\"\n    workers: {workers}\n    batch: {{ {batch} }}\n    \
             retry: {{ initial: 50ms, max: 500ms }}\n{grants}    \
             config: {{ bucket: logs, key_format: /{name}/segment_$INDEX }}\n"
        )
    };
    text.push_str("outputs:\n");
    let batch = format!("max_bytes: {bytes}B, max_age: {age}ms");
    text.push_str(&output("archive", "./own.wasm", "app posts", workers, &batch));
    text.push_str(&output("steady", "s3", "posts", 2, "max_bytes: 8000B, max_age: 50ms"));
    if with_extra {
        text.push_str(&output("extra", "s3", "extra", 1, "max_records: 10, max_age: 50ms"));
    }
    text
}

fn names(value: &serde_json::Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
}

#[test]
fn two_hundred_reloads_under_load_lose_nothing_repeat_nothing_and_pause_no_other_output() {
    let s3 = s3();
    let (place, port) = (Place::new().unwrap(), free_port().unwrap());
    let builds = [build(1), build(2)];
    put_plugin(&place, &builds[0]);
    let configure = |step| place.configure(&s3.endpoint(), &configuration(&place, step, port)).unwrap();
    configure(0);
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    writer.write(1).unwrap();
    let mut wharf = place.start().unwrap();
    let mut sender = Sender::connect(port, "p");
    let done = AtomicBool::new(false);
    let mut extras = 0;
    thread::scope(|scope| {
        let (writer, sender, done_now) = (&mut writer, &mut sender, &done);
        scope.spawn(move || {
            while !done_now.load(Ordering::Relaxed) {
                writer.write(20).unwrap();
                thread::sleep(Duration::from_millis(2));
            }
        });
        scope.spawn(move || {
            while !done_now.load(Ordering::Relaxed) {
                sender.send(10);
            }
        });
        let done = Done(&done);
        for step in 1..=RELOADS {
            if step % 5 == 0 {
                put_plugin(&place, &builds[usize::try_from(step / 5 % 2).unwrap()]);
            }
            configure(step);
            let (status, answer) = place.reload("{}").unwrap();
            assert_eq!((status, &answer["result"]), (200, &"applied".into()), "step {step}: {answer:#}");
            let outputs = &answer["outputs"];
            assert!(names(&outputs["unchanged"]).contains(&"steady"), "{answer:#}");
            assert_eq!(outputs["changed"][0]["name"], "archive", "{answer:#}");
            assert!(names(&answer["sources"]["unchanged"]).starts_with(&["app", "posts"]), "{answer:#}");
            if names(&outputs["added"]) == ["extra"] {
                extras += 1;
            }
            if (step + 1) % (2 * EXTRA_EVERY) == 0 {
                // What goes with the next step has to be delivered before.
                let wanted = extras * EXTRA_RECORDS;
                wharf.wait_until("the extra output has delivered", 30, || {
                    place.metric("wharf_delivered_records_total", &["output=\"extra\""]) == Some(wanted as f64)
                        && place.metric("wharf_queue_records", &["output=\"extra\""]) == Some(0.0)
                });
            }
        }
        drop(done);
    });
    wharf.wait_until("everything is delivered", 60, || place.all_settled());
    let posts = sender.names();
    let wanted = writer.written() as usize + posts.len();
    println!("{wanted} lines for archive, {} for steady", posts.len());
    wharf.wait_until("the tail has caught up", 60, || Delivered::of(&s3, "archive/").lines() >= wanted);
    for (metric, labels, value) in [
        ("wharf_reloads_total", &["result=\"applied\""][..], Some(RELOADS as f64)),
        ("wharf_worker_restarts_total", &[], Some(0.0)),
        ("wharf_retries_total", &[], Some(0.0)),
        ("wharf_dropped_records_total", &[], Some(0.0)),
        ("wharf_rejected_records_total", &[], Some(0.0)),
        ("wharf_output_plugin", &["output=\"archive\""], Some(1.0)),
        ("wharf_output_plugin", &["output=\"extra\""], None),
        ("wharf_source_connections", &["source=\"posts\""], Some(1.0)),
    ] {
        assert_eq!(place.metric(metric, labels), value, "{metric} {labels:?}");
    }
    // Those of the last step's workers, each in one state, and no other.
    let states = place.metric("wharf_worker_state", &["output=\"archive\""]);
    assert_eq!(states, Some((1 + RELOADS % 3) as f64));
    drop(sender);
    wharf.stop();

    let archive = Delivered::of(&s3, "archive/");
    archive.assert_each_once(writer.names().chain(posts.iter().cloned()));
    archive.assert_contiguous(0);
    let steady = Delivered::of(&s3, "steady/");
    steady.assert_each_once(posts);
    steady.assert_contiguous(0);
    let extra: Vec<u64> = Delivered::of(&s3, "extra/").objects.iter().filter_map(|object| object.index).collect();
    assert_eq!(extra, (0..extra.len() as u64).collect::<Vec<_>>(), "numbers go on where an output comes again");
    assert_no_overwrites(&s3);
}

/// Every way out of a scope has to end what writes in it.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_kill_in_the_middle_of_reloads_loses_nothing() {
    let s3 = s3();
    let mut chance = Chance::from_environment("kills during reloads");
    let (place, port) = (Place::new().unwrap(), free_port().unwrap());
    let builds = [build(1), build(2)];
    put_plugin(&place, &builds[0]);
    let configure = |step| place.configure(&s3.endpoint(), &configuration(&place, step % EXTRA_EVERY, port)).unwrap();
    configure(0);
    let mut writer = LogWriter::open(&place.log("app.log"), "a", 100).unwrap();
    let mut step = 0;
    for _ in 0..6 {
        let mut wharf = place.spawn().unwrap();
        wharf.wait_ready();
        let pause = Duration::from_millis(100 + chance.below(500));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let (writer, done_now, step, place) = (&mut writer, &done, &mut step, &place);
            scope.spawn(move || {
                while !done_now.load(Ordering::Relaxed) {
                    writer.write(20).unwrap();
                    thread::sleep(Duration::from_millis(2));
                }
            });
            let builds = &builds;
            scope.spawn(move || {
                while !done_now.load(Ordering::Relaxed) {
                    *step += 1;
                    put_plugin(place, &builds[usize::try_from(*step % 2).unwrap()]);
                    configure(*step);
                    // The kill may come before the answer.
                    let _ = place.reload("{}");
                }
            });
            let _done = Done(&done);
            thread::sleep(pause);
            wharf.kill9();
        });
        Delivered::of(&s3, "archive/").assert_none_twice();
    }
    let mut wharf = place.start().unwrap();
    let wanted = writer.written() as usize;
    wharf.wait_until("everything is delivered", 60, || Delivered::of(&s3, "archive/").lines() >= wanted);
    wharf.stop();
    let archive = Delivered::of(&s3, "archive/");
    archive.assert_each_once(writer.names());
    archive.assert_contiguous(0);
    assert_no_overwrites(&s3);
}

#[test]
fn sighup_and_a_file_that_is_renamed_over_the_watched_one_reload() {
    let s3 = s3();
    let (place, port) = (Place::new().unwrap(), free_port().unwrap());
    put_plugin(&place, &build(1));
    place.configure(&s3.endpoint(), &format!("watch: true\n{}", configuration(&place, 0, port))).unwrap();
    let mut wharf = place.start().unwrap();
    let applied = || place.metric("wharf_reloads_total", &["result=\"applied\""]).unwrap_or(0.0);
    let unchanged = || place.metric("wharf_reloads_total", &["result=\"unchanged\""]).unwrap_or(0.0);

    wharf.sighup();
    wharf.wait_until("SIGHUP was heard", 30, || unchanged() >= 1.0);

    put_plugin(&place, &build(2));
    wharf.wait_until("another build of the plugin is seen", 30, || applied() >= 1.0);

    let text = std::fs::read_to_string(place.config()).unwrap();
    let new = place.root().join("new.yaml");
    std::fs::write(&new, text.replace("workers: 1", "workers: 3")).unwrap();
    std::fs::rename(new, place.config()).unwrap();
    wharf.wait_until("the configuration is seen", 30, || applied() >= 2.0);
    assert_eq!(place.metric("wharf_worker_state", &["output=\"archive\""]), Some(3.0));
    wharf.stop();
}
