//! What the server holds: buckets, objects, uploads. All rules that have to be atomic are decided here, under one lock.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use s3s::{S3Result, s3_error};

use crate::checksum::Checksum;

/// What a client says about an object besides its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`, without `aws-chunked`, which is a matter of the transfer.
    pub content_encoding: Option<String>,
    /// `x-amz-storage-class`.
    pub storage_class: Option<String>,
    /// `x-amz-acl`.
    pub acl: Option<String>,
    /// `x-amz-server-side-encryption`.
    pub server_side_encryption: Option<String>,
    /// `x-amz-server-side-encryption-aws-kms-key-id`.
    pub kms_key_id: Option<String>,
    /// `x-amz-server-side-encryption-bucket-key-enabled`.
    pub bucket_key: Option<bool>,
    /// `x-amz-meta-*`, without the prefix.
    pub metadata: BTreeMap<String, String>,
    /// `x-amz-tagging`, decoded.
    pub tags: Vec<(String, String)>,
    /// All `x-amz-grant-*` headers.
    pub grants: BTreeMap<String, String>,
}

/// A stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Bucket.
    pub bucket: String,
    /// Key.
    pub key: String,
    /// The bytes; empty where the server discards them.
    pub body: Bytes,
    /// How many there were.
    pub size: u64,
    /// Without quotation marks.
    pub etag: String,
    /// When it was stored.
    pub stored: SystemTime,
    /// How many parts it came in; 0 is one `PutObject`.
    pub parts: usize,
    /// Its checksum.
    pub checksum: Option<Checksum>,
    /// What the client said about it.
    pub attributes: Attributes,
}

/// A multipart upload that is neither completed nor aborted.
#[derive(Debug, Clone)]
pub struct Upload {
    /// Bucket.
    pub bucket: String,
    /// Key.
    pub key: String,
    /// Its id.
    pub id: String,
    /// When it was begun.
    pub initiated: SystemTime,
    /// The checksum algorithm that its parts must use, where one was named.
    pub algorithm: Option<crate::Algorithm>,
    /// Whether parts' checksums make a composite one, or the object has one of its own.
    pub composite: bool,
    /// Parts by number.
    pub parts: BTreeMap<i32, Part>,
    /// What the client said about the object.
    pub attributes: Attributes,
}

/// An uploaded part.
#[derive(Debug, Clone)]
pub struct Part {
    /// The bytes; empty where the server discards them.
    pub body: Bytes,
    /// How many there were.
    pub size: u64,
    /// Without quotation marks.
    pub etag: String,
    /// When it came.
    pub stored: SystemTime,
    /// Its checksum, where the client sent one.
    pub checksum: Option<Checksum>,
}

/// A condition on what is there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    None,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match: "etag"`; none is `*`.
    Etag(Option<String>),
}

#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) buckets: BTreeMap<String, BTreeMap<String, Arc<Object>>>,
    pub(crate) uploads: HashMap<String, Upload>,
    /// Keys that somebody tried to overwrite.
    pub(crate) overwrites: Vec<String>,
    pub(crate) next_id: u64,
}

/// The store.
#[derive(Debug)]
pub(crate) struct Store {
    held: Mutex<Held>,
    directory: Option<PathBuf>,
    refuse_overwrites: bool,
}

impl Held {
    /// A bucket's objects.
    pub(crate) fn bucket(&mut self, name: &str) -> S3Result<&mut BTreeMap<String, Arc<Object>>> {
        self.buckets.get_mut(name).ok_or_else(|| s3_error!(NoSuchBucket, "The specified bucket does not exist"))
    }
    pub(crate) fn object(&mut self, bucket: &str, key: &str) -> S3Result<Arc<Object>> {
        let found = self.bucket(bucket)?.get(key).cloned();
        found.ok_or_else(|| s3_error!(NoSuchKey, "The specified key does not exist."))
    }
    pub(crate) fn upload(&mut self, bucket: &str, key: &str, id: &str) -> S3Result<&mut Upload> {
        self.bucket(bucket)?;
        self.uploads
            .get_mut(id)
            .filter(|upload| upload.bucket == bucket && upload.key == key)
            .ok_or_else(|| s3_error!(NoSuchUpload, "The specified multipart upload does not exist."))
    }
    /// An id that no other has.
    pub(crate) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

impl Store {
    pub(crate) fn new(buckets: &[String], directory: Option<PathBuf>, refuse_overwrites: bool) -> Self {
        let mut held = Held::default();
        for bucket in buckets {
            held.buckets.insert(bucket.clone(), BTreeMap::new());
        }
        Self { held: Mutex::new(held), directory, refuse_overwrites }
    }
    pub(crate) fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether a write under this condition could succeed now.
    pub(crate) fn check(&self, held: &mut Held, bucket: &str, key: &str, condition: &Condition) -> S3Result<()> {
        let there = held.bucket(bucket)?.get(key).map(|object| object.etag.clone());
        let refused = || s3_error!(PreconditionFailed, "At least one of the pre-conditions you specified did not hold");
        match (condition, there) {
            (Condition::Absent, Some(_)) => Err(refused()),
            (Condition::Etag(Some(wanted)), Some(etag)) if *wanted != etag => Err(refused()),
            (Condition::Etag(_), None) => Err(s3_error!(NoSuchKey, "The specified key does not exist.")),
            (Condition::None, Some(_)) => {
                held.overwrites.push(key.to_owned());
                if self.refuse_overwrites {
                    return Err(s3_error!(AccessDenied, "this server refuses to overwrite {key}"));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
    /// Stores an object if the condition holds, in one step.
    pub(crate) fn put(&self, held: &mut Held, object: Object, condition: &Condition) -> S3Result<Arc<Object>> {
        self.check(held, &object.bucket, &object.key, condition)?;
        if let Some(directory) = &self.directory {
            write_file(directory, &object)
                .map_err(|cause| s3_error!(InternalError, "writing {} as a file failed: {cause}", object.key))?;
        }
        let object = Arc::new(object);
        held.bucket(&object.bucket)?.insert(object.key.clone(), Arc::clone(&object));
        Ok(object)
    }
}

fn write_file(directory: &Path, object: &Object) -> std::io::Result<()> {
    let mut path = directory.join(&object.bucket);
    for step in object.key.split('/').filter(|step| !step.is_empty()) {
        if step == "." || step == ".." {
            return Err(std::io::Error::other("a key with dots as a path step cannot be a file"));
        }
        path.push(step);
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(path, &object.body)
}
