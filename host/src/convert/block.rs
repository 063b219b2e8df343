//! A section of a Fluent Bit configuration: an input, a filter, an output, or what concerns all of them.

use std::cell::Cell;

/// What a section is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Service,
    Input,
    Filter,
    Output,
    /// Parsers, plugins, custom sections and what else there may be; its `plugin` is its name.
    Other,
}

impl Kind {
    /// Whether a `Name` says which plugin a section of this kind is for.
    fn is_named(self) -> bool {
        matches!(self, Self::Input | Self::Filter | Self::Output)
    }
}

/// A section.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// Its `Name`, in lower case; empty where it is missing, which Fluent Bit refuses.
    pub(super) plugin: String,
    /// `fluent-bit.conf:12`.
    pub(super) place: String,
    pub(super) options: Vec<Given>,
}

/// An option as it is written.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) key: String,
    pub(super) value: String,
    /// As that of its section.
    pub(super) place: String,
    /// A translation has dealt with it.
    seen: Cell<bool>,
}

impl Given {
    pub(super) fn new(key: impl Into<String>, value: impl Into<String>, place: String) -> Self {
        Self { key: key.into(), value: value.into(), place, seen: Cell::new(false) }
    }
}

impl Block {
    pub(super) fn new(kind: Kind, name: &str, place: String, mut options: Vec<Given>) -> Self {
        let plugin = options.iter().position(|option| option.key.eq_ignore_ascii_case("name"));
        let plugin = match plugin {
            Some(at) if kind.is_named() => options.remove(at).value,
            None if kind.is_named() => String::new(),
            _ => name.to_owned(),
        };
        Self { kind, plugin: plugin.to_ascii_lowercase(), place, options }
    }

    /// What is to be said of a section that does not say which plugin it is for.
    pub(super) fn fault(&self) -> Option<String> {
        let (what, example) = match self.kind {
            Kind::Input => ("an input", "tail"),
            Kind::Filter => ("a filter", "grep"),
            Kind::Output => ("an output", "s3"),
            Kind::Service | Kind::Other => return None,
        };
        let place = &self.place;
        self.plugin
            .is_empty()
            .then(|| format!("{place}: {what} without \"name\": say which it is, for example {example}."))
    }

    /// The value of an option, whose name has no case in Fluent Bit; the last one counts. It is dealt with by this.
    pub(super) fn take(&self, key: &str) -> Option<&str> {
        let mut found = None;
        for option in self.options.iter().filter(|option| option.key.eq_ignore_ascii_case(key)) {
            option.seen.set(true);
            found = Some(option.value.as_str());
        }
        found
    }

    /// Every value of an option that may be there more than once.
    pub(super) fn take_all(&self, key: &str) -> Vec<&str> {
        self.take_given(key).map(|option| option.value.as_str()).collect()
    }

    /// The same, with the place of each.
    pub(super) fn take_given(&self, key: &str) -> impl Iterator<Item = &Given> {
        let found = self.options.iter().filter(move |option| option.key.eq_ignore_ascii_case(key));
        found.inspect(|option| option.seen.set(true))
    }

    /// An option that is on or off, in all the words that Fluent Bit takes for it.
    pub(super) fn take_switch(&self, key: &str) -> Option<bool> {
        self.take(key).map(is_on)
    }

    /// The options that nothing has dealt with.
    pub(super) fn rest(&self) -> impl Iterator<Item = &Given> {
        self.options.iter().filter(|option| !option.seen.get())
    }
}

/// What Fluent Bit takes for "on".
pub(super) fn is_on(text: &str) -> bool {
    ["on", "true", "yes"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// How deep files may include files.
pub(super) const DEEPEST: usize = 16;

/// The values that the file itself gives to variables (`@SET`, `env`) hold where the environment says nothing.
pub(super) fn with_defaults(mut blocks: Vec<Block>, given: &[(String, String)]) -> Vec<Block> {
    for option in blocks.iter_mut().flat_map(|block| &mut block.options) {
        for (name, value) in given {
            option.value = option.value.replace(&format!("${{{name}}}"), &format!("${{{name}:-{value}}}"));
        }
    }
    blocks
}
