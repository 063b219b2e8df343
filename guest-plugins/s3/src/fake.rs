//! A small S3 and a small host in memory, for tests. What they keep outlives an attempt, as the real ones do.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use wharf_plugin::s3::{Attributes, Error, Head, Part, ServiceError, Upload};
use wharf_plugin::service::Service;
use wharf_plugin::{Encoding, HostError, Selection};

use crate::template::Facts;
use crate::world::{Bytes, Pending, Pieces, World};

/// An object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    pub bytes: Vec<u8>,
    pub metadata: Vec<(String, String)>,
    /// How many parts it came in; 0 is one request.
    pub parts: usize,
}

/// A call of S3 that goes wrong.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Which call: `put`, `head`, `create`, `part`, `complete`, `abort`, `list`.
    pub call: &'static str,
    /// How many such calls go well before.
    pub after: usize,
    pub error: Error,
    /// Whether S3 does what is asked all the same, and the answer is lost.
    pub done: bool,
}

/// An upload: its key, what its object will be like, and its parts.
type Unfinished = (String, Attributes, BTreeMap<u16, Vec<u8>>);

#[derive(Debug, Default)]
pub struct Shared {
    pub objects: BTreeMap<String, Object>,
    pub uploads: BTreeMap<String, Unfinished>,
    pub calls: Vec<String>,
    pub faults: Vec<Fault>,
    pub encodings: usize,
    next_upload: usize,

    /// The last number given out, and the number of each batch, by counter.
    pub counters: HashMap<String, (Option<u64>, HashMap<String, u64>)>,
    pub open: Vec<String>,
    pub progress: BTreeMap<String, Vec<u8>>,
    pub stored: BTreeMap<String, Vec<u8>>,
}

/// The host and S3, as one batch's delivery sees them. Clones see the same.
#[derive(Debug, Clone)]
pub struct Fake {
    pub shared: Rc<RefCell<Shared>>,
    pub facts: Facts,
    pub records: Vec<Option<Vec<u8>>>,
}

pub fn service(status: u16, code: &str) -> Error {
    Error::Service(ServiceError {
        service: Service::S3,
        status,
        code: code.into(),
        message: String::new(),
        retry_after_ms: None,
    })
}

impl Fake {
    pub fn new(records: Vec<Option<Vec<u8>>>) -> Self {
        Self {
            shared: Rc::default(),
            facts: Facts { id: "0198f3a2b4c5700081e29c3d4e5f6071".into(), tag: "app".into(), time: 0 },
            records,
        }
    }
    /// One record of so many bytes, no two parts of which are equal.
    pub fn with_bytes(size: usize) -> Self {
        let bytes = (0..size).map(|n| (n / 251 % 256) as u8 ^ (n % 251) as u8).collect();
        Self::new(vec![Some(bytes)])
    }
    /// Another batch of the same output.
    pub fn other(&self, id: &str) -> Self {
        Self { facts: Facts { id: id.into(), ..self.facts.clone() }, ..self.clone() }
    }
    pub fn bytes(&self) -> Vec<u8> {
        self.records.iter().flatten().flatten().copied().collect()
    }
    pub fn fail(&self, call: &'static str, after: usize, error: Error, done: bool) {
        self.shared.borrow_mut().faults.push(Fault { call, after, error, done });
    }
    pub fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.borrow_mut().calls)
    }
    pub fn foreign(&self, key: &str) {
        self.shared.borrow_mut().objects.insert(key.into(), Object { bytes: b"foreign".into(), ..Object::default() });
    }
    pub fn object(&self, key: &str) -> Option<Object> {
        self.shared.borrow().objects.get(key).cloned()
    }

    /// Notes the call; does it, unless a fault says that it is not done.
    fn call<T>(
        &self,
        call: &'static str,
        on: &str,
        work: impl FnOnce(&mut Shared) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let shared = &mut *self.shared.borrow_mut();
        shared.calls.push(format!("{call} {on}"));
        let due = shared.faults.iter_mut().position(|fault| {
            fault.call == call
                && match fault.after.checked_sub(1) {
                    Some(after) => {
                        fault.after = after;
                        false
                    }
                    None => true,
                }
        });
        let Some(due) = due else { return work(shared) };
        let fault = shared.faults.remove(due);
        if fault.done {
            work(shared)?;
        }
        Err(fault.error)
    }
}

fn insert(shared: &mut Shared, key: &str, object: Object, only_if_absent: bool) -> Result<(), Error> {
    if only_if_absent && shared.objects.contains_key(key) {
        return Err(service(412, "PreconditionFailed"));
    }
    shared.objects.insert(key.into(), object);
    Ok(())
}

impl World for Fake {
    type Body = Vec<u8>;
    type Pieces = FakePieces;
    type Pending = Result<Part, Error>;

    fn facts(&self) -> &Facts {
        &self.facts
    }
    fn count(&self) -> u32 {
        self.records.len() as u32
    }
    fn encode(&self, selection: &Selection, _: &Encoding) -> Result<FakePieces, HostError> {
        self.shared.borrow_mut().encodings += 1;
        let (first, count) = match selection {
            Selection::Range { first, count } => (*first as usize, *count as usize),
            _ => (0, self.records.len()),
        };
        let records = self.records.iter().enumerate().skip(first).take(count);
        let skipped =
            records.clone().filter(|(_, record)| record.is_none()).map(|(n, _)| n as u32).take(10_000).collect();
        let bytes = records.filter_map(|(_, record)| record.as_deref()).flatten().copied().collect();
        Ok(FakePieces { bytes, at: 0, begun: false, skipped })
    }

    fn put(&self, key: &str, body: &Vec<u8>, with: &Attributes, only_if_absent: bool) -> Result<(), Error> {
        self.call("put", key, |shared| {
            insert(
                shared,
                key,
                Object { bytes: body.clone(), metadata: with.metadata.clone(), parts: 0 },
                only_if_absent,
            )
        })
    }
    fn head(&self, key: &str) -> Result<Option<Head>, Error> {
        self.call("head", key, |shared| {
            Ok(shared.objects.get(key).map(|object| Head {
                etag: None,
                size: object.bytes.len() as u64,
                metadata: object.metadata.clone(),
            }))
        })
    }
    fn create(&self, key: &str, with: &Attributes) -> Result<String, Error> {
        self.call("create", key, |shared| {
            shared.next_upload += 1;
            let id = format!("u{}", shared.next_upload);
            shared.uploads.insert(id.clone(), (key.into(), with.clone(), BTreeMap::new()));
            Ok(id)
        })
    }
    fn send_part(&self, _: &str, id: &str, number: u16, body: &Vec<u8>) -> Result<Self::Pending, Error> {
        Ok(self.call("part", &number.to_string(), |shared| {
            let (_, _, parts) = shared.uploads.get_mut(id).ok_or_else(|| service(404, "NoSuchUpload"))?;
            parts.insert(number, body.clone());
            Ok(Part { number, etag: format!("\"{:x}\"", Bytes::crc32c(body)), checksum: None })
        }))
    }
    fn complete(&self, key: &str, id: &str, parts: &[Part], only_if_absent: bool) -> Result<(), Error> {
        self.call("complete", key, |shared| {
            let (_, with, there) = shared.uploads.get(id).cloned().ok_or_else(|| service(404, "NoSuchUpload"))?;
            let mut bytes = Vec::new();
            for part in parts {
                let body = there.get(&part.number).ok_or_else(|| service(400, "InvalidPart"))?;
                if part.etag != format!("\"{:x}\"", Bytes::crc32c(body)) {
                    return Err(service(400, "InvalidPart"));
                }
                bytes.extend(body);
            }
            insert(shared, key, Object { bytes, metadata: with.metadata, parts: parts.len() }, only_if_absent)?;
            shared.uploads.remove(id);
            Ok(())
        })
    }
    fn abort(&self, _: &str, _: &str, id: &str) -> Result<(), Error> {
        self.call("abort", id, |shared| {
            shared.uploads.remove(id);
            Ok(())
        })
    }
    fn uploads(&self, prefix: &str) -> Result<Vec<Upload>, Error> {
        self.call("list", prefix, |shared| {
            let there = shared.uploads.iter().filter(|(_, (key, ..))| key.starts_with(prefix));
            Ok(there
                .map(|(id, (key, ..))| Upload { key: key.clone(), upload_id: id.clone(), initiated: None })
                .collect())
        })
    }

    fn assign(&self, counter: &str, start: u64) -> Result<u64, HostError> {
        let shared = &mut *self.shared.borrow_mut();
        let (last, bound) = shared.counters.entry(counter.into()).or_default();
        Ok(*bound.entry(self.facts.id.clone()).or_insert_with(|| *last.insert(last.map_or(start, |last| last + 1))))
    }
    fn reassign(&self, counter: &str, taken: u64) -> Result<u64, HostError> {
        let shared = &mut *self.shared.borrow_mut();
        let (last, bound) = shared.counters.entry(counter.into()).or_default();
        let number = bound.get_mut(&self.facts.id).ok_or_else(|| HostError::Invalid("never assigned".into()))?;
        if *number == taken {
            *number = *last.insert(last.map_or(0, |last| last + 1));
        }
        Ok(*number)
    }
    fn is_open(&self, batch_id: &str) -> bool {
        self.shared.borrow().open.iter().any(|open| open == batch_id)
    }

    fn progress(&self, row: &str) -> Result<Option<Vec<u8>>, HostError> {
        Ok(self.shared.borrow().progress.get(&format!("{}/{row}", self.facts.id)).cloned())
    }
    fn progress_rows(&self, prefix: &str) -> Result<Vec<(String, Vec<u8>)>, HostError> {
        let own = format!("{}/", self.facts.id);
        let rows = self.shared.borrow().progress.clone();
        Ok(rows
            .into_iter()
            .filter_map(|(row, value)| Some((row.strip_prefix(&own)?.to_owned(), value)))
            .filter(|(row, _)| row.starts_with(prefix))
            .collect())
    }
    fn set_progress(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError> {
        let progress = &mut self.shared.borrow_mut().progress;
        set(progress, format!("{}/{row}", self.facts.id), value)
    }
    fn stored(&self, row: &str) -> Result<Option<Vec<u8>>, HostError> {
        Ok(self.shared.borrow().stored.get(row).cloned())
    }
    fn stored_rows(&self, prefix: &str, after: Option<&str>) -> Result<Vec<(String, Vec<u8>)>, HostError> {
        let rows = self.shared.borrow().stored.clone();
        Ok(rows
            .into_iter()
            .filter(|(row, _)| row.starts_with(prefix) && after.is_none_or(|after| row.as_str() > after))
            .take(1000)
            .collect())
    }
    fn store(&self, row: &str, value: Option<&[u8]>) -> Result<(), HostError> {
        set(&mut self.shared.borrow_mut().stored, row.into(), value)
    }
}

fn set(rows: &mut BTreeMap<String, Vec<u8>>, row: String, value: Option<&[u8]>) -> Result<(), HostError> {
    assert!(row.len() <= 545 && value.is_none_or(|value| value.len() <= 1024), "{row}");
    match value {
        Some(value) => rows.insert(row, value.into()),
        None => rows.remove(&row),
    };
    Ok(())
}

#[derive(Debug)]
pub struct FakePieces {
    bytes: Vec<u8>,
    at: usize,
    begun: bool,
    skipped: Vec<u32>,
}

impl Pieces for FakePieces {
    type Body = Vec<u8>;
    fn next(&mut self, size: u64) -> Result<Option<Vec<u8>>, HostError> {
        if self.begun && self.finished() {
            return Ok(None);
        }
        self.begun = true;
        let end = self.bytes.len().min(self.at + size as usize);
        let piece = self.bytes[self.at..end].to_vec();
        self.at = end;
        Ok(Some(piece))
    }
    fn finished(&self) -> bool {
        self.begun && self.at == self.bytes.len()
    }
    fn skipped(&self) -> Vec<u32> {
        self.skipped.clone()
    }
}

impl Bytes for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }
    fn crc32c(&self) -> u32 {
        self.iter().fold(!0, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 })
        })
    }
    fn slice(&self, offset: u64, length: u64) -> Result<Self, HostError> {
        let range = offset as usize..(offset + length) as usize;
        self.get(range).map(<[u8]>::to_vec).ok_or_else(|| HostError::Invalid("outside".into()))
    }
}

impl Pending for Result<Part, Error> {
    fn wait(&self) -> Result<Part, Error> {
        self.clone()
    }
}
