//! Servers that send back what they were sent.
//!
//! A secret that comes back in an answer would be in the guest's memory, and with the answer's text in logs and dead letters. So the secrets that
//! went out with a request are made unreadable in its answer, as they were sent; a server that changes them first (in JSON escapes, say) is not found out.

use super::wire::Incoming;
use crate::config::Secret;

/// A shorter secret is in a text by chance, and no secret.
const LEAST_BYTES: usize = 6;

/// Writes `*` over every secret, and over the beginning of one at which the body was cut.
pub(super) fn cover(incoming: &mut Incoming, secrets: &[Secret]) {
    for secret in secrets.iter().map(Secret::expose).filter(|secret| secret.len() >= LEAST_BYTES) {
        for (_, value) in &mut incoming.headers {
            if value.contains(secret) {
                *value = value.replace(secret, &"*".repeat(secret.len()));
            }
        }
        let found: Vec<usize> = memchr::memmem::find_iter(&incoming.body, secret).collect();
        for at in found {
            blot(incoming.body.get_mut(at..at + secret.len()));
        }
        if incoming.truncated {
            let beginnings = (LEAST_BYTES..secret.len()).rev().filter_map(|length| secret.as_bytes().get(..length));
            let cut = beginnings.map(|beginning| (incoming.body.ends_with(beginning), beginning.len()));
            if let Some((_, length)) = cut.into_iter().find(|(is_there, _)| *is_there) {
                let from = incoming.body.len() - length;
                blot(incoming.body.get_mut(from..));
            }
        }
    }
}

fn blot(bytes: Option<&mut [u8]>) {
    if let Some(bytes) = bytes {
        bytes.fill(b'*');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered(body: &str, truncated: bool, secrets: &[&str]) -> String {
        let headers = vec![("x-echo".to_owned(), body.to_owned())];
        let mut incoming = Incoming { status: 200, headers, body: body.into(), truncated };
        let secrets: Vec<Secret> = secrets.iter().map(|secret| Secret::new(*secret)).collect();
        cover(&mut incoming, &secrets);
        let body = String::from_utf8(incoming.body).unwrap();
        if !truncated {
            assert_eq!(incoming.headers[0].1, body);
        }
        body
    }

    #[test]
    fn what_was_sent_as_a_secret_cannot_be_read_in_the_answer() {
        assert_eq!(covered("a hush-hush b hush-hush", false, &["hush-hush"]), "a ********* b *********");
        assert_eq!(covered("nothing of it", false, &["hush-hush"]), "nothing of it");
        assert_eq!(covered("Basic dTpodXNo, hushhush", false, &["hushhush", "dTpodXNo"]), "Basic ********, ********");
    }

    #[test]
    fn a_secret_that_the_end_of_the_body_cuts_is_covered_as_far_as_it_is_there() {
        assert_eq!(covered("a hush-hus", true, &["hush-hush"]), "a ********");
        assert_eq!(covered("a hush-h", true, &["hush-hush"]), "a ******");
        assert_eq!(covered("a hush", true, &["hush-hush"]), "a hush");
        assert_eq!(covered("a hush-hus", false, &["hush-hush"]), "a hush-hus");
    }

    #[test]
    fn what_is_too_short_to_be_a_secret_stays() {
        assert_eq!(covered("12345 and more", false, &["12345"]), "12345 and more");
    }
}
