//! Sources before the real intake, journal and state: what is kept over a restart.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::testing::eventually;
use super::{SourceEnded, spawn};
use crate::config::{GenerateConfig, HttpSourceConfig, SourceConfig, SourceKind, TailConfig};
use crate::intake::Intake;
use crate::journal::{Journal, Options};
use crate::queue::{BatchLimits, Ledger, Queue, QueueOptions, WhenFull};
use crate::state::State;
use crate::telemetry::Metrics;

/// Everything from the intake to the disk, with one output that wants all and delivers nothing.
struct House {
    journal: Journal,
    queue: Queue,
    intake: Intake,
}

impl House {
    fn open(dir: &Path) -> Self {
        let options = Options { segment_bytes: 4 << 20, max_bytes: None, reserve_bytes: 0 };
        let (journal, recovery) = Journal::open(&dir.join("journal"), &dir.join("quarantine"), options).unwrap();
        let (state, _) = State::open(&dir.join("state")).unwrap();
        let ledger = Ledger::new(journal.clone(), state, Metrics::new());
        let output = QueueOptions {
            output: "all".into(),
            partition_by: vec![],
            in_order: false,
            limits: BatchLimits { max_bytes: 1, max_records: 1, max_age: Duration::ZERO, record_overhead: 0 },
            max_bytes: None,
            when_full: WhenFull::Block,
        };
        let (mut queues, positions) = ledger.restore(&recovery, vec![output]).unwrap();
        let queue = queues.remove(0);
        let committing = ledger.clone();
        journal.start(Box::new(move |group| committing.committed(group)));
        let routes = vec![(vec!["*".to_owned()], queue.clone())];
        let intake = Intake::new(routes.into(), journal.clone(), ledger, positions, Metrics::new()).unwrap();
        Self { journal, queue, intake }
    }

    async fn wait_for(&self, records: u64) {
        eventually("the records are durable", || (self.queue.records() >= records).then_some(())).await;
    }

    /// Ends it, and gives all lines that are kept.
    async fn close(self) -> Vec<String> {
        let records = self.queue.records();
        let mut lines = Vec::new();
        while (lines.len() as u64) < records {
            for portion in self.queue.next_batch().await.unwrap().portions.iter() {
                let chunk = self.journal.read(portion.id).unwrap();
                lines.extend(chunk.iter().map(|record| String::from_utf8_lossy(record.body).into_owned()));
            }
        }
        self.intake.stop();
        self.journal.close();
        lines
    }
}

fn source(kind: SourceKind) -> SourceConfig {
    SourceConfig { name: "app".into(), tenant: None, parse: None, tag: "app".into(), kind }
}

fn following(logs: &Path) -> TailConfig {
    TailConfig {
        refresh_interval: Duration::from_millis(100),
        rotate_wait: Duration::from_millis(50),
        ..TailConfig::of(vec![format!("{}/*.log", logs.display())])
    }
}

#[tokio::test]
async fn files_are_read_once_over_restarts() {
    let (logs, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let config = following(logs.path());
    let mut expected: Vec<String> = Vec::new();
    for run in 0..3 {
        let house = House::open(data.path());
        let shutdown = CancellationToken::new();
        let running = spawn(source(SourceKind::Tail(config.clone())), house.intake.clone(), shutdown.clone()).unwrap();
        for file in 0..=run {
            let path = logs.path().join(format!("{file}.log"));
            let mut file_handle = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
            for n in 0..5000 {
                let line = format!("file {file} run {run} line {n}");
                writeln!(file_handle, "{line}").unwrap();
                expected.push(line);
            }
        }
        house.wait_for(expected.len() as u64).await;
        shutdown.cancel();
        assert_eq!(running.ended().await, SourceEnded::Stopped);
        let mut lines = house.close().await;
        lines.sort();
        expected.sort();
        assert!(lines == expected, "run {run}: {} lines, {} expected", lines.len(), expected.len());
    }
}

/// With `read_from: end`, whatever the first start found.
#[tokio::test]
async fn what_is_written_during_a_stop_is_read_though_no_record_came_before_it() {
    for (at_first, left_out) in [(&["old.log"][..], "old\n"), (&[], "")] {
        let (logs, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = TailConfig { read_from_beginning: false, ..following(logs.path()) };
        let append = |name: &str, text: &str| {
            let mut file = fs::OpenOptions::new().create(true).append(true).open(logs.path().join(name)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        for name in at_first {
            append(name, left_out);
        }
        let house = House::open(data.path());
        let shutdown = CancellationToken::new();
        let running = spawn(source(SourceKind::Tail(config.clone())), house.intake.clone(), shutdown.clone()).unwrap();
        // A source that starts takes its first look, whatever comes.
        shutdown.cancel();
        assert_eq!(running.ended().await, SourceEnded::Stopped);
        assert!(house.close().await.is_empty());

        append("old.log", "while stopped\n");
        append("new.log", "of a new file\n");
        let house = House::open(data.path());
        let shutdown = CancellationToken::new();
        let running = spawn(source(SourceKind::Tail(config)), house.intake.clone(), shutdown.clone()).unwrap();
        house.wait_for(2).await;
        shutdown.cancel();
        running.ended().await;
        let mut lines = house.close().await;
        lines.sort();
        assert_eq!(lines, ["of a new file", "while stopped"], "at first there were {at_first:?}");
    }
}

#[tokio::test]
async fn an_answered_request_is_there_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let house = House::open(data.path());
    let shutdown = CancellationToken::new();
    let http = Box::new(HttpSourceConfig::of("127.0.0.1:0".parse().unwrap()));
    let running = spawn(source(SourceKind::Http(http)), house.intake.clone(), shutdown.clone()).unwrap();
    let address = running.address().unwrap();
    let answer = tokio::task::spawn_blocking(move || {
        let mut client = std::net::TcpStream::connect(address).unwrap();
        let request = "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 7\r\n\r\none\ntwo";
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    });
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("{\"accepted\":2}"), "{answer}");
    shutdown.cancel();
    running.ended().await;
    house.close().await;
    assert_eq!(House::open(data.path()).close().await, ["one", "two"]);
}

#[tokio::test]
async fn made_up_records_go_on_counting_after_a_restart() {
    let data = tempfile::tempdir().unwrap();
    for (count, shown) in [(3000, 3000), (5000, 5000), (5000, 5000)] {
        let house = House::open(data.path());
        let generate = GenerateConfig { rate: None, count: Some(count), record_bytes: 40 };
        let running =
            spawn(source(SourceKind::Generate(generate)), house.intake.clone(), CancellationToken::new()).unwrap();
        assert_eq!(running.ended().await, SourceEnded::Finished);
        let lines = house.close().await;
        assert_eq!(lines.len(), shown);
        assert!(lines.iter().zip(1..).all(|(line, n)| line.starts_with(&format!("generate app {n:012} "))));
    }
}
