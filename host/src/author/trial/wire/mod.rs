//! The wire of a test: what an output asks of services comes here, is noted, and gets the answer that the script has for it.
//!
//! [`aws`] is behind the SDK's clients. What a test does not script is answered by the strict services of `wharf dev-aws`, in this process.

mod asked;
mod aws;
mod http;
pub(crate) mod notes;
mod observe;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wharf_local_aws::logs::{self, Clock};
use wharf_local_aws::{ACCESS_KEY, InProcess, Options, SECRET_KEY};

use crate::capability::aws::Connection;
use crate::config::AwsConfig;

use super::case::{Answer, Answers, Case, Script};
use super::compare::fits;

pub(crate) use aws::AwsWire;
pub(crate) use http::HttpWire;
pub(crate) use notes::Notes;
pub(crate) use observe::{AwsObserver, HttpObserver};

/// No such host: a request that left this process would fail, and none does. It is TLS, so that payloads are treated as they are with AWS.
const ENDPOINT: &str = "https://aws.test";
const REGION: &str = "us-east-1";

/// The scripts of a test, gone through by whoever is asked.
#[derive(Debug)]
pub(crate) struct Scripts {
    /// By capability and operation.
    aws: Mutex<HashMap<(&'static str, &'static str), Script>>,
    /// By what a request line is like; the first that fits answers.
    http: Mutex<Vec<(String, Script)>>,
}

impl Scripts {
    pub(crate) fn new(answers: &Answers) -> Self {
        let mut aws = HashMap::new();
        for (capability, operations) in [("s3", &answers.s3), ("cloudwatch_logs", &answers.cloudwatch_logs)] {
            for (operation, lines) in operations {
                aws.insert((capability, *operation), Script::new(lines.clone()));
            }
        }
        let http = answers.http.iter().map(|(pattern, lines)| (pattern.clone(), Script::new(lines.clone())));
        Self { aws: Mutex::new(aws), http: Mutex::new(http.collect()) }
    }

    /// What AWS answers this time.
    pub(crate) fn aws(&self, capability: &str, operation: &str) -> Answer {
        let mut scripts = lock(&self.aws);
        let script = scripts.iter_mut().find(|((of, name), _)| *of == capability && *name == operation);
        script.map_or(Answer::Ok, |(_, script)| script.next())
    }

    /// What an HTTP destination answers this time.
    pub(crate) fn http(&self, line: &str) -> Answer {
        let mut scripts = lock(&self.http);
        let script = scripts.iter_mut().find(|(pattern, _)| fits(pattern, line));
        script.map_or(Answer::Ok, |(_, script)| script.next())
    }

    /// A line for each list with answers that no call got.
    pub(crate) fn unused(&self) -> Vec<String> {
        let told = |place: String, script: &Script| match script.given() {
            (all, given) if given == all => None,
            (1, _) => Some(format!("{place}: its answer was never used")),
            (all, 0) => Some(format!("{place}: none of its {all} answers was used")),
            (all, given) => Some(format!("{place}: only {given} of its {all} answers were used")),
        };
        let aws = lock(&self.aws);
        let mut lines: Vec<String> = aws
            .iter()
            .filter_map(|((capability, name), script)| told(format!("answers.{capability}.{name}"), script))
            .collect();
        lines.sort();
        let http = lock(&self.http);
        lines.extend(http.iter().filter_map(|(pattern, script)| match pattern.as_str() {
            "…" => told("answers.http".into(), script),
            line => told(format!("answers.http, {line}"), script),
        }));
        lines
    }
}

/// The way to AWS of a test. `buckets` and `log_groups` are there.
pub(crate) fn connection(
    case: &Case,
    notes: &Arc<Notes>,
    scripts: &Arc<Scripts>,
    buckets: Vec<String>,
    log_groups: Vec<String>,
) -> Result<Arc<Connection>, String> {
    let s3 = Options { buckets, refuse_overwrites: false, ..Options::default() };
    let logs = logs::Options {
        groups: log_groups,
        clock: Clock::at(case.now_ns / 1_000_000),
        region: REGION.to_owned(),
        ..logs::Options::default()
    };
    let services = InProcess::new(&s3, logs).map_err(|error| format!("{error:#}"))?;
    for object in &case.given.s3 {
        let metadata: BTreeMap<_, _> = object.metadata.clone();
        services.place(&object.bucket, &object.key, object.body.clone(), metadata);
    }
    let credentials = aws_credential_types::Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "test");
    let settings = AwsConfig {
        region: Some(REGION.to_owned()),
        endpoint: Some(ENDPOINT.to_owned()),
        path_style: Some(true),
        ..AwsConfig::default()
    };
    let wire = AwsWire::new(services, Arc::clone(notes), Arc::clone(scripts));
    Ok(Connection::over_wire(settings, credentials, wire.into_client()))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
