//! AWS Signature Version 4 over a request: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html>.

use std::time::SystemTime;

use ::http::{HeaderName, HeaderValue};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign as signature,
};
use aws_sigv4::sign::v4;

use super::wire::Outgoing;

/// What a signature is good for.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) service: String,
    pub(super) region: String,
}

/// Signs all that the request has: method, URL, headers, body.
pub(super) fn sign(
    mut request: Outgoing,
    with: Credentials,
    scope: &Scope,
    now: SystemTime,
) -> Result<Outgoing, String> {
    let identity = with.into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(&scope.region)
        .name(&scope.service)
        .time(now)
        .settings(settings(&scope.service))
        .build()
        .map_err(|cause| cause.to_string())?
        .into();
    let headers: Vec<(&str, &str)> = request
        .headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str(), std::str::from_utf8(value.as_bytes()).ok()?)))
        .collect();
    let body = SignableBody::Bytes(request.body.as_deref().unwrap_or_default());
    let signable = SignableRequest::new(request.method.as_str(), request.url.as_str(), headers.into_iter(), body);
    let signed = signable.and_then(|signable| signature(signable, &parameters)).map_err(|cause| cause.to_string())?;
    let (added, _) = signed.into_parts().0.into_parts();
    for header in added {
        let name = HeaderName::from_static(header.name());
        let mut value = HeaderValue::from_str(header.value()).map_err(|cause| cause.to_string())?;
        value.set_sensitive(true);
        request.headers.insert(name, value);
    }
    Ok(request)
}

/// S3 and OpenSearch Serverless want the payload's hash in a header of its own, and S3 takes paths as they are:
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>,
/// <https://docs.aws.amazon.com/opensearch-service/latest/developerguide/serverless-clients.html>.
fn settings(service: &str) -> SigningSettings {
    let mut settings = SigningSettings::default();
    let s3 = matches!(service, "s3" | "s3express" | "s3-outposts");
    if s3 || service == "aoss" {
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    }
    if s3 {
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    }
    settings
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ::http::{HeaderMap, Method};

    use super::*;
    use crate::capability::http::Addresses;

    fn signed(
        service: &str,
        method: Method,
        url: &str,
        headers: &[(&'static str, &str)],
        body: Option<&'static str>,
        token: Option<&str>,
    ) -> HeaderMap {
        let mut given = HeaderMap::new();
        for (name, value) in headers {
            given.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let request = Outgoing {
            method,
            url: url.parse().unwrap(),
            headers: given,
            credential: None,
            body: body.map(Into::into),
            timeout: Duration::ZERO,
            max_response_bytes: 0,
            addresses: Addresses::default(),
        };
        let with = Credentials::new(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            token.map(Into::into),
            None,
            "test",
        );
        let scope = Scope { service: service.into(), region: "us-east-1".into() };
        // 2015-08-30T12:36:00Z, the time of AWS's examples.
        sign(request, with, &scope, SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160)).unwrap().headers
    }

    fn authorization(headers: &HeaderMap) -> &str {
        headers.get("authorization").unwrap().to_str().unwrap()
    }

    const SCOPE: &str = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1";

    /// AWS's Signature Version 4 test suite: `get-vanilla`, `post-vanilla`, `get-vanilla-query-order-key-case`, `get-vanilla-query-order-encoded`,
    /// `get-vanilla-utf8-query`, `get-unreserved`.
    #[test]
    fn signatures_are_those_of_the_published_examples() {
        for (method, target, expected) in [
            (Method::GET, "", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            (Method::POST, "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            (
                Method::GET,
                "?Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                Method::GET,
                "?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
                "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
            ),
            (Method::GET, "?\u{1234}=bar", "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
            (
                Method::GET,
                "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
            ),
        ] {
            let headers = signed("service", method, &format!("http://example.amazonaws.com/{target}"), &[], None, None);
            assert_eq!(
                authorization(&headers),
                format!("{SCOPE}/service/aws4_request, SignedHeaders=host;x-amz-date, Signature={expected}"),
                "{target}"
            );
            assert_eq!(headers.get("x-amz-date").unwrap(), "20150830T123600Z");
        }
    }

    /// The same: `get-header-value-trim`, `get-header-key-duplicate`, `get-vanilla-with-session-token`.
    #[test]
    fn headers_and_session_tokens_are_signed_as_the_published_examples_have_it() {
        let url = "http://example.amazonaws.com/";
        let given = [("my-header1", "value1"), ("my-header2", "\"a   b   c\"")];
        let headers = signed("service", Method::GET, url, &given, None, None);
        let expected = "SignedHeaders=host;my-header1;my-header2;x-amz-date, Signature=acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736";
        assert_eq!(authorization(&headers), format!("{SCOPE}/service/aws4_request, {expected}"));

        let given = [("my-header1", "value2"), ("my-header1", "value2"), ("my-header1", "value1")];
        let headers = signed("service", Method::GET, url, &given, None, None);
        let expected = "SignedHeaders=host;my-header1;x-amz-date, Signature=c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea";
        assert_eq!(authorization(&headers), format!("{SCOPE}/service/aws4_request, {expected}"));

        let token = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267";
        let headers = signed("service", Method::GET, url, &[], None, Some(token));
        let expected = "SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8";
        assert_eq!(authorization(&headers), format!("{SCOPE}/service/aws4_request, {expected}"));
        assert_eq!(headers.get("x-amz-security-token").unwrap(), token);
    }

    /// What botocore 1.40.0 (`SigV4Auth`, `S3SigV4Auth`) makes of these requests at that time with those keys.
    #[test]
    fn bodies_ports_and_encoded_paths_are_signed_as_botocore_does() {
        for (service, method, url, kind, body, expected) in [
            (
                "es",
                Method::POST,
                "https://search-logs.us-east-1.es.amazonaws.com/app/_bulk?refresh=false&q=a%20b",
                "application/x-ndjson",
                "{\"index\":{}}\n{\"a\":1}\n",
                "SignedHeaders=content-type;host;x-amz-date, Signature=999015a6054341d4be4d0baca02f6b89f05e659e007d396ac15a7f720946b678",
            ),
            (
                "execute-api",
                Method::POST,
                "https://example.execute-api.us-east-1.amazonaws.com:8443/v1/a%20b/%3D",
                "application/json",
                "{}",
                "SignedHeaders=content-type;host;x-amz-date, Signature=3745b4ac4536a6f79199a0ccd87da6953e719015d7d4718a4a1587d013cfb228",
            ),
            (
                "s3",
                Method::PUT,
                "https://bucket.s3.us-east-1.amazonaws.com/a%20b/c",
                "text/plain",
                "hello",
                "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date, Signature=a0bfa7293130cfece6683ed5fc519255e56b317bf11b121065d4ea7428ea0d1a",
            ),
        ] {
            let headers = signed(service, method, url, &[("content-type", kind)], Some(body), None);
            assert_eq!(authorization(&headers), format!("{SCOPE}/{service}/aws4_request, {expected}"));
        }
    }
}
