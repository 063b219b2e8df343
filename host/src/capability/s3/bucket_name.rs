//! Names that no bucket of Amazon S3 has.

/// Fewest characters of a bucket's name, and most.
const SHORTEST: usize = 3;
const LONGEST: usize = 63;
/// The same, before March 2018, in us-east-1 alone; with upper case and `_`.
const LONGEST_OF_OLD: usize = 255;

/// Why Amazon S3 has no bucket of this name in this region; none where it may have. Other servers have rules of their own.
///
/// The rules are those of the User Guide, "General purpose bucket naming rules"
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>). An access point's ARN stands in place of a name, and its alias has the
/// form of one. Where the region is not known it may be the one with the old names.
pub(crate) fn no_name_at_amazon(bucket: &str, region: Option<&str>) -> Option<String> {
    if bucket.starts_with("arn:") {
        return None;
    }
    let length = bucket.chars().count();
    let is_old = length > LONGEST || bucket.contains(|c: char| c.is_ascii_uppercase() || c == '_');
    let may_be_old = region.is_none_or(|region| region == "us-east-1");
    let most = if is_old && may_be_old { LONGEST_OF_OLD } else { LONGEST };
    if length < SHORTEST {
        return Some(format!("has fewer than {SHORTEST} characters, and those of Amazon S3 have not"));
    }
    if length > most {
        return Some(format!("has {length} characters, and those of Amazon S3 have {LONGEST} at most"));
    }
    let is_known = |c: char| {
        let is_of_old = may_be_old && (c.is_ascii_uppercase() || c == '_');
        c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' || c == '-' || is_of_old
    };
    if let Some(other) = bucket.chars().find(|c| !is_known(*c)) {
        return Some(format!("has a `{other}`, and those of Amazon S3 have a-z, 0-9, `.` and `-` alone"));
    }
    if is_old {
        return None;
    }
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if !is_end(bucket.chars().next()) || !is_end(bucket.chars().last()) {
        return Some("begins or ends with `.` or `-`, and those of Amazon S3 with a letter or a digit".to_owned());
    }
    if bucket.contains("..") {
        return Some("has two `.` in a row, and those of Amazon S3 have not".to_owned());
    }
    let is_address = bucket.parse::<std::net::Ipv4Addr>().is_ok();
    is_address.then(|| "has the form of an address, and those of Amazon S3 have not".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the User Guide, and the borders of its rules.
    #[test]
    fn what_the_user_guide_allows_is_a_name_and_what_it_forbids_is_none() {
        let eu = Some("eu-west-1");
        for good in [
            "docexamplebucket-1a1b2c3d4-5678-90ab-cdef-examplaaaaa",
            "example.com",
            "www.example.com",
            "my.example.s3.bucket",
            "abc",
            "1b3",
            &"a".repeat(63),
            "my-access-point-hrzrlukc5m36ft7okagglf3gmwluquse1b-s3alias",
            "bucket--usw2-az1--x-s3",
            "arn:aws:s3:us-west-2:123456789012:accesspoint/Test_1",
        ] {
            assert_eq!(no_name_at_amazon(good, eu), None, "{good}");
        }
        for (bad, why) in [
            ("ab", "has fewer than 3 characters"),
            (&"a".repeat(64), "has 64 characters, and those of Amazon S3 have 63 at most"),
            ("amzn_s3_demo_bucket", "has a `_`"),
            ("AmznS3DemoBucket", "has a `A`"),
            ("amzn-s3-demo-bucket-", "begins or ends with"),
            (".logs", "begins or ends with"),
            ("example..com", "has two `.` in a row"),
            ("192.168.5.4", "has the form of an address"),
            ("l\u{f6}gs", "has a `\u{f6}`"),
        ] {
            let told = no_name_at_amazon(bad, eu).unwrap_or_default();
            assert!(told.starts_with(why), "{bad}: {told}");
        }
    }

    /// "Before March 1, 2018, buckets created in the US East (N. Virginia) Region could have names that were up to 255 characters long and included
    /// uppercase letters and underscores."
    #[test]
    fn an_old_name_is_one_where_there_were_old_ones() {
        for (name, elsewhere) in [("My_Logs", true), (&*format!("{}_x", "a".repeat(253)), true), ("a_", false)] {
            for region in [Some("us-east-1"), None] {
                assert_eq!(no_name_at_amazon(name, region).is_none(), elsewhere, "{name} {region:?}");
            }
            assert!(no_name_at_amazon(name, Some("us-east-2")).is_some(), "{name}");
        }
        assert!(no_name_at_amazon(&"a".repeat(256), None).is_some());
    }
}
