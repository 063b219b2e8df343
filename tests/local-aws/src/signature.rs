//! AWS Signature Version 4, recomputed with the crate that AWS's own SDK signs with.
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use hyper::http::request::Parts;
use hyper::http::{HeaderValue, header};

use crate::{ACCESS_KEY, SECRET_KEY};

/// How far a request's time may be off.
const MAX_SKEW: Duration = Duration::from_secs(5 * 60);

/// Why a request is not authentic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Forged {
    /// There is no signature.
    Missing,
    /// There is one that cannot be read.
    Malformed(&'static str),
    /// The access key is not known.
    UnknownKey(String),
    /// The time is too far off.
    Skewed(String),
    /// It is made for another service or region.
    Scope(String),
    /// It is somebody else's, or the request was changed.
    Wrong,
}

/// What an `Authorization` header says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Claim<'a> {
    access_key: &'a str,
    date: &'a str,
    region: &'a str,
    service: &'a str,
    signed_headers: &'a str,
    signature: &'a str,
}

impl<'a> Claim<'a> {
    fn of(head: &'a Parts) -> Result<Self, Forged> {
        let header = text(head, "authorization").ok_or(Forged::Missing)?;
        let rest = header
            .strip_prefix("AWS4-HMAC-SHA256")
            .ok_or(Forged::Malformed("the algorithm must be AWS4-HMAC-SHA256"))?;
        let part = |name: &str| {
            rest.split(',').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
        };
        let mut scope = part("Credential").split('/');
        let mut next = || scope.next().unwrap_or_default();
        let claim = Self {
            access_key: next(),
            date: next(),
            region: next(),
            service: next(),
            signed_headers: part("SignedHeaders"),
            signature: part("Signature"),
        };
        if next() != "aws4_request" {
            return Err(Forged::Malformed("Authorization needs Credential=KEY/DATE/REGION/SERVICE/aws4_request"));
        }
        if claim.signed_headers.is_empty() || claim.signature.is_empty() {
            return Err(Forged::Malformed("Authorization needs SignedHeaders and Signature"));
        }
        if !claim.signs("host") {
            return Err(Forged::Malformed("the header host must be signed"));
        }
        Ok(claim)
    }
    fn signs(&self, name: &str) -> bool {
        self.signed_headers.split(';').any(|signed| signed == name)
    }
}

/// Whether a request was signed with [`SECRET_KEY`] for this service, and in this region where one is wanted.
pub(crate) fn verify(head: &Parts, body: &[u8], service: &str, region: Option<&str>) -> Result<(), Forged> {
    let claim = Claim::of(head)?;
    if claim.access_key != ACCESS_KEY {
        return Err(Forged::UnknownKey(claim.access_key.to_owned()));
    }
    if claim.service != service {
        return Err(Forged::Scope(format!("Credential should be scoped to correct service: '{service}'.")));
    }
    if let Some(region) = region.filter(|region| *region != claim.region) {
        return Err(Forged::Scope(format!("Credential should be scoped to a valid region: '{region}'.")));
    }
    let shown = text(head, "x-amz-date").ok_or(Forged::Malformed("there is no header x-amz-date"))?;
    let time = parse_time(shown).ok_or(Forged::Malformed("x-amz-date must look like 20150830T123600Z"))?;
    if !shown.starts_with(claim.date) {
        return Err(Forged::Malformed("the date in Credential is not that of x-amz-date"));
    }
    let now = SystemTime::now();
    let off = now.duration_since(time).or_else(|_| time.duration_since(now)).unwrap_or_default();
    if off > MAX_SKEW {
        return Err(Forged::Skewed(shown.to_owned()));
    }
    let ours = compute(head, &claim, time, SignableBody::Bytes(body), service == "s3").ok_or(Forged::Wrong)?;
    if ours == claim.signature { Ok(()) } else { Err(Forged::Wrong) }
}

/// Whether there is a signature at all, whoever made it.
pub(crate) fn is_signed(head: &Parts) -> Result<(), Forged> {
    Claim::of(head).map(drop)
}

/// Replaces whatever signed an S3 request by [`ACCESS_KEY`]. Bodies that are signed piece by piece cannot be signed again: they stay as they are.
pub(crate) fn sign_again(head: &mut Parts) {
    let signed = (|| {
        let claim = Claim::of(head).ok()?;
        let digest = text(head, "x-amz-content-sha256")?.to_owned();
        let time = parse_time(text(head, "x-amz-date")?)?;
        let scope = format!("{}/{}/{}/aws4_request", claim.date, claim.region, claim.service);
        let ours = compute(head, &claim, time, SignableBody::Precomputed(digest), true)?;
        let headers = claim.signed_headers;
        let line =
            format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, SignedHeaders={headers}, Signature={ours}");
        HeaderValue::from_str(&line).ok()
    })();
    if let Some(signed) = signed {
        head.headers.insert(header::AUTHORIZATION, signed);
    }
}

fn compute(head: &Parts, claim: &Claim<'_>, time: SystemTime, body: SignableBody<'_>, s3: bool) -> Option<String> {
    let token = text(head, "x-amz-security-token").filter(|_| claim.signs("x-amz-security-token"));
    let identity = Credentials::new(ACCESS_KEY, SECRET_KEY, token.map(str::to_owned), None, "local").into();
    let mut settings = SigningSettings::default();
    // Whatever the client has signed counts, also what the SDK itself would leave out.
    settings.excluded_headers = None;
    settings.payload_checksum_kind = PayloadChecksumKind::NoHeader;
    if s3 {
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    }
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(claim.region)
        .name(claim.service)
        .time(time)
        .settings(settings)
        .build()
        .ok()?
        .into();
    let headers = head.headers.iter().filter(|(name, _)| claim.signs(name.as_str()));
    let headers = headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
    let host = text(head, "host")?;
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let request = SignableRequest::new(head.method.as_str(), format!("http://{host}{path}"), headers, body).ok()?;
    Some(sign(request, &params).ok()?.signature().to_owned())
}

fn text<'a>(head: &'a Parts, name: &str) -> Option<&'a str> {
    head.headers.get(name)?.to_str().ok()
}

/// `20150830T123600Z`
fn parse_time(text: &str) -> Option<SystemTime> {
    let bytes = text.as_bytes();
    if bytes.len() != 16 || bytes.get(8) != Some(&b'T') || bytes.get(15) != Some(&b'Z') {
        return None;
    }
    let number = |from: usize, to: usize| {
        text.get(from..to).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<u64>().ok()
    };
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60
    {
        return None;
    }
    // Days since 1970 of the proleptic Gregorian calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(UNIX_EPOCH + Duration::from_secs(days * 86_400 + hour * 3600 + minute * 60 + second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_in_the_signing_process() {
        // `date -u -d '2015-08-30 12:36:00' +%s`
        let seconds = |text| parse_time(text).map(|time| time.duration_since(UNIX_EPOCH).unwrap().as_secs());
        assert_eq!(seconds("20150830T123600Z"), Some(1_440_938_160));
        assert_eq!(seconds("19700101T000000Z"), Some(0));
        assert_eq!(seconds("20240229T235959Z"), Some(1_709_251_199));
        for wrong in ["", "20150830", "2015-08-30T12:36:00Z", "20151330T123600Z", "20150830T123600+", "2015083äT12360Z"]
        {
            assert_eq!(parse_time(wrong), None, "{wrong}");
        }
    }
}
