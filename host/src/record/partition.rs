//! What keeps records apart before they are put into batches: the partition that each record of a chunk belongs to.
//!
//! A partition has a name, which the state keeps cursors and batches under. It tells each key and what the records have there, so that
//! names differ where any of it does, also from those that other keys give: `.kubernetes.pod=web-1|tag=app`. Where tags alone are kept
//! apart it is the tag.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::chunk::{BodyKind, Chunk, RecordRef, Route};
use super::encode::{Key, TEXT_KEY, unescape};
use super::record_set::{RecordSet, RecordSetBuilder};

/// What tells one record from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionKey {
    /// The record's tag.
    Tag,
    /// The value at this path of keys in a JSON record. A text record has one key, `log`.
    Field(Vec<String>),
}

/// Longest name that stands as it is: the state's keys end at 512 bytes.
const LONGEST_NAME: usize = 400;

/// An output's partition keys, ready to be looked up.
#[derive(Debug)]
pub struct Partitioning {
    keys: Vec<(PartitionKey, Lookup)>,
    /// Records are told apart by their tags, and by nothing else.
    by_tag_alone: bool,
}

/// The steps of a field's path; of a tag none.
type Lookup = Vec<Key>;

impl Partitioning {
    /// Partitions by these keys; without any there is one partition.
    pub fn new(keys: &[PartitionKey]) -> Self {
        let lookup = |key: &PartitionKey| match key {
            PartitionKey::Tag => Vec::new(),
            PartitionKey::Field(path) => path.iter().map(|step| Key::new(step)).collect(),
        };
        let by_tag_alone = !keys.is_empty() && keys.iter().all(|key| *key == PartitionKey::Tag);
        Self { keys: keys.iter().map(|key| (key.clone(), lookup(key))).collect(), by_tag_alone }
    }
    /// The routes of a chunk to an output that is partitioned so: one for each partition that it has records of, in the order in which
    /// these begin.
    pub fn routes(&self, output: &Arc<str>, chunk: &Chunk) -> Vec<Route> {
        let groups = self.groups(chunk);
        let whole = groups.len() == 1;
        let route = |(partition, records): (Arc<str>, Option<RecordSet>)| Route {
            output: output.clone(),
            partition,
            part: records.filter(|_| !whole).map(|records| chunk.part(records)),
        };
        groups.into_iter().map(route).collect()
    }
    /// Whether a record's body matters.
    pub fn has_fields(&self) -> bool {
        self.keys.iter().any(|(key, _)| *key != PartitionKey::Tag)
    }
    /// What records with this tag, kind and body have for each key: the tag or the field's value, a string as it is, anything else as the
    /// JSON that it is written as. What is no UTF-8 becomes U+FFFD. None where there is no such field.
    pub fn values(&self, tag: &str, kind: BodyKind, body: &[u8]) -> Vec<Option<String>> {
        let of_key = |(key, lookup): &(PartitionKey, Lookup)| match key {
            PartitionKey::Tag => Some(tag.to_owned()),
            PartitionKey::Field(_) => Some(meaning(kind, field(lookup, kind, body)?)),
        };
        self.keys.iter().map(of_key).collect()
    }

    /// The records of each partition; where it is clear without looking at them that all are of one, no set.
    fn groups(&self, chunk: &Chunk) -> Vec<(Arc<str>, Option<RecordSet>)> {
        let (tag, kind) = (&chunk.meta().tag, chunk.meta().kind);
        if self.by_tag_alone {
            return vec![(shortened(tag.clone()), None)];
        }
        if !self.is_looked_up(chunk) {
            return vec![(self.name(tag, kind, &[]), None)];
        }
        let mut groups: Vec<(Arc<str>, RecordSetBuilder)> = Vec::new();
        // Found by what is written in the records, so that names are made once for each; two spellings may mean one name.
        let mut by_writing: HashMap<Vec<u8>, usize> = HashMap::new();
        let mut by_name: HashMap<Arc<str>, usize> = HashMap::new();
        let (mut writing, mut last, mut group) = (Vec::new(), None, 0);
        for (number, record) in (0..).zip(chunk.iter()) {
            writing.clear();
            self.write(kind, record, &mut writing);
            if last.as_ref() != Some(&writing) {
                group = match by_writing.get(&writing) {
                    Some(known) => *known,
                    None => {
                        let name = self.name(tag, kind, record.body);
                        let group = *by_name.entry(name.clone()).or_insert(groups.len());
                        if group == groups.len() {
                            groups.push((name, RecordSetBuilder::default()));
                        }
                        by_writing.insert(writing.clone(), group);
                        group
                    }
                };
                let last = last.get_or_insert_with(Vec::new);
                std::mem::swap(last, &mut writing);
            }
            if let Some((_, records)) = groups.get_mut(group) {
                records.push(number);
            }
        }
        groups.into_iter().map(|(name, records)| (name, records.finish())).collect()
    }
    /// Whether records of the chunk may differ.
    fn is_looked_up(&self, chunk: &Chunk) -> bool {
        let is_there = |(key, lookup): &(PartitionKey, Lookup)| match (key, chunk.meta().kind) {
            (PartitionKey::Tag, _) => false,
            (PartitionKey::Field(path), BodyKind::Text) => is_text(path),
            (PartitionKey::Field(_), BodyKind::Json) => !lookup.iter().any(|step| step.is_absent(chunk.bodies())),
        };
        self.keys.iter().any(is_there)
    }
    /// Appends what the record has for each field, as it is written there.
    fn write(&self, kind: BodyKind, record: RecordRef<'_>, out: &mut Vec<u8>) {
        for (key, lookup) in &self.keys {
            if *key == PartitionKey::Tag {
                continue;
            }
            // Neither can be another's beginning: nothing has this length.
            match field(lookup, kind, record.body) {
                None => out.extend_from_slice(&u32::MAX.to_le_bytes()),
                Some(value) => {
                    // Bodies are shorter than 4 GiB.
                    out.extend_from_slice(&(value.len() as u32).to_le_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
    }
    fn name(&self, tag: &str, kind: BodyKind, body: &[u8]) -> Arc<str> {
        let mut name = String::new();
        for ((key, _), value) in self.keys.iter().zip(self.values(tag, kind, body)) {
            if !name.is_empty() {
                name.push('|');
            }
            match key {
                PartitionKey::Tag => name.push_str("tag"),
                PartitionKey::Field(path) => {
                    for step in path {
                        name.push('.');
                        write_escaped(step, &['.', '='], &mut name);
                    }
                }
            }
            if let Some(value) = value {
                name.push('=');
                write_escaped(&value, &[], &mut name);
            }
        }
        shortened(name.into())
    }
}

/// The field's value as it is written; of a text record, the text.
fn field<'a>(path: &[Key], kind: BodyKind, body: &'a [u8]) -> Option<&'a [u8]> {
    match kind {
        BodyKind::Text => path.iter().map(Key::text).eq([TEXT_KEY.as_bytes()]).then_some(body),
        BodyKind::Json => path.iter().try_fold(body, |object, step| step.value(object)),
    }
}

fn is_text(path: &[String]) -> bool {
    path.iter().eq([TEXT_KEY])
}

/// What a value that is written so means.
fn meaning(kind: BodyKind, written: &[u8]) -> String {
    let inside =
        written.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).filter(|_| kind == BodyKind::Json);
    match inside {
        Some(inside) => {
            let mut text = Vec::with_capacity(inside.len());
            unescape(inside, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
        None => String::from_utf8_lossy(written).into_owned(),
    }
}

/// Appends text; what means something in a name, and what cannot be seen, as `%` and the hexadecimal digits of its bytes.
fn write_escaped(text: &str, more: &[char], out: &mut String) {
    for character in text.chars() {
        if matches!(character, '%' | '|') || character.is_control() || more.contains(&character) {
            for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string does not fail.
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(character);
        }
    }
}

/// The name, or, where it is too long, its beginning and a hash: longer than any name that stands as it is.
fn shortened(name: Arc<str>) -> Arc<str> {
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let beginning = name.get(..name.floor_char_boundary(LONGEST_NAME)).unwrap_or_default();
    format!("{beginning}~{}", hex::encode(Sha256::digest(name.as_bytes()))).into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::record::ChunkBuilder;

    fn at(path: &[&str]) -> PartitionKey {
        PartitionKey::Field(path.iter().map(|step| (*step).to_owned()).collect())
    }

    fn chunk(kind: BodyKind, bodies: &[&str]) -> Chunk {
        let mut builder = ChunkBuilder::arrived(kind, "app".into(), 9);
        for (time, body) in (1..).zip(bodies) {
            builder.push(time, body.as_bytes());
        }
        builder.finish().unwrap()
    }

    /// Each partition's name and records; no records where it has all.
    fn shares(keys: &[PartitionKey], chunk: &Chunk) -> Vec<(String, Vec<u32>)> {
        let routes = Partitioning::new(keys).routes(&"out".into(), chunk);
        let numbers = |route: &Route| route.part.iter().flat_map(|part| part.records.iter()).collect();
        routes.iter().map(|route| (route.partition.to_string(), numbers(route))).collect()
    }

    fn value(path: &[&str], body: &str) -> Option<String> {
        Partitioning::new(&[at(path)]).values("app", BodyKind::Json, body.as_bytes()).remove(0)
    }

    #[test]
    fn values_are_strings_as_they_are_and_everything_else_as_it_is_written() {
        for (body, expected) in [
            (r#"{"k":"web"}"#, Some("web")),
            (r#"{"k":""}"#, Some("")),
            (r#"{"k":"a\"\u0041\n\ud83d\ude00"}"#, Some("a\"A\n😀")),
            (r#"{"k":"\ud800"}"#, Some("\u{fffd}")),
            (r#"{"k":1.50}"#, Some("1.50")),
            (r#"{"k":true}"#, Some("true")),
            (r#"{"k":null}"#, Some("null")),
            (r#"{"k":[1,"a"]}"#, Some(r#"[1,"a"]"#)),
            (r#"{"k": {"b": "c"} }"#, Some(r#"{"b": "c"}"#)),
            (r#"{"k":1,"k":2}"#, Some("1")),
            (r#"{"\u006b":"escaped key"}"#, Some("escaped key")),
            (r#"{"kk":1}"#, None),
            (r#"{"a":{"k":1}}"#, None),
            ("{}", None),
        ] {
            assert_eq!(value(&["k"], body).as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn a_path_leads_through_objects_only() {
        for (body, expected) in [
            (r#"{"a":{"b":{"c":"deep"}}}"#, Some("deep")),
            (r#"{"a":{"b":{"d":1}}}"#, None),
            (r#"{"a":{"b":"c"}}"#, None),
            (r#"{"a":[{"b":{"c":1}}]}"#, None),
            (r#"{"a":null}"#, None),
            (r#"{"a":{"x":1},"a":{"b":{"c":2}}}"#, None),
        ] {
            assert_eq!(value(&["a", "b", "c"], body).as_deref(), expected, "{body}");
        }
    }

    #[test]
    fn a_text_record_has_one_key() {
        let text = |path: &[&str]| Partitioning::new(&[at(path)]).values("app", BodyKind::Text, b"{\"k\":1}\xff");
        assert_eq!(text(&["log"]), [Some("{\"k\":1}\u{fffd}".to_owned())]);
        assert_eq!(text(&["k"]), [None]);
        assert_eq!(text(&["log", "k"]), [None]);
        let lines = chunk(BodyKind::Text, &["a", "b", "a"]);
        let log = [("a", vec![0, 2]), ("b", vec![1])].map(|(line, of)| (format!(".log={line}"), of));
        assert_eq!(shares(&[at(&["log"])], &lines), log);
        assert_eq!(shares(&[at(&["k"])], &lines), [(".k".to_owned(), vec![])]);
    }

    #[test]
    fn without_keys_there_is_one_partition_and_by_tag_alone_it_is_the_tag() {
        let chunk = chunk(BodyKind::Json, &[r#"{"k":1}"#, r#"{"k":2}"#]);
        assert_eq!(shares(&[], &chunk), [(String::new(), vec![])]);
        assert_eq!(shares(&[PartitionKey::Tag], &chunk), [("app".to_owned(), vec![])]);
    }

    #[test]
    fn records_that_all_have_the_same_are_not_picked_out_one_by_one() {
        let same = chunk(BodyKind::Json, &[r#"{"k":"a","n":1}"#, r#"{"n":2,"k":"\u0061"}"#]);
        assert_eq!(shares(&[at(&["k"])], &same), [(".k=a".to_owned(), vec![])]);
        assert_eq!(shares(&[at(&["absent"]), PartitionKey::Tag], &same), [(".absent|tag=app".to_owned(), vec![])]);
    }

    #[test]
    fn records_are_shared_out_by_what_they_have_in_the_order_in_which_partitions_begin() {
        let bodies = [
            r#"{"pod":{"name":"b"},"env":"x"}"#,
            r#"{"pod":{"name":"a"},"env":"x"}"#,
            r#"{"env":"x"}"#,
            r#"{"pod":{"name":"b"},"env":"x"}"#,
            r#"{"pod":{"name":"b"},"env":"y"}"#,
            r#"{"pod":{"name":""},"env":"x"}"#,
        ];
        let expected = [
            (".pod.name=b|.env=x", vec![0, 3]),
            (".pod.name=a|.env=x", vec![1]),
            (".pod.name|.env=x", vec![2]),
            (".pod.name=b|.env=y", vec![4]),
            (".pod.name=|.env=x", vec![5]),
        ];
        let found = shares(&[at(&["pod", "name"]), at(&["env"])], &chunk(BodyKind::Json, &bodies));
        assert_eq!(found, expected.map(|(name, records)| (name.to_owned(), records)));
    }

    #[test]
    fn names_are_readable_and_no_two_are_the_same() {
        let name = |keys: &[PartitionKey], body: &str| shares(keys, &chunk(BodyKind::Json, &[body])).remove(0).0;
        let (ab, a_b) = (at(&["a.b"]), at(&["a", "b"]));
        assert_eq!(name(&[ab], r#"{"a.b":"1|2=%\u0000"}"#), ".a%2Eb=1%7C2=%25%00");
        assert_eq!(name(&[a_b], r#"{"a":{"b":1}}"#), ".a.b=1");
        let two = [at(&["a"]), at(&["b"])];
        let bodies = [
            r#"{"a":"x|.b=y"}"#,
            r#"{"a":"x","b":"y"}"#,
            r#"{"a":"x"}"#,
            r#"{"a":"x","b":""}"#,
            r#"{"a":"x%7C.b=y"}"#,
            r#"{"b":"y"}"#,
            "{}",
        ];
        let names: HashSet<String> = bodies.iter().map(|body| name(&two, body)).collect();
        assert_eq!(names.len(), bodies.len(), "{names:?}");
    }

    #[test]
    fn names_are_never_too_long_for_the_state() {
        let long = |repeated: usize| {
            let body = format!(r#"{{"k":"{}"}}"#, "é".repeat(repeated));
            shares(&[at(&["k"])], &chunk(BodyKind::Json, &[&body])).remove(0).0
        };
        assert!(long(600).len() <= 512);
        assert_ne!(long(600), long(601));
        assert_eq!(long(600), long(600));
        let tag = |length: usize| shortened("é".repeat(length).into());
        assert!(tag(600).len() <= 512 && tag(600) != tag(601));
        assert_eq!(&*tag(200), "é".repeat(200));
    }

    #[test]
    fn thousands_of_partitions_in_one_chunk_each_have_their_records() {
        let bodies: Vec<String> = (0..9_000).map(|n| format!(r#"{{"id":{}}}"#, n % 3_000)).collect();
        let chunk = chunk(BodyKind::Json, &bodies.iter().map(String::as_str).collect::<Vec<_>>());
        let found = shares(&[at(&["id"])], &chunk);
        let expected = (0..3_000).map(|n| (format!(".id={n}"), vec![n, n + 3_000, n + 6_000]));
        assert!(found.into_iter().eq(expected));
    }

    proptest! {
        /// Against a reading of each record by serde_json.
        #[test]
        fn each_record_is_in_the_partition_of_its_values_and_in_no_other(
            records in prop::collection::vec((0..4, 0..3, any::<bool>()), 1..30),
        ) {
            let pod = |n: i32| [json!("a"), json!(""), json!({"x": 1}), Value::Null][n as usize].clone();
            let body = |(a, b, nested): (i32, i32, bool)| match (b, nested) {
                (0, _) => json!({"n": a}),
                (_, true) => json!({"a": {"b": pod(a)}, "c": b}),
                (_, false) => json!({"c": b, "a": pod(a)}),
            };
            let bodies: Vec<String> = records.into_iter().map(|record| body(record).to_string()).collect();
            let chunk = chunk(BodyKind::Json, &bodies.iter().map(String::as_str).collect::<Vec<_>>());
            let keys = [at(&["a", "b"]), PartitionKey::Tag, at(&["c"])];
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let mut expected: Vec<(Vec<Option<String>>, Vec<u32>)> = Vec::new();
            for (number, body) in (0..).zip(&bodies) {
                let body: Value = serde_json::from_str(body).unwrap();
                let of = vec![body.pointer("/a/b").map(text), Some("app".to_owned()), body.get("c").map(text)];
                match expected.iter_mut().find(|(values, _)| *values == of) {
                    Some((_, numbers)) => numbers.push(number),
                    None => expected.push((of, vec![number])),
                }
            }
            let partitioning = Partitioning::new(&keys);
            let routes = partitioning.routes(&"out".into(), &chunk);
            let all: Vec<u32> = (0..chunk.meta().records).collect();
            let found: Vec<_> = routes.iter().map(|route| {
                let numbers = route.part.as_ref().map_or(all.clone(), |part| part.records.iter().collect());
                let first = chunk.record(numbers[0]).unwrap();
                (partitioning.values("app", BodyKind::Json, first.body), numbers)
            }).collect();
            prop_assert_eq!(found, expected);
            let names: HashSet<_> = routes.iter().map(|route| route.partition.clone()).collect();
            prop_assert_eq!(names.len(), routes.len());
            prop_assert_eq!(routes.iter().any(|route| route.part.is_none()), routes.len() == 1);
        }
    }
}
