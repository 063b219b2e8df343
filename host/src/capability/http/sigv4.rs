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
        method: Method,
        url: &str,
        headers: &[(&'static str, &str)],
        body: Option<&'static str>,
        token: Option<&str>,
    ) -> HeaderMap {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        let request = Outgoing {
            method,
            url: url.parse().unwrap(),
            headers: headers.collect(),
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
        let scope = Scope { service: "service".into(), region: "us-east-1".into() };
        // 2015-08-30T12:36:00Z, the time of AWS's examples.
        sign(request, with, &scope, SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160)).unwrap().headers
    }

    fn authorization(headers: &HeaderMap) -> &str {
        headers.get("authorization").unwrap().to_str().unwrap()
    }

    /// AWS's Signature Version 4 test suite: `get-vanilla`, `post-vanilla`, `get-vanilla-query-order-key-case` and `get-vanilla-with-session-token`.
    #[test]
    fn signatures_are_those_of_the_published_examples() {
        let scope = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
        for (method, url, expected) in [
            (
                Method::GET,
                "http://example.amazonaws.com/",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                Method::POST,
                "http://example.amazonaws.com/",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                Method::GET,
                "http://example.amazonaws.com/?Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
        ] {
            let headers = signed(method, url, &[], None, None);
            assert_eq!(
                authorization(&headers),
                format!("{scope}, SignedHeaders=host;x-amz-date, Signature={expected}")
            );
            assert_eq!(headers.get("x-amz-date").unwrap(), "20150830T123600Z");
        }
    }
}
