//! Names made of record fields and of the tag: read once, filled in for each batch.
//!
//! The forms are those of Fluent Bit's record accessor: `$key`, `$key['sub']['more']`, `$TAG`, `$TAG[n]`; and, where a name would not
//! end by itself, `$(key['sub'])`. Values are inserted literally: what looks like a form inside of a value is text like any other.

mod parse;

use wharf_plugin::PartitionKey;

pub use parse::parse;

/// A name with gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template(Vec<Part>);

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Stays as it is.
    Literal(String),
    /// `$TAG`
    Tag,
    /// `$TAG[n]`
    OfTag(usize),
    /// `$key['sub']`
    Field(Vec<String>),
}

/// What a batch's records have in common: values of the plan's partition keys, and the tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Values<'a> {
    /// The plan's keys.
    pub keys: &'a [PartitionKey],
    /// A value for each of them.
    pub values: Vec<Option<String>>,
    /// The tag.
    pub tag: String,
}

impl Values<'_> {
    fn tag(&self) -> &str {
        self.of(&PartitionKey::Tag).unwrap_or(&self.tag)
    }
    fn of(&self, key: &PartitionKey) -> Option<&str> {
        let place = self.keys.iter().position(|known| known == key)?;
        self.values.get(place)?.as_deref()
    }
}

impl Template {
    /// A name without gaps.
    pub fn literal(text: &str) -> Self {
        Self(vec![Part::Literal(text.into())])
    }
    /// A beginning, and the tag behind it.
    pub fn before_tag(prefix: &str) -> Self {
        Self(vec![Part::Literal(prefix.into()), Part::Tag])
    }

    /// Whether a record can lack what the name is made of.
    pub fn can_fail(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Field(_) | Part::OfTag(_)))
    }

    /// What tells the records of one name from those of another.
    pub fn keys(&self) -> impl Iterator<Item = PartitionKey> + '_ {
        self.0.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Tag | Part::OfTag(_) => Some(PartitionKey::Tag),
            Part::Field(path) => Some(PartitionKey::Field(path.clone())),
        })
    }

    /// The texts between the gaps.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Literal(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// What all names begin with, and whether more follows.
    pub fn beginning(&self) -> (&str, bool) {
        match self.0.as_slice() {
            [Part::Literal(text)] => (text, false),
            [Part::Literal(text), ..] => (text, true),
            _ => ("", true),
        }
    }

    /// The name of these records; none where they lack a field or a part of the tag, as in Fluent Bit.
    pub fn fill(&self, values: &Values) -> Option<String> {
        let mut name = String::new();
        for part in &self.0 {
            name.push_str(match part {
                Part::Literal(text) => text,
                Part::Tag => values.tag(),
                Part::OfTag(n) => values.tag().split('.').filter(|part| !part.is_empty()).nth(*n)?,
                Part::Field(path) => values.of(&PartitionKey::Field(path.clone()))?,
            });
        }
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(path: &[&str]) -> PartitionKey {
        PartitionKey::Field(path.iter().map(|key| (*key).to_owned()).collect())
    }

    fn fill(template: &str, known: &[(PartitionKey, Option<&str>)]) -> Option<String> {
        let template = parse(template).unwrap();
        let keys: Vec<_> = known.iter().map(|(key, _)| key.clone()).collect();
        let values = known.iter().map(|(_, value)| value.map(str::to_owned)).collect();
        template.fill(&Values { keys: &keys, values, tag: "app.web.eu".into() })
    }

    #[test]
    fn each_form_becomes_its_value() {
        let known = [
            (field(&["kubernetes", "pod_name"]), Some("web-0")),
            (field(&["kubernetes", "labels", "app.kubernetes.io/name"]), Some("shop")),
            (field(&["level"]), Some("warn")),
            (field(&["a-b"]), Some("dash")),
        ];
        for (template, expected) in [
            ("$kubernetes['pod_name']", "web-0"),
            ("/k8s/$kubernetes['pod_name'].log", "/k8s/web-0.log"),
            ("x.$kubernetes['labels'][\"app.kubernetes.io/name\"]-$level", "x.shop-warn"),
            ("$level,$level", "warn,warn"),
            ("$level/$level", "warn/warn"),
            ("$level-$level", "warn-warn"),
            ("$(level)-x", "warn-x"),
            ("$(kubernetes['pod_name'])_1", "web-0_1"),
            ("$['a-b']", "dash"),
            ("$(a-b)", "dash"),
            ("$TAG", "app.web.eu"),
            ("$TAG[0]-$TAG[2]", "app-eu"),
            ("$(TAG[1])x", "webx"),
            ("$(tag)", "app.web.eu"),
            ("5$ $", "5$ $"),
        ] {
            assert_eq!(fill(template, &known).as_deref(), Some(expected), "{template}");
        }
    }

    #[test]
    fn a_name_that_lacks_a_value_is_none() {
        assert_eq!(fill("x-$level", &[(field(&["level"]), None)]), None);
        assert_eq!(fill("x-$TAG[3]", &[]), None);
        assert_eq!(fill("x-$level", &[]), None, "records from before this field was a key");
    }

    /// In Fluent Bit, what a tag holds is expanded again.
    #[test]
    fn a_value_is_only_text() {
        let known = [(field(&["level"]), Some("$TAG${HOME}$x['y']"))];
        assert_eq!(fill("a$level", &known).as_deref(), Some("a$TAG${HOME}$x['y']"));
        assert_eq!(fill("$TAG", &[(PartitionKey::Tag, Some("$level"))]).as_deref(), Some("$level"));
    }

    #[test]
    fn a_template_knows_its_keys_and_its_beginning() {
        let template = parse("/k8s/$ns['a'].$TAG[1].$TAG").unwrap();
        assert_eq!(template.keys().collect::<Vec<_>>(), [field(&["ns", "a"]), PartitionKey::Tag, PartitionKey::Tag]);
        assert_eq!(template.beginning(), ("/k8s/", true));
        assert_eq!(parse("$x").unwrap().beginning(), ("", true));
        assert_eq!(Template::literal("/app").beginning(), ("/app", false));
    }
}
