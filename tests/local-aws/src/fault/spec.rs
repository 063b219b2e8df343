//! A rule as text, for a command line: `PutLogEvents=ThrottlingException,percent=10`.

use std::str::FromStr;
use std::time::Duration;

use super::{Fault, Reject, Rule, Vanish};
use crate::Operation;
use crate::logs::rules::ENTITY_ERRORS;

/// Error codes that a client is likely to be tried with.
const CODES: &[&str] = &[
    "AccessDenied",
    "AccessDeniedException",
    "ConditionalRequestConflict",
    "DataAlreadyAcceptedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "InternalError",
    "InternalFailure",
    "InvalidAccessKeyId",
    "InvalidParameterException",
    "InvalidSequenceTokenException",
    "LimitExceededException",
    "NoSuchBucket",
    "NoSuchUpload",
    "OperationAbortedException",
    "PreconditionFailed",
    "RequestTimeout",
    "ResourceAlreadyExistsException",
    "ResourceNotFoundException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
    "SlowDown",
    "ThrottlingException",
    "UnrecognizedClientException",
];

/// What is wrong with the text of a fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError(String);

impl std::fmt::Display for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SpecError {}

fn wrong<T>(message: String) -> Result<T, SpecError> {
    Err(SpecError(message))
}

impl FromStr for Rule {
    type Err = SpecError;

    /// `OPERATION=FAULT[,WHEN][,on=TEXT]`.
    ///
    /// OPERATION is a name of the API, or `*`. FAULT is an error code; `early:CODE` (before the body is read), `lose-reply`, `partial-reply`,
    /// `reset`, `stall:TIME`, `stall-reply:TIME`, `inside-200:CODE`, `vanish-stream`, `vanish-group`, `too-old:N`, `expired:N`, `too-new:N`,
    /// `bad-entity:TYPE`. WHEN is `nth=N`, `next=N`, `every=N`, `percent=N` or `for=TIME`. TEXT is a part of the key, or of `GROUP:STREAM`.
    fn from_str(spec: &str) -> Result<Self, SpecError> {
        let mut parts = spec.split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let Some((operation, fault)) = first.split_once('=') else {
            return wrong(format!("`{first}` should be OPERATION=FAULT, such as PutLogEvents=ThrottlingException"));
        };
        let fault = fault_of(fault)?;
        let mut rule = match (operation, Operation::of_name(operation)) {
            ("*", _) => Self::on_any(fault),
            (_, Some(operation)) => Self::on(operation, fault),
            (unknown, None) => {
                let known: Vec<&str> = Operation::ALL.iter().map(|operation| operation.name()).collect();
                return wrong(format!("there is no operation `{unknown}`; there are * and {}", known.join(", ")));
            }
        };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            rule = match name {
                "nth" => rule.nth(number(value)?),
                "next" => rule.next(number(value)?),
                "every" => rule.every(number(value)?),
                "percent" => rule.percent(number(value)?),
                "for" => rule.lasting(time(value)?),
                "on" => rule.key(value),
                _ => {
                    return wrong(format!("`{part}` should be nth=N, next=N, every=N, percent=N, for=TIME or on=TEXT"));
                }
            };
        }
        Ok(rule)
    }
}

fn fault_of(text: &str) -> Result<Fault, SpecError> {
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let count = || number(value).map(|count| count as usize);
    Ok(match name {
        "early" => Fault::EarlyError(one_of(value, CODES)?),
        "lose-reply" => Fault::LoseReply,
        "partial-reply" => Fault::PartialReply { bytes: 1 },
        "reset" => Fault::Reset { after: 0 },
        "stall" => Fault::Stall(time(value)?),
        "stall-reply" => Fault::StallReply(time(value)?),
        "inside-200" => Fault::ErrorInside200 { code: one_of(value, CODES)?, performed: false },
        "vanish-stream" => Fault::Vanish(Vanish::Stream),
        "vanish-group" => Fault::Vanish(Vanish::Group),
        "too-old" => Fault::Reject(Reject { too_old: count()?, ..Reject::default() }),
        "expired" => Fault::Reject(Reject { expired: count()?, ..Reject::default() }),
        "too-new" => Fault::Reject(Reject { too_new: count()?, ..Reject::default() }),
        "bad-entity" => Fault::Reject(Reject { entity: Some(one_of(value, ENTITY_ERRORS)?), ..Reject::default() }),
        code => Fault::Error(one_of(code, CODES)?),
    })
}

fn one_of(text: &str, known: &[&'static str]) -> Result<&'static str, SpecError> {
    let found = known.iter().copied().find(|one| *one == text);
    found.map_or_else(|| wrong(format!("`{text}` is not one of {}", known.join(", "))), Ok)
}

fn number(text: &str) -> Result<u64, SpecError> {
    text.parse().or_else(|_| wrong(format!("`{text}` should be a whole number")))
}

/// `500ms`, `2s`, `1m`.
fn time(text: &str) -> Result<Duration, SpecError> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let millis = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        _ => return wrong(format!("`{text}` should be a time such as 500ms, 2s or 1m")),
    };
    Ok(Duration::from_millis(number(digits)?.saturating_mul(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Faults;

    fn struck(spec: &str, operation: Operation, key: &str, requests: usize) -> Vec<Option<Fault>> {
        let faults = Faults::new(1);
        faults.add(spec.parse().unwrap());
        (0..requests).map(|_| faults.strike(operation, key)).collect()
    }

    #[test]
    fn a_rule_reads_as_it_is_written() {
        let put = Operation::PutLogEvents;
        let throttled = Some(Fault::Error("ThrottlingException"));
        assert_eq!(struck("PutLogEvents=ThrottlingException,nth=2", put, "g:s", 3), [None, throttled.clone(), None]);
        assert_eq!(struck("*=ThrottlingException,next=1,on=g:", put, "g:s", 2), [throttled.clone(), None]);
        assert_eq!(struck("PutObject=SlowDown", put, "g:s", 1), [None]);
        let stall = Some(Fault::Stall(Duration::from_millis(500)));
        assert_eq!(struck("CreateLogStream=stall:500ms", Operation::CreateLogStream, "g:s", 1), [stall]);
        let reject = Reject { too_old: 3, ..Reject::default() };
        assert_eq!(struck("PutLogEvents=too-old:3,every=1", put, "g:s", 1), [Some(Fault::Reject(reject))]);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_there_is() {
        for (spec, said) in [
            ("PutLogEvents", "should be OPERATION=FAULT"),
            ("PutLogs=SlowDown", "there is no operation `PutLogs`; there are * and PutObject"),
            ("PutObject=Sloth", "`Sloth` is not one of AccessDenied"),
            ("PutObject=SlowDown,often", "`often` should be nth=N"),
            ("PutObject=SlowDown,nth=x", "`x` should be a whole number"),
            ("PutObject=stall:2h", "`2h` should be a time such as 500ms"),
        ] {
            let error = spec.parse::<Rule>().unwrap_err().to_string();
            assert!(error.contains(said), "{spec}: {error}");
        }
    }
}
