//! A component's own world: what it imports and exports, as its binary says.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wit_component::{ComponentEncoder, DecodedWasm};
use wit_parser::{Interface, Resolve, WorldId, WorldItem, WorldKey};

use crate::capability::one_line;

/// What a component imports and exports, with all types.
#[derive(Debug)]
pub(in crate::plugin) struct Decoded {
    pub(super) resolve: Resolve,
    world: WorldId,
}

/// An interface of a component's world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    /// `wharf:output/s3`
    pub(super) name: &'a str,
    /// `0.1.0`
    pub(super) version: Option<&'a str>,
    /// What is in it, where it is an interface.
    pub(super) interface: Option<&'a Interface>,
}

impl Decoded {
    /// Reads a component.
    ///
    /// # Errors
    /// Where it is none, or not a valid one.
    pub(in crate::plugin) fn of(bytes: &[u8]) -> Result<Self, String> {
        // The decoder is meant for components of one's own tool chain; this one may be anything.
        let decoded = catch_unwind(AssertUnwindSafe(|| wit_component::decode(bytes)));
        match decoded {
            Ok(Ok(DecodedWasm::Component(resolve, world))) => Ok(Self { resolve, world }),
            Ok(Ok(DecodedWasm::WitPackage(..))) => {
                Err("it is a WIT package in binary form: interfaces only, and no code".into())
            }
            Ok(Err(error)) => Err(one_line(&format!("{error:#}"), 1000)),
            Err(_) => Err("its types cannot be read".into()),
        }
    }

    /// The component that a core module would become, which knows the interfaces that it was written for. None where it would become none.
    pub(in crate::plugin) fn of_module(bytes: &[u8]) -> Option<Self> {
        let encode = || ComponentEncoder::default().module(bytes).and_then(|encoder| encoder.encode());
        let component = catch_unwind(AssertUnwindSafe(encode)).ok()?.ok()?;
        Self::of(&component).ok()
    }

    /// Everything that it imports, by name.
    pub(in crate::plugin) fn imports(&self) -> Vec<String> {
        self.names(false)
    }

    /// Everything that it exports, by name.
    pub(in crate::plugin) fn exports(&self) -> Vec<String> {
        self.names(true)
    }

    /// Functions that it imports of an interface, by the name that [`imports`](Self::imports) gives; a function alone has none.
    pub(in crate::plugin) fn functions(&self, import: &str) -> Vec<String> {
        let found = self.items(false).find(|(name, _)| name == import);
        let interface = found.and_then(|(_, item)| self.interface(item));
        interface.into_iter().flat_map(|interface| interface.functions.keys().map(|name| plain(name))).collect()
    }

    fn names(&self, exported: bool) -> Vec<String> {
        self.items(exported).map(|(name, _)| name).collect()
    }

    /// Calls `with` for each import or export.
    pub(super) fn each(&self, exported: bool, mut with: impl FnMut(Found<'_>)) {
        for (name, item) in self.items(exported) {
            let (name, version) = super::split(&name);
            with(Found { name, version, interface: self.interface(item) });
        }
    }

    fn items(&self, exported: bool) -> impl Iterator<Item = (String, &WorldItem)> {
        let items =
            self.resolve.worlds.get(self.world).map(|world| if exported { &world.exports } else { &world.imports });
        items.into_iter().flatten().map(|(key, item)| {
            let name = match key {
                WorldKey::Name(name) => name.clone(),
                WorldKey::Interface(id) => self.resolve.id_of(*id).unwrap_or_default(),
            };
            (name, item)
        })
    }

    fn interface(&self, item: &WorldItem) -> Option<&Interface> {
        match item {
            WorldItem::Interface { id, .. } => self.resolve.interfaces.get(*id),
            _ => None,
        }
    }
}

/// `[method]batch.id` as `batch.id`.
pub(super) fn plain(function: &str) -> String {
    let name = function.rsplit_once(']').map_or(function, |(_, name)| name);
    if function.starts_with("[constructor]") { format!("{name} (constructor)") } else { one_line(name, 200) }
}
