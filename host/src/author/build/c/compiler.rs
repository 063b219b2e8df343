//! Finding what compiles C to WASI: a compiler for WebAssembly, its linker, and a C library.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::author::build::{BuildError, Language, Missing, tool};

/// A compiler that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Compiler {
    program: PathBuf,
    arguments: Vec<String>,
    /// For a person.
    pub(super) name: String,
}

/// Where Debian's package wasi-libc puts the C library.
const DEBIAN_LIBC: &str = "/usr/lib/wasm32-wasi/libc.a";

impl Compiler {
    /// The first of: the WASI SDK that `WASI_SDK_PATH` names, `zig` on `PATH`, Zig as a Python package, Debian's clang.
    ///
    /// # Errors
    /// Where there is none: [`BuildError::Missing`].
    pub(super) fn find(report: &mut dyn FnMut(&str)) -> Result<Self, BuildError> {
        if let Some(sdk) = std::env::var_os("WASI_SDK_PATH").filter(|path| !path.is_empty()).map(PathBuf::from) {
            if let Some(compiler) = Self::of_wasi_sdk(&sdk) {
                return Ok(compiler);
            }
            report(&format!("WASI_SDK_PATH is {}, but there is no bin/clang in it: looking elsewhere", sdk.display()));
        }
        let found = Self::zig().or_else(Self::zig_of_python).or_else(|| Self::clang(Path::new(DEBIAN_LIBC)));
        found.ok_or_else(|| BuildError::Missing { language: Language::C, missing: vec![missing()] })
    }

    /// The command, with what chooses the target.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    fn of_wasi_sdk(sdk: &Path) -> Option<Self> {
        let clang = sdk.join("bin/clang");
        clang
            .is_file()
            .then(|| Self::new(clang, &["--target=wasm32-wasip1"], format!("the WASI SDK in {}", sdk.display())))
    }

    fn zig() -> Option<Self> {
        let zig = tool::find("zig")?;
        let name = format!("zig cc ({})", zig.display());
        Some(Self::new(zig, &["cc", "-target", "wasm32-wasi"], name))
    }

    fn zig_of_python() -> Option<Self> {
        let python = tool::find("python3")?;
        let asked = Command::new(&python)
            .args(["-c", "import ziglang"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let name = format!("zig cc (the Python package ziglang of {})", python.display());
        asked
            .is_ok_and(|status| status.success())
            .then(|| Self::new(python, &["-m", "ziglang", "cc", "-target", "wasm32-wasi"], name))
    }

    fn clang(libc: &Path) -> Option<Self> {
        let clang = tool::find("clang").filter(|_| libc.is_file() && tool::find("wasm-ld").is_some())?;
        let name = format!("{} with wasi-libc", clang.display());
        // Below it clang looks for include/wasm32-wasi and lib/wasm32-wasi: without, it looks below /.
        Some(Self::new(clang, &["--target=wasm32-wasi", "--sysroot=/usr"], name))
    }

    fn new(program: PathBuf, arguments: &[&str], name: String) -> Self {
        Self { program, arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(), name }
    }
}

fn missing() -> Missing {
    Missing::new(
        "a C compiler for WebAssembly",
        "it compiles C to WASI. Looked for: a WASI SDK in $WASI_SDK_PATH, `zig` on PATH, Python's package ziglang, and clang with wasm-ld and wasi-libc",
        &[
            (
                "with Python, in an environment that is active (`python3 -m venv v; . v/bin/activate`)",
                "pip install ziglang==0.17.1",
            ),
            ("on Debian, as root", "apt-get install clang lld wasi-libc libclang-rt-dev-wasm32"),
            (
                "anywhere, from https://github.com/WebAssembly/wasi-sdk/releases, unpacked into /opt/wasi-sdk",
                "export WASI_SDK_PATH=/opt/wasi-sdk",
            ),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wasi_sdk_is_known_by_its_compiler() {
        let sdk = tempfile::tempdir().unwrap();
        assert_eq!(Compiler::of_wasi_sdk(sdk.path()), None);
        std::fs::create_dir(sdk.path().join("bin")).unwrap();
        std::fs::write(sdk.path().join("bin/clang"), "").unwrap();
        let compiler = Compiler::of_wasi_sdk(sdk.path()).unwrap();
        let command = compiler.command();
        assert_eq!(command.get_program(), sdk.path().join("bin/clang"));
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["--target=wasm32-wasip1"]);
    }

    #[test]
    fn without_its_c_library_debian_s_clang_is_none() {
        assert_eq!(Compiler::clang(Path::new("/nonexistent/libc.a")), None);
    }

    #[test]
    fn what_is_missing_names_each_place_that_it_can_come_from() {
        let text = missing().to_string();
        for told in ["pip install ziglang", "apt-get install clang lld wasi-libc", "WASI_SDK_PATH=/opt/wasi-sdk"] {
            assert!(text.contains(told), "{text}");
        }
    }
}
