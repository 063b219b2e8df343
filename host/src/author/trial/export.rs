//! Dead letters as tests: what a destination refused is replayed at the desk, record by record.
//!
//! Each file of dead letters becomes `<batch>.yaml` and, beside it, `<batch>.ndjson` with its records, their times and tags. The plugin's
//! configuration goes along as it is written: what it reads from the environment is left as `${VAR}`, and so is no secret in the test.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use aws_smithy_types::base64;
use jiff::Timestamp;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::yaml;
use crate::config::{Entry, Faults, Node, NodeValue, Sink, json_value, read_yaml, text_of};
use crate::dead_letter::{DeadLetterError, LetterFile, StoredLetter, time_text};
use crate::record::BodyKind;

/// Reasons that a test names one by one; more are left to its author.
const MOST_REASONS: usize = 1000;
/// Where a variable was, until the text is written: neither can be in a configuration that a person typed.
const OPEN: char = '\u{e000}';
const CLOSE: char = '\u{e001}';

/// What is to be written.
#[derive(Debug)]
pub struct Export {
    /// The configuration.
    pub config: PathBuf,
    /// The output in it.
    pub output: String,
    /// Its dead letters.
    pub files: Vec<LetterFile>,
    /// Where the tests go.
    pub to: PathBuf,
}

/// Why it could not be.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The configuration.
    #[error("{0}")]
    Config(Faults),
    /// The dead letters.
    #[error(transparent)]
    Letters(#[from] DeadLetterError),
    /// The disk.
    #[error("{} could not be written: {cause}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: std::io::Error,
    },
}

/// What became of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ExportedTests {
    /// The tests.
    pub written: Vec<PathBuf>,
    /// Files that were there already, and are left as they are: somebody may have worked on them. Their tests are not written.
    pub kept: Vec<PathBuf>,
}

/// Writes a test for each file.
///
/// # Errors
/// See [`ExportError`].
pub fn export(what: &Export) -> Result<ExportedTests, ExportError> {
    let config = written_config(&what.config, &what.output).map_err(ExportError::Config)?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |cause| ExportError::Write { path, cause }
    };
    std::fs::create_dir_all(&what.to).map_err(failed(&what.to))?;
    let mut exported = ExportedTests::default();
    for file in &what.files {
        let test = what.to.join(format!("{}.yaml", file.batch));
        let records = what.to.join(format!("{}.ndjson", file.batch));
        if let Some(path) = [&test, &records].into_iter().find(|path| path.exists()) {
            exported.kept.push(path.clone());
            continue;
        }
        let letters = file.letters()?.collect::<Result<Vec<_>, _>>()?;
        let lines: String = letters.iter().map(|letter| format!("{}\n", line(letter))).collect();
        std::fs::write(&records, lines).map_err(failed(&records))?;
        std::fs::write(&test, text(file, &letters, config.as_ref())).map_err(failed(&test))?;
        exported.written.push(test);
    }
    Ok(exported)
}

/// One record, in the notation of tests. Its body is there to the byte.
fn line(letter: &StoredLetter) -> Value {
    let mut line = Map::new();
    line.insert("$time".into(), time_text(letter.time_ns).into());
    line.insert("$tag".into(), letter.tag.clone().into());
    match (std::str::from_utf8(&letter.body), letter.kind) {
        (Ok(text), BodyKind::Text) => line.insert("$text".into(), text.into()),
        (Ok(json), BodyKind::Json) => line.insert("$json".into(), json.into()),
        (Err(_), _) => line.insert("$base64".into(), base64::encode(&letter.body).into()),
    };
    line.into()
}

fn text(file: &LetterFile, letters: &[StoredLetter], config: Option<&Value>) -> String {
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for letter in letters {
        *reasons.entry((&letter.failure, &letter.reason)).or_default() += 1;
    }
    let mut text =
        format!("# Dead letters of output {}, batch {}: {} records.\n", file.output, file.batch, letters.len());
    for ((failure, reason), count) in reasons.iter().take(20) {
        let _ = writeln!(text, "# {failure}: {} ({count} records)", comment(reason));
    }
    let mut test = Map::new();
    test.insert("description".into(), format!("Dead letters of {}, batch {}", file.output, file.batch).into());
    // What is too old or too new was so then.
    if let Ok(written) = Timestamp::try_from(file.written) {
        test.insert("now".into(), format!("{written:.3}").into());
    }
    if let Some(config) = config {
        test.insert("config".into(), config.clone());
    }
    test.insert("records".into(), json!({ "file": format!("{}.ndjson", file.batch) }));
    let expired = letters.iter().any(|letter| letter.failure == "retry_expired");
    if expired {
        // The first attempt is the last.
        test.insert("retry".into(), json!({ "max_age": "0s" }));
    }
    yaml::write(&mut text, &test.into());
    let answers = reasons.keys().find_map(|(_, reason)| answers(reason));
    match &answers {
        Some(answers) => {
            text.push_str("# As the reason has it: what the destination answered then.\n");
            yaml::write(&mut text, &json!({ "answers": answers }));
        }
        None => text.push_str(
            "# Where the destination had a part in it, say here what it answered.\n# answers: { http: [ 400 ] }\n",
        ),
    }
    yaml::write(&mut text, &json!({ "expect": { "dead_letters": expected(letters) } }));
    with_variables(&text)
}

/// What the test expects: the same end for the same records.
fn expected(letters: &[StoredLetter]) -> Value {
    let mut reasons: Vec<String> = letters.iter().map(|letter| general(&letter.reason, &letter.batch)).collect();
    let same = reasons.windows(2).all(|two| matches!(two, [a, b] if a == b));
    if same || reasons.len() > MOST_REASONS {
        let one = reasons.pop().unwrap_or_default();
        return if same { one.into() } else { "…".into() };
    }
    (0u64..).zip(reasons).map(|(record, reason)| json!({ "record": record, "reason": reason })).collect()
}

/// A reason without what is another one in a test: the batch's name, numbers of attempts and of objects.
fn general(reason: &str, batch: &str) -> String {
    let mut text = reason.replace(batch, "…");
    for (pattern, with) in [
        (r"given up after \d+ tries in \d+ s", "given up after … tries in … s"),
        (r"took [0-9.]+(ns|µs|ms|s) of CPU time", "took … of CPU time"),
        (r"\S*/\S*\d\S*", ""),
    ] {
        let Ok(pattern) = Regex::new(pattern) else { continue };
        text = match with {
            // Numbers in paths: a counter begins anew in a test.
            "" => pattern
                .replace_all(&text, |found: &regex::Captures<'_>| {
                    without_numbers(found.get(0).map_or("", |path| path.as_str()))
                })
                .into_owned(),
            with => pattern.replace_all(&text, with).into_owned(),
        };
    }
    text
}

fn without_numbers(path: &str) -> String {
    let (scheme, path) = path.split_once("://").unwrap_or(("", path));
    let mut text = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    for c in path.chars() {
        if !c.is_ascii_digit() {
            text.push(c);
        } else if !text.ends_with('…') {
            text.push('…');
        }
    }
    text
}

/// What was answered, where the reason says it in the words of the SDK.
fn answers(reason: &str) -> Option<Value> {
    if let Some(answer) = http_answer(reason) {
        return Some(json!({ "http": answer }));
    }
    let answered = Regex::new(r"(S3|CloudWatch Logs)? ?answered (\d{3})(?: ([A-Za-z]+))?(?: \((.+)\))?").ok()?;
    let found = answered.captures(reason)?;
    let status = found.get(2)?.as_str();
    let code = found.get(3).map(|code| code.as_str());
    let said = match (code, found.get(4)) {
        (Some(code), Some(message)) => {
            json!({ "status": status.parse::<u16>().ok()?, "code": code, "message": message.as_str() })
        }
        (Some(code), None) => format!("{status} {code}").into(),
        (None, _) => status.parse::<u16>().ok()?.into(),
    };
    Some(match found.get(1).map(|service| service.as_str()) {
        Some("S3") => json!({ "s3": { "put-object": said } }),
        Some("CloudWatch Logs") => json!({ "cloudwatch_logs": { "put-log-events": said } }),
        _ => json!({ "http": [status.parse::<u16>().ok()?] }),
    })
}

/// `POST https://api.example.com/v1 answered 400: bad dataset`, with ` (to …)` where it sends elsewhere: the SDKs' words for an HTTP answer.
fn http_answer(reason: &str) -> Option<Value> {
    let answered = Regex::new(r"(?s)https?://\S+ answered (\d{3})(?: \(to (\S+)\))?(?:: (.+))?$").ok()?;
    let found = answered.captures(reason)?;
    let mut says = Map::new();
    says.insert("status".into(), found.get(1)?.as_str().parse::<u16>().ok()?.into());
    if let Some(location) = found.get(2) {
        says.insert("headers".into(), json!({ "location": location.as_str() }));
    }
    if let Some(body) = found.get(3) {
        says.insert("body".into(), body.as_str().into());
    }
    Some(says.into())
}

/// One line that ends no comment.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect()
}

/// The output's `config` as it is written, with marks where the environment is read.
fn written_config(path: &Path, output: &str) -> Result<Option<Value>, Faults> {
    let sink = Sink::new(&path.display().to_string());
    let read = |path: &Path| {
        let text = text_of(path).map_err(Faults::one)?;
        Ok(read_yaml(&text, &sink, &|name| Some(format!("{OPEN}{name}{CLOSE}"))))
    };
    let mut root = read(path)?;
    let (tenant, name) = output.split_once('/').map_or((None, output), |(tenant, name)| (Some(tenant), name));
    let mut inline = root.as_ref();
    if let Some(tenant) = tenant {
        inline = inline.and_then(|root| under(under(root, "tenants")?, tenant));
        if let Some(file) = root.as_ref().and_then(|root| file_of(tenant, root, path)).filter(|_| inline.is_none()) {
            root = read(&file)?;
            inline = root.as_ref();
        }
    }
    let config = inline.and_then(|root| under(under(under(root, "outputs")?, name)?, "config"));
    let value = config.and_then(|config| json_value(config, "config", &sink));
    match Faults::of(sink.into_vec()) {
        None => Ok(value),
        Some(faults) => Err(faults),
    }
}

/// The file of a tenant, where the configuration `root` at `path` has a directory of them.
fn file_of(tenant: &str, root: &Node, path: &Path) -> Option<PathBuf> {
    let NodeValue::Scalar(dir) = &under(root, "tenants_dir")?.value else { return None };
    Some(path.parent()?.join(&dir.text).join(format!("{tenant}.yaml")))
}

fn under<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    match &node.value {
        NodeValue::Map(entries) => entries.iter().find(|entry: &&Entry| entry.key == key).map(|entry| &entry.value),
        _ => None,
    }
}

/// Marks become references again, and what would be taken for one is kept from it.
fn with_variables(text: &str) -> String {
    // In a test only values are read so; comments and keys have no dollar signs that matter.
    let escaped = text.replace("$$", "$$$$").replace("${", "$${");
    escaped.replace(OPEN, "${").replace(CLOSE, "}")
}
