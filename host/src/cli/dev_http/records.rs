//! The records of a request's body.

use std::io::Read as _;

use serde_json::value::RawValue;

/// Most bytes that a body may have when it is decompressed.
const MAX_BYTES: u64 = 256 << 20;

/// The body without its compression, as `content-encoding` names it.
///
/// # Errors
/// Where it is compressed in another way, or not as it says, or is too large.
pub(super) fn decoded(body: &[u8], encoding: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = match encoding {
        "" | "identity" => return Ok(body.to_vec()),
        "gzip" => flate2::read::MultiGzDecoder::new(body).take(MAX_BYTES + 1).read_to_end(&mut bytes),
        "zstd" => zstd::Decoder::new(body).and_then(|decoder| decoder.take(MAX_BYTES + 1).read_to_end(&mut bytes)),
        other => return Err(format!("content-encoding {other:?} is neither gzip nor zstd")),
    };
    match read {
        Ok(_) if bytes.len() as u64 > MAX_BYTES => Err(format!("it has more than {MAX_BYTES} bytes")),
        Ok(_) => Ok(bytes),
        Err(cause) => Err(format!("it is not {encoding}: {cause}")),
    }
}

/// The elements of a JSON array, on one line each, else the lines.
pub(super) fn apart(body: &[u8]) -> Vec<String> {
    if body.trim_ascii_start().first() == Some(&b'[')
        && let Ok(elements) = serde_json::from_slice::<Vec<&RawValue>>(body)
    {
        // A line break is nothing but white space between JSON's tokens.
        return elements.iter().map(|element| element.get().replace(['\n', '\r'], " ")).collect();
    }
    let text = String::from_utf8_lossy(body);
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_has_its_elements_and_anything_else_its_lines() {
        assert_eq!(apart(b" [{\"a\":1},\n{\"b\":[2,\n3]}]"), ["{\"a\":1}", "{\"b\":[2, 3]}"]);
        assert_eq!(apart(b"{\"a\":1}\n{\"b\":2}\n"), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(apart(b"[warn] one\r\ntwo"), ["[warn] one", "two"]);
        assert_eq!(apart(b"[]"), Vec::<String>::new());
    }

    /// Made with `printf 'a\nb\n' | gzip -n | xxd -p` and `printf 'a\nb\n' | zstd | xxd -p`.
    #[test]
    fn gzip_and_zstd_are_undone() {
        for (hexadecimal, encoding) in [
            ("1f8b08000000000000034be44ae20200972a571804000000", "gzip"),
            ("28b52ffd0458210000610a620a2550b323", "zstd"),
        ] {
            assert_eq!(decoded(&hex::decode(hexadecimal).unwrap(), encoding).unwrap(), b"a\nb\n", "{encoding}");
        }
        assert!(decoded(b"x", "br").unwrap_err().contains("br"));
        assert!(decoded(b"x", "gzip").unwrap_err().contains("not gzip"));
    }
}
