//! The S3 API over the [`Store`]: objects and buckets here, multipart uploads in [`crate::multipart`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use hyper::HeaderMap;
use s3s::dto::*;
use s3s::{Body, S3, S3Request, S3Response, S3Result, s3_error};

use crate::checksum::{Algorithm, Checksum, hex, md5, receive, text, with_checksum};
use crate::store::{Attributes, Condition, Object, Store};

pub(crate) struct Backend {
    pub(crate) store: Arc<Store>,
    pub(crate) discard: bool,
    pub(crate) region: Option<String>,
    pub(crate) min_part_bytes: u64,
}

const STORAGE_CLASSES: [&str; 9] = [
    "STANDARD",
    "REDUCED_REDUNDANCY",
    "STANDARD_IA",
    "ONEZONE_IA",
    "INTELLIGENT_TIERING",
    "GLACIER",
    "DEEP_ARCHIVE",
    "GLACIER_IR",
    "EXPRESS_ONEZONE",
];

impl Backend {
    /// What s3s leaves to the server: the region of the signature.
    pub(crate) fn check_region<T>(&self, request: &S3Request<T>) -> S3Result<()> {
        match (&self.region, &request.region) {
            (Some(ours), Some(theirs)) if ours != theirs.as_str() => Err(s3_error!(
                AuthorizationHeaderMalformed,
                "the region '{}' is wrong; expecting '{ours}'",
                theirs.as_str()
            )),
            _ => Ok(()),
        }
    }
    pub(crate) fn etag(&self, bytes: &[u8], number: u64) -> String {
        if self.discard { format!("{number:032x}") } else { hex(&md5(bytes)) }
    }
}

/// What a request's headers say about the object, checked.
pub(crate) fn attributes(headers: &HeaderMap) -> S3Result<Attributes> {
    let header = |name: &str| text(headers, name).map(str::to_owned);
    let with_prefix = |prefix: &str| -> BTreeMap<String, String> {
        let named = headers.iter().filter_map(|(name, value)| {
            let rest = name.as_str().strip_prefix(prefix)?;
            Some((rest.to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        });
        named.collect()
    };
    let storage_class = header("x-amz-storage-class");
    if let Some(class) = &storage_class
        && !STORAGE_CLASSES.contains(&class.as_str())
    {
        return Err(s3_error!(InvalidStorageClass, "The storage class {class} is not valid"));
    }
    let metadata = with_prefix("x-amz-meta-");
    if metadata.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>() > 2048 {
        return Err(s3_error!(MetadataTooLarge, "Your metadata headers exceed the maximum allowed metadata size"));
    }
    let encodings = header("content-encoding").unwrap_or_default();
    let kept = encodings.split(',').map(str::trim).filter(|one| !one.is_empty() && *one != "aws-chunked");
    let content_encoding = Some(kept.collect::<Vec<_>>().join(",")).filter(|kept| !kept.is_empty());
    Ok(Attributes {
        content_type: header("content-type"),
        content_encoding,
        storage_class,
        acl: header("x-amz-acl"),
        server_side_encryption: header("x-amz-server-side-encryption"),
        kms_key_id: header("x-amz-server-side-encryption-aws-kms-key-id"),
        bucket_key: header("x-amz-server-side-encryption-bucket-key-enabled").map(|value| value == "true"),
        metadata,
        tags: tags(header("x-amz-tagging").as_deref().unwrap_or_default())?,
        grants: with_prefix("x-amz-grant-"),
    })
}

fn tags(encoded: &str) -> S3Result<Vec<(String, String)>> {
    let mut tags = Vec::new();
    for pair in encoded.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |part: &str| crate::operation::percent_decode(&part.replace('+', " "));
        tags.push((decode(key), decode(value)));
    }
    // "Each resource can have up to 10 tags; keys up to 128, values up to 256 characters" (S3 user guide, object tagging).
    if tags.len() > 10 {
        return Err(s3_error!(InvalidTag, "Object tags cannot be greater than 10"));
    }
    if tags.iter().any(|(key, value)| key.is_empty() || key.chars().count() > 128 || value.chars().count() > 256) {
        return Err(s3_error!(InvalidTag, "The TagKey or TagValue you have provided is invalid"));
    }
    Ok(tags)
}

/// The condition of a write.
pub(crate) fn condition(
    if_none_match: Option<&ETagCondition>,
    if_match: Option<&ETagCondition>,
) -> S3Result<Condition> {
    match (if_none_match, if_match) {
        (None, None) => Ok(Condition::None),
        (Some(absent), None) if absent.is_any() => Ok(Condition::Absent),
        (None, Some(wanted)) => Ok(Condition::Etag(wanted.as_etag().map(|etag| etag.value().to_owned()))),
        _ => Err(s3_error!(NotImplemented, "A header you provided implies functionality that is not implemented")),
    }
}

pub(crate) fn body_of(bytes: Bytes) -> StreamingBlob {
    StreamingBlob::from(Body::from(bytes))
}

#[async_trait::async_trait]
impl S3 for Backend {
    async fn put_object(&self, req: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        self.check_region(&req)?;
        let mut req = req;
        let attributes = attributes(&req.headers)?;
        let condition = condition(req.input.if_none_match.as_ref(), req.input.if_match.as_ref())?;
        let body = req.input.body.take();
        let received = receive(&req, body, req.input.content_length, self.discard).await?;
        let checksum =
            received.checksum.or_else(|| (!self.discard).then(|| Checksum::of(Algorithm::Crc64Nvme, &received.bytes)));
        let mut held = self.store.lock();
        let number = held.fresh_id();
        let object = Object {
            bucket: req.input.bucket,
            key: req.input.key,
            etag: self.etag(&received.bytes, number),
            body: received.bytes,
            size: received.size,
            stored: SystemTime::now(),
            parts: 0,
            checksum,
            attributes,
        };
        let object = self.store.put(&mut held, object, &condition)?;
        let output = PutObjectOutput {
            e_tag: Some(ETag::Strong(object.etag.clone())),
            server_side_encryption: object.attributes.server_side_encryption.clone().map(Into::into),
            ssekms_key_id: object.attributes.kms_key_id.clone(),
            bucket_key_enabled: object.attributes.bucket_key,
            ..Default::default()
        };
        Ok(S3Response::new(with_checksum!(output, object.checksum.as_ref())))
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        self.check_region(&req)?;
        let object = self.store.lock().object(&req.input.bucket, &req.input.key)?;
        let checksum = object.checksum.as_ref().filter(|_| req.input.checksum_mode.is_some());
        let said = &object.attributes;
        let output = HeadObjectOutput {
            content_length: Some(object.size as i64),
            content_type: said.content_type.clone(),
            content_encoding: said.content_encoding.clone(),
            e_tag: Some(ETag::Strong(object.etag.clone())),
            last_modified: Some(object.stored.into()),
            metadata: Some(said.metadata.clone().into_iter().collect()),
            storage_class: said.storage_class.clone().filter(|class| class != "STANDARD").map(Into::into),
            server_side_encryption: said.server_side_encryption.clone().map(Into::into),
            ssekms_key_id: said.kms_key_id.clone(),
            bucket_key_enabled: said.bucket_key,
            ..Default::default()
        };
        Ok(S3Response::new(with_checksum!(output, checksum)))
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        self.check_region(&req)?;
        let object = self.store.lock().object(&req.input.bucket, &req.input.key)?;
        let checksum =
            object.checksum.as_ref().filter(|_| req.input.checksum_mode.is_some() && req.input.range.is_none());
        let (body, content_range) = match &req.input.range {
            None => (object.body.clone(), None),
            Some(range) => {
                let range = range.check(object.size).map_err(|cause| s3_error!(cause, InvalidRange))?;
                let shown = format!("bytes {}-{}/{}", range.start, range.end.saturating_sub(1), object.size);
                (object.body.slice(range.start as usize..range.end as usize), Some(shown))
            }
        };
        let said = &object.attributes;
        let output = GetObjectOutput {
            content_length: Some(body.len() as i64),
            content_range,
            content_type: said.content_type.clone(),
            content_encoding: said.content_encoding.clone(),
            e_tag: Some(ETag::Strong(object.etag.clone())),
            last_modified: Some(object.stored.into()),
            metadata: Some(said.metadata.clone().into_iter().collect()),
            storage_class: said.storage_class.clone().filter(|class| class != "STANDARD").map(Into::into),
            server_side_encryption: said.server_side_encryption.clone().map(Into::into),
            tag_count: Some(said.tags.len() as i32).filter(|count| *count > 0),
            body: Some(body_of(body)),
            ..Default::default()
        };
        Ok(S3Response::new(with_checksum!(output, checksum)))
    }

    async fn delete_object(&self, req: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.store.lock().bucket(&req.input.bucket)?.remove(&req.input.key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn get_object_tagging(
        &self,
        req: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        let object = self.store.lock().object(&req.input.bucket, &req.input.key)?;
        let tags = object
            .attributes
            .tags
            .iter()
            .map(|(key, value)| Tag { key: Some(key.clone()), value: Some(value.clone()) });
        Ok(S3Response::new(GetObjectTaggingOutput { tag_set: tags.collect(), version_id: None }))
    }

    async fn list_objects_v2(&self, req: S3Request<ListObjectsV2Input>) -> S3Result<S3Response<ListObjectsV2Output>> {
        self.check_region(&req)?;
        let input = req.input;
        let prefix = input.prefix.clone().unwrap_or_default();
        let most = input.max_keys.unwrap_or(1000).clamp(0, 1000) as usize;
        let after = input.continuation_token.clone().or(input.start_after.clone());
        let from = after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut held = self.store.lock();
        let (mut contents, mut common, mut last, mut truncated) = (Vec::new(), BTreeSet::new(), None, false);
        for (key, object) in held.bucket(&input.bucket)?.range::<String, _>((from, Bound::Unbounded)) {
            let Some(rest) = key.strip_prefix(prefix.as_str()) else { continue };
            let group = input.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty()).and_then(|delimiter| {
                rest.find(delimiter).map(|at| format!("{prefix}{}", &rest[..at + delimiter.len()]))
            });
            if let Some(group) = &group
                && (common.contains(group) || after.as_ref().is_some_and(|after| after.starts_with(group.as_str())))
            {
                last = Some(key.clone());
                continue;
            }
            if contents.len() + common.len() == most {
                truncated = true;
                break;
            }
            match group {
                Some(group) => {
                    common.insert(group);
                }
                None => contents.push(s3s::dto::Object {
                    key: Some(key.clone()),
                    size: Some(object.size as i64),
                    e_tag: Some(ETag::Strong(object.etag.clone())),
                    last_modified: Some(object.stored.into()),
                    storage_class: Some(object.attributes.storage_class.clone().unwrap_or("STANDARD".into()).into()),
                    ..Default::default()
                }),
            }
            last = Some(key.clone());
        }
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            key_count: Some((contents.len() + common.len()) as i32),
            max_keys: Some(most as i32),
            is_truncated: Some(truncated),
            next_continuation_token: last.filter(|_| truncated),
            contents: Some(contents),
            common_prefixes: Some(common.into_iter().map(|prefix| CommonPrefix { prefix: Some(prefix) }).collect()),
            prefix: input.prefix,
            delimiter: input.delimiter,
            continuation_token: input.continuation_token,
            start_after: input.start_after,
            ..Default::default()
        }))
    }

    async fn create_bucket(&self, req: S3Request<CreateBucketInput>) -> S3Result<S3Response<CreateBucketOutput>> {
        let mut held = self.store.lock();
        if held.buckets.contains_key(&req.input.bucket) {
            return Err(s3_error!(BucketAlreadyOwnedByYou, "you already own the bucket {}", req.input.bucket));
        }
        held.buckets.insert(req.input.bucket.clone(), BTreeMap::new());
        Ok(S3Response::new(CreateBucketOutput { location: Some(format!("/{}", req.input.bucket)) }))
    }

    async fn head_bucket(&self, req: S3Request<HeadBucketInput>) -> S3Result<S3Response<HeadBucketOutput>> {
        self.store.lock().bucket(&req.input.bucket)?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        self.check_region(&req)?;
        self.create_upload(req)
    }
    async fn upload_part(&self, req: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
        self.check_region(&req)?;
        self.take_part(req).await
    }
    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        self.check_region(&req)?;
        self.complete_upload(req)
    }
    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let mut held = self.store.lock();
        held.upload(&req.input.bucket, &req.input.key, &req.input.upload_id)?;
        held.uploads.remove(&req.input.upload_id);
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }
    async fn list_parts(&self, req: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        self.show_parts(req.input)
    }
    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        self.show_uploads(req.input)
    }
}
