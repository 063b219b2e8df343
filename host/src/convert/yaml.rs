//! Writes YAML with comments, in the order in which it was put together.

/// A map that is being put together.
#[derive(Debug, Default)]
pub(super) struct Map {
    items: Vec<Item>,
}

#[derive(Debug)]
enum Item {
    /// A line of explanation.
    Comment(String),
    /// A comment about something that means something else here, or has no counterpart.
    Remark(String),
    /// A key and its value, as YAML has it.
    Value(String, String),
    List(String, Vec<String>),
    Map(String, Map),
}

impl Map {
    /// Explains.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.items.push(Item::Comment(text.into()));
    }
    /// Names what is different.
    pub(super) fn remark(&mut self, text: impl Into<String>) {
        self.items.push(Item::Remark(text.into()));
    }
    /// A text, in quotes where it needs them.
    pub(super) fn text(&mut self, key: &str, text: &str) {
        self.items.push(Item::Value(key.into(), scalar(text)));
    }
    /// A number, a size, a duration, `true` or `false`.
    pub(super) fn plain(&mut self, key: &str, value: impl ToString) {
        self.items.push(Item::Value(key.into(), value.to_string()));
    }
    pub(super) fn list(&mut self, key: &str, texts: Vec<String>) {
        self.items.push(Item::List(key.into(), texts));
    }
    pub(super) fn map(&mut self, key: &str, map: Map) {
        self.items.push(Item::Map(key.into(), map));
    }
    /// The map under a key, for more to be put into it.
    pub(super) fn within(&mut self, key: &str) -> &mut Map {
        let is_it = |item: &Item| matches!(item, Item::Map(name, _) if name == key);
        if !self.items.iter().any(is_it) {
            self.map(key, Map::default());
        }
        let mut maps = self.items.iter_mut().filter_map(|item| match item {
            Item::Map(name, map) if name == key => Some(map),
            _ => None,
        });
        #[expect(clippy::expect_used, reason = "it was put there just now")]
        maps.next().expect("a map under the key")
    }
    pub(super) fn has(&self, key: &str) -> bool {
        self.items.iter().any(|item| match item {
            Item::Value(name, _) | Item::List(name, _) | Item::Map(name, _) => name == key,
            Item::Comment(_) | Item::Remark(_) => false,
        })
    }
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// How many remarks there are, at any depth.
    pub(super) fn remarks(&self) -> usize {
        let count = |item: &Item| match item {
            Item::Remark(_) => 1,
            Item::Map(_, map) => map.remarks(),
            Item::Comment(_) | Item::Value(..) | Item::List(..) => 0,
        };
        self.items.iter().map(count).sum()
    }

    pub(super) fn written(&self) -> String {
        let mut text = String::new();
        self.write(0, &mut text);
        text
    }

    fn write(&self, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        for item in &self.items {
            match item {
                Item::Comment(comment) | Item::Remark(comment) => {
                    for line in comment.lines() {
                        text.push_str(&format!("{indent}# {line}\n"));
                    }
                }
                Item::Value(key, value) => text.push_str(&format!("{indent}{key}: {value}\n")),
                Item::List(key, list) => {
                    let list: Vec<String> = list.iter().map(|item| scalar(item)).collect();
                    text.push_str(&format!("{indent}{key}: [{}]\n", list.join(", ")));
                }
                Item::Map(key, map) if map.is_empty() => text.push_str(&format!("{indent}{key}: {{}}\n")),
                Item::Map(key, map) => {
                    text.push_str(&format!("{indent}{key}:\n"));
                    map.write(depth + 1, text);
                }
            }
        }
    }
}

/// A text as a YAML scalar: as it is where nothing in it could mean something else, else in double quotes (YAML 1.2.2, section 7.3.1, of which
/// JSON's strings are a part).
fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '$'))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '$' | '%'))
        && !["true", "false", "null", "yes", "no", "on", "off"].iter().any(|word| text.eq_ignore_ascii_case(word));
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}
