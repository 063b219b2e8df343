//! What an S3 server holds, read as lines, and the promises about it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use wharf_local_aws::{Object, S3};

/// All objects below a key prefix, as JSON lines.
#[derive(Debug, Clone, Default)]
pub struct Delivered {
    /// By key; by index, where the key ends in one.
    pub objects: Vec<Arc<DeliveredObject>>,
}

/// One object.
#[derive(Debug, Clone)]
pub struct DeliveredObject {
    /// Its key, without a slash at the beginning.
    pub key: String,
    /// The number at the end of the key.
    pub index: Option<u64>,
    /// Bytes as stored.
    pub size: usize,
    /// The names of its lines (`source-00000000`), in order.
    pub lines: Vec<String>,
    /// Of how many parts it was made; 0 is one put.
    pub parts: usize,
    /// Its metadata.
    pub metadata: BTreeMap<String, String>,
}

impl Delivered {
    /// Reads what a local server holds below `prefix`.
    ///
    /// # Panics
    /// Where an object is not made of JSON lines.
    #[must_use]
    pub fn of(s3: &S3, prefix: &str) -> Self {
        let mut objects = Vec::new();
        for object in s3.objects() {
            if object.key.trim_start_matches('/').starts_with(prefix) {
                match read_once(&object) {
                    Ok(read) => objects.push(read),
                    Err(error) => panic!("{error:#}"),
                }
            }
        }
        sort(&mut objects);
        Self { objects }
    }
    /// Reads files that another client downloaded, below `directory`.
    ///
    /// # Errors
    /// Where a file cannot be read, or is not made of JSON lines.
    pub fn of_directory(directory: &Path, prefix: &str) -> anyhow::Result<Self> {
        let mut objects = Vec::new();
        let mut folders = vec![directory.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let key = path.strip_prefix(directory)?.to_string_lossy().into_owned();
                if key.starts_with(prefix) {
                    objects.push(Arc::new(read(&key, &std::fs::read(&path)?)?));
                }
            }
        }
        sort(&mut objects);
        Ok(Self { objects })
    }
    /// How many lines there are, duplicates included.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.objects.iter().map(|object| object.lines.len()).sum()
    }
    /// How many different lines there are.
    #[must_use]
    pub fn distinct(&self) -> BTreeSet<String> {
        self.objects.iter().flat_map(|object| object.lines.iter().cloned()).collect()
    }
    /// Every one of these lines is there, once, and no other.
    ///
    /// # Panics
    /// Where not, with what is wrong.
    pub fn assert_each_once(&self, expected: impl IntoIterator<Item = String>) {
        panic_with(self.check_each_once(expected));
    }
    /// No line is there twice.
    ///
    /// # Panics
    /// Where one is, with the keys.
    pub fn assert_none_twice(&self) {
        panic_with(self.check_none_twice());
    }
    /// The keys' numbers are `first`, `first + 1`, … without a gap.
    ///
    /// # Panics
    /// Where they are not.
    pub fn assert_contiguous(&self, first: u64) {
        panic_with(self.check_contiguous(first));
    }
    /// See [`Delivered::assert_each_once`].
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_each_once(&self, expected: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        self.check_none_twice()?;
        let expected: BTreeSet<String> = expected.into_iter().collect();
        let there = self.distinct();
        let lost: Vec<_> = expected.difference(&there).collect();
        let strange: Vec<_> = there.difference(&expected).collect();
        ensure!(lost.is_empty(), "{} of {} lines are lost: {}", lost.len(), expected.len(), some(&lost));
        ensure!(strange.is_empty(), "{} lines were never written: {}", strange.len(), some(&strange));
        Ok(())
    }
    /// See [`Delivered::assert_none_twice`].
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_none_twice(&self) -> anyhow::Result<()> {
        let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for object in &self.objects {
            for line in &object.lines {
                places.entry(line).or_default().push(&object.key);
            }
        }
        let twice: Vec<String> = places
            .iter()
            .filter(|(_, keys)| keys.len() > 1)
            .map(|(line, keys)| format!("{line} in {}", keys.join(" and ")))
            .collect();
        ensure!(twice.is_empty(), "{} lines are there more than once: {}", twice.len(), some(&twice));
        Ok(())
    }
    /// See [`Delivered::assert_contiguous`].
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_contiguous(&self, first: u64) -> anyhow::Result<()> {
        let numbers: Vec<u64> = self.objects.iter().filter_map(|object| object.index).collect();
        ensure!(numbers.len() == self.objects.len(), "some keys end in no number: {:?}", self.keys());
        let contiguous = numbers.iter().copied().eq(first..first + numbers.len() as u64);
        ensure!(contiguous, "the index has a gap or does not begin at {first}: {numbers:?}");
        Ok(())
    }
    /// In every object, each source's lines stand in the order in which they were written.
    ///
    /// # Panics
    /// Where not.
    pub fn assert_in_order(&self) {
        for object in &self.objects {
            let mut last: BTreeMap<&str, &str> = BTreeMap::new();
            for line in &object.lines {
                let Some((source, number)) = line.rsplit_once('-') else { continue };
                if let Some(before) = last.insert(source, number) {
                    assert!(before < number, "{}: {source}-{number} stands behind {source}-{before}", object.key);
                }
            }
        }
    }
    /// All keys.
    #[must_use]
    pub fn keys(&self) -> Vec<&str> {
        self.objects.iter().map(|object| object.key.as_str()).collect()
    }
}

fn panic_with(checked: anyhow::Result<()>) {
    if let Err(error) = checked {
        panic!("{error:#}");
    }
}

fn sort(objects: &mut [Arc<DeliveredObject>]) {
    objects.sort_by(|a, b| (a.index, &a.key).cmp(&(b.index, &b.key)));
}

fn some<T: std::fmt::Debug>(all: &[T]) -> String {
    let shown: Vec<String> = all.iter().take(5).map(|one| format!("{one:?}")).collect();
    format!("{}{}", shown.join(", "), if all.len() > 5 { ", …" } else { "" })
}

/// Tests look again and again while they wait: an object that was read before is not read again.
fn read_once(object: &Object) -> anyhow::Result<Arc<DeliveredObject>> {
    type Read = HashMap<(String, String, BTreeMap<String, String>), Arc<DeliveredObject>>;
    static READ: LazyLock<Mutex<Read>> = LazyLock::new(Mutex::default);
    let name = (object.key.clone(), object.etag.clone(), object.attributes.metadata.clone());
    let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(read) = known.get(&name) {
        return Ok(Arc::clone(read));
    }
    let mut new = read(&object.key, &object.body)?;
    new.parts = object.parts;
    new.metadata = object.attributes.metadata.clone();
    let new = Arc::new(new);
    known.insert(name, Arc::clone(&new));
    Ok(new)
}

fn read(key: &str, body: &[u8]) -> anyhow::Result<DeliveredObject> {
    ensure!(body.is_empty() || body.ends_with(b"\n"), "{key} does not end with a line feed");
    let mut lines = Vec::new();
    for (number, text) in body.split(|byte| *byte == b'\n').enumerate().filter(|(_, text)| !text.is_empty()) {
        let value: serde_json::Value = serde_json::from_slice(text)
            .with_context(|| format!("{key}, line {}: not JSON: {}", number + 1, String::from_utf8_lossy(text)))?;
        let log = ["log", "body", "message"].into_iter().find_map(|key| value[key].as_str());
        let log = log.with_context(|| format!("{key}, line {}: has no `log`", number + 1))?;
        lines.push(log.split(' ').next().unwrap_or_default().to_owned());
    }
    let key = key.trim_start_matches('/').to_owned();
    let digits = key.len() - key.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let index = key.get(key.len() - digits..).and_then(|digits| digits.parse().ok());
    Ok(DeliveredObject { index, size: body.len(), lines, parts: 0, metadata: BTreeMap::new(), key })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered(objects: &[(&str, &str)]) -> Delivered {
        let read = |(key, body): &(&str, &str)| Arc::new(read(key, body.as_bytes()).unwrap());
        let mut objects: Vec<_> = objects.iter().map(read).collect();
        sort(&mut objects);
        Delivered { objects }
    }

    const A0: &str = "{\"date\":\"x\",\"log\":\"a-00000000 fox\"}\n";
    const A1: &str = "{\"date\":\"x\",\"log\":\"a-00000001 fox\"}\n";

    #[test]
    fn a_whole_delivery_passes() {
        let all = delivered(&[("l/s_10", A1), ("/l/s_9", A0)]);
        assert_eq!(all.keys(), ["l/s_9", "l/s_10"]);
        all.assert_each_once(["a-00000000".to_owned(), "a-00000001".to_owned()]);
        all.assert_contiguous(9);
        all.assert_in_order();
    }

    #[test]
    #[should_panic(expected = "1 of 2 lines are lost: \"a-00000001\"")]
    fn a_lost_line_is_found() {
        delivered(&[("l/s_0", A0)]).assert_each_once(["a-00000000".to_owned(), "a-00000001".to_owned()]);
    }

    #[test]
    #[should_panic(expected = "a-00000000 in l/s_0 and l/s_1")]
    fn a_doubled_line_is_found() {
        delivered(&[("l/s_0", A0), ("l/s_1", A0)]).assert_none_twice();
    }

    #[test]
    #[should_panic(expected = "the index has a gap")]
    fn a_gap_is_found() {
        delivered(&[("l/s_0", A0), ("l/s_2", A1)]).assert_contiguous(0);
    }

    #[test]
    #[should_panic(expected = "a-00000000 stands behind a-00000001")]
    fn a_wrong_order_is_found() {
        delivered(&[("l/s_0", &format!("{A1}{A0}"))]).assert_in_order();
    }
}
