//! An inspection for a person.

use std::fmt;

use super::{ConfigOption, Inspection, options};
use crate::capability::one_line;
use crate::plugin::anatomy::Anatomy;

/// Where the second column begins.
const COLUMN: usize = 15;
/// Longest line of running text.
const WIDTH: usize = 110;
/// A smaller size is told to the byte.
const KIB: u64 = 1024;

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Anatomy { name, bytes, digest, binary, exports, .. } = &self.anatomy;
        if let Some((name, version)) = &self.described {
            row(f, "plugin", &format!("{name} {version}"))?;
        }
        let place = if self.built_in { format!("{name}, built in") } else { one_line(name, 1000) };
        row(f, "component", &place)?;
        let exact = if *bytes < KIB { String::new() } else { format!(" ({bytes} bytes)") };
        row(f, "size", &format!("{}{exact}", about(*bytes)))?;
        row(f, "sha256", digest)?;
        list(
            f,
            "wit",
            &self.wit_versions().iter().map(|version| format!("wharf:output@{version}")).collect::<Vec<_>>(),
        )?;
        if let Some(sdk) = &binary.sdk {
            row(f, "sdk", &format!("wharf-plugin {sdk}"))?;
        }
        list(f, "sdk", &self.tools("sdk"))?;
        list(f, "language", &self.languages())?;
        list(f, "made by", &self.tools("processed-by"))?;
        if binary.modules > 0 {
            let modules =
                if binary.modules == 1 { "1 core module".into() } else { format!("{} core modules", binary.modules) };
            row(f, "memory", &format!("{} from the start, in {modules}", about(binary.memory_bytes)))?;
        }
        list(f, "exports", exports)?;
        self.imports_in_words(f)?;
        self.options(f)?;
        if let Some(problem) = &self.problem {
            writeln!(f, "\nThis Wharf cannot use it: {}", problem.what)?;
            if let Some(help) = &problem.help {
                writeln!(f, "    help: {help}")?;
            }
        }
        Ok(())
    }
}

impl Inspection {
    fn imports_in_words(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let asks = self.asks();
        if !asks.is_empty() {
            writeln!(f, "\nAsks for")?;
        }
        for asked in asks {
            let grant = if asked.granted && !self.built_in { " (needs a grant)" } else { "" };
            writeln!(f, "  {:<17}{}{grant}", asked.interface, asked.words)?;
            if !asked.functions.is_empty() {
                wrapped(f, 19, &asked.functions.join(", "))?;
            }
        }
        let wasi = self.wasi();
        if !wasi.is_empty() {
            writeln!(f, "\nImports of WASI, which are there but empty: no files, no environment, no network")?;
            wrapped(f, 2, &wasi.join(", "))?;
        }
        let foreign = self.foreign();
        if !foreign.is_empty() {
            writeln!(f, "\nImports that this Wharf does not have")?;
            wrapped(f, 2, &one_line(&foreign.join(", "), 4000))?;
        }
        Ok(())
    }

    fn options(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.described.is_none() {
            return Ok(());
        }
        let options = options(&self.schema);
        if options.is_empty() {
            return writeln!(f, "\nIt has no options.");
        }
        writeln!(f, "\nOptions, under `config`")?;
        let width = options.iter().map(|option| option.name.chars().count()).max().unwrap_or(0).min(32);
        for ConfigOption { name, kind, default, required, description, aliases } in options {
            let mut about = one_line(&kind, 200);
            if required {
                about.push_str("; required");
            }
            if let Some(default) = default {
                about.push_str(&format!("; default {}", one_line(&default.to_string(), 200)));
            }
            if !aliases.is_empty() {
                about.push_str(&format!("; also written {}", one_line(&aliases.join(", "), 200)));
            }
            writeln!(f, "  {:<width$}  {about}", one_line(&name, 100))?;
            if let Some(description) = description {
                wrapped(f, width + 4, &one_line(&words(&description), 2000))?;
            }
        }
        Ok(())
    }
}

/// A size for a person: `891 KiB`.
fn about(bytes: u64) -> String {
    match bytes {
        0..KIB => format!("{bytes} bytes"),
        KIB..1_048_576 => format!("{} KiB", bytes / KIB),
        _ => format!("{}.{} MiB", bytes >> 20, (bytes & 0xf_ffff) * 10 / 1_048_576),
    }
}

/// The words of a text on one line.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn row(f: &mut fmt::Formatter<'_>, what: &str, value: &str) -> fmt::Result {
    writeln!(f, "{what:<COLUMN$}{value}")
}

fn list(f: &mut fmt::Formatter<'_>, what: &str, values: &[String]) -> fmt::Result {
    if values.is_empty() { Ok(()) } else { row(f, what, &one_line(&values.join(", "), 1000)) }
}

/// Running text, `indent` blanks in front of each line.
fn wrapped(f: &mut fmt::Formatter<'_>, indent: usize, text: &str) -> fmt::Result {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(f, "{:indent$}{line}", "")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if line.is_empty() { Ok(()) } else { writeln!(f, "{:indent$}{line}", "") }
}
