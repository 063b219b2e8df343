//! Real traces, and what runtimes write. Traces of Java and Python were printed by OpenJDK 17 and CPython 3.11; of Go they are written by hand in the form that its runtime prints.

use std::time::Duration;

use super::*;
use crate::config::{Frame, JoinRule, LinePatterns};

fn how(frame: Option<Frame>, rule: Option<JoinRule>) -> Multiline {
    Multiline { frame, rule, max_bytes: 1 << 20, timeout: Duration::from_secs(1) }
}

/// Takes the lines of `text` that begin at or behind `from`, until `stop`; gives the records, and where to go on.
fn take(how: &Multiline, text: &str, from: usize, stop: Option<usize>) -> (Vec<String>, usize) {
    let (mut joiner, mut records, now) = (Joiner::new(Arc::new(how.clone())), Vec::new(), Instant::now());
    let mut out = |body: &[u8]| records.push(String::from_utf8(body.to_vec()).unwrap());
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if at >= from && stop.is_none_or(|stop| at < stop) {
            joiner.take(at as u64, line.trim_end_matches('\n').as_bytes(), now, &mut out);
        }
        at += line.len();
    }
    let go_on = joiner.holds_from().map_or(stop.unwrap_or(at), |at| at as usize);
    if stop.is_none() {
        joiner.give_out_all(&mut out);
    }
    (records, go_on)
}

/// The records of `text`; and a restart behind any of its lines gives the same ones, each once.
fn joined(how: &Multiline, text: &str) -> Vec<String> {
    let (whole, _) = take(how, text, 0, None);
    for (stop, _) in text.match_indices('\n') {
        let (mut records, go_on) = take(how, text, 0, Some(stop + 1));
        records.extend(take(how, text, go_on, None).0);
        assert_eq!(records, whole, "stopped behind byte {stop}");
    }
    whole
}

fn first_lines(records: &[String]) -> Vec<(&str, usize)> {
    records.iter().map(|record| (record.lines().next().unwrap_or_default(), record.lines().count())).collect()
}

const JAVA: &str = "\
2026-12-01 INFO starting\n\
java.lang.RuntimeException: wrapped\n\
\tat T.main(T.java:4)\n\
\tat java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)\n\
\tat java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke(NativeMethodAccessorImpl.java:77)\n\
\tat java.base/jdk.internal.reflect.DelegatingMethodAccessorImpl.invoke(DelegatingMethodAccessorImpl.java:43)\n\
\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)\n\
\tat jdk.compiler/com.sun.tools.javac.launcher.Main.execute(Main.java:419)\n\
\tat jdk.compiler/com.sun.tools.javac.launcher.Main.run(Main.java:192)\n\
\tat jdk.compiler/com.sun.tools.javac.launcher.Main.main(Main.java:132)\n\
\tSuppressed: java.io.IOException: closing\n\
\t\t... 8 more\n\
Caused by: java.lang.IllegalStateException: deep\n\
\tat T.a(T.java:2)\n\
\tat T.a(T.java:2)\n\
\tat T.a(T.java:2)\n\
\t... 8 more\n\
2026-12-01 INFO done\n\
Exception in thread \"main\" java.lang.Exception\n\
\tat T.main(T.java:5)\n\
";

#[test]
fn a_java_exception_with_its_causes_is_one_record() {
    let records = joined(&how(None, Some(JoinRule::Java)), JAVA);
    assert_eq!(
        first_lines(&records),
        [
            ("2026-12-01 INFO starting", 1),
            ("java.lang.RuntimeException: wrapped", 16),
            ("2026-12-01 INFO done", 1),
            ("Exception in thread \"main\" java.lang.Exception", 2),
        ]
    );
    assert_eq!(records.join("\n"), JAVA.trim_end());
}

const PYTHON: &str = r#"INFO starting
Traceback (most recent call last):
  File "/app/t.py", line 4, in <module>
    try: f(6)
         ^^^^
  File "/app/t.py", line 2, in f
    def f(n): return 1/0 if n==0 else f(n-1)
                                      ^^^^^^
  File "/app/t.py", line 2, in f
    def f(n): return 1/0 if n==0 else f(n-1)
                                      ^^^^^^
  File "/app/t.py", line 2, in f
    def f(n): return 1/0 if n==0 else f(n-1)
                                      ^^^^^^
  [Previous line repeated 4 more times]
ZeroDivisionError: division by zero
INFO done
Traceback (most recent call last):
  File "/app/t.py", line 9, in <module>
    try: f(0)
         ^^^^
  File "/app/t.py", line 2, in f
    def f(n): return 1/0 if n==0 else f(n-1)
                     ~^~
ZeroDivisionError: division by zero

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/app/t.py", line 10, in <module>
    except Exception as e: raise Odd("no") from e
                           ^^^^^^^^^^^^^^^^^^^^^^
Odd: no
INFO last
Traceback (most recent call last):
  File "/app/t.py", line 13, in <module>
    raise KeyboardInterrupt
KeyboardInterrupt
"#;

#[test]
fn a_python_traceback_is_one_record_with_its_marks_and_repetitions() {
    let records = joined(&how(None, Some(JoinRule::Python)), PYTHON);
    assert_eq!(
        first_lines(&records),
        [
            ("INFO starting", 1),
            ("Traceback (most recent call last):", 15),
            ("INFO done", 1),
            ("Traceback (most recent call last):", 8),
            ("", 0),
            ("The above exception was the direct cause of the following exception:", 1),
            ("", 0),
            ("Traceback (most recent call last):", 5),
            ("INFO last", 1),
            ("Traceback (most recent call last):", 4),
        ]
    );
    assert_eq!(records.join("\n"), PYTHON.trim_end());
}

const GO: &str = "\
listening on :8080
panic: runtime error: index out of range [4] with length 3

goroutine 1 [running]:
main.main()
\t/tmp/sandbox/prog.go:9 +0x20
exit status 2
panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0xffffffff addr=0x0 pc=0x4981]

goroutine 18 [running]:
main.(*server).handle(0x0, {0x1, 0x2})
\t/tmp/sandbox/prog.go:12 +0x3c
created by main.main in goroutine 1
\t/tmp/sandbox/prog.go:20 +0x5a

goroutine 1 [select (no cases)]:
main.main()
\t/tmp/sandbox/prog.go:21 +0x60
next line
2009/11/10 23:00:00 http: panic serving 127.0.0.1:5000: boom
goroutine 5 [running]:
net/http.(*conn).serve.func1()
\t/usr/local/go/src/net/http/server.go:1850 +0xbf
done
";

#[test]
fn a_go_panic_with_its_goroutines_is_one_record() {
    let records = joined(&how(None, Some(JoinRule::Go)), GO);
    assert_eq!(
        first_lines(&records),
        [
            ("listening on :8080", 1),
            ("panic: runtime error: index out of range [4] with length 3", 6),
            ("panic: runtime error: invalid memory address or nil pointer dereference", 12),
            ("next line", 1),
            ("2009/11/10 23:00:00 http: panic serving 127.0.0.1:5000: boom", 4),
            ("done", 1),
        ]
    );
}

/// The worked cases of Vector's `multiline` modes: halt_before, continue_through, halt_with.
#[test]
fn patterns_say_where_a_record_begins_goes_on_and_ends() {
    let regex = |text: &str| Some(regex::bytes::Regex::new(text).unwrap());
    let by = |start, goes_on, end| how(None, Some(JoinRule::Patterns(LinePatterns { start, goes_on, end })));
    let dated = by(regex(r"^\d{4}-"), None, None);
    assert_eq!(joined(&dated, "x\n2026-1 a\nb\n\nc\n2026-2 d\n"), ["x", "2026-1 a\nb\n\nc", "2026-2 d"]);
    let indented = by(None, regex(r"^\s"), None);
    assert_eq!(joined(&indented, "a\n b\n c\nd\n"), ["a\n b\n c", "d"]);
    let ended = by(None, None, regex(";$"));
    assert_eq!(joined(&ended, "select\n1;\nx;\ny\n"), ["select\n1;", "x;", "y"]);
    let both = by(regex("^BEGIN"), None, regex("^END"));
    assert_eq!(joined(&both, "x\nBEGIN\na\nEND\ny\n"), ["x", "BEGIN\na\nEND", "y"]);
    let first = by(regex("^E "), regex("^ "), None);
    assert_eq!(joined(&first, " x\nE a\n b\ny\n z\n"), [" x", "E a\n b", "y", " z"]);
}

/// Kubernetes' description of the format: `cri-client/pkg/logs/logs.go`.
#[test]
fn cri_parts_are_joined_by_stream_and_the_order_of_beginnings_stays() {
    let text = "\
2016-10-06T00:17:09.1Z stdout P The content of the \n\
2016-10-06T00:17:09.2Z stderr F other\n\
2016-10-06T00:17:09.3Z stdout P log entry \n\
2016-10-06T00:17:09.4Z stdout F 1\n\
2016-10-06T00:17:10.0Z stdout F:tag \n\
nonsense\n";
    assert_eq!(
        joined(&how(Some(Frame::Cri), None), text),
        [
            "2016-10-06T00:17:09.1Z stdout F The content of the log entry 1",
            "2016-10-06T00:17:09.2Z stderr F other",
            "2016-10-06T00:17:10.0Z stdout F:tag ",
            "nonsense",
        ]
    );
}

#[test]
fn docker_parts_are_joined_as_they_are_escaped() {
    let text = r#"{"log":"a \"b\" \\n","stream":"stdout","time":"1"}
{"log":"other\n","stream":"stderr","time":"2"}
{"log":"c\u00e4\n","stream":"stdout","time":"3"}
{"stream":"stdout","log":"whole\n"}
not json
"#;
    let expected = [
        r#"{"log":"a \"b\" \\nc\u00e4\n","stream":"stdout","time":"1"}"#,
        r#"{"log":"other\n","stream":"stderr","time":"2"}"#,
        r#"{"stream":"stdout","log":"whole\n"}"#,
        "not json",
    ];
    assert_eq!(joined(&how(Some(Frame::Docker), None), text), expected);
}

#[test]
fn traces_are_joined_inside_of_what_a_runtime_wraps_around_them() {
    let cri: String = JAVA.lines().map(|line| format!("T stderr F {line}\nT stdout F between\n")).collect();
    let records = joined(&how(Some(Frame::Cri), Some(JoinRule::Java)), &cri);
    let stderr: Vec<&str> = records.iter().filter_map(|record| record.strip_prefix("T stderr F ")).collect();
    assert_eq!(stderr, take(&how(None, Some(JoinRule::Java)), JAVA, 0, None).0);
    assert_eq!(records.iter().filter(|record| *record == "T stdout F between").count(), JAVA.lines().count());

    let docker: String = JAVA
        .lines()
        .map(|line| serde_json::json!({"log": format!("{line}\n"), "stream": "s"}).to_string() + "\n")
        .collect();
    let records = joined(&how(Some(Frame::Docker), Some(JoinRule::Java)), &docker);
    let logs: Vec<String> = records
        .iter()
        .map(|record| {
            serde_json::from_str::<serde_json::Value>(record).unwrap()["log"].as_str().unwrap().trim_end().to_owned()
        })
        .collect();
    assert_eq!(logs, take(&how(None, Some(JoinRule::Java)), JAVA, 0, None).0);
}

#[test]
fn a_record_that_becomes_too_large_is_given_out_as_it_is() {
    let dated = LinePatterns { start: regex::bytes::Regex::new("^>").ok(), goes_on: None, end: None };
    let how = Multiline { max_bytes: 10, ..how(None, Some(JoinRule::Patterns(dated))) };
    assert_eq!(take(&how, ">abc\ndef\nghi\njkl\n>m\nn\n", 0, None).0, [">abc\ndef\nghi", "jkl", ">m\nn"]);
}

#[test]
fn a_record_to_which_nothing_is_added_is_given_out() {
    let mut joiner = Joiner::new(Arc::new(how(Some(Frame::Cri), None)));
    let (mut records, now) = (Vec::new(), Instant::now());
    let mut out = |body: &[u8]| records.push(String::from_utf8(body.to_vec()).unwrap());
    joiner.take(0, b"T stdout P ab", now, &mut out);
    joiner.end_older(now - Duration::from_millis(1), &mut out);
    assert_eq!(joiner.holds_from(), Some(0));
    joiner.end_older(now, &mut out);
    assert_eq!(joiner.holds_from(), None);
    assert_eq!(records, ["T stdout F ab"]);
}
