//! What an S3 server holds, read as lines, and the promises about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, ensure};
use wharf_local_aws::S3;

/// All objects below a key prefix, as JSON lines.
#[derive(Debug, Clone, Default)]
pub struct Delivered {
    /// By key; by index, where the key ends in one.
    pub objects: Vec<DeliveredObject>,
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
        let mut objects: Vec<DeliveredObject> = s3
            .objects()
            .iter()
            .filter(|object| object.key.trim_start_matches('/').starts_with(prefix))
            .map(|object| match read(&object.key, &object.body) {
                Ok(mut read) => {
                    read.parts = object.parts;
                    read.metadata = object.attributes.metadata.clone();
                    read
                }
                Err(error) => panic!("{error:#}"),
            })
            .collect();
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
                    objects.push(read(&key, &std::fs::read(&path)?)?);
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
        self.assert_none_twice();
        let expected: BTreeSet<String> = expected.into_iter().collect();
        let there = self.distinct();
        let lost: Vec<_> = expected.difference(&there).collect();
        let strange: Vec<_> = there.difference(&expected).collect();
        assert!(lost.is_empty(), "{} of {} lines are lost: {}", lost.len(), expected.len(), some(&lost));
        assert!(strange.is_empty(), "{} lines were never written: {}", strange.len(), some(&strange));
    }
    /// No line is there twice.
    ///
    /// # Panics
    /// Where one is, with the keys.
    pub fn assert_none_twice(&self) {
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
        assert!(twice.is_empty(), "{} lines are there more than once: {}", twice.len(), some(&twice));
    }
    /// The keys' numbers are `first`, `first + 1`, … without a gap.
    ///
    /// # Panics
    /// Where they are not.
    pub fn assert_contiguous(&self, first: u64) {
        let numbers: Vec<u64> = self.objects.iter().filter_map(|object| object.index).collect();
        let wanted: Vec<u64> = (first..first + numbers.len() as u64).collect();
        assert_eq!(numbers.len(), self.objects.len(), "some keys end in no number: {:?}", self.keys());
        assert_eq!(numbers, wanted, "the index has a gap or does not begin at {first}");
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

fn sort(objects: &mut [DeliveredObject]) {
    objects.sort_by(|a, b| (a.index, &a.key).cmp(&(b.index, &b.key)));
}

fn some<T: std::fmt::Debug>(all: &[T]) -> String {
    let shown: Vec<String> = all.iter().take(5).map(|one| format!("{one:?}")).collect();
    format!("{}{}", shown.join(", "), if all.len() > 5 { ", …" } else { "" })
}

fn read(key: &str, body: &[u8]) -> anyhow::Result<DeliveredObject> {
    ensure!(body.is_empty() || body.ends_with(b"\n"), "{key} does not end with a line feed");
    let mut lines = Vec::new();
    for (number, text) in body.split(|byte| *byte == b'\n').enumerate().filter(|(_, text)| !text.is_empty()) {
        let value: serde_json::Value = serde_json::from_slice(text)
            .with_context(|| format!("{key}, line {}: not JSON: {}", number + 1, String::from_utf8_lossy(text)))?;
        let log = value["log"].as_str().with_context(|| format!("{key}, line {}: has no `log`", number + 1))?;
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
        let read = |(key, body): &(&str, &str)| read(key, body.as_bytes()).unwrap();
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
