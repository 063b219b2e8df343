//! Whether bytes can be a plugin of this host, and if not: what was found, what was expected, and the command that mends it.
//!
//! A component that fits is never looked at here beyond its first bytes: wasmtime links it. One that does not is taken apart, and what it
//! imports and exports is compared with this host's own WIT files, by name, by version, and type by type.

mod decoded;
mod difference;

pub(super) use self::decoded::Decoded;
use self::decoded::{Found, plain};
use self::difference::Comparison;
use super::binary::Binary;
use super::wit::{PACKAGE, Wit};
use crate::capability::bindings::WIT_VERSION;
use crate::capability::one_line;

/// Largest component: script languages bring their interpreter along.
pub(crate) const MAX_BYTES: u64 = 64 << 20;

/// What plugins of this package export.
const EXPORT: &str = "wharf:output/output";
/// Packages of WASI that it offers, with nothing behind them.
const WASI: [&str; 6] = ["wasi:cli", "wasi:clocks", "wasi:filesystem", "wasi:io", "wasi:random", "wasi:sockets"];
/// Most differences that are told.
const MOST_TOLD: usize = 8;

/// What to do with a plugin of other WIT files.
const REBUILD: &str = "build it for this Wharf, in its folder: `wharf plugin build`; in a Rust project first `wharf plugin update-sdk`, which \
                       also has the WIT files";
/// What to do with what is no plugin at all.
const BEGIN: &str = "`wharf plugin new NAME` writes a project that builds one; `wharf plugin build` builds it";

/// Why something is no plugin of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfit {
    /// What was found, and what was expected. More than one thing has a line each, indented by four blanks.
    pub(super) what: String,
    /// What to do.
    pub(super) help: Option<String>,
}

impl Unfit {
    pub(super) fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { what: what.into(), help: Some(help.into()) }
    }

    /// A file that is no component to its end. `why` is a parser's word.
    pub(super) fn damaged(why: &str) -> Self {
        Self::new(
            format!("it is no valid component: {why}"),
            "it may be cut or damaged: copy it again, or build it again with `wharf plugin build`",
        )
    }

    /// Something that no command mends.
    pub(super) fn plain(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: None }
    }
}

/// Finds out from the first bytes whether this is a component at all.
pub(super) fn check_form(bytes: &[u8]) -> Result<(), Unfit> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Unfit::plain(format!("it has more than {MAX_BYTES} bytes, which is the most for a component")));
    }
    match bytes {
        // Component layer 1, version 0x0d.
        [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => Err(core_module(&Binary::of(bytes))),
        [0, b'a', b's', b'm', version @ ..] => {
            let version = hex::encode(version.get(..4).unwrap_or(version));
            let what =
                format!("its WebAssembly binary version {version} is not known here, which is 0d000100 of a component");
            Err(Unfit::new(what, "build it again with today's tools: `wharf plugin build`"))
        }
        [0x7f, b'E', b'L', b'F', ..] => Err(Unfit::new(
            "it is machine code, perhaps of `wasmtime compile`, and a plugin is a WebAssembly component",
            "give the component itself: Wharf compiles it",
        )),
        [] => Err(Unfit::new("it is empty, and a plugin is a WebAssembly component", BEGIN)),
        other if is_wat(other) => Err(Unfit::new(
            "it is WebAssembly text, and a plugin is a component in binary form",
            "`wasm-tools parse -o plugin.wasm FILE` makes a binary of it",
        )),
        other => {
            let begins = hex::encode(other.get(..8).unwrap_or(other));
            let what =
                format!("it is not WebAssembly (it begins with the bytes {begins}), and a plugin is a component");
            Err(Unfit::new(what, BEGIN))
        }
    }
}

/// A core module: how it was made says what is missing.
fn core_module(module: &Binary) -> Unfit {
    let what = "it is a core WebAssembly module, and a plugin is a component";
    if module.knows_its_interfaces && module.is_preview1() {
        let what = format!("{what}; it was built for wasm32-wasip1");
        return Unfit::new(
            what,
            "`wharf plugin build` makes a component of it; by hand: `cargo build --release --target wasm32-wasip2`",
        );
    }
    if module.knows_its_interfaces {
        let help = "`wharf plugin build` in the plugin's folder makes a component of it; by hand: `wasm-tools component new MODULE -o plugin.wasm`";
        return Unfit::new(what, help);
    }
    if module.is_preview1() {
        let what = format!("{what}; it was built for wasm32-wasip1, without the interfaces of {PACKAGE}");
        return Unfit::new(what, BEGIN);
    }
    Unfit::new(format!("{what}; it was built without the interfaces of {PACKAGE}"), BEGIN)
}

fn is_wat(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_start();
    text.starts_with(b"(component") || text.starts_with(b"(module") || text.starts_with(b";;")
}

/// Why a component does not fit this host. None where nothing that it imports or exports differs.
pub(super) fn explain(bytes: &[u8]) -> Option<Unfit> {
    differences(&Decoded::of(bytes).ok()?)
}

/// Compares what a component imports and exports with what this host has.
pub(super) fn differences(component: &Decoded) -> Option<Unfit> {
    let own = Wit::own()?;
    let mut seen = Seen::default();
    let mut comparison = Comparison::new(&component.resolve, &own.resolve);
    component.each(false, |import| seen.import(&import, own, &mut comparison));
    let mut exports = vec![];
    component.each(true, |export| {
        exports.push(export.name.to_owned());
        seen.export(&export, own, &mut comparison);
    });
    if !exports.iter().any(|name| name == EXPORT) {
        seen.no_output(&exports);
    }
    seen.told(comparison.into_differences())
}

/// What was seen of a component so far.
#[derive(Debug, Default)]
struct Seen {
    /// Other versions of this host's package, in the order in which they were met.
    versions: Vec<String>,
    /// It asks for more than this host has.
    is_newer: bool,
    /// What is not there at all, and what helps.
    missing: Vec<(String, &'static str)>,
}

impl Seen {
    fn import(&mut self, import: &Found<'_>, own: &Wit, comparison: &mut Comparison<'_>) {
        if let Some(interface) = own_interface(import.name) {
            let Some(host) = own.import(interface) else {
                let known = own.imports().join(", ");
                let shown = shown(import);
                self.missing.push((
                    format!(
                        "it imports {shown}, which this host does not have (it has {known} of {PACKAGE}@{WIT_VERSION})"
                    ),
                    "use a newer Wharf (`wharf --version` says which this one is), or leave that interface out",
                ));
                return;
            };
            self.version(import.version);
            let Some(found) = import.interface else { return };
            // In the order of this host's files, methods last: what several functions have in common is told of the first.
            let mut functions: Vec<_> = host.functions.iter().collect();
            functions.sort_by_key(|(name, _)| name.starts_with('['));
            for (name, own) in functions {
                if let Some(function) = found.functions.get(name) {
                    comparison.function(import.name, function, own);
                }
            }
            for name in found.functions.keys().filter(|name| !host.functions.contains_key(*name)) {
                self.is_newer = true;
                comparison.note(format!("{}.{}: this host has no such function", import.name, plain(name)));
            }
        } else if let Some((what, help)) = foreign_import(import.name, import.version) {
            self.missing.push((what, help));
        }
    }

    fn export(&mut self, export: &Found<'_>, own: &Wit, comparison: &mut Comparison<'_>) {
        if export.name != EXPORT {
            return;
        }
        self.version(export.version);
        let functions =
            own_interface(EXPORT).and_then(|name| own.export(name)).into_iter().flat_map(|own| &own.functions);
        for (name, function) in functions {
            match export.interface.and_then(|interface| interface.functions.get(name)) {
                Some(found) => comparison.function(export.name, found, function),
                None => comparison.note(format!(
                    "{}.{}: the plugin has no such function, and this host calls it",
                    export.name,
                    plain(name)
                )),
            }
        }
    }

    /// Notes a version, where it is not one that stands for this host's.
    fn version(&mut self, version: Option<&str>) {
        let shown = version.map_or_else(|| "no version".to_owned(), |version| one_line(version, 40));
        let number = |version: &str| -> Vec<u64> { version.split('.').filter_map(|part| part.parse().ok()).collect() };
        self.is_newer |= version.is_some_and(|version| number(version) > number(WIT_VERSION));
        if !same_track(version, WIT_VERSION) && !self.versions.contains(&shown) {
            self.versions.push(shown);
        }
    }

    fn no_output(&mut self, exports: &[String]) {
        let names: Vec<String> = exports.iter().take(5).map(|name| one_line(name, 100)).collect();
        let names = if names.is_empty() { "nothing".into() } else { names.join(", ") };
        self.missing.push((
            format!("it does not export {EXPORT}@{WIT_VERSION}, so it is no output; it exports {names}"),
            BEGIN,
        ));
    }

    /// All of it, for the author.
    fn told(self, mut differences: Vec<String>) -> Option<Unfit> {
        if self.versions.is_empty() && self.missing.is_empty() && differences.is_empty() {
            return None;
        }
        let more = differences.len().saturating_sub(MOST_TOLD);
        differences.truncate(MOST_TOLD);
        if more > 0 {
            differences.push(format!("and {more} more"));
        }
        let mut help: Vec<&str> = vec![];
        let mut told: Vec<String> = vec![];
        for (what, remedy) in self.missing {
            told.push(what);
            if !help.contains(&remedy) {
                help.push(remedy);
            }
        }
        if !self.versions.is_empty() {
            let found: Vec<String> = self.versions.iter().map(|version| format!("{PACKAGE}@{version}")).collect();
            let same = if differences.is_empty() { "; all that it uses has the same types here" } else { "" };
            told.push(format!(
                "it was built for {}, and this host has {PACKAGE}@{WIT_VERSION}{same}",
                found.join(" and ")
            ));
        } else if !differences.is_empty() {
            told.push(format!("it was built with other WIT files than this host has ({PACKAGE}@{WIT_VERSION})"));
        }
        if !self.versions.is_empty() || !differences.is_empty() {
            if self.is_newer {
                help.push("it is newer than this Wharf: use a newer Wharf (`wharf --version` says which this one is)");
            }
            help.push(REBUILD);
        }
        told.extend(differences);
        Some(Unfit { what: told.join("\n    "), help: Some(help.join("; or ")) })
    }
}

fn shown(found: &Found<'_>) -> String {
    let name = match found.version {
        Some(version) => format!("{}@{version}", found.name),
        None => found.name.to_owned(),
    };
    one_line(&name, 200)
}

/// `s3` of `wharf:output/s3`.
fn own_interface(name: &str) -> Option<&str> {
    name.strip_prefix(PACKAGE)?.strip_prefix('/')
}

/// What is wrong with an import that is not of this host's own package, and what helps.
fn foreign_import(name: &str, version: Option<&str>) -> Option<(String, &'static str)> {
    let is_wasi = WASI.iter().any(|package| name.strip_prefix(package).is_some_and(|rest| rest.starts_with('/')));
    if is_wasi && same_track(version, "0.2.0") {
        return None;
    }
    let shown = shown(&Found { name, version, interface: None });
    let help = match name {
        _ if name.starts_with("wasi:http/") => {
            "send with the host's own interface, wharf:output/http; what a script language's tool chain imports by itself, `wharf plugin build` leaves out"
        }
        _ if name.starts_with("wasi:") => {
            "build it for WASI 0.2 with `wharf plugin build`: this host offers cli, clocks, filesystem, io, random and sockets of it, all empty"
        }
        _ => {
            "leave it out, or compose the component that exports it into the plugin (`wac plug`): a plugin imports only wharf:output and WASI 0.2"
        }
    };
    Some((format!("it imports {shown}, which this host does not have"), help))
}

fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (name, None),
    }
}

/// Whether a version may stand for another, as the component linker sees it: the same major, or the same minor below 1.0.0.
/// Pre-releases stand only for themselves.
fn same_track(found: Option<&str>, wanted: &str) -> bool {
    let track = |version: &str| -> Option<(u64, u64)> {
        let mut numbers = version.split('.').map(|number| number.parse::<u64>().ok());
        let (major, minor) = (numbers.next()??, numbers.next()??);
        // The patch number must be one, but does not matter.
        numbers.next()??;
        Some(if major > 0 { (major, 0) } else { (0, minor) })
    };
    found.is_some_and(|found| found == wanted || track(found).is_some_and(|found| track(wanted) == Some(found)))
}

#[cfg(test)]
mod tests;
