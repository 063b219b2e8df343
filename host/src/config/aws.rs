//! Reads `aws` blocks: the common one, and those of outputs, which override single values of it.

use super::fault::Place;
use super::model::{AwsConfig, PayloadSigning};
use super::reader::Section;
use super::top::{MOMENT, YEAR};

const CREDENTIALS: &str = "credentials come from the usual AWS chain: environment, profile, instance or task role";

/// What a block, and the ones that it overrides, come to.
#[derive(Debug, Default)]
pub(crate) struct Aws {
    pub config: AwsConfig,
    /// A role is written, be it a faulty one.
    pub role_is_written: bool,
    /// What only a role needs: where it is written, and its name with dots.
    pub for_a_role: Option<(Place, String)>,
}

/// Reads a block over `defaults`.
pub(crate) fn read(mut section: Section<'_>, defaults: &Aws) -> Aws {
    let signing =
        [("auto", PayloadSigning::Auto), ("always", PayloadSigning::Always), ("never", PayloadSigning::Never)];
    let role_is_written = section.has("role_arn") || defaults.role_is_written;
    let written = ["external_id", "session_name"].into_iter().find(|key| section.has(key));
    let for_a_role = written.map(|key| (section.place_of(key), section.path_of(key)));
    let below = &defaults.config;
    let or = |own: Option<String>, default: &Option<String>| own.or_else(|| default.clone());
    let sts_endpoint = or(section.url("sts_endpoint"), &below.sts_endpoint);
    let config = AwsConfig {
        region: or(region(&mut section), &below.region),
        endpoint: or(section.url("endpoint"), &below.endpoint),
        profile: or(section.text("profile"), &below.profile),
        role_arn: or(role_arn(&mut section, sts_endpoint.is_some()), &below.role_arn),
        external_id: or(external_id(&mut section), &below.external_id),
        session_name: or(session_name(&mut section), &below.session_name),
        sts_endpoint,
        path_style: section.boolean("path_style").or(below.path_style),
        payload_signing: section.one_of("payload_signing", &signing).unwrap_or(below.payload_signing),
        connect_timeout: section.duration("connect_timeout", MOMENT..=YEAR).or(below.connect_timeout),
        request_timeout: section.duration("request_timeout", MOMENT..=YEAR).or(below.request_timeout),
    };
    section.finish(&[
        ("access_key_id", CREDENTIALS),
        ("secret_access_key", CREDENTIALS),
        ("session_token", CREDENTIALS),
        ("force_path_style", "did you mean \"path_style\"?"),
    ]);
    Aws { config, role_is_written, for_a_role: for_a_role.or_else(|| defaults.for_a_role.clone()) }
}

fn region(section: &mut Section<'_>) -> Option<String> {
    let fine = |text: &str| text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    section.text_like("region", "a region", fine, "write it as AWS does, for example us-east-1")
}

/// The ARN of a role, `arn:PARTITION:iam::ACCOUNT:role/NAME` (IAM User Guide, "IAM identifiers":
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>), of 20 to 2048 characters (STS API Reference, `AssumeRole`).
/// A server that speaks like STS may have roles without an account: MinIO and Ceph do.
fn role_arn(section: &mut Section<'_>, own_sts: bool) -> Option<String> {
    let fine = |text: &str| {
        let mut parts = text.splitn(6, ':');
        let mut next = || parts.next().unwrap_or_default();
        let (arn, partition, service, region, account, role) = (next(), next(), next(), next(), next(), next());
        let account_is_fine = own_sts || (account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit()));
        let name_is_fine = role.strip_prefix("role/").is_some_and(|name| !name.is_empty() && !name.ends_with('/'));
        let (head, blank) = (arn == "arn" && !partition.is_empty() && service == "iam" && region.is_empty(), ' ');
        head && account_is_fine && name_is_fine && text.len() <= 2048 && !text.contains(blank)
    };
    let help =
        "write it as IAM shows it: arn:aws:iam::123456789012:role/NAME (aws-cn and aws-us-gov are other partitions)";
    section.text_like("role_arn", "the ARN of a role", fine, help)
}

/// 2 to 1224 characters of `[\w+=,.@:\/-]` (STS API Reference, `AssumeRole`:
/// <https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html>).
fn external_id(section: &mut Section<'_>) -> Option<String> {
    let fine = |text: &str| (2..=1224).contains(&text.len()) && text.bytes().all(|b| word(b) || b":/".contains(&b));
    section.text_like(
        "external_id",
        "an external id",
        fine,
        "STS takes 2 to 1224 letters, digits and characters of _+=,.@:/-",
    )
}

/// 2 to 64 characters of `[\w+=,.@-]` (the same page).
fn session_name(section: &mut Section<'_>) -> Option<String> {
    let fine = |text: &str| (2..=64).contains(&text.len()) && text.bytes().all(word);
    section.text_like(
        "session_name",
        "a session name",
        fine,
        "STS takes 2 to 64 letters, digits and characters of _+=,.@-",
    )
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_+=,.@-".contains(&byte)
}
