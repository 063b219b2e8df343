//! The class that the object is stored in.

use crate::config::Config;
use wharf_plugin::Faults;

/// Values of `x-amz-storage-class` (API Reference, `PutObject`:
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html>, and the SDK's own list).
const OF_AWS: [&str; 15] = [
    "STANDARD",
    "STANDARD_IA",
    "INTELLIGENT_TIERING",
    "ONEZONE_IA",
    "GLACIER_IR",
    "GLACIER",
    "DEEP_ARCHIVE",
    "REDUCED_REDUNDANCY",
    "EXPRESS_ONEZONE",
    "OUTPOSTS",
    "SNOW",
    "FSX_OPENZFS",
    "FSX_ONTAP",
    "AWS_BACKUP_WARM",
    "AWS_BACKUP_LOW_COST_WARM",
];

/// Refuses what is no name of a class anywhere, and what is one of AWS's but for a slip. Other servers have classes of their own: operators
/// of Ceph give them any name (Ceph's manual, "Placement targets and storage classes"). Which server it is, only the host knows.
pub(super) fn check(config: &Config, faults: &mut Faults) {
    let Some(class) = config.storage_class.as_deref() else { return };
    if class.is_empty() {
        faults.add("storage_class", "it is empty: write the name of a class such as `STANDARD_IA`, or leave it out");
    } else if let Some(c) = class.chars().find(|c| !c.is_ascii_alphanumeric() && !"_-".contains(*c)) {
        faults.add(
            "storage_class",
            format!("it has {c:?}: the name of a class has letters, digits, `_` and `-`, as in `STANDARD_IA`"),
        );
    } else if let Some(meant) = meant(class) {
        faults.add(
            "storage_class",
            format!("`{class}` is not known: write `{meant}` (a server's own class needs a name that is less like it)"),
        );
    }
}

/// The class of AWS's that is probably meant, where it is written otherwise. A digit makes a name another one: `GLACIER2` is no slip.
fn meant(class: &str) -> Option<&'static str> {
    if OF_AWS.contains(&class) {
        return None;
    }
    let plain = class.to_ascii_uppercase().replace('-', "_");
    let slips = |known: &str| match known.len() {
        ..5 => 0,
        5..15 => 1,
        _ => 2,
    };
    let has_digit = class.bytes().any(|byte| byte.is_ascii_digit());
    OF_AWS
        .into_iter()
        .filter(|known| *known == plain || (!has_digit && changes(&plain, known) <= slips(known)))
        .min_by_key(|known| changes(&plain, known))
}

/// How many letters are left out, put in, exchanged, or swapped with the next one: the Damerau-Levenshtein distance of strings in which no
/// part is changed twice.
fn changes(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at = |row: &[usize], j: usize| row.get(j).copied().unwrap_or(usize::MAX - 1);
            let mut least = (at(&above, j) + usize::from(x != y)).min(at(&above, j + 1) + 1).min(at(&row, j) + 1);
            let (last, last_of_b) = (i.checked_sub(1).and_then(|i| a.get(i)), j.checked_sub(1).and_then(|j| b.get(j)));
            if last == Some(y) && last_of_b == Some(x) {
                least = least.min(at(&before, j - 1) + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{OF_AWS, changes, meant};

    #[test]
    fn a_slip_is_answered_with_the_class_that_is_meant() {
        for (written, expected) in [
            ("STANDARD-IA", Some("STANDARD_IA")),
            ("standard_ia", Some("STANDARD_IA")),
            ("Standard", Some("STANDARD")),
            ("STANDARDIA", Some("STANDARD_IA")),
            ("STANDRAD", Some("STANDARD")),
            ("GLACIAR", Some("GLACIER")),
            ("glacier-ir", Some("GLACIER_IR")),
            ("ONE_ZONE_IA", Some("ONEZONE_IA")),
            ("INTELIGENT_TEIRING", Some("INTELLIGENT_TIERING")),
            ("snow", Some("SNOW")),
            // Classes as Ceph's manual and its users name them.
            ("COLD", None),
            ("SLOW", None),
            ("FAST", None),
            ("STANDARD_HDD", None),
            ("STANDARD2", None),
            ("GLACIER2", None),
            ("nvme-tier_1", None),
            ("LUKEWARM", None),
        ] {
            assert_eq!(meant(written), expected, "{written}");
        }
        for known in OF_AWS {
            assert_eq!(meant(known), None, "{known}");
        }
    }

    #[test]
    fn changes_are_counted_letter_by_letter() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("abc", "abd", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((changes(a, b), changes(b, a)), (expected, expected), "{a} {b}");
        }
    }
}
