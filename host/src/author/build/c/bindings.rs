//! What C code sees of the WIT package: a header and a source made by `wit-bindgen-c`, an object file that carries the package's
//! types into the module, where the component encoder finds them, and a helper over them (`helper/`).

use wit_bindgen_c::Opts;

use crate::author::embedded;

/// Names of generated types and files begin so: `wharf.h`, `wharf_string_t`.
const PREFIX: &str = "wharf";

/// The object file among [`files`].
pub(super) const TYPE_OBJECT: &str = "wharf_component_type.o";

/// Written by hand: what makes the author's file short.
const HELPER: [(&str, &str); 4] = [
    ("wharf_json.c", include_str!("helper/wharf_json.c")),
    ("wharf_json.h", include_str!("helper/wharf_json.h")),
    ("wharf_plugin.c", include_str!("helper/wharf_plugin.c")),
    ("wharf_plugin.h", include_str!("helper/wharf_plugin.h")),
];

/// The bindings: name and content.
///
/// # Errors
/// Where the WIT package that is inside this binary is wrong.
pub(super) fn files() -> Result<Vec<(String, Vec<u8>)>, String> {
    let (mut resolve, package) = embedded::wit_package()?;
    let world = resolve.select_world(&[package], Some("plugin")).map_err(|error| format!("{error:#}"))?;
    let options = Opts { rename_world: Some(PREFIX.into()), ..Opts::default() };
    let mut files = Default::default();
    options.build().generate(&mut resolve, world, &mut files).map_err(|error| format!("{error:#}"))?;
    let generated = files.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_owned()));
    let helper = HELPER.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_owned()));
    Ok(generated.chain(helper).collect())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use serde_json::Value;

    use super::*;

    #[test]
    fn the_bindings_have_a_header_a_source_and_the_types() {
        let files = files().unwrap();
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["wharf.c", "wharf.h", TYPE_OBJECT, "wharf_json.c", "wharf_json.h", "wharf_plugin.c", "wharf_plugin.h"]
        );
        let header = String::from_utf8(files[1].1.clone()).unwrap();
        // What the WIT package exports, and what it offers, as wit-bindgen names them.
        for declared in ["exports_wharf_output_output_deliver", "wharf_output_http_send", "wharf_string_t"] {
            assert!(header.contains(declared), "{declared}");
        }
    }

    /// What the helper's reader makes of texts, against serde_json: compiled for this machine, with what watches memory where the compiler
    /// has it.
    #[test]
    fn json_is_read_as_another_reader_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled(folder.path());
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        let mut texts: Vec<String> = [
            "null",
            "true",
            "false",
            "0",
            "-0",
            "12",
            "-1.5e+3",
            "1E2",
            "0.1",
            "4294967296",
            "[]",
            "{}",
            " [ 1 , 2 ] ",
            r#"{"a":1,"b":{"c":[true,null,""]}}"#,
            r#""\u0000 \u00e9 \u20AC \uD83D\uDE00""#,
            r#""\"\\\/\b\f\n\r\t""#,
            "\"é€😀\"",
            // None of these is JSON.
            "",
            " ",
            "nul",
            "nulll",
            "01",
            "1.",
            ".5",
            "1e",
            "-",
            "+1",
            "--1",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[",
            "]",
            "{",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "\"",
            "\"\\",
            "\"\\\"",
            "\"\\u12\"",
            "\"\\u12",
            "\"\\x\"",
            "\"\n\"",
            "\"\t\"",
            "1 2",
            "NaN",
            "'a'",
            "\u{feff}1",
        ]
        .map(str::to_owned)
        .into();
        texts.push(deep(60));
        for text in texts {
            let expected = serde_json::from_str::<Value>(&text).ok().map(|value| told(&value, None, 0));
            assert_eq!(said(&program, &text), expected, "{text:?}");
        }
        assert_eq!(said(&program, &deep(100)), None, "depth is bounded");
        let half = said(&program, r#""\ud83d x""#);
        assert_eq!(half, Some("0  3 efbfbd2078\n".to_owned()), "half of a character is U+FFFD");
    }

    fn compiled(folder: &Path) -> std::path::PathBuf {
        for (name, text) in HELPER {
            std::fs::write(folder.join(name), text).unwrap();
        }
        std::fs::write(folder.join("json_test.c"), include_str!("helper/json_test.c")).unwrap();
        let program = folder.join("json_test");
        let compile = |flags: &[&str]| {
            Command::new("cc")
                .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o", "json_test", "wharf_json.c", "json_test.c"])
                .args(flags)
                .current_dir(folder)
                .status()
                .is_ok_and(|status| status.success())
        };
        assert!(compile(&["-fsanitize=address,undefined"]) || compile(&[]), "cc, which also links Rust, compiles no C");
        program
    }

    fn said(program: &Path, text: &str) -> Option<String> {
        let mut child =
            Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{text:?}");
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// A value as `json_test.c` writes it.
    fn told(value: &Value, key: Option<&str>, depth: usize) -> String {
        let (kind, content) = match value {
            Value::Null => (0, String::new()),
            Value::Bool(yes) => (1, u8::from(*yes).to_string()),
            Value::Number(number) => (2, format!("{:016x}", number.as_f64().unwrap().to_bits())),
            Value::String(text) => (3, hex::encode(text)),
            Value::Array(_) => (4, String::new()),
            Value::Object(_) => (5, String::new()),
        };
        let mut line = format!("{depth} {} {kind} {content}\n", key.map(hex::encode).unwrap_or_default());
        match value {
            Value::Array(items) => items.iter().for_each(|item| line.push_str(&told(item, None, depth + 1))),
            Value::Object(map) => {
                map.iter().for_each(|(key, item)| write!(line, "{}", told(item, Some(key), depth + 1)).unwrap());
            }
            _ => {}
        }
        line
    }
}
