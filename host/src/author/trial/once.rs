//! `wharf plugin run`: one real run, to the real destination.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use regex::Regex;

use super::case::{Case, Form, OUTPUT, Usual, of_lines};
use super::drive::{Outside, drive};
use super::transcript::Transcript;
use crate::config::{
    AwsConfig, Credential, Faults, GrantedCredential, GrantsConfig, HttpDestination, Limits, LogGroupGrant, S3Grant,
};
use crate::plugin::{HostOptions, LoadError, PluginHost, PluginSource};
use crate::record::now_ns;

/// A run.
#[derive(Debug, Clone)]
pub struct Once {
    /// The component.
    pub plugin: PluginSource,
    /// Its configuration: a file, or JSON.
    pub config: String,
    /// What it may touch; none is all that it asks for.
    pub grants: Option<Vec<Grant>>,
    /// A file with `credentials:` as in a configuration.
    pub credentials: Option<PathBuf>,
    /// The way to AWS.
    pub aws: AwsConfig,
    /// What it is given.
    pub records: Vec<u8>,
    /// What the lines of `records` are.
    pub json: bool,
    /// Their tag.
    pub tag: String,
    /// Records of a batch; none is all.
    pub max_records: Option<u64>,
    /// Where the compiled component is kept.
    pub cache: Option<PathBuf>,
}

/// `s3=bucket/prefix`, `cloudwatch_logs=/group`, `http=https://api.example.com` or `credential=name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Keys of a bucket.
    S3(S3Grant),
    /// A log group.
    LogGroup(LogGroupGrant),
    /// An HTTP destination.
    Http(HttpDestination),
    /// A credential's name.
    Credential(String),
}

impl std::str::FromStr for Grant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "write s3=BUCKET/PREFIX, cloudwatch_logs=GROUP, http=https://HOST or credential=NAME";
        let (kind, what) = text.split_once('=').filter(|(_, what)| !what.is_empty()).ok_or(form)?;
        Ok(match kind {
            "s3" => {
                let (bucket, key_prefix) = what.split_once('/').unwrap_or((what, ""));
                Self::S3(S3Grant { bucket: bucket.to_owned(), key_prefix: key_prefix.to_owned() })
            }
            "cloudwatch_logs" | "log_group" => Self::LogGroup(LogGroupGrant { log_group: what.to_owned() }),
            "http" => Self::Http(HttpDestination::parse(what)?),
            "credential" => Self::Credential(what.to_owned()),
            other => return Err(format!("{other:?} is no kind of grant: {form}")),
        })
    }
}

/// Why there was no run.
#[derive(Debug, thiserror::Error)]
pub enum OnceError {
    /// The component.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The configuration.
    #[error("{0}")]
    Config(Faults),
    /// The records.
    #[error("{0}")]
    Records(String),
    /// The host.
    #[error("{0}")]
    Host(String),
}

/// What happened.
#[derive(Debug)]
pub struct Ran {
    transcript: Transcript,
}

impl Ran {
    /// All of it, as YAML, with the component's log.
    #[must_use]
    pub fn told(&self) -> String {
        self.transcript.told()
    }

    /// A line for each batch.
    #[must_use]
    pub fn summary(&self) -> String {
        self.transcript.summary()
    }

    /// The `--grant`s that would have let it go on; none where nothing was refused for want of one.
    #[must_use]
    pub fn missing_grants(&self) -> Vec<String> {
        let mut grants = vec![];
        for attempt in self.transcript.batches.iter().flat_map(|batch| &batch.attempts) {
            let grant = attempt.message.as_deref().and_then(missing_grant);
            grants.extend(grant.filter(|grant| !grants.contains(grant)));
        }
        grants
    }

    /// Whether every record was delivered.
    #[must_use]
    pub fn is_delivered(&self) -> bool {
        self.transcript.is_delivered()
    }
}

/// Runs it.
///
/// # Errors
/// See [`OnceError`].
pub async fn once(run: &Once) -> Result<Ran, OnceError> {
    let mut case = Case::of_config(&run.config).map_err(OnceError::Config)?;
    if let Some(path) = &run.credentials {
        case.credentials = Case::credentials_of(path).map_err(OnceError::Config)?;
    }
    case.grants = match &run.grants {
        Some(grants) => Some(granted(grants, &case.credentials)?),
        None => None,
    };
    let usual = Usual { tag: run.tag.as_str().into(), time_ns: now_ns() };
    let form = if run.json { Form::Json } else { Form::Text };
    let (records, faults) = of_lines(&run.records, form, &usual);
    if let Some((line, what)) = faults.first() {
        return Err(OnceError::Records(format!("the records, line {line}: {what}")));
    }
    if records.is_empty() {
        return Err(OnceError::Records("there is no record: give a file, or lines on standard input".into()));
    }
    case.records = records;
    case.output.batch.max_records = run.max_records;
    case.hostname = hostname();
    case.attempts = 1;
    let host = PluginHost::new(HostOptions::new(run.cache.clone(), Limits::default(), 2))?;
    let plugin = host.load(&run.plugin).await?;
    let outside = Outside::Real(Box::new(run.aws.clone()));
    let transcript = drive(&case, &plugin, &outside).await.map_err(OnceError::Host)?;
    match Faults::of(transcript.faults.clone()) {
        Some(faults) => Err(OnceError::Config(faults)),
        None => Ok(Ran { transcript }),
    }
}

fn granted(grants: &[Grant], known: &[Credential]) -> Result<GrantsConfig, OnceError> {
    let mut all = GrantsConfig::default();
    for grant in grants {
        match grant {
            Grant::S3(grant) => all.s3.push(grant.clone()),
            Grant::LogGroup(grant) => all.cloudwatch_logs.push(grant.clone()),
            Grant::Http(destination) => all.http.push(destination.clone()),
            Grant::Credential(name) => all.credentials.push(credential(name, known)?),
        }
    }
    Ok(all)
}

fn credential(name: &str, known: &[Credential]) -> Result<GrantedCredential, OnceError> {
    let found = known.iter().find(|credential| *credential.name == *name).map(Credential::granted);
    found.ok_or_else(|| {
        OnceError::Host(format!(
            "there is no credential {name:?}: define it under credentials: in a file, and give --credentials FILE"
        ))
    })
}

/// The grant that a refusal asks for, in the words of the command line.
fn missing_grant(message: &str) -> Option<String> {
    let refused = format!(
        r#"(?:s3://([^/\s]+)\S*|log group (\S+)|credential "([^"]+)"|(https?://\S+)) is not granted to output {OUTPUT}\b"#
    );
    let found = Regex::new(&refused).ok()?.captures(message)?;
    let kinds = [(1, "s3"), (2, "cloudwatch_logs"), (3, "credential"), (4, "http")];
    kinds.into_iter().find_map(|(n, kind)| Some(format!("--grant {kind}={}", found.get(n)?.as_str())))
}

fn hostname() -> Arc<str> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".into() } else { name.into() }
}

/// Whether a file of this name has JSON lines.
#[must_use]
pub fn is_json(path: &Path) -> bool {
    Form::of(path) == Form::Json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_with_the_option_that_would_lift_it() {
        for (message, grant) in [
            (
                "https://api.example.com:8443 is not granted to output test, which may send requests to nothing (outputs.test.grants.http)",
                Some("--grant http=https://api.example.com:8443"),
            ),
            (
                "writing: object s3://b/k/1 is not granted to output test, which may touch nothing (outputs.test.grants.s3)",
                Some("--grant s3=b"),
            ),
            (
                "log group /app is not granted to output test, which may touch nothing (outputs.test.grants.cloudwatch_logs)",
                Some("--grant cloudwatch_logs=/app"),
            ),
            (
                "credential \"root\" is not granted to output test, which may use ingest (outputs.test.grants.credentials)",
                Some("--grant credential=root"),
            ),
            ("POST https://api.example.com/ answered 403", None),
        ] {
            assert_eq!(missing_grant(message).as_deref(), grant, "{message}");
        }
    }
}
