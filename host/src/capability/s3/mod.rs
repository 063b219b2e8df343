//! `s3`: Amazon S3 and what speaks like it.
//!
//! Every call is first checked against the output's grant: bucket and key prefix, byte by byte. The host signs, connects, and holds
//! the credentials. Each call is one attempt; what came back is told as it is, and the guest decides what it means.

mod attributes;
mod bucket_name;
mod checksum;
pub(crate) mod grant;
#[cfg(test)]
mod tests;
mod uploads;

use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::{ByteStream, SdkBody};
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use wasmtime::component::Resource;

use self::attributes::{check_metadata, metadata, with_attributes};
use self::checksum::{Checksum, with_checksum};
use super::aws::{Answer, sort, status};
use super::bindings::s3::{self, Attributes, Error, ObjectHead, Part, Upload, Written};
use super::bindings::types::HostError;
use super::body::Body;
use super::{Caller, blocking};

pub(crate) use self::bucket_name::no_name_at_amazon;
pub use self::uploads::PendingPart;
pub(crate) use self::uploads::Uploads;

/// Uploads that one listing gives: S3's own page.
const MAX_UPLOADS: i32 = 1000;
/// Highest number of a part, and most parts of an upload.
const MAX_PARTS: u16 = 10_000;

impl s3::Host for Caller {
    async fn put_object(
        &mut self,
        bucket: String,
        key: String,
        content: Resource<Body>,
        with: Attributes,
        only_if_absent: bool,
    ) -> Answer<Written> {
        let bytes = self.table.get(&content)?.clone();
        let checked = self.may_touch(&bucket, &key).and_then(|()| check_metadata(&with.metadata));
        let checksum = match checked.and_then(|()| Checksum::named(&with.checksum)) {
            Ok(checksum) => checksum,
            Err(refused) => return Ok(Err(Error::Host(refused))),
        };
        self.ask_s3(move |client, signs_payloads| async move {
            let value = checksum_of(checksum, bytes.bytes.clone()).await?;
            let request = with_attributes!(client.put_object().bucket(bucket).key(key), with)
                .set_if_none_match(only_if_absent.then(|| "*".to_owned()))
                .body(stream(&bytes));
            let mut request = with_checksum!(request, checksum, value).customize();
            if !signs_payloads {
                request = request.disable_payload_signing();
            }
            let written = request.send().await.map_err(sort)?;
            Ok(Written { etag: written.e_tag, version_id: written.version_id })
        })
        .await
    }

    async fn head_object(
        &mut self,
        bucket: String,
        key: String,
        expected_bucket_owner: Option<String>,
    ) -> Answer<Option<ObjectHead>> {
        if let Err(refused) = self.may_touch(&bucket, &key) {
            return Ok(Err(Error::Host(refused)));
        }
        self.ask_s3(move |client, _| async move {
            let request = client.head_object().bucket(bucket).key(key).set_expected_bucket_owner(expected_bucket_owner);
            match request.send().await.map_err(sort) {
                Ok(head) => Ok(Some(ObjectHead {
                    size: head.content_length().and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
                    metadata: metadata(head.metadata()),
                    etag: head.e_tag,
                })),
                Err(error) if status(&error) == Some(404) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn create_multipart_upload(&mut self, bucket: String, key: String, with: Attributes) -> Answer<String> {
        let checked = self.may_touch(&bucket, &key).and_then(|()| check_metadata(&with.metadata));
        let checksum = match checked.and_then(|()| Checksum::named(&with.checksum)) {
            Ok(checksum) => checksum,
            Err(refused) => return Ok(Err(Error::Host(refused))),
        };
        self.ask_s3(move |client, _| async move {
            let request = with_attributes!(client.create_multipart_upload().bucket(bucket).key(key), with)
                .checksum_algorithm(checksum.algorithm());
            let created = request.send().await.map_err(sort)?;
            created.upload_id.ok_or_else(|| Error::Connection("the answer names no upload id".into()))
        })
        .await
    }

    async fn upload_part(
        &mut self,
        bucket: String,
        key: String,
        upload_id: String,
        number: u16,
        content: Resource<Body>,
        checksum: String,
        expected_bucket_owner: Option<String>,
    ) -> Answer<Resource<PendingPart>> {
        let bytes = self.table.get(&content)?.clone();
        let checked = self.may_touch(&bucket, &key).and_then(|()| {
            if !(1..=MAX_PARTS).contains(&number) {
                return Err(HostError::Invalid(format!("part number {number} is not one of 1 to {MAX_PARTS}")));
            }
            let connection = Arc::clone(&self.work()?.aws);
            Ok((Checksum::named(&checksum)?, connection))
        });
        let (checksum, connection) = match checked {
            Ok(checked) => checked,
            Err(refused) => return Ok(Err(Error::Host(refused))),
        };
        let Some(place) = self.uploads.place().await else {
            return Ok(Err(Error::Host(HostError::Unavailable("the worker is ending".into()))));
        };
        let pending = self.uploads.start(place, async move {
            let client = connection.s3().await;
            let value = checksum_of(checksum, bytes.bytes.clone()).await?;
            let request = client
                .upload_part()
                .bucket(bucket)
                .key(key)
                .upload_id(upload_id)
                .part_number(i32::from(number))
                .set_expected_bucket_owner(expected_bucket_owner)
                .body(stream(&bytes));
            let mut request = with_checksum!(request, checksum, value.clone()).customize();
            if !connection.signs_payloads() {
                request = request.disable_payload_signing();
            }
            let sent = request.send().await.map_err(sort)?;
            let etag = sent.e_tag.ok_or_else(|| Error::Connection("the answer names no ETag".into()))?;
            Ok(Part { number, etag, checksum: Some(value) })
        });
        Ok(self.hand_out(pending).map_err(Error::Host))
    }

    async fn complete_multipart_upload(
        &mut self,
        bucket: String,
        key: String,
        upload_id: String,
        parts: Vec<Part>,
        checksum: String,
        expected_bucket_owner: Option<String>,
        only_if_absent: bool,
    ) -> Answer<Written> {
        let checked = self.may_touch(&bucket, &key).and_then(|()| check_parts(&parts));
        let checksum = match checked.and_then(|()| Checksum::named(&checksum)) {
            Ok(checksum) => checksum,
            Err(refused) => return Ok(Err(Error::Host(refused))),
        };
        self.ask_s3(move |client, _| async move {
            let parts = parts.into_iter().map(|part| completed(part, checksum)).collect();
            let request = client
                .complete_multipart_upload()
                .bucket(bucket)
                .key(key)
                .upload_id(upload_id)
                .multipart_upload(CompletedMultipartUpload::builder().set_parts(Some(parts)).build())
                .set_expected_bucket_owner(expected_bucket_owner)
                .set_if_none_match(only_if_absent.then(|| "*".to_owned()));
            let written = request.send().await.map_err(sort)?;
            if written.e_tag.is_none() && written.key.is_none() {
                // S3 sends its 200 before it knows the end; a body that breaks off says nothing about it.
                return Err(Error::Connection("the answer was 200 but names neither key nor ETag".into()));
            }
            Ok(Written { etag: written.e_tag, version_id: written.version_id })
        })
        .await
    }

    async fn abort_multipart_upload(
        &mut self,
        bucket: String,
        key: String,
        upload_id: String,
        expected_bucket_owner: Option<String>,
    ) -> Answer<()> {
        if let Err(refused) = self.may_touch(&bucket, &key) {
            return Ok(Err(Error::Host(refused)));
        }
        self.ask_s3(move |client, _| async move {
            let request = client
                .abort_multipart_upload()
                .bucket(bucket)
                .key(key)
                .upload_id(upload_id)
                .set_expected_bucket_owner(expected_bucket_owner);
            match request.send().await.map_err(sort) {
                Ok(_) => Ok(()),
                Err(Error::Service(answer)) if answer.code == "NoSuchUpload" => Ok(()),
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn list_multipart_uploads(
        &mut self,
        bucket: String,
        prefix: String,
        expected_bucket_owner: Option<String>,
    ) -> Answer<Vec<Upload>> {
        let allowed = self.work().map(drop).and_then(|()| self.services.may_list(&bucket, &prefix));
        self.note_refused("s3", &allowed);
        if let Err(refused) = allowed {
            return Ok(Err(Error::Host(refused)));
        }
        self.ask_s3(move |client, _| async move {
            let request = client
                .list_multipart_uploads()
                .bucket(bucket)
                .prefix(&prefix)
                .max_uploads(MAX_UPLOADS)
                .set_expected_bucket_owner(expected_bucket_owner);
            let listed = request.send().await.map_err(sort)?;
            let uploads = listed.uploads.unwrap_or_default().into_iter().filter_map(|upload| {
                Some(Upload {
                    // A server that does not know `prefix` must not widen the grant.
                    key: upload.key.filter(|key| key.starts_with(&prefix))?,
                    upload_id: upload.upload_id?,
                    initiated: upload.initiated.and_then(|at| i64::try_from(at.as_nanos()).ok()),
                })
            });
            Ok(uploads.collect())
        })
        .await
    }
}

impl s3::HostPendingPart for Caller {
    async fn wait(&mut self, pending: Resource<PendingPart>) -> Answer<Part> {
        Ok(self.table.get_mut(&pending)?.ended().await)
    }

    async fn drop(&mut self, pending: Resource<PendingPart>) -> wasmtime::Result<()> {
        self.table.delete(pending)?;
        Ok(())
    }
}

impl Caller {
    fn may_touch(&mut self, bucket: &str, key: &str) -> Result<(), HostError> {
        let checked = self.work().map(drop).and_then(|()| self.services.may_touch_key(bucket, key));
        self.note_refused("s3", &checked);
        checked
    }

    /// Makes a request with the client, and whether payloads are to be signed.
    async fn ask_s3<T, F>(&mut self, request: impl FnOnce(Client, bool) -> F + Send + 'static) -> Answer<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.ask(|connection| async move {
            let client = connection.s3().await.clone();
            request(client, connection.signs_payloads()).await
        })
        .await
    }
}

async fn checksum_of(checksum: Checksum, bytes: Bytes) -> Result<String, Error> {
    blocking(move || checksum.of(&bytes)).await.map_err(|error| Error::Host(HostError::Unavailable(error.to_string())))
}

/// The bytes, uncopied, as a request's content.
fn stream(body: &Body) -> ByteStream {
    ByteStream::new(SdkBody::from(body.bytes.clone()))
}

fn check_parts(parts: &[Part]) -> Result<(), HostError> {
    if parts.is_empty() {
        return Err(HostError::Invalid("an upload is completed with at least one part".into()));
    }
    if !parts.is_sorted_by(|a, b| a.number < b.number) {
        return Err(HostError::Invalid("part numbers must ascend, each once".into()));
    }
    match parts.iter().find(|part| !(1..=MAX_PARTS).contains(&part.number)) {
        Some(part) => Err(HostError::Invalid(format!("part number {} is not one of 1 to {MAX_PARTS}", part.number))),
        None => Ok(()),
    }
}

fn completed(part: Part, checksum: Checksum) -> CompletedPart {
    let builder = CompletedPart::builder().part_number(i32::from(part.number)).e_tag(part.etag);
    match part.checksum {
        Some(value) => with_checksum!(builder, checksum, value).build(),
        None => builder.build(),
    }
}
