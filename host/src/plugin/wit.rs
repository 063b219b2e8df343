//! The WIT package `wharf:output` of this host: its files, and what they say.
//!
//! The same files that the host's bindings are made from are part of the binary, so that a component can be compared with them, type by
//! type, and so that the reference in `docs/plugins/` says what this host has.

use std::sync::OnceLock;

use wit_parser::{Interface, InterfaceId, PackageId, Resolve, SourceMap, WorldId, WorldItem};

/// Each file's name and text, by name.
pub const FILES: [(&str, &str); 9] = [
    ("cloudwatch-logs.wit", include_str!("../../../wit/cloudwatch-logs.wit")),
    ("host.wit", include_str!("../../../wit/host.wit")),
    ("http.wit", include_str!("../../../wit/http.wit")),
    ("output.wit", include_str!("../../../wit/output.wit")),
    ("records.wit", include_str!("../../../wit/records.wit")),
    ("s3.wit", include_str!("../../../wit/s3.wit")),
    ("sequence.wit", include_str!("../../../wit/sequence.wit")),
    ("storage.wit", include_str!("../../../wit/storage.wit")),
    ("types.wit", include_str!("../../../wit/types.wit")),
];

/// The package's name, without its version.
pub const PACKAGE: &str = "wharf:output";

/// The world that a plugin is built for.
const WORLD: &str = "plugin";

/// A parsed package with one world.
#[derive(Debug)]
pub struct Wit {
    /// Everything that was parsed.
    pub resolve: Resolve,
    /// The package.
    pub package: PackageId,
    /// The world `plugin`.
    pub world: WorldId,
}

impl Wit {
    /// This host's own. None only where the files could not be parsed, which a test rules out.
    #[must_use]
    pub fn own() -> Option<&'static Self> {
        static OWN: OnceLock<Option<Wit>> = OnceLock::new();
        OWN.get_or_init(|| Self::parse(&FILES).ok()).as_ref()
    }

    /// Parses the files of one package.
    ///
    /// # Errors
    /// What is wrong in them, with file and line.
    pub fn parse(files: &[(&str, &str)]) -> Result<Self, String> {
        let mut sources = SourceMap::default();
        for (name, text) in files {
            sources.push_str(name, *text);
        }
        let mut resolve = Resolve::default();
        let group = sources.parse().map_err(|(sources, error)| error.render(&sources))?;
        let package = resolve.push_group(group).map_err(|error| format!("{error:#}"))?;
        let world = resolve.select_world(&[package], Some(WORLD)).map_err(|error| format!("{error:#}"))?;
        Ok(Self { resolve, package, world })
    }

    /// An interface that plugins import, by its name.
    #[must_use]
    pub fn import(&self, name: &str) -> Option<&Interface> {
        self.interfaces(false).find(|(found, _)| *found == name).map(|(_, interface)| interface)
    }

    /// The interface that plugins export.
    #[must_use]
    pub fn export(&self, name: &str) -> Option<&Interface> {
        self.interfaces(true).find(|(found, _)| *found == name).map(|(_, interface)| interface)
    }

    /// Names of everything that plugins may import, in the world's order.
    #[must_use]
    pub fn imports(&self) -> Vec<&str> {
        self.interfaces(false).map(|(name, _)| name).collect()
    }

    fn interfaces(&self, exported: bool) -> impl Iterator<Item = (&str, &Interface)> {
        let items =
            self.resolve.worlds.get(self.world).map(|world| if exported { &world.exports } else { &world.imports });
        items.into_iter().flatten().filter_map(|(_, item)| match item {
            WorldItem::Interface { id, .. } => self.named(*id),
            _ => None,
        })
    }

    fn named(&self, id: InterfaceId) -> Option<(&str, &Interface)> {
        let interface = self.resolve.interfaces.get(id)?;
        Some((interface.name.as_deref()?, interface))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::bindings::WIT_VERSION;

    #[test]
    fn every_wit_file_of_the_repository_is_embedded_and_together_they_are_one_package() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit");
        let mut there: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let mut embedded: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        there.sort();
        embedded.sort_unstable();
        assert_eq!(embedded, there);
        let own = Wit::parse(&FILES).unwrap();
        let name = &own.resolve.packages[own.package].name;
        assert_eq!(name.to_string(), format!("{PACKAGE}@{WIT_VERSION}"));
        assert!(own.import("s3").is_some() && own.export("output").is_some() && own.import("kafka").is_none());
    }
}
