//! What can be told of a component without running it, be it one that this host cannot use.

use sha2::{Digest as _, Sha256};

use super::binary::Binary;
use super::compatible::{self, Decoded, Unfit};
use super::read::{Bytes, read};
use super::{LoadError, PluginHost, PluginSource, Requirements};
use crate::capability::blocking;

/// A component taken apart.
#[derive(Debug, Clone)]
pub struct Anatomy {
    /// A built-in's name, or the file.
    pub name: String,
    /// How long it is.
    pub bytes: u64,
    /// SHA-256, hexadecimal.
    pub digest: String,
    /// Its modules, and who made them.
    pub binary: Binary,
    /// What it imports.
    pub imports: Vec<Import>,
    /// What it exports, as it names it.
    pub exports: Vec<String>,
    /// Why this host cannot use it, as far as that is known without running it; what was found, and what to do.
    pub unfit: Option<(String, Option<String>)>,
}

/// Something that a component imports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// `wharf:output/s3@0.1.0`
    pub name: String,
    /// Functions of it that are imported. A tool chain leaves out those that are not used.
    pub functions: Vec<String>,
}

impl Import {
    /// The interface, where it is one of `package` (`wharf:output`).
    #[must_use]
    pub fn interface_of(&self, package: &str) -> Option<&str> {
        let name = self.name.split_once('@').map_or(self.name.as_str(), |(name, _)| name);
        name.strip_prefix(package)?.strip_prefix('/')
    }

    /// Its version.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.name.split_once('@').map(|(_, version)| version)
    }
}

impl Anatomy {
    /// Takes a component apart. `host` is whoever can get it where it is in a registry.
    ///
    /// # Errors
    /// Where it is not there, or cannot be read.
    pub async fn of(source: &PluginSource, host: Option<&PluginHost>) -> Result<Self, LoadError> {
        let registry = host.and_then(PluginHost::registry);
        let Bytes { name, bytes, .. } = read(source, &Requirements::default(), registry).await?;
        let failed = name.clone();
        let taken = blocking(move || Self::take(name, &bytes)).await;
        taken.map_err(|error| LoadError::Unusable { name: failed, what: format!("{error:#}"), help: None })
    }

    fn take(name: String, bytes: &[u8]) -> Self {
        let mut anatomy = Self {
            name,
            bytes: bytes.len() as u64,
            digest: hex::encode(Sha256::digest(bytes)),
            binary: Binary::of(bytes),
            imports: vec![],
            exports: vec![],
            unfit: None,
        };
        let unfit = match compatible::check_form(bytes) {
            Err(unfit) => {
                // The module may know what it will import once it is a component.
                if let Some(decoded) = anatomy.binary.knows_its_interfaces.then(|| Decoded::of_module(bytes)).flatten()
                {
                    anatomy.describe(&decoded);
                }
                Some(unfit)
            }
            Ok(()) => match Decoded::of(bytes) {
                Err(why) => Some(Unfit::damaged(&why.to_string())),
                Ok(decoded) => {
                    anatomy.describe(&decoded);
                    compatible::differences(&decoded)
                }
            },
        };
        anatomy.unfit = unfit.map(|Unfit { what, help }| (what, help));
        anatomy
    }

    fn describe(&mut self, decoded: &Decoded) {
        let import = |name: String| Import { functions: decoded.functions(&name), name };
        self.imports = decoded.imports().into_iter().map(import).collect();
        self.exports = decoded.exports();
    }
}
