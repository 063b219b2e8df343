//! Signature version 4, computed anew from what the server saw:
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use super::Seen;

pub(super) const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// Whether the signature of a `POST /` to Logs is that of what arrived, the content included.
pub(super) fn holds(seen: &Seen) -> bool {
    let authorization = seen.header("authorization").unwrap();
    let field = |name: &str| {
        let rest = authorization.split_once(&format!("{name}=")).unwrap().1;
        rest.split(',').next().unwrap().trim()
    };
    let signed = field("SignedHeaders");
    let scope = field("Credential").strip_prefix("AKIDEXAMPLE/").unwrap();
    let [date, region, "logs", "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else {
        panic!("not the scope of a request to Logs: {scope}")
    };
    let headers: String =
        signed.split(';').map(|name| format!("{name}:{}\n", seen.header(name).unwrap().trim())).collect();
    let canonical = format!("POST\n/\n\n{headers}\n{signed}\n{}", hex::encode(Sha256::digest(&seen.content)));
    let hash = hex::encode(Sha256::digest(canonical));
    let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{hash}", seen.header("x-amz-date").unwrap());
    let key = [date, region, "logs", "aws4_request"]
        .iter()
        .fold(format!("AWS4{SECRET}").into_bytes(), |key, part| mac(&key, part.as_bytes()));
    field("Signature") == hex::encode(mac(&key, text.as_bytes()))
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}
