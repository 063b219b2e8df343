//! Everything that can be told of a component: what it is, who made it, what it asks for, how it is configured, and whether this host can
//! use it. A broken one is told as far as it goes.

mod options;
mod show;

use serde_json::{Value, json};

pub use options::{ConfigOption, options};

use crate::plugin::anatomy::{Anatomy, Import};
use crate::plugin::wit::PACKAGE;
use crate::plugin::{LoadError, Pin, PluginHost, PluginSource, Requirements};

/// What was found.
#[derive(Debug, Clone)]
pub struct Inspection {
    anatomy: Anatomy,
    /// What it calls itself, and its version; none where it could not be asked.
    described: Option<(String, String)>,
    schema: Value,
    /// Whether it comes with this program.
    built_in: bool,
    /// Why this host cannot use it.
    problem: Option<Problem>,
}

/// Why a host cannot use a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What was found, and what was expected.
    pub what: String,
    /// What to do.
    pub help: Option<String>,
}

/// What a plugin asks for by importing an interface, in words; and whether an operator grants it (`grants`, where it is not built in).
const ASKS: [(&str, &str, bool); 9] = [
    ("records", "the records of its batches", false),
    ("s3", "S3: objects in buckets", true),
    ("cloudwatch-logs", "CloudWatch Logs: log groups, streams and events", true),
    ("http", "HTTP requests", true),
    ("storage", "durable storage of its own", false),
    ("sequence", "durable counters ($INDEX)", false),
    ("log", "lines in the host's log", false),
    ("metrics", "numbers among the host's metrics", false),
    ("clock", "the time", false),
];

/// Something that it asks for.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    interface: &'a str,
    words: &'a str,
    granted: bool,
    functions: &'a [String],
}

impl Inspection {
    /// Takes a component apart, and asks it to describe itself where this host can run it.
    ///
    /// # Errors
    /// Where it is not there, or cannot be read.
    pub async fn of(source: &PluginSource, host: &PluginHost) -> Result<Self, LoadError> {
        let anatomy = Anatomy::of(source, Some(host)).await?;
        let built_in = matches!(source, PluginSource::BuiltIn(_));
        let mut inspection = Self { anatomy, described: None, schema: Value::Null, built_in, problem: None };
        if let Some((what, help)) = inspection.anatomy.unfit.clone() {
            inspection.problem = Some(Problem { what, help });
            return Ok(inspection);
        }
        // What is run is what was taken apart.
        let pin = Pin::parse(&inspection.anatomy.digest);
        match host.load_required(source, &Requirements { pin: pin.as_ref(), ..Requirements::default() }).await {
            Ok(plugin) => {
                let descriptor = plugin.descriptor();
                inspection.described = Some((descriptor.name.clone(), descriptor.version.clone()));
                inspection.schema = descriptor.config_schema.clone();
            }
            Err(error) => inspection.problem = Some(Problem { what: error.cause(), help: error.help() }),
        }
        Ok(inspection)
    }

    /// Why this host cannot use it; none where it can.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    /// Versions of this host's package that it was built for; mostly one.
    fn wit_versions(&self) -> Vec<&str> {
        let exports = self.anatomy.exports.iter().filter_map(|name| name.strip_prefix(PACKAGE)?.split_once('@'));
        let imports = self.imports(PACKAGE).filter_map(Import::version);
        let mut versions: Vec<&str> = exports.map(|(_, version)| version).chain(imports).collect();
        versions.sort_unstable();
        versions.dedup();
        versions
    }

    fn imports<'a>(&'a self, package: &'a str) -> impl Iterator<Item = &'a Import> {
        self.anatomy.imports.iter().filter(move |import| import.interface_of(package).is_some())
    }

    /// What it asks for. `types` has no functions, and asks for nothing.
    fn asks(&self) -> Vec<Asked<'_>> {
        let asked = |import: &'_ Import| -> Option<(&'static str, &'static str, bool)> {
            ASKS.into_iter().find(|(interface, ..)| import.interface_of(PACKAGE) == Some(interface))
        };
        let imports: Vec<(&Import, _)> =
            self.imports(PACKAGE).filter_map(|import| Some((import, asked(import)?))).collect();
        ASKS.iter()
            .filter_map(|(interface, ..)| imports.iter().find(|(_, asked)| asked.0 == *interface))
            .map(|(import, (interface, words, granted))| Asked {
                interface,
                words,
                granted: *granted,
                functions: &import.functions,
            })
            .collect()
    }

    /// Interfaces of WASI: there, but empty.
    fn wasi(&self) -> Vec<&str> {
        let is_wasi = |import: &&Import| import.name.starts_with("wasi:");
        self.anatomy.imports.iter().filter(is_wasi).map(|import| import.name.as_str()).collect()
    }

    /// Everything else that it imports.
    fn foreign(&self) -> Vec<&str> {
        let known = |import: &&Import| {
            let own = import.interface_of(PACKAGE);
            own.is_some_and(|own| own == "types" || ASKS.iter().any(|(name, ..)| *name == own))
                || import.name.starts_with("wasi:")
        };
        self.anatomy.imports.iter().filter(|import| !known(import)).map(|import| import.name.as_str()).collect()
    }

    /// Languages and tools, each once: `Rust`, `rustc 1.95.0`.
    fn tools(&self, kind: &str) -> Vec<String> {
        let tools = self.anatomy.binary.producers.iter().filter(|producer| producer.kind == kind);
        let shown = |name: &str, version: &str| match version.is_empty() {
            true => name.to_owned(),
            false => format!("{name} {version}"),
        };
        let mut tools: Vec<String> = tools.map(|tool| shown(&tool.name, &tool.version)).collect();
        tools.dedup();
        tools
    }

    /// What it was written in. A script language's tool chain also names the languages of its interpreter, so its own name comes first; then what
    /// the compiler says, else what the bindings' generator tells.
    fn languages(&self) -> Vec<String> {
        let made_by = |name: &str| {
            let mut tools = self.anatomy.binary.producers.iter().filter(|producer| producer.kind == "processed-by");
            tools.any(|tool| tool.name.eq_ignore_ascii_case(name))
        };
        let told = self.tools("language");
        let language = match () {
            () if made_by("ComponentizeJS") => "JavaScript",
            () if self.anatomy.binary.is_python => "Python",
            () if !told.is_empty() => return told,
            () if made_by("wit-bindgen-rust") => "Rust",
            () if made_by("wit-bindgen-c") => "C",
            () => return vec![],
        };
        vec![language.to_owned()]
    }

    /// For a program.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Anatomy { name, bytes, digest, binary, imports, exports, .. } = &self.anatomy;
        let asks: Vec<Value> = self
            .asks()
            .iter()
            .map(|asked| {
                json!({ "interface": asked.interface, "what": asked.words, "needs_grant": asked.granted && !self.built_in,
                        "functions": asked.functions })
            })
            .collect();
        let producers: Vec<Value> = binary
            .producers
            .iter()
            .map(|tool| json!({ "kind": tool.kind, "name": tool.name, "version": tool.version }))
            .collect();
        json!({
            "file": name,
            "built_in": self.built_in,
            "bytes": bytes,
            "sha256": digest,
            "name": self.described.as_ref().map(|(name, _)| name),
            "version": self.described.as_ref().map(|(_, version)| version),
            "wit": self.wit_versions(),
            "sdk": binary.sdk,
            "languages": self.languages(),
            "producers": producers,
            "core_modules": binary.modules,
            "memory_bytes": binary.memory_bytes,
            "asks_for": asks,
            "imports": imports.iter().map(|import| &import.name).collect::<Vec<_>>(),
            "exports": exports,
            "options": options(&self.schema).iter().map(ConfigOption::to_json).collect::<Vec<_>>(),
            "config_schema": self.schema,
            "usable": self.problem.is_none(),
            "problem": self.problem.as_ref().map(|problem| json!({ "what": problem.what, "help": problem.help })),
        })
    }
}

#[cfg(test)]
mod tests;
