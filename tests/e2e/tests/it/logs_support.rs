//! What the themes about CloudWatch Logs share: outputs, sources, and what is asked of the strict local server.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;
use wharf_e2e::{LogWriter, Place, Wharf, command, free_port, http, line, wharf_binary};
use wharf_local_aws::logs::Options;
use wharf_local_aws::{Logs, Operation};

/// The log group of most tests.
pub const GROUP: &str = "/e2e";
/// Lines as they are, into the stream `s` of [`GROUP`].
pub const LINES_TO_S: &[&str] = &["log_group_name: /e2e", "log_stream_name: s", "log_key: log", MAKE_GROUPS];
/// Lines as they are, into a stream of [`GROUP`] for each tag.
pub const LINES_BY_TAG: &[&str] = &["log_group_name: /e2e", "log_stream_prefix: \"\"", "log_key: log", MAKE_GROUPS];
/// Log groups are made.
pub const MAKE_GROUPS: &str = "auto_create_group: true";

/// A strict local CloudWatch Logs.
pub fn logs() -> Logs {
    Logs::start(Options::default()).unwrap()
}

/// One output of that name, quick to try again. `batch` is what stands in its braces, `config` the lines of its configuration.
pub fn output(name: &str, workers: u32, batch: &str, config: &[&str]) -> String {
    let mut text = format!(
        "  {name}:\n    plugin: cloudwatch_logs\n    match: \"*\"\n    workers: {workers}\n    batch: {{ {batch} }}\n    \
         retry: {{ initial: 50ms, max: 500ms }}\n    config:\n"
    );
    for line in config {
        let _ = writeln!(text, "      {line}");
    }
    text
}

/// The output `live` alone.
pub fn live(workers: u32, batch: &str, config: &[&str]) -> String {
    format!("outputs:\n{}", output("live", workers, batch, config))
}

/// A tail source for each tag, over the files `TAG.log*`.
pub fn tails(place: &Place, tags: &[&str]) -> String {
    let mut text = String::from("sources:\n");
    for (number, tag) in tags.iter().enumerate() {
        let files = place.log(&format!("{tag}.log"));
        let _ = write!(
            text,
            "  tail-{number}:\n    type: tail\n    tag: {tag}\n    paths: [\"{}*\"]\n    read_from: beginning\n    \
             refresh_interval: 200ms\n",
            files.display()
        );
    }
    text
}

/// A writer for the tail source of each tag: their lines are called `TAG.ROTATIONS-NUMBER`.
pub fn writers(place: &Place, tags: &[&str], bytes: usize) -> Vec<LogWriter> {
    tags.iter().map(|tag| LogWriter::open(&place.log(&format!("{tag}.log")), tag, bytes).unwrap()).collect()
}

/// Every line that these have written.
pub fn names(writers: &[LogWriter]) -> impl Iterator<Item = String> {
    writers.iter().flat_map(LogWriter::names)
}

/// A source of records by HTTP, tagged `app`, and its address.
pub fn http_source() -> (String, SocketAddr) {
    let port = free_port().unwrap();
    let text = format!("sources:\n  app:\n    type: http\n    tag: app\n    listen: \"127.0.0.1:{port}\"\n");
    (text, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// A place that takes records by HTTP into these outputs, and Wharf running in it.
pub fn http_place(endpoint: &str, outputs: &str) -> (Place, Wharf, SocketAddr) {
    let place = Place::new().unwrap();
    let (source, to) = http_source();
    place.configure(endpoint, &format!("{source}{outputs}")).unwrap();
    let mut wharf = place.start().unwrap();
    wharf.wait_until("records are taken", 30, || http::get(to, "/").is_ok());
    (place, wharf, to)
}

/// Hands in JSON objects, one request.
pub fn post_objects(to: SocketAddr, objects: &[Value]) {
    let body: String = objects.iter().map(|object| format!("{object}\n")).collect();
    post(to, "application/x-ndjson", body.as_bytes());
}

/// Hands in numbered lines, one request.
pub fn post_lines(to: SocketAddr, source: &str, numbers: std::ops::Range<u64>) {
    let body: String = numbers.map(|number| line(source, number, 60) + "\n").collect();
    post(to, "text/plain", body.as_bytes());
}

/// Hands in any body.
pub fn post(to: SocketAddr, content_type: &str, body: &[u8]) {
    let answer = http::post(to, "/", content_type, body).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Waits until so many records are delivered or dead letters, and nothing is left.
pub fn wait_settled(wharf: &mut Wharf, place: &Place, records: u64) {
    wharf.wait_until(&format!("{records} records are settled"), 60, || {
        let ended = |name| place.metric(name, &[]).unwrap_or_default();
        let all = ended("wharf_delivered_records_total") + ended("wharf_rejected_records_total");
        all >= records as f64 && place.all_settled()
    });
}

/// What the output's component has counted, over all series with these labels; 0 where there is none.
pub fn counted(place: &Place, name: &str, labels: &[&str]) -> u64 {
    place.metric(&format!("wharf_plugin_{name}_total"), labels).unwrap_or_default() as u64
}

/// The same of one worker.
pub fn counted_by(place: &Place, name: &str, worker: u32) -> u64 {
    counted(place, name, &[&format!("worker=\"{worker}\"")])
}

/// Nothing was asked of the service that it refuses, but for what is asked to find out: whether a stream or a group is there.
pub fn assert_no_rule_was_broken(logs: &Logs) {
    let mut refused = logs.refused();
    refused.retain(|request| {
        let code = request.code.as_deref().unwrap_or_default();
        let missing = matches!(request.operation, Operation::PutLogEvents | Operation::CreateLogStream)
            && code == "ResourceNotFoundException";
        let there = matches!(request.operation, Operation::CreateLogStream | Operation::CreateLogGroup)
            && code == "ResourceAlreadyExistsException";
        !missing && !there
    });
    assert!(refused.is_empty(), "the service refused {:?}", refused.first());
    let asked = |operation| logs.requests().iter().any(|request| request.operation == operation);
    assert!(!asked(Operation::DescribeLogStreams) && !asked(Operation::DescribeLogGroups), "streams were listed");
}

/// So many requests were made.
pub fn requests(logs: &Logs, operation: Operation) -> usize {
    logs.requests().iter().filter(|request| request.operation == operation).count()
}

/// What was accepted more than once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// Calls of which every event had been accepted before.
    pub calls: usize,
    /// Their events.
    pub events: usize,
}

/// Looks for calls that were accepted again. A call is repeated whole or not at all. Events are told apart by stream, time and first word.
pub fn repeated(logs: &Logs) -> Repeated {
    let mut first: HashMap<(String, i64, String), u64> = HashMap::new();
    let mut repeated = Repeated::default();
    for call in logs.accepted() {
        let place = format!("{}:{}", call.group, call.stream);
        let mut again = 0;
        for event in call.events() {
            let word = event.message.split(' ').next().unwrap_or_default().to_owned();
            let before = first.entry((place.clone(), event.timestamp, word)).or_insert(call.number);
            again += usize::from(*before != call.number);
        }
        assert!(again == 0 || again == call.len(), "of {} events of a call {again} were there before", call.len());
        if again > 0 {
            repeated.calls += 1;
            repeated.events += again;
        }
    }
    repeated
}

/// In every stream each source's lines arrived in the order in which they were written: over calls and within them.
pub fn assert_arrived_in_order(logs: &Logs, group: &str) {
    for stream in logs.groups().into_iter().filter(|view| view.name == group).flat_map(|view| view.streams) {
        let mut last: HashMap<String, u64> = HashMap::new();
        for event in logs.events(group, &stream.name) {
            let name = event.message.split(' ').next().unwrap_or_default();
            let (source, number) = name.rsplit_once('-').unwrap();
            let number: u64 = number.parse().unwrap();
            if let Some(before) = last.insert(source.to_owned(), number) {
                assert!(before < number, "{source}-{number} arrived behind {source}-{before} in {}", stream.name);
            }
        }
    }
}

/// What `wharf dead-letter` says.
pub fn dead_letter(place: &Place, arguments: &[&str]) -> String {
    let mut asked = command(wharf_binary().unwrap());
    asked.arg("dead-letter").args(arguments).arg("-c").arg(place.config());
    let said = asked.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap()
}

/// The dead letters of an output: body and reason of each.
pub fn letters(place: &Place, output: &str) -> Vec<(String, String)> {
    let text = |letter: &Value, key: &str| letter[key].as_str().unwrap_or_default().to_owned();
    let shown = dead_letter(place, &["show", "--json", "--output", output]);
    let letters = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut all: Vec<_> = letters.map(|letter| (text(&letter, "body"), text(&letter, "reason"))).collect();
    all.sort();
    all
}

/// What an output shows in `/health`.
pub fn health(place: &Place, output: &str) -> Value {
    let health: Value = serde_json::from_str(&place.admin("/health").unwrap().text()).unwrap();
    let outputs = health["outputs"].as_array().cloned().unwrap_or_default();
    outputs.into_iter().find(|one| one["name"] == output).unwrap_or_default()
}
