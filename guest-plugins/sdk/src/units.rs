//! Sizes and times as people write them.

use schemars::JsonSchema;
use serde::Deserialize;

/// A number, or a text with a unit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Quantity {
    /// A plain number.
    Number(u64),
    /// With a unit.
    Text(String),
}

impl Quantity {
    /// As a size: a plain number is bytes. See [`bytes`].
    ///
    /// # Errors
    /// What to write instead.
    pub fn bytes(&self) -> Result<u64, String> {
        match self {
            Self::Number(bytes) => Ok(*bytes),
            Self::Text(text) => bytes(text),
        }
    }
    /// As a time, in milliseconds: a plain number is seconds. See [`milliseconds`].
    ///
    /// # Errors
    /// What to write instead.
    pub fn milliseconds(&self) -> Result<u64, String> {
        match self {
            Self::Number(seconds) => Ok(seconds.saturating_mul(1000)),
            Self::Text(text) => milliseconds(text),
        }
    }
}

/// Bytes: a number, or one with a unit. `K`, `KB`, `M`, `MB`, … are decimal, as in Fluent Bit and in SI; `KiB`, `MiB`, … are binary.
///
/// # Errors
/// What to write instead.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
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
        _ => {
            return Err(format!(
                "`{text}` is no size: write a number of bytes, or one with KB, MB, GB, KiB, MiB or GiB"
            ));
        }
    };
    number.checked_mul(factor).ok_or_else(|| format!("`{text}` is too large"))
}

/// Milliseconds: a number of seconds, or one with `ms`, `s`, `m`, `h` or `d` (in either case, as in Fluent Bit).
///
/// # Errors
/// What to write instead.
pub fn milliseconds(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(format!("`{text}` is no time: write a number with ms, s, m, h or d, such as `10m`")),
    };
    number.checked_mul(factor).ok_or_else(|| format!("`{text}` is too long"))
}

fn split(text: &str) -> Result<(u64, &str), String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number = number.parse().map_err(|_| format!("`{text}` does not begin with a whole number"))?;
    Ok((number, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::{bytes, milliseconds};

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
        for text in ["", "MB", "5 potatoes", "-1", "1.5M", "99999999999999999999", "99999999999T"] {
            assert!(bytes(text).is_err(), "{text}");
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
        assert!(milliseconds("10 years").is_err());
    }
}
