//! The host's side of S3 over real sockets, against a server that answers what a test wants.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_credential_types::Credentials;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tempfile::TempDir;

use super::*;
use crate::capability::aws::Connection;
use crate::capability::aws::testing::{Seen, serve};
use crate::capability::bindings::s3::{Host as _, HostPendingPart as _};
use crate::capability::bindings::types::ServiceError;
use crate::capability::body::BodyBudget;
use crate::capability::log::GuestLog;
use crate::capability::{Phase, Services};
use crate::config::{AwsConfig, GrantsConfig, PayloadSigning, S3Grant};
use crate::state::State;
use crate::telemetry::Metrics;

/// A guest at work, granted `s3://bucket/logs/*`, and the server that its calls reach.
struct Bench {
    caller: Caller,
    seen: Arc<Mutex<Vec<Seen>>>,
    _dir: TempDir,
}

impl Bench {
    async fn new(answers: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        Self::with(AwsConfig::default(), answers).await
    }

    async fn with(aws: AwsConfig, answers: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        let (endpoint, seen) = serve(answers).await;
        Self::at(AwsConfig { endpoint: Some(endpoint), ..aws }, seen)
    }

    fn at(aws: AwsConfig, seen: Arc<Mutex<Vec<Seen>>>) -> Self {
        let credentials = Credentials::new("AKIDEXAMPLE", "secret", None, None, "test");
        Self::over(Connection::with_credentials(aws, credentials), seen)
    }

    fn over(connection: Arc<Connection>, seen: Arc<Mutex<Vec<Seen>>>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (state, _) = State::open(dir.path()).unwrap();
        let services = Services::over("archive".into(), connection, state, Metrics::new());
        let s3 = vec![S3Grant { bucket: "bucket".into(), key_prefix: "logs/".into() }];
        services.grant(GrantsConfig { s3, ..GrantsConfig::default() });
        let mut caller = Caller::new(Arc::clone(&services), GuestLog::new(services, 0, "p".into()));
        caller.phase = Phase::Work;
        Self { caller, seen, _dir: dir }
    }

    fn body(&mut self, bytes: &'static [u8]) -> Resource<Body> {
        let charge = BodyBudget::new(256 << 20).reserve(bytes.len() as u64).unwrap();
        self.caller.hand_out(Body::new(Bytes::from_static(bytes), charge)).unwrap()
    }

    async fn put(&mut self, key: &str, with: Attributes) -> Result<Written, Error> {
        let body = self.body(b"123456789");
        self.caller.put_object("bucket".into(), key.into(), body, with, true).await.unwrap()
    }

    async fn complete(&mut self) -> Result<Written, Error> {
        let parts = vec![Part { number: 1, etag: "\"p1\"".into(), checksum: Some("y/Q5Jg==".into()) }];
        let (bucket, key, id) = ("bucket".to_owned(), "logs/x".to_owned(), "upload".to_owned());
        self.caller.complete_multipart_upload(bucket, key, id, parts, "crc32".into(), None, true).await.unwrap()
    }

    fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn only_request(&self) -> Seen {
        let mut requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests.remove(0)
    }
}

fn attributes() -> Attributes {
    Attributes {
        content_type: None,
        content_encoding: None,
        storage_class: None,
        acl: None,
        grant_full_control: None,
        grant_read: None,
        grant_read_acp: None,
        grant_write_acp: None,
        server_side_encryption: None,
        kms_key_id: None,
        bucket_key: None,
        tags: vec![],
        metadata: vec![],
        checksum: "crc32".into(),
        expected_bucket_owner: None,
    }
}

fn ok() -> Response {
    [("etag", "\"e1\""), ("x-amz-version-id", "v1")].into_response()
}

fn refusal(status: u16, code: &str) -> Response {
    let document = format!("<?xml version=\"1.0\"?>\n<Error><Code>{code}</Code><Message>told so</Message></Error>");
    (StatusCode::from_u16(status).unwrap(), document).into_response()
}

fn service<T: std::fmt::Debug>(answer: Result<T, Error>) -> ServiceError {
    match answer {
        Err(Error::Service(error)) => error,
        other => panic!("no refusal of the service: {other:?}"),
    }
}

#[tokio::test]
async fn an_object_is_put_in_one_plain_conditional_request_with_its_checksum() {
    let mut bench = Bench::new(|_| ok()).await;
    let written = bench.put("logs/a b+ü$/x", attributes()).await.unwrap();
    assert_eq!((written.etag.as_deref(), written.version_id.as_deref()), (Some("\"e1\""), Some("v1")));
    let seen = bench.only_request();
    assert_eq!(seen.method, Method::PUT);
    // RFC 3986: everything but unreserved characters is encoded, once; the slash separates.
    assert_eq!(seen.uri.path(), "/bucket/logs/a%20b%2B%C3%BC%24/x");
    assert_eq!(&seen.content[..], b"123456789");
    assert_eq!(seen.header("content-length"), Some("9"));
    assert_eq!(seen.header("if-none-match"), Some("*"));
    assert_eq!(seen.header("x-amz-checksum-crc32"), Some("y/Q5Jg=="));
    assert_eq!(seen.header("content-encoding"), None, "no aws-chunked framing");
    assert_eq!(seen.header("x-amz-trailer"), None);
    // Without TLS the payload is signed: the SHA-256 of "123456789" by `sha256sum`.
    let sha256 = "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225";
    assert_eq!(seen.header("x-amz-content-sha256"), Some(sha256));
}

#[tokio::test]
async fn every_checksum_goes_into_its_own_header() {
    for (name, header, value) in [
        ("crc32c", "x-amz-checksum-crc32c", "4waSgw=="),
        ("crc64nvme", "x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
        ("sha1", "x-amz-checksum-sha1", "98O8HYCOBHMq32eZZczDTKeuNEE="),
        ("sha256", "x-amz-checksum-sha256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU="),
    ] {
        let mut bench = Bench::new(|_| ok()).await;
        bench.put("logs/x", Attributes { checksum: name.into(), ..attributes() }).await.unwrap();
        let seen = bench.only_request();
        assert_eq!(seen.header(header), Some(value));
        assert_eq!(seen.headers.keys().filter(|name| name.as_str().starts_with("x-amz-checksum-")).count(), 1);
    }
}

#[tokio::test]
async fn attributes_become_the_headers_that_s3_documents() {
    let mut bench = Bench::new(|_| ok()).await;
    let with = Attributes {
        content_type: Some("application/x-ndjson".into()),
        content_encoding: Some("gzip".into()),
        storage_class: Some("STANDARD_IA".into()),
        acl: Some("bucket-owner-full-control".into()),
        grant_read: Some("id=\"abc\"".into()),
        server_side_encryption: Some("aws:kms".into()),
        kms_key_id: Some("key-1".into()),
        bucket_key: Some(true),
        tags: vec![("team".into(), "a&b".into())],
        metadata: vec![("wharf-batch".into(), "0123".into())],
        expected_bucket_owner: Some("123456789012".into()),
        ..attributes()
    };
    bench.put("logs/x", with).await.unwrap();
    let seen = bench.only_request();
    for (header, value) in [
        ("content-type", "application/x-ndjson"),
        ("content-encoding", "gzip"),
        ("x-amz-storage-class", "STANDARD_IA"),
        ("x-amz-acl", "bucket-owner-full-control"),
        ("x-amz-grant-read", "id=\"abc\""),
        ("x-amz-server-side-encryption", "aws:kms"),
        ("x-amz-server-side-encryption-aws-kms-key-id", "key-1"),
        ("x-amz-server-side-encryption-bucket-key-enabled", "true"),
        ("x-amz-tagging", "team=a%26b"),
        ("x-amz-meta-wharf-batch", "0123"),
        ("x-amz-expected-bucket-owner", "123456789012"),
    ] {
        assert_eq!(seen.header(header), Some(value), "{header}");
    }
}

#[tokio::test]
async fn payloads_go_unsigned_where_that_is_wanted() {
    let aws = AwsConfig { payload_signing: PayloadSigning::Never, ..AwsConfig::default() };
    let mut bench = Bench::with(aws, |_| ok()).await;
    bench.put("logs/x", attributes()).await.unwrap();
    let seen = bench.only_request();
    assert_eq!(seen.header("x-amz-content-sha256"), Some("UNSIGNED-PAYLOAD"));
    assert_eq!(seen.header("x-amz-checksum-crc32"), Some("y/Q5Jg=="));
}

#[tokio::test]
async fn refusals_come_out_as_they_are_after_one_attempt() {
    for (status, code) in [
        (503, "SlowDown"),
        (500, "InternalError"),
        (403, "AccessDenied"),
        (400, "ExpiredToken"),
        (409, "ConditionalRequestConflict"),
        (412, "PreconditionFailed"),
        (404, "NoSuchBucket"),
        (301, "PermanentRedirect"),
    ] {
        let mut bench = Bench::new(move |_| refusal(status, code)).await;
        let error = service(bench.put("logs/x", attributes()).await);
        assert_eq!((error.status, error.code.as_str(), error.message.as_str()), (status, code, "told so"));
        assert_eq!(bench.requests().len(), 1, "{code} was tried again");
    }
}

#[tokio::test]
async fn a_refusal_that_is_no_xml_is_still_one() {
    let mut bench = Bench::new(|_| (StatusCode::BAD_GATEWAY, "<html>proxy").into_response()).await;
    assert_eq!(service(bench.put("logs/x", attributes()).await).status, 502);
}

#[tokio::test]
async fn what_the_service_asks_to_wait_is_told() {
    let mut bench = Bench::new(|_| ([("retry-after", "7")], refusal(503, "SlowDown")).into_response()).await;
    assert_eq!(service(bench.put("logs/x", attributes()).await).retry_after_ms, Some(7000));
}

#[tokio::test]
async fn no_answer_is_told_with_its_cause() {
    // Bound and closed: nobody listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let aws = AwsConfig { endpoint: Some(format!("http://{free}")), ..AwsConfig::default() };
    let mut bench = Bench::at(aws, Arc::default());
    match bench.put("logs/x", attributes()).await {
        Err(Error::Connection(text)) => assert!(text.to_lowercase().contains("refused"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_stays_silent_runs_into_the_request_timeout() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let aws = AwsConfig {
        endpoint: Some(format!("http://{}", silent.local_addr().unwrap())),
        request_timeout: Some(Duration::from_millis(100)),
        ..AwsConfig::default()
    };
    let mut bench = Bench::at(aws, Arc::default());
    match bench.put("logs/x", attributes()).await {
        Err(Error::Connection(text)) => assert!(text.contains("timeout") || text.contains("timed out"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_was_not_granted_never_reaches_the_network() {
    let mut bench = Bench::new(|_| ok()).await;
    assert!(matches!(bench.put("private/x", attributes()).await, Err(Error::Host(HostError::Denied(_)))));
    assert!(matches!(bench.put("logs/../x", attributes()).await, Err(Error::Host(HostError::Invalid(_)))));
    let listed = bench.caller.list_multipart_uploads("bucket".into(), String::new(), None).await.unwrap();
    assert!(matches!(listed, Err(Error::Host(HostError::Denied(_)))));
    let unknown = Attributes { checksum: "md5".into(), ..attributes() };
    assert!(matches!(bench.put("logs/x", unknown).await, Err(Error::Host(HostError::Invalid(_)))));
    bench.caller.phase = Phase::Configure;
    assert!(matches!(bench.put("logs/x", attributes()).await, Err(Error::Host(HostError::Denied(_)))));
    assert!(bench.requests().is_empty());
}

#[tokio::test]
async fn an_object_that_is_not_there_has_no_head() {
    let mut bench = Bench::new(|_| StatusCode::NOT_FOUND.into_response()).await;
    let head = bench.caller.head_object("bucket".into(), "logs/x".into(), None).await.unwrap().unwrap();
    assert!(head.is_none());
    let mut bench = Bench::new(|_| StatusCode::FORBIDDEN.into_response()).await;
    let refused = bench.caller.head_object("bucket".into(), "logs/x".into(), None).await.unwrap();
    assert_eq!(service(refused).status, 403);
}

#[tokio::test]
async fn a_head_tells_size_and_metadata() {
    let mut bench = Bench::new(|_| {
        let headers = [("etag", "\"e\""), ("content-length", "12"), ("x-amz-meta-wharf-batch", "0123")];
        (headers, axum::body::Body::empty()).into_response()
    })
    .await;
    let head = bench.caller.head_object("bucket".into(), "logs/x".into(), None).await.unwrap().unwrap().unwrap();
    assert_eq!(head.size, 12);
    assert_eq!(head.metadata, [("wharf-batch".to_owned(), "0123".to_owned())]);
}

#[tokio::test]
async fn a_multipart_upload_names_its_checksum_and_its_parts() {
    let mut bench = Bench::new(|seen| match seen.uri.query() {
        Some(query) if query.contains("uploads") => {
            "<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>".into_response()
        }
        Some(query) if query.contains("partNumber") => [("etag", "\"p1\"")].into_response(),
        _ => {
            let result = "<CompleteMultipartUploadResult><Key>logs/x</Key><ETag>\"whole\"</ETag></CompleteMultipartUploadResult>";
            result.into_response()
        }
    })
    .await;
    let (bucket, key) = ("bucket".to_owned(), "logs/x".to_owned());
    let id = bench.caller.create_multipart_upload(bucket.clone(), key.clone(), attributes()).await.unwrap().unwrap();
    assert_eq!(id, "u1");
    let body = bench.body(b"123456789");
    let pending = bench.caller.upload_part(bucket, key, id, 1, body, "crc32".into(), None).await.unwrap().unwrap();
    let part = bench.caller.wait(Resource::new_borrow(pending.rep())).await.unwrap().unwrap();
    assert_eq!((part.number, part.etag.as_str(), part.checksum.as_deref()), (1, "\"p1\"", Some("y/Q5Jg==")));
    assert_eq!(bench.complete().await.unwrap().etag.as_deref(), Some("\"whole\""));

    let [created, sent, completed] = &bench.requests()[..] else { panic!("{:?}", bench.requests()) };
    assert_eq!(created.header("x-amz-checksum-algorithm"), Some("CRC32"));
    assert_eq!(sent.header("x-amz-checksum-crc32"), Some("y/Q5Jg=="));
    assert_eq!(completed.header("if-none-match"), Some("*"));
    let document = String::from_utf8_lossy(&completed.content);
    assert!(
        document.contains("<PartNumber>1</PartNumber>") && document.contains("<ChecksumCRC32>y/Q5Jg==</ChecksumCRC32>")
    );
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html>: "A 200 OK response can contain either a
/// success or an error."
#[tokio::test]
async fn a_200_with_an_error_document_is_an_error() {
    let mut bench = Bench::new(|_| refusal(200, "InternalError")).await;
    let error = service(bench.complete().await);
    assert_eq!((error.status, error.code.as_str()), (200, "InternalError"));
}

#[tokio::test]
async fn a_200_that_says_nothing_is_no_success() {
    for document in ["", "   ", "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>", "<Compl"] {
        let mut bench = Bench::new(move |_| document.into_response()).await;
        let answer = bench.complete().await;
        assert!(answer.is_err(), "{document:?}: {answer:?}");
    }
}

#[tokio::test]
async fn aborting_an_upload_that_is_gone_is_no_error() {
    let abort = async |bench: &mut Bench| {
        bench.caller.abort_multipart_upload("bucket".into(), "logs/x".into(), "u".into(), None).await.unwrap()
    };
    assert!(abort(&mut Bench::new(|_| refusal(404, "NoSuchUpload")).await).await.is_ok());
    assert!(abort(&mut Bench::new(|_| StatusCode::NO_CONTENT.into_response()).await).await.is_ok());
    assert_eq!(service(abort(&mut Bench::new(|_| refusal(403, "AccessDenied")).await).await).status, 403);
}

#[tokio::test]
async fn a_listing_shows_nothing_outside_its_prefix_whatever_the_server_says() {
    let mut bench = Bench::new(|_| {
        let upload = |key: &str| {
            format!(
                "<Upload><Key>{key}</Key><UploadId>u</UploadId><Initiated>1970-01-01T00:00:01Z</Initiated></Upload>"
            )
        };
        let uploads = [upload("logs/x"), upload("private/y")].concat();
        format!("<ListMultipartUploadsResult>{uploads}</ListMultipartUploadsResult>").into_response()
    })
    .await;
    let listed = bench.caller.list_multipart_uploads("bucket".into(), "logs/".into(), None).await.unwrap().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].key.as_str(), listed[0].initiated), ("logs/x", Some(1_000_000_000)));
    assert!(bench.only_request().uri.query().unwrap().contains("prefix=logs%2F"));
}

#[test]
fn parts_are_given_in_ascending_order_and_lie_in_1_to_10000() {
    let parts = |numbers: &[u16]| -> Vec<Part> {
        numbers.iter().map(|number| Part { number: *number, etag: "e".into(), checksum: None }).collect()
    };
    assert!(check_parts(&parts(&[1, 2, 10_000])).is_ok());
    for wrong in [&[][..], &[0], &[2, 1], &[1, 1], &[10_001]] {
        assert!(matches!(check_parts(&parts(wrong)), Err(HostError::Invalid(_))), "{wrong:?}");
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_had_are_told_apart_from_a_broken_line() {
    #[derive(Debug)]
    struct None;
    impl aws_credential_types::provider::ProvideCredentials for None {
        fn provide_credentials<'a>(&'a self) -> aws_credential_types::provider::future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let error = aws_credential_types::provider::error::CredentialsError::not_loaded("no profile named x");
            aws_credential_types::provider::future::ProvideCredentials::ready(Err(error))
        }
    }
    let aws = AwsConfig { endpoint: Some("http://127.0.0.1:9".into()), ..AwsConfig::default() };
    let mut bench = Bench::over(Connection::with_credentials(aws, None), Arc::default());
    match bench.put("logs/x", attributes()).await {
        Err(Error::Credentials(text)) => assert!(text.contains("no profile named x"), "{text}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_attribute_cannot_become_another_header() {
    let mut bench = Bench::new(|_| ok()).await;
    let with = Attributes { content_type: Some("text/plain\r\nx-amz-acl: public-read".into()), ..attributes() };
    let answer = bench.put("logs/x", with).await;
    assert!(matches!(answer, Err(Error::Host(HostError::Invalid(_)))), "{answer:?}");
    assert!(bench.requests().is_empty());
}
