//! No room: the journal's own limit, and a disk that is really full.

use std::process::Command;

use super::*;

#[test]
fn at_its_limit_the_journal_refuses_and_takes_again_once_chunks_are_released() {
    let place = Place::new();
    let options = Options { max_bytes: Some(512 << 10), ..small() };
    let (journal, _) = place.open_with(options);
    let mut given = Vec::new();
    let refused = loop {
        match append(&journal, &body(given.len() as u64, 10_000)) {
            Ok(id) => given.push(id),
            Err(error) => break error,
        }
    };
    assert_eq!(refused, AppendError::LimitReached { used: 512 << 10, limit: 512 << 10 });
    assert_eq!(given.len(), 8 * 6);
    assert_eq!(*journal.condition().borrow(), Condition::LimitReached { used: 512 << 10, limit: 512 << 10 });
    assert_eq!(append(&journal, b"small, but later"), Err(refused));
    for id in &given {
        assert_eq!(read(&journal, *id), body(id - 1, 10_000));
    }
    journal.release(&given[..12].iter().map(|id| ChunkId(*id)).collect::<Vec<_>>());
    until_writable(&journal);
    append(&journal, &body(1, 10_000)).unwrap();
    assert!(journal.usage().disk_bytes <= 512 << 10);
}

#[test]
fn at_its_limit_the_journal_copies_half_empty_segments_together() {
    let place = Place::new();
    let (journal, _) = place.open_with(Options { max_bytes: Some(512 << 10), ..small() });
    let mut given = Vec::new();
    while let Ok(id) = append(&journal, &body(given.len() as u64, 10_000)) {
        given.push(ChunkId(id));
    }
    // Two of three go, from everywhere: no segment is empty.
    journal.release(&given.iter().copied().filter(|id| id.0 % 3 != 0).collect::<Vec<_>>());
    until_writable(&journal);
    append(&journal, &body(1, 10_000)).unwrap();
    for id in given.iter().filter(|id| id.0 % 3 == 0) {
        assert_eq!(read(&journal, id.0), body(id.0 - 1, 10_000));
    }
}

#[test]
fn a_chunk_that_could_never_fit_is_refused_alone() {
    let place = Place::new();
    let (journal, _) = place.open_with(Options { max_bytes: Some(512 << 10), ..small() });
    assert!(matches!(append(&journal, &body(1, 600_000)), Err(AppendError::LimitReached { .. })));
    assert_eq!(*journal.condition().borrow(), Condition::Writable);
    append(&journal, b"small").unwrap();
}

#[test]
fn a_reserve_that_is_not_there_is_a_full_disk() {
    let place = Place::new();
    let (journal, _) = place.open_with(Options { reserve_bytes: u64::MAX / 2, ..small() });
    let Err(AppendError::DiskFull { free, needed }) = append(&journal, b"x") else { panic!("it was taken") };
    assert!(free < needed);
    assert_eq!(needed, u64::MAX / 2);
    assert!(matches!(*journal.condition().borrow(), Condition::DiskFull { .. }));
}

/// A small file system in memory, unmounted at the end.
struct Disk(TempDir);

impl Disk {
    fn mount(size: &str) -> Option<Self> {
        let dir = TempDir::new().unwrap();
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o"])
            .arg(format!("size={size}"))
            .arg("tmpfs")
            .arg(dir.path())
            .output();
        match done {
            Ok(output) if output.status.success() => Some(Self(dir)),
            other => {
                println!("skipped: mounting a tmpfs needs root ({other:?})");
                None
            }
        }
    }
    fn open(&self, reserve_bytes: u64) -> (Journal, Recovery) {
        let (journal, recovery) = Journal::open(
            &self.0.path().join("journal"),
            &self.0.path().join("quarantine"),
            Options { reserve_bytes, ..small() },
        )
        .unwrap();
        journal.start(Box::new(|_| {}));
        (journal, recovery)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).output();
    }
}

#[test]
fn a_full_disk_refuses_loses_nothing_and_recovers_when_space_returns() {
    let Some(disk) = Disk::mount("4m") else { return };
    let reserve = 256 << 10;
    let (journal, _) = disk.open(reserve);
    let mut kept = Vec::new();
    let fill = |journal: &Journal, kept: &mut Vec<(u64, u64)>| {
        for seed in kept.len() as u64.. {
            match append(journal, &body(seed, 9_000)) {
                Ok(id) => kept.push((id, seed)),
                Err(error) => return error,
            }
        }
        unreachable!()
    };
    let error = fill(&journal, &mut kept);
    assert!(matches!(error, AppendError::DiskFull { .. }), "{error}");
    assert!(matches!(*journal.condition().borrow(), Condition::DiskFull { .. }));
    assert!(kept.len() > 300);
    let free = rustix::fs::statvfs(disk.0.path()).unwrap();
    assert!(free.f_bavail * free.f_frsize >= reserve, "the reserve is left alone");
    for (id, seed) in &kept {
        assert_eq!(read(&journal, *id), body(*seed, 9_000));
    }
    append(&journal, b"refused while full").unwrap_err();

    // Delivered chunks make room.
    let (gone, stay) = kept.split_at(kept.len() / 2);
    journal.release(&gone.iter().map(|(id, _)| ChunkId(*id)).collect::<Vec<_>>());
    let mut kept = stay.to_vec();
    until_writable(&journal);
    let id = append(&journal, &body(7_777, 9_000)).unwrap();
    kept.push((id, 7_777));

    // Somebody else takes the rest of the disk, reserve and all, and gives it back.
    let hog = disk.0.path().join("hog");
    let mut file = std::fs::File::create(&hog).unwrap();
    while std::io::Write::write_all(&mut file, &[1; 4096]).is_ok() {}
    until("the full disk is noticed", || match append(&journal, &body(8_888, 9_000)) {
        Ok(id) => {
            kept.push((id, 8_888));
            false
        }
        Err(error) => matches!(error, AppendError::DiskFull { .. }),
    });
    drop(file);
    std::fs::remove_file(&hog).unwrap();
    until_writable(&journal);
    let id = append(&journal, &body(9_999, 9_000)).unwrap();
    kept.push((id, 9_999));
    journal.close();
    drop(journal);

    let (journal, recovery) = disk.open(reserve);
    nothing_wrong(&recovery);
    let found = ids(&recovery);
    for (id, seed) in &kept {
        assert_eq!(read(&journal, *id), body(*seed, 9_000));
    }
    for id in found {
        assert_ne!(read(&journal, id), b"refused while full");
    }
    journal.close();
}

#[test]
fn a_journal_opens_and_reads_on_a_disk_without_any_room() {
    let Some(disk) = Disk::mount("1m") else { return };
    let (journal, _) = disk.open(0);
    let mut count = 0;
    while append(&journal, &body(count, 9_000)).is_ok() {
        count += 1;
    }
    journal.close();
    drop(journal);
    let mut file = std::fs::File::create(disk.0.path().join("hog")).unwrap();
    while std::io::Write::write_all(&mut file, &[1; 1024]).is_ok() {}
    let (journal, recovery) = disk.open(0);
    nothing_wrong(&recovery);
    assert_eq!(recovery.chunks.len() as u64, count);
    for seed in 0..count {
        assert_eq!(read(&journal, seed + 1), body(seed, 9_000));
    }
    let all: Vec<_> = (1..=count).map(ChunkId).collect();
    journal.release(&all);
    until("space came back", || append(&journal, &body(1, 30_000)).is_ok());
}
