//! What a WebAssembly binary says of itself before anything is made of it: which tools made it, what its modules need.
//!
//! A broken one is read as far as it goes.

use wasmparser::{Encoding, KnownCustom, Parser, Payload};

use crate::capability::one_line;

/// A custom section with the version of the SDK that the plugin was written with.
const SDK_SECTION: &str = "wharf-sdk";
/// A name in the libraries that componentize-py puts into each component.
const PYTHON: &[u8] = b"componentize_py";
/// Most entries that are kept: what a tool chain writes is a handful.
const MOST: usize = 64;

/// What was found in a binary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binary {
    /// The section `producers` of all its modules: what kind (`language`, `processed-by`, `sdk`), name, version.
    pub producers: Vec<Producer>,
    /// Version of the SDK `wharf-plugin`, where that wrote it down.
    pub sdk: Option<String>,
    /// Core modules, itself included where it is one.
    pub modules: usize,
    /// Memory that its modules have from the start, bytes.
    pub memory_bytes: u64,
    /// Modules that its core modules import from.
    pub core_imports: Vec<String>,
    /// Made by componentize-py, which writes no producer of its own: the interpreter is Rust's and C's.
    pub is_python: bool,
    /// A core module that knows the interfaces that it was written for, and could become a component.
    pub knows_its_interfaces: bool,
    /// Why it could not be read to its end.
    pub broken: Option<String>,
}

/// A tool that had a hand in it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Producer {
    /// `language`, `processed-by` or `sdk`.
    pub kind: String,
    /// `Rust`, `rustc`, `wit-component`, …
    pub name: String,
    /// May be empty.
    pub version: String,
}

impl Binary {
    /// Reads a binary.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut binary = Self { is_python: memchr::memmem::find(bytes, PYTHON).is_some(), ..Self::default() };
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(|error| error.to_string()).and_then(|payload| binary.take(&payload)) {
                Ok(()) => {}
                Err(why) => {
                    binary.broken = Some(one_line(&why, 500));
                    break;
                }
            }
        }
        binary.producers.sort();
        binary.producers.dedup();
        binary
    }

    fn take(&mut self, payload: &Payload<'_>) -> Result<(), String> {
        let told = |error: wasmparser::Error| error.to_string();
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } => self.modules += 1,
            Payload::MemorySection(memories) => {
                for memory in memories.clone() {
                    let memory = memory.map_err(told)?;
                    let page = 1_u64.checked_shl(memory.page_size_log2.unwrap_or(16)).unwrap_or(u64::MAX);
                    self.memory_bytes = self.memory_bytes.saturating_add(memory.initial.saturating_mul(page));
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.clone().into_imports() {
                    let module = import.map_err(told)?.module;
                    if self.core_imports.len() < MOST && !self.core_imports.iter().any(|known| known == module) {
                        self.core_imports.push(one_line(module, 200));
                    }
                }
            }
            Payload::CustomSection(section) if section.name() == SDK_SECTION => {
                self.sdk = Some(one_line(&String::from_utf8_lossy(section.data()), 64));
            }
            Payload::CustomSection(section) if section.name().starts_with("component-type") => {
                self.knows_its_interfaces = true;
            }
            Payload::CustomSection(section) => {
                if let KnownCustom::Producers(fields) = section.as_known() {
                    // Whatever is wrong in there, the code may be fine.
                    let _ = self.producers(fields);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn producers(&mut self, fields: wasmparser::ProducersSectionReader<'_>) -> wasmparser::Result<()> {
        for field in fields {
            let field = field?;
            for value in field.values {
                let value = value?;
                if self.producers.len() < MOST {
                    self.producers.push(Producer {
                        kind: one_line(field.name, 64),
                        name: one_line(value.name, 64),
                        version: one_line(value.version, 64),
                    });
                }
            }
        }
        Ok(())
    }

    /// Whether it was built for the predecessor of today's WASI.
    #[must_use]
    pub fn is_preview1(&self) -> bool {
        self.core_imports.iter().any(|module| module == "wasi_snapshot_preview1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_module_needs_and_who_made_it_is_read_and_a_cut_one_as_far_as_it_goes() {
        // By hand, after the core specification's chapter 5 and the tool conventions' "producers" section: a memory of 3 pages, and
        // `language: Rust 1.95`.
        let mut module = b"\0asm\x01\0\0\0\x05\x03\x01\x00\x03".to_vec();
        let section = b"\x09producers\x01\x08language\x01\x04Rust\x041.95";
        module.extend([0, u8::try_from(section.len()).unwrap()]);
        module.extend(section);
        let binary = Binary::of(&module);
        let rust = Producer { kind: "language".into(), name: "Rust".into(), version: "1.95".into() };
        assert_eq!((binary.memory_bytes, binary.modules, &binary.broken), (3 << 16, 1, &None));
        assert_eq!(binary.producers, [rust]);

        let cut = Binary::of(module.get(..module.len() - 3).unwrap());
        assert_eq!((cut.memory_bytes, cut.producers.len()), (3 << 16, 0));
        assert!(cut.broken.is_some());
    }
}
