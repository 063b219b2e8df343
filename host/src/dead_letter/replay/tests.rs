//! Replay against an intake that is a list, and that can end at any chunk.

use std::sync::Mutex;

use super::*;
use crate::dead_letter::{Filter, Letter};
use crate::record::BodyKind;
use crate::state::BatchId;

/// What a journal keeps: chunks and positions, each chunk with its position or not at all.
#[derive(Default)]
struct Kept {
    chunks: Vec<(String, Chunk)>,
    positions: HashMap<String, Vec<u8>>,
}

/// An intake that stops taking after so many chunks.
#[derive(Clone)]
struct Fake {
    kept: Arc<Mutex<Kept>>,
    room: Arc<Mutex<usize>>,
    outputs: Vec<&'static str>,
}

impl Fake {
    fn new(room: usize) -> Self {
        Self { kept: Arc::default(), room: Arc::new(Mutex::new(room)), outputs: vec!["archive", "live"] }
    }
    fn bodies(&self, output: &str) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        let mine = kept.chunks.iter().filter(|(o, _)| o == output);
        mine.flat_map(|(_, c)| c.iter().map(|r| String::from_utf8(r.body.to_vec()).unwrap()).collect::<Vec<_>>())
            .collect()
    }
}

impl Target for Fake {
    fn has_output(&self, output: &str) -> bool {
        self.outputs.contains(&output)
    }
    async fn submit(&self, output: &str, chunk: Chunk) -> Result<(), Refused> {
        let mut room = self.room.lock().unwrap();
        if *room == 0 {
            return Err(Refused::Stopping);
        }
        *room -= 1;
        let mut kept = self.kept.lock().unwrap();
        for position in &chunk.meta().positions {
            assert_eq!(&*position.source, REPLAY_SOURCE);
            kept.positions.insert(position.key.clone(), position.value.clone());
        }
        kept.chunks.push((output.to_owned(), chunk));
        Ok(())
    }
    fn positions(&self) -> Vec<Position> {
        let kept = self.kept.lock().unwrap();
        let position = |(key, value): (&String, &Vec<u8>)| Position {
            source: REPLAY_SOURCE.into(),
            key: key.clone(),
            value: value.clone(),
        };
        kept.positions.iter().map(position).collect()
    }
    async fn forget(&self, keys: Vec<String>) {
        let mut kept = self.kept.lock().unwrap();
        keys.iter().for_each(|key| drop(kept.positions.remove(key)));
    }
}

/// Records of two tags and two kinds, so that one file is several chunks; one is larger than a chunk should be.
fn write(letters: &DeadLetters, output: &str, batch: u8) -> Vec<String> {
    let mut writer = letters.writer(output, BatchId([batch; 16]), "rejected").unwrap();
    let mut bodies: Vec<String> = (0..40).map(|n| format!("{{\"n\":{n},\"batch\":{batch}}}")).collect();
    bodies.push(format!("{{\"large\":\"{}\"}}", "x".repeat(600 << 10)));
    bodies.push("{\"last\":1}".to_owned());
    for (n, body) in bodies.iter().enumerate() {
        let letter = Letter {
            record: n as u64,
            time_ns: 1_000 + i64::try_from(n).unwrap(),
            tag: if n < 10 { "app" } else { "web" },
            kind: if n < 20 { BodyKind::Json } else { BodyKind::Text },
            body: body.as_bytes(),
            reason: "too long",
        };
        writer.record(&letter).unwrap();
    }
    writer.finish().unwrap();
    bodies
}

/// Runs replay until every file is gone, or the fake says that Wharf is stopping.
async fn replay(letters: &DeadLetters, fake: &Fake) {
    let shutdown = CancellationToken::new();
    let done = async {
        while !letters.replay_pending().unwrap().is_empty() || !fake.positions().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        shutdown.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = run(letters.clone(), fake.clone(), shutdown.clone(), CancellationToken::new().drop_guard()) => {}
        () = done => {}
    }
}

#[tokio::test]
async fn every_record_is_taken_in_once_in_order_for_its_own_output() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    let archive = write(&letters, "archive", 1);
    let live = write(&letters, "live", 2);
    letters.request_replay(&Filter::default()).unwrap();
    let fake = Fake::new(usize::MAX);
    replay(&letters, &fake).await;
    assert_eq!(fake.bodies("archive"), archive);
    assert_eq!(fake.bodies("live"), live);
    let kept = fake.kept.lock().unwrap();
    let kinds: Vec<_> = kept.chunks.iter().take(4).map(|(_, c)| (&*c.meta().tag, c.meta().kind)).collect();
    assert_eq!(
        kinds,
        [("app", BodyKind::Json), ("web", BodyKind::Json), ("web", BodyKind::Text), ("web", BodyKind::Text)]
    );
    let times: Vec<i64> =
        kept.chunks.iter().take(4).flat_map(|(_, c)| c.iter().map(|r| r.time_ns).collect::<Vec<_>>()).collect();
    assert_eq!(times, (1_000..1_042).collect::<Vec<i64>>());
}

#[tokio::test]
async fn a_crash_between_any_two_chunks_takes_no_record_twice_and_leaves_none_out() {
    for first_life in 0..6 {
        let dir = tempfile::tempdir().unwrap();
        let letters = DeadLetters::open(dir.path());
        let bodies = write(&letters, "archive", 1);
        letters.request_replay(&Filter::default()).unwrap();
        let fake = Fake::new(first_life);
        replay(&letters, &fake).await;
        *fake.room.lock().unwrap() = usize::MAX;
        replay(&letters, &fake).await;
        assert_eq!(fake.bodies("archive"), bodies, "after {first_life} chunks");
    }
}

#[tokio::test]
async fn a_position_whose_file_is_gone_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::new(usize::MAX);
    fake.kept.lock().unwrap().positions.insert("archive__gone.ndjson".into(), b"5".to_vec());
    replay(&DeadLetters::open(dir.path()), &fake).await;
    assert!(fake.positions().is_empty());
}

#[tokio::test]
async fn a_file_of_an_output_that_is_not_there_waits() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "gone", 1);
    write(&letters, "live", 2);
    letters.request_replay(&Filter::default()).unwrap();
    let fake = Fake::new(usize::MAX);
    let shutdown = CancellationToken::new();
    let task =
        tokio::spawn(run(letters.clone(), fake.clone(), shutdown.clone(), CancellationToken::new().drop_guard()));
    while letters.replay_pending().unwrap().len() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    shutdown.cancel();
    task.await.unwrap();
    assert_eq!(letters.replay_pending().unwrap()[0].output, "gone");
    assert!(fake.bodies("gone").is_empty());
}

#[tokio::test]
async fn what_was_there_at_the_start_is_taken_in_when_that_is_said_whatever_else_waits() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    let (archive, live) = (write(&letters, "archive", 1), write(&letters, "live", 3));
    write(&letters, "gone", 2);
    letters.request_replay(&Filter::default()).unwrap();
    let fake = Fake::new(usize::MAX);
    let (shutdown, taken) = (CancellationToken::new(), CancellationToken::new());
    let task = tokio::spawn(run(letters.clone(), fake.clone(), shutdown.clone(), taken.clone().drop_guard()));
    tokio::time::timeout(Duration::from_secs(60), taken.cancelled()).await.unwrap();
    assert_eq!((fake.bodies("archive"), fake.bodies("live")), (archive, live));
    let waiting: Vec<String> = letters.replay_pending().unwrap().into_iter().map(|file| file.output).collect();
    assert_eq!(waiting, ["gone"]);
    shutdown.cancel();
    task.await.unwrap();
}

#[tokio::test]
async fn a_file_with_a_damaged_line_goes_back_whole() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path());
    write(&letters, "archive", 1);
    let file = letters.request_replay(&Filter::default()).unwrap().remove(0);
    let text = std::fs::read_to_string(&file.path).unwrap();
    std::fs::write(&file.path, format!("{text}not a letter\n")).unwrap();
    let fake = Fake::new(usize::MAX);
    replay(&letters, &fake).await;
    assert!(fake.bodies("archive").is_empty());
    assert_eq!(letters.list(&Filter::default()).unwrap()[0].kept, crate::dead_letter::Kept::Dead);
}
