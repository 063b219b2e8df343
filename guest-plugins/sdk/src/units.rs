//! Sizes and times as people write them: types for options.

use schemars::JsonSchema;
use serde::Deserialize;

/// An amount of bytes: a number, or a text with a unit. `K`, `KB`, `M`, `MB`, … are decimal, as in Fluent Bit and in SI; `KiB`, `MiB`, …
/// are binary.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a size such as 50MB or 64MiB, or a whole number of bytes")]
#[schemars(inline, extend("x-expected" = "a size such as 50MB or 64MiB, or a whole number of bytes"))]
pub enum Size {
    /// A plain number.
    Bytes(u64),
    /// With a unit.
    Text(String),
}

/// A time: a number of seconds, or a text with `ms`, `s`, `m`, `h` or `d` (in either case, as in Fluent Bit).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a time such as 90s or 10m, or a whole number of seconds")]
#[schemars(inline, extend("x-expected" = "a time such as 90s or 10m, or a whole number of seconds"))]
pub enum Time {
    /// A plain number.
    Seconds(u64),
    /// With a unit.
    Text(String),
}

impl Size {
    /// In bytes.
    ///
    /// # Errors
    /// What is wrong, with what to write instead.
    pub fn bytes(&self) -> Result<u64, String> {
        match self {
            Self::Bytes(bytes) => Ok(*bytes),
            Self::Text(text) => bytes(text),
        }
    }
}

impl Time {
    /// In milliseconds.
    ///
    /// # Errors
    /// What is wrong, with what to write instead.
    pub fn milliseconds(&self) -> Result<u64, String> {
        match self {
            Self::Seconds(seconds) => {
                seconds.checked_mul(1000).ok_or_else(|| format!("{seconds} seconds are too long"))
            }
            Self::Text(text) => milliseconds(text),
        }
    }
}

/// Bytes of a text.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || {
        let forms =
            "a whole number of bytes, or one with KB, MB, GB (powers of 1000), KiB, MiB or GiB (powers of 1024)";
        format!("`{text}` is no size: write {forms}, such as `64MiB`")
    };
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    number.parse().ok().and_then(|n: u64| n.checked_mul(factor)).ok_or_else(|| format!("`{text}` is too large"))
}

/// Milliseconds of a text.
fn milliseconds(text: &str) -> Result<u64, String> {
    let wrong =
        || format!("`{text}` is no time: write a whole number of seconds, or one with ms, s, m, h or d, such as `10m`");
    let (number, unit) = split(text).ok_or_else(wrong)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.parse().ok().and_then(|n: u64| n.checked_mul(factor)).ok_or_else(|| format!("`{text}` is too long"))
}

/// The digits at the beginning, if there are some, and what follows them.
fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    (digits > 0).then_some((number, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_unless_they_say_so() {
        for (text, expected) in [
            ("5242880", 5_242_880),
            ("50M", 50_000_000),
            ("50MB", 50_000_000),
            ("50 mb", 50_000_000),
            ("5MiB", 5_242_880),
            ("1k", 1_000),
            ("2G", 2_000_000_000),
            ("1GiB", 1_073_741_824),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "MB", "5 potatoes", "-1", "1.5M", "1e9", "lots"] {
            assert!(bytes(text).unwrap_err().contains("write a whole number of bytes, or one with KB, MB"), "{text}");
        }
        for text in ["99999999999999999999", "99999999999T"] {
            assert_eq!(bytes(text).unwrap_err(), format!("`{text}` is too large"));
        }
    }

    #[test]
    fn times_without_a_unit_are_seconds() {
        for (text, expected) in [
            ("600", 600_000),
            ("10m", 600_000),
            ("10M", 600_000),
            ("1h", 3_600_000),
            ("6D", 518_400_000),
            ("250ms", 250),
        ] {
            assert_eq!(milliseconds(text), Ok(expected), "{text}");
        }
        for text in ["10 years", "-1s", "soon", ""] {
            assert!(milliseconds(text).unwrap_err().contains("or one with ms, s, m, h or d, such as `10m`"), "{text}");
        }
        assert_eq!(milliseconds("999999999999999999999s").unwrap_err(), "`999999999999999999999s` is too long");
        assert!(Time::Seconds(u64::MAX).milliseconds().is_err());
    }

    #[test]
    fn what_is_neither_a_number_nor_a_text_is_told_what_it_should_be() {
        let error = serde_json::from_str::<Size>("1e9").unwrap_err().to_string();
        assert_eq!(error, "expected a size such as 50MB or 64MiB, or a whole number of bytes");
        let error = serde_json::from_str::<Time>("[]").unwrap_err().to_string();
        assert_eq!(error, "expected a time such as 90s or 10m, or a whole number of seconds");
    }
}
