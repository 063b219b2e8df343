//! Which log group and which log stream a batch belongs to.
//!
//! A template is tried first; where records lack what it needs, or it gives nothing, the static name is used. What AWS does not allow in a
//! name becomes `_`, and a name that is too long is cut, with a hash of the whole that keeps it distinct.

use sha2::{Digest, Sha256};
use wharf_plugin::PartitionKey;

use crate::template::{Template, Values};

/// AWS allows so many characters in either name; bytes are never fewer.
pub const MAX_NAME: usize = 512;
/// `-` and 32 hexadecimal digits.
const HASH_BYTES: usize = 33;

/// Which rules a name follows:
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogGroup.html> and
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_CreateLogStream.html>.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// A log group's: letters, digits and `._/#-`, not beginning with `aws/`.
    Group,
    /// A log stream's: no `:` and no `*`; here no control characters either.
    Stream,
}

impl Rules {
    /// Whether a name may have this character.
    pub fn allow(self, c: char) -> bool {
        match self {
            Self::Group => c.is_ascii_alphanumeric() || "._/#-".contains(c),
            Self::Stream => !c.is_control() && c != ':' && c != '*',
        }
    }

    /// A name that AWS takes.
    pub fn clean(self, name: &str) -> String {
        let mut clean: String = name.chars().map(|c| if self.allow(c) { c } else { '_' }).collect();
        if self == Self::Group && clean.starts_with(RESERVED) {
            clean.replace_range(RESERVED.len() - 1..RESERVED.len(), "_");
        }
        if clean.len() <= MAX_NAME { clean } else { cut(&clean, name) }
    }
}

/// Names of log groups may not begin so.
pub const RESERVED: &str = "aws/";

/// The beginning of `clean`, and a hash of the whole name before anything in it was changed.
fn cut(clean: &str, whole: &str) -> String {
    let mut end = MAX_NAME - HASH_BYTES;
    while !clean.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}-{}", clean.get(..end).unwrap_or_default(), hash(whole))
}

/// The first 32 hexadecimal digits of a text's SHA-256.
pub fn hash(text: &str) -> String {
    Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// How a name comes about.
#[derive(Debug, Clone)]
pub struct Naming {
    rules: Rules,
    template: Option<Template>,
    /// Never lacks anything.
    fallback: Template,
}

impl Naming {
    /// By a template, and by the static name where it gives none.
    pub fn new(rules: Rules, template: Option<Template>, fallback: Template) -> Self {
        Self { rules, template, fallback }
    }

    fn keys(&self) -> impl Iterator<Item = PartitionKey> + '_ {
        self.template.iter().chain([&self.fallback]).flat_map(Template::keys)
    }

    fn name(&self, values: &Values) -> String {
        let filled = self.template.as_ref().and_then(|template| template.fill(values)).filter(|name| !name.is_empty());
        let name = filled.or_else(|| self.fallback.fill(values)).filter(|name| !name.is_empty());
        self.rules.clean(&name.unwrap_or_else(|| "_".into()))
    }

    /// Every name that there can be; one that ends in `*` stands for all that begin so.
    pub fn scopes(&self) -> Vec<String> {
        let mut scopes: Vec<String> = Vec::new();
        for template in self.template.iter().chain([&self.fallback]) {
            let (beginning, more) = template.beginning();
            let scope = if more {
                // A longer name is cut there.
                format!("{}*", beginning.get(..MAX_NAME - HASH_BYTES).unwrap_or(beginning))
            } else {
                self.rules.clean(beginning)
            };
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
        scopes
    }
}

/// Both names.
#[derive(Debug, Clone)]
pub struct Names {
    group: Naming,
    stream: Naming,
    keys: Vec<PartitionKey>,
}

/// A log stream and its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The log group.
    pub group: String,
    /// The log stream.
    pub stream: String,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Neither name can have a colon.
        write!(f, "{}:{}", self.group, self.stream)
    }
}

impl Names {
    /// Of groups and of streams.
    pub fn new(group: Naming, stream: Naming) -> Self {
        let mut keys: Vec<PartitionKey> = Vec::new();
        for key in group.keys().chain(stream.keys()) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Self { group, stream, keys }
    }

    /// What tells the records of one place from those of another: the plan's partition keys.
    pub fn keys(&self) -> &[PartitionKey] {
        &self.keys
    }

    /// Log groups that there can be.
    pub fn group_scopes(&self) -> Vec<String> {
        self.group.scopes()
    }

    /// Where records go that have these values in common.
    pub fn place(&self, values: Vec<Option<String>>, tag: String) -> Place {
        // A batch from before the keys changed may have other ones: its records get the static names.
        let values = if values.len() == self.keys.len() { values } else { Vec::new() };
        let values = Values { keys: &self.keys, values, tag };
        Place { group: self.group.name(&values), stream: self.stream.name(&values) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::parse;

    #[test]
    fn what_aws_does_not_allow_becomes_an_underscore() {
        for (rules, name, expected) in [
            (Rules::Group, "/app/web_1.log#2-x", "/app/web_1.log#2-x"),
            (Rules::Group, "a b:c*d$e@ü\n", "a_b_c_d_e___"),
            (Rules::Group, "aws/x", "aws_x"),
            (Rules::Group, "/aws/x", "/aws/x"),
            (Rules::Group, "aws:x", "aws_x"),
            (Rules::Stream, "a:b*c", "a_b_c"),
            (Rules::Stream, "größe [$x]/日本", "größe [$x]/日本"),
            (Rules::Stream, "a\nb\0c\u{7f}d\u{85}", "a_b_c_d_"),
        ] {
            assert_eq!(rules.clean(name), expected, "{name:?}");
        }
    }

    /// The hash was made by `printf … | sha256sum`.
    #[test]
    fn a_long_name_is_cut_and_stays_distinct() {
        let exactly = "x".repeat(512);
        assert_eq!(Rules::Stream.clean(&exactly), exactly);
        let over = "x".repeat(513);
        let cut = Rules::Stream.clean(&over);
        assert_eq!(cut.len(), 512);
        assert_eq!(cut, format!("{}-{}", "x".repeat(479), SHA_OF_513_X));
        assert_ne!(cut, Rules::Stream.clean(&"x".repeat(514)));
        assert_ne!(
            Rules::Group.clean(&format!("{over}:")),
            Rules::Group.clean(&format!("{over}*")),
            "of the name as it was"
        );

        let wide = Rules::Stream.clean(&"日".repeat(300));
        assert!(wide.len() <= 512 && wide.starts_with(&"日".repeat(159)), "{}", wide.len());
    }
    const SHA_OF_513_X: &str = "35ade0090e64e74d6ad04204009c23a4";

    fn names(group: Option<&str>, stream: Option<&str>, fallback: Template) -> Names {
        let template = |text: Option<&str>| text.map(|text| parse(text).unwrap());
        Names::new(
            Naming::new(Rules::Group, template(group), Template::literal("/static")),
            Naming::new(Rules::Stream, template(stream), fallback),
        )
    }
    fn some(values: &[Option<&str>]) -> Vec<Option<String>> {
        values.iter().map(|value| value.map(str::to_owned)).collect()
    }

    #[test]
    fn a_batch_belongs_to_the_names_of_its_values() {
        let names = names(Some("/k8s/$ns"), Some("$pod.$TAG[1]"), Template::before_tag("host-"));
        let field = |key: &str| PartitionKey::Field(vec![key.into()]);
        assert_eq!(names.keys(), [field("ns"), field("pod"), PartitionKey::Tag]);
        for (values, group, stream) in [
            ([Some("shop"), Some("web-0"), Some("a.b")], "/k8s/shop", "web-0.b"),
            ([None, Some("web-0"), Some("a.b")], "/static", "web-0.b"),
            ([Some("shop"), None, Some("a.b")], "/k8s/shop", "host-a.b"),
            ([Some("shop"), Some("web-0"), Some("a")], "/k8s/shop", "host-a"),
            ([Some("a b"), Some("web:0"), Some("a.b")], "/k8s/a_b", "web_0.b"),
        ] {
            let place = names.place(some(&values), "of no use".into());
            assert_eq!((place.group.as_str(), place.stream.as_str()), (group, stream), "{values:?}");
        }
    }

    #[test]
    fn no_value_makes_a_name_of_nothing() {
        let names = names(None, Some("$pod"), Template::before_tag(""));
        assert_eq!(names.place(some(&[Some(""), Some("app")]), String::new()).stream, "app");
        assert_eq!(names.place(some(&[Some(""), Some("")]), String::new()).stream, "_");
    }

    #[test]
    fn a_batch_made_under_other_keys_goes_to_the_static_names() {
        let names = names(Some("$ns"), None, Template::before_tag("p-"));
        let place = names.place(some(&[Some("shop")]), "app".into());
        assert_eq!((place.group.as_str(), place.stream.as_str()), ("/static", "p-app"));
    }

    #[test]
    fn log_groups_that_there_can_be_are_named_beforehand() {
        let scopes = |group| names(group, None, Template::literal("s")).group_scopes();
        assert_eq!(scopes(None), ["/static"]);
        assert_eq!(scopes(Some("/k8s/$ns")), ["/k8s/*", "/static"]);
        assert_eq!(scopes(Some("$ns")), ["*", "/static"]);
        let long = "x".repeat(500);
        assert_eq!(scopes(Some(&format!("{long}$ns"))), [format!("{}*", "x".repeat(479)), "/static".into()]);
        // A name begins as its scope says also where the reserved beginning was changed.
        let place = names(Some("aws$ns"), None, Template::literal("s")).place(some(&[Some("/x")]), String::new());
        assert_eq!(place.group, "aws_x");
    }
}
