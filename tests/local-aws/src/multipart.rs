//! Multipart uploads, with the rules of the S3 user guide: part numbers 1 to 10,000, every part but the last at least 5 MiB, ascending
//! order, right ETags, checksums that fit, and a conditional end that leaves the upload alone when it fails.

use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::BytesMut;
use s3s::dto::*;
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::backend::{Backend, attributes, condition};
use crate::checksum::{Algorithm, Checksum, base64, hex, md5, receive, text, with_checksum};
use crate::store::{Object, Part, Upload};

impl Backend {
    pub(crate) fn create_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let input = req.input;
        let algorithm = match &input.checksum_algorithm {
            None => None,
            Some(name) => Some(
                Algorithm::of_name(name.as_str())
                    .ok_or_else(|| s3_error!(InvalidRequest, "Checksum algorithm {} is not known", name.as_str()))?,
            ),
        };
        let full_object = match input.checksum_type.as_ref().map(ChecksumType::as_str) {
            Some("FULL_OBJECT") => true,
            Some(_) => false,
            // "CRC64NVME only supports full object"; for the others COMPOSITE is the default.
            None => algorithm == Some(Algorithm::Crc64Nvme),
        };
        if full_object && matches!(algorithm, Some(Algorithm::Sha1 | Algorithm::Sha256)) {
            return Err(s3_error!(InvalidRequest, "The FULL_OBJECT checksum type cannot be used with this algorithm."));
        }
        let attributes = attributes(&req.headers)?;
        let mut held = self.store.lock();
        held.bucket(&input.bucket)?;
        let id = format!("upload-{:08}", held.fresh_id());
        held.uploads.insert(
            id.clone(),
            Upload {
                bucket: input.bucket.clone(),
                key: input.key.clone(),
                id: id.clone(),
                initiated: SystemTime::now(),
                algorithm,
                composite: algorithm.is_some() && !full_object,
                parts: BTreeMap::new(),
                attributes,
            },
        );
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(id),
            checksum_algorithm: input.checksum_algorithm,
            checksum_type: algorithm.map(|_| kind(full_object)),
            server_side_encryption: input.server_side_encryption,
            ssekms_key_id: input.ssekms_key_id,
            ..Default::default()
        }))
    }

    pub(crate) async fn take_part(
        &self,
        mut req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        let number = req.input.part_number;
        if !(1..=10_000).contains(&number) {
            return Err(s3_error!(InvalidArgument, "Part number must be an integer between 1 and 10000, inclusive"));
        }
        let wanted = self.store.lock().upload(&req.input.bucket, &req.input.key, &req.input.upload_id)?.algorithm;
        let body = req.input.body.take();
        let received = receive(&req, body, req.input.content_length, self.discard).await?;
        if let (Some(wanted), Some(sent)) = (wanted, &received.checksum)
            && wanted != sent.algorithm
        {
            return Err(s3_error!(
                InvalidRequest,
                "Checksum Type mismatch occurred, expected checksum Type: {}, actual checksum Type: {}",
                wanted.name(),
                sent.algorithm.name()
            ));
        }
        let mut held = self.store.lock();
        let fresh = held.fresh_id();
        let part = Part {
            etag: self.etag(&received.bytes, fresh),
            body: received.bytes,
            size: received.size,
            stored: SystemTime::now(),
            checksum: received.checksum,
        };
        let output = UploadPartOutput { e_tag: Some(ETag::Strong(part.etag.clone())), ..Default::default() };
        let output = with_checksum!(output, part.checksum.as_ref());
        held.upload(&req.input.bucket, &req.input.key, &req.input.upload_id)?.parts.insert(number, part);
        Ok(S3Response::new(output))
    }

    pub(crate) fn complete_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let input = req.input;
        let condition = condition(input.if_none_match.as_ref(), input.if_match.as_ref())?;
        let listed = input.multipart_upload.and_then(|upload| upload.parts).unwrap_or_default();
        let mut held = self.store.lock();
        let upload = held.upload(&input.bucket, &input.key, &input.upload_id)?.clone();
        let parts = chosen(&upload, &listed, self.min_part_bytes)?;

        let size: u64 = parts.iter().map(|part| part.size).sum();
        if input.mpu_object_size.is_some_and(|announced| announced != size as i64) {
            return Err(s3_error!(
                InvalidRequest,
                "The provided 'x-amz-mp-object-size' header does not match the parts"
            ));
        }
        let mut body = BytesMut::with_capacity(if self.discard { 0 } else { size as usize });
        parts.iter().for_each(|part| body.extend_from_slice(&part.body));
        let checksum = whole_checksum(&upload, &parts, &body, self.discard)?;
        if let Some(whole) = checksum.as_ref().filter(|_| !self.discard)
            && let Some(sent) = text(&req.headers, whole.algorithm.header())
            && sent != whole.value
            && Some(sent) != whole.value.split('-').next()
        {
            return Err(s3_error!(
                BadDigest,
                "The {} you specified did not match the calculated checksum.",
                whole.algorithm.name()
            ));
        }
        let etags: Vec<u8> = parts.iter().flat_map(|part| md5(&part.body)).collect();
        let object = Object {
            bucket: input.bucket.clone(),
            key: input.key.clone(),
            body: body.freeze(),
            size,
            etag: format!("{}-{}", hex(&md5(&etags)), parts.len()),
            stored: SystemTime::now(),
            parts: parts.len(),
            checksum,
            attributes: upload.attributes.clone(),
        };
        // A refusal leaves the upload as it was.
        let object = self.store.put(&mut held, object, &condition)?;
        held.uploads.remove(&input.upload_id);
        let output = CompleteMultipartUploadOutput {
            location: Some(format!("/{}/{}", input.bucket, input.key)),
            bucket: Some(input.bucket),
            key: Some(input.key),
            e_tag: Some(ETag::Strong(object.etag.clone())),
            checksum_type: object.checksum.as_ref().map(|checksum| kind(!checksum.composite)),
            ..Default::default()
        };
        Ok(S3Response::new(with_checksum!(output, object.checksum.as_ref())))
    }

    pub(crate) fn show_parts(&self, input: ListPartsInput) -> S3Result<S3Response<ListPartsOutput>> {
        let mut held = self.store.lock();
        let upload = held.upload(&input.bucket, &input.key, &input.upload_id)?;
        let most = input.max_parts.unwrap_or(1000).clamp(0, 1000) as usize;
        let after = input.part_number_marker.unwrap_or(0);
        let mut shown: Vec<_> = upload.parts.range(after.saturating_add(1)..).take(most + 1).collect();
        let truncated = shown.len() > most;
        shown.truncate(most);
        let next = shown.last().map(|(number, _)| **number);
        let parts = shown.iter().map(|(number, part)| {
            let row = s3s::dto::Part {
                part_number: Some(**number),
                size: Some(part.size as i64),
                e_tag: Some(ETag::Strong(part.etag.clone())),
                last_modified: Some(part.stored.into()),
                ..Default::default()
            };
            with_checksum!(row, part.checksum.as_ref())
        });
        Ok(S3Response::new(ListPartsOutput {
            parts: Some(parts.collect()),
            is_truncated: Some(truncated),
            next_part_number_marker: next,
            max_parts: Some(most as i32),
            part_number_marker: input.part_number_marker,
            checksum_algorithm: upload.algorithm.map(|algorithm| algorithm.name().to_owned().into()),
            checksum_type: upload.algorithm.map(|_| kind(!upload.composite)),
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(input.upload_id),
            ..Default::default()
        }))
    }

    pub(crate) fn show_uploads(
        &self,
        input: ListMultipartUploadsInput,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let mut held = self.store.lock();
        held.bucket(&input.bucket)?;
        let prefix = input.prefix.clone().unwrap_or_default();
        let marker = input.key_marker.clone().map(|key| (key, input.upload_id_marker.clone()));
        let mut found: Vec<&Upload> = held
            .uploads
            .values()
            .filter(|upload| upload.bucket == input.bucket && upload.key.starts_with(&prefix))
            .filter(|upload| match &marker {
                None => true,
                Some((key, None)) => upload.key > *key,
                Some((key, Some(id))) => (&upload.key, &upload.id) > (key, id),
            })
            .collect();
        found.sort_by(|a, b| (&a.key, &a.id).cmp(&(&b.key, &b.id)));
        let most = input.max_uploads.unwrap_or(1000).clamp(0, 1000) as usize;
        let truncated = found.len() > most;
        found.truncate(most);
        let last = found.last().filter(|_| truncated);
        Ok(S3Response::new(ListMultipartUploadsOutput {
            next_key_marker: last.map(|upload| upload.key.clone()),
            next_upload_id_marker: last.map(|upload| upload.id.clone()),
            uploads: Some(
                found
                    .iter()
                    .map(|upload| MultipartUpload {
                        key: Some(upload.key.clone()),
                        upload_id: Some(upload.id.clone()),
                        initiated: Some(upload.initiated.into()),
                        ..Default::default()
                    })
                    .collect(),
            ),
            bucket: Some(input.bucket),
            prefix: input.prefix,
            max_uploads: Some(most as i32),
            is_truncated: Some(truncated),
            ..Default::default()
        }))
    }
}

fn kind(full_object: bool) -> ChecksumType {
    ChecksumType::from_static(if full_object { ChecksumType::FULL_OBJECT } else { ChecksumType::COMPOSITE })
}

/// The parts that the client names, in its order; order is checked before presence, and that before size.
fn chosen(upload: &Upload, listed: &[CompletedPart], min_part_bytes: u64) -> S3Result<Vec<Part>> {
    if listed.is_empty() {
        return Err(s3_error!(MalformedXML, "The XML you provided was not well-formed: it names no parts"));
    }
    let numbers: Vec<i32> = listed.iter().map(|part| part.part_number.unwrap_or(0)).collect();
    if !numbers.is_sorted_by(|a, b| a < b) {
        return Err(s3_error!(InvalidPartOrder, "The list of parts was not in ascending order."));
    }
    let mut parts = Vec::with_capacity(listed.len());
    for (number, named) in numbers.into_iter().zip(listed) {
        let invalid = || s3_error!(InvalidPart, "One or more of the specified parts could not be found: part {number}");
        let part = upload.parts.get(&number).ok_or_else(invalid)?;
        if named.e_tag.as_ref().map(ETag::value) != Some(part.etag.as_str()) {
            return Err(invalid());
        }
        if let Some(sent) = upload.algorithm.and_then(|algorithm| named_checksum(named, algorithm)) {
            if part.checksum.as_ref().is_some_and(|kept| kept.value != sent) {
                return Err(invalid());
            }
        } else if upload.composite {
            let name = upload.algorithm.map_or("", Algorithm::name).to_ascii_lowercase();
            return Err(s3_error!(
                InvalidRequest,
                "The upload was created using a {name} checksum. The complete request must include the checksum for each part. It was missing for part {number} in the request."
            ));
        }
        parts.push(part.clone());
    }
    let all_but_last = parts.len() - 1;
    if let Some(small) = parts.iter().take(all_but_last).position(|part| part.size < min_part_bytes) {
        return Err(s3_error!(
            EntityTooSmall,
            "Your proposed upload is smaller than the minimum allowed size: part {}",
            small + 1
        ));
    }
    Ok(parts)
}

fn named_checksum(part: &CompletedPart, algorithm: Algorithm) -> Option<&str> {
    match algorithm {
        Algorithm::Crc32 => part.checksum_crc32.as_deref(),
        Algorithm::Crc32c => part.checksum_crc32c.as_deref(),
        Algorithm::Crc64Nvme => part.checksum_crc64nvme.as_deref(),
        Algorithm::Sha1 => part.checksum_sha1.as_deref(),
        Algorithm::Sha256 => part.checksum_sha256.as_deref(),
    }
}

/// The object's checksum: over its bytes, or over its parts' checksums.
fn whole_checksum(upload: &Upload, parts: &[Part], body: &[u8], discard: bool) -> S3Result<Option<Checksum>> {
    if discard {
        return Ok(None);
    }
    let algorithm = upload.algorithm.unwrap_or(Algorithm::Crc64Nvme);
    if !upload.composite {
        return Ok(Some(Checksum::of(algorithm, body)));
    }
    let digests: Vec<u8> = parts.iter().flat_map(|part| algorithm.digest(&part.body)).collect();
    let value = format!("{}-{}", base64(&algorithm.digest(&digests)), parts.len());
    Ok(Some(Checksum { algorithm, value, composite: true }))
}
