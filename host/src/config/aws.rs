//! Reads `aws` blocks: the common one, and those of outputs, which override single values of it.

use super::fault::Fault;
use super::model::{AwsConfig, PayloadSigning};
use super::reader::Section;
use super::top::{MOMENT, YEAR};

const CREDENTIALS: &str = "credentials come from the usual AWS chain: environment, profile, instance or task role";

/// What a block, and the ones that it overrides, come to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Aws {
    pub config: AwsConfig,
    /// A role is written, be it a faulty one.
    pub role_is_written: bool,
    /// What only a role needs, as the faults that each is where there is none.
    pub for_a_role: Vec<Fault>,
}

impl Aws {
    /// The same for somebody else: without the role, the profile, and what goes with them.
    pub(crate) fn without_role(&self) -> Self {
        let (role_arn, external_id, session_name, profile) = (None, None, None, None);
        let config = AwsConfig { role_arn, external_id, session_name, profile, ..self.config.clone() };
        Self { config, role_is_written: false, for_a_role: vec![] }
    }
}

/// What says who somebody is to AWS.
pub(crate) const IDENTITY: [&str; 5] = ["role_arn", "external_id", "session_name", "profile", "sts_endpoint"];

/// Reads a block over `defaults`.
pub(crate) fn read(mut section: Section<'_>, defaults: &Aws) -> Aws {
    let signing =
        [("auto", PayloadSigning::Auto), ("always", PayloadSigning::Always), ("never", PayloadSigning::Never)];
    let role_is_written = section.has("role_arn") || defaults.role_is_written;
    let written = ["external_id", "session_name"].into_iter().filter(|key| section.has(key));
    let mut for_a_role: Vec<Fault> = written
        .map(|key| Fault {
            file: section.sink().file().clone(),
            place: Some(section.place_of(key)),
            path: section.path_of(key),
            message: "there is no \"role_arn\" that it could be for".to_owned(),
            help: None,
        })
        .collect();
    for_a_role.extend_from_slice(&defaults.for_a_role);
    let below = &defaults.config;
    let or = |own: Option<String>, default: &Option<String>| own.or_else(|| default.clone());
    let sts_endpoint = or(endpoint(&mut section, "sts_endpoint"), &below.sts_endpoint);
    let config = AwsConfig {
        region: or(region(&mut section), &below.region),
        endpoint: or(endpoint(&mut section, "endpoint"), &below.endpoint),
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
    Aws { config, role_is_written, for_a_role }
}

/// The address of a service.
fn endpoint(section: &mut Section<'_>, key: &'static str) -> Option<String> {
    let text = section.text(key)?;
    match unusable(&text) {
        None => Some(text),
        Some((what, shows_it)) => {
            let found = if shows_it { format!(", found {}", section.found(key)) } else { String::new() };
            let help = "write http:// or https://, a host, and perhaps a port: http://127.0.0.1:9000 or https://storage.example.com";
            section.fault(key, format!("{what}{found}"), Some(help.into()));
            None
        }
    }
}

/// Why no request could go to a URL, and whether it may be shown: one with a password may not.
fn unusable(url: &str) -> Option<(&'static str, bool)> {
    if url.contains('@') {
        return Some(("a user or password in the URL is not used: credentials come from the usual AWS chain", false));
    }
    let no_url = Some(("expected an http or https URL", true));
    let Ok(uri) = url.parse::<axum::http::Uri>() else { return no_url };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return no_url };
    if !["http", "https"].iter().any(|known| known.eq_ignore_ascii_case(scheme)) || authority.host().is_empty() {
        return no_url;
    }
    let behind_brackets = authority.as_str().rsplit(']').next().unwrap_or("");
    let port = behind_brackets.rsplit_once(':').map(|(_, port)| port.parse::<u16>().unwrap_or(0));
    if port == Some(0) {
        return Some(("expected a URL with a port from 1 to 65535, or with none", true));
    }
    if url.contains(['?', '#']) {
        return Some(("expected a URL without `?` and `#`", true));
    }
    None
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
