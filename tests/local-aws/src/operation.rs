//! Which operation a request is, from its head alone: faults must be able to strike before anything is parsed. Of S3 the method, path and
//! query tell, of CloudWatch Logs the header `X-Amz-Target`.

use hyper::Method;

macro_rules! operations {
    ($($name:ident)+) => {
        /// An operation, as far as the log and the faults tell them apart.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the names are those of the API references of S3 and CloudWatch Logs")]
        pub enum Operation {
            $($name,)+
            /// Anything else.
            Other,
        }

        impl Operation {
            /// All that have a name.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name in the API reference.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    Self::Other => "other",
                }
            }
        }
    };
}

operations! {
    PutObject GetObject HeadObject DeleteObject GetObjectTagging
    CreateMultipartUpload UploadPart CompleteMultipartUpload AbortMultipartUpload ListParts ListMultipartUploads
    ListObjects CreateBucket HeadBucket
    PutLogEvents CreateLogGroup CreateLogStream DeleteLogGroup DeleteLogStream PutRetentionPolicy DeleteRetentionPolicy
    DescribeLogGroups DescribeLogStreams GetLogEvents FilterLogEvents
    TagResource UntagResource ListTagsForResource ListTagsLogGroup
}

impl Operation {
    /// The operation of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|operation| operation.name() == name)
    }
    /// The operation that `X-Amz-Target` names: `Logs_20140328.PutLogEvents`.
    #[must_use]
    pub fn of_target(target: &str) -> Self {
        target.strip_prefix("Logs_20140328.").and_then(Self::of_name).unwrap_or(Self::Other)
    }
}

/// What a request line to S3 says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// What is asked.
    pub operation: Operation,
    /// The bucket; empty where there is none.
    pub bucket: String,
    /// The key; empty where there is none.
    pub key: String,
}

impl Target {
    /// Reads a request line in path style (`/bucket/key?query`).
    #[must_use]
    pub fn of(method: &Method, path: &str, query: &str) -> Self {
        let (bucket, key) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
        let has = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
        let operation = match (method.as_str(), key.is_empty()) {
            ("PUT", false) if has("uploadId") => Operation::UploadPart,
            ("PUT", false) if query.is_empty() || has("x-id") => Operation::PutObject,
            ("POST", false) if has("uploads") => Operation::CreateMultipartUpload,
            ("POST", false) if has("uploadId") => Operation::CompleteMultipartUpload,
            ("DELETE", false) if has("uploadId") => Operation::AbortMultipartUpload,
            ("DELETE", false) => Operation::DeleteObject,
            ("GET", false) if has("uploadId") => Operation::ListParts,
            ("GET", false) if has("tagging") => Operation::GetObjectTagging,
            ("GET", false) => Operation::GetObject,
            ("HEAD", false) => Operation::HeadObject,
            ("GET", true) if has("uploads") => Operation::ListMultipartUploads,
            ("GET", true) if !bucket.is_empty() => Operation::ListObjects,
            ("PUT", true) if !bucket.is_empty() => Operation::CreateBucket,
            ("HEAD", true) if !bucket.is_empty() => Operation::HeadBucket,
            _ => Operation::Other,
        };
        Self { operation, bucket: percent_decode(bucket), key: percent_decode(key) }
    }
}

pub(crate) fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%').then(|| tail.get(..2)).flatten().and_then(|hex| {
            let hex = std::str::from_utf8(hex).ok()?;
            u8::from_str_radix(hex, 16).ok()
        });
        if let Some(byte) = escaped {
            bytes.push(byte);
            rest = tail.get(2..).unwrap_or_default();
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_from_the_request_line() {
        // Request lines as in the examples of the S3 API reference.
        for (method, path, query, operation, key) in [
            (Method::PUT, "/logs/a%20b", "", Operation::PutObject, "a b"),
            (Method::PUT, "/logs/a", "x-id=PutObject", Operation::PutObject, "a"),
            (Method::PUT, "/logs/a", "partNumber=1&uploadId=x", Operation::UploadPart, "a"),
            (Method::POST, "/logs/a/b", "uploads", Operation::CreateMultipartUpload, "a/b"),
            (Method::POST, "/logs/a", "uploadId=x", Operation::CompleteMultipartUpload, "a"),
            (Method::DELETE, "/logs/a", "uploadId=x", Operation::AbortMultipartUpload, "a"),
            (Method::GET, "/logs/a", "uploadId=x", Operation::ListParts, "a"),
            (Method::GET, "/logs", "uploads", Operation::ListMultipartUploads, ""),
            (Method::GET, "/logs/", "list-type=2", Operation::ListObjects, ""),
            (Method::PUT, "/logs", "", Operation::CreateBucket, ""),
        ] {
            let target = Target::of(&method, path, query);
            assert_eq!((target.operation, target.key.as_str()), (operation, key), "{method} {path}?{query}");
            assert_eq!(target.bucket, "logs");
        }
    }
}
