//! The configuration, understood: every fault at once, and what the rest of the plugin works with.

mod group;

use std::time::Duration;

use wharf_plugin::cloudwatch_logs::Entity;
use wharf_plugin::units::Time;
use wharf_plugin::{Faults, Plan};

use crate::config::{Config, EntityConfig};
use crate::naming::{MAX_NAME, Names, Naming, RESERVED, Rules};
use crate::template::{self, Template};

pub use group::NewGroup;

/// Some 16 calls of 1 MiB: a batch's last call is all that is not full, so on average 97 % of what calls may carry is used.
const DEFAULT_MAX_BYTES: u64 = 16_500_000;
const DEFAULT_MAX_AGE_MS: u64 = 5_000;
/// A worker keeps up to 16 bytes for each record of a batch. Only a larger `batch.max_bytes` gets there.
const DEFAULT_MAX_RECORDS: u32 = 1_000_000;
/// What CloudWatch Logs adds to each event.
pub const EVENT_OVERHEAD: u32 = 26;
/// `{"log":""}`, which a text record is sent in where there is no `log_key`.
const OBJECT_OVERHEAD: u32 = 10;
const DEFAULT_CACHE_TTL_MS: u64 = 4 * 60 * 60 * 1000;
const DEFAULT_CACHE_SIZE: u64 = 10_000;
/// A worker remembers some 200 bytes for each, in the memory that it is allowed.
const MAX_CACHE_SIZE: u64 = 100_000;
/// Has to fit into a row of progress, beside the rest.
const MAX_LOG_KEY: usize = 256;

/// What becomes of an event that is larger than CloudWatch Logs takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Oversized {
    /// Several events, numbered.
    Split,
    /// Its beginning.
    Truncate,
    /// Nothing is sent.
    DeadLetter,
}

impl Oversized {
    /// As it is written in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Split => "split",
            Self::Truncate => "truncate",
            Self::DeadLetter => "dead_letter",
        }
    }
    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Split, Self::Truncate, Self::DeadLetter].into_iter().find(|it| it.name() == name)
    }
}

/// What of the configuration makes events of records. A batch that was begun is finished with the one that it was begun with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// The key whose value alone is sent.
    pub log_key: Option<String>,
    /// What becomes of too large events.
    pub oversized: Oversized,
}

/// The configuration, understood.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where records go.
    pub names: Names,
    /// How events are made.
    pub recipe: Recipe,
    /// `json/emf`, or none.
    pub log_format: Option<String>,
    /// What records are about.
    pub entity: Option<Entity>,
    /// Log groups that are made.
    pub group: NewGroup,
    /// How long a stream is remembered.
    pub cache_ttl: Duration,
    /// How many streams are remembered.
    pub cache_size: usize,
}

impl Settings {
    /// Makes sense of a configuration.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn new(config: Config) -> Result<(Self, Plan), Faults> {
        let mut faults = Faults::default();
        let it = &mut faults;
        let names = Names::new(group_naming(&config, it), stream_naming(&config, it));
        let recipe = recipe(&config, it);
        if let Some(format) = config.log_format.as_deref().filter(|format| *format != "json/emf") {
            it.add(
                "log_format",
                format!("`{format}` is no format that CloudWatch Logs reads: write `json/emf`, or leave it out"),
            );
        }
        let group = group::new_group(&config, it);
        let entity = config.entity.as_ref().map(|entity| entity_of(entity, it));
        let ttl = config.stream_cache_ttl.as_ref().map_or(Ok(DEFAULT_CACHE_TTL_MS), Time::milliseconds);
        let ttl = it.note("stream_cache_ttl", ttl, DEFAULT_CACHE_TTL_MS);
        if ttl == 0 {
            it.add("stream_cache_ttl", "0: no log stream would be remembered; write a time such as `4h`");
        }
        let cache_size = config.stream_cache_size.unwrap_or(DEFAULT_CACHE_SIZE);
        if !(1..=MAX_CACHE_SIZE).contains(&cache_size) {
            it.add("stream_cache_size", format!("{cache_size}: write a number from 1 to {MAX_CACHE_SIZE}"));
        }

        faults.finish()?;
        let plan = Plan {
            partition_by: names.keys().to_vec(),
            in_order: config.unordered != Some(true),
            record_overhead: if recipe.log_key.is_some() { EVENT_OVERHEAD } else { EVENT_OVERHEAD + OBJECT_OVERHEAD },
            max_bytes: Some(DEFAULT_MAX_BYTES),
            max_records: Some(DEFAULT_MAX_RECORDS),
            max_age_ms: Some(DEFAULT_MAX_AGE_MS),
            log_groups: names.group_scopes(),
            ..Plan::default()
        };
        let settings = Self {
            names,
            recipe,
            log_format: config.log_format,
            entity,
            group,
            cache_ttl: Duration::from_millis(ttl),
            cache_size: usize::try_from(cache_size).unwrap_or(1),
        };
        Ok((settings, plan))
    }
}

fn recipe(config: &Config, faults: &mut Faults) -> Recipe {
    let log_key = config.log_key.clone();
    if log_key.as_deref() == Some("") {
        faults.add("log_key", "it names no key: write the key's name, or leave the option out to send whole records");
    }
    if log_key.as_ref().is_some_and(|key| key.len() > MAX_LOG_KEY) {
        faults.add("log_key", format!("a key's name may have {MAX_LOG_KEY} bytes"));
    }
    let known = [Oversized::Split, Oversized::Truncate, Oversized::DeadLetter].map(Oversized::name);
    let oversized = Oversized::named(faults.one_of("oversized", config.oversized.as_deref(), &known));
    Recipe { log_key, oversized: oversized.unwrap_or(Oversized::Split) }
}

fn group_naming(config: &Config, faults: &mut Faults) -> Naming {
    let name = &config.log_group_name;
    check_static("log_group_name", name, Rules::Group, faults);
    let template = template_of("log_group_template", config.log_group_template.as_deref(), Rules::Group, faults);
    Naming::new(Rules::Group, template, Template::literal(name))
}

fn stream_naming(config: &Config, faults: &mut Faults) -> Naming {
    let template = template_of("log_stream_template", config.log_stream_template.as_deref(), Rules::Stream, faults);
    if let Some(name) = &config.log_stream_name {
        check_static("log_stream_name", name, Rules::Stream, faults);
    }
    if let Some(prefix) = config.log_stream_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        check_static("log_stream_prefix", prefix, Rules::Stream, faults);
    }
    let fallback = match (&config.log_stream_name, &config.log_stream_prefix) {
        (Some(name), None) => Template::literal(name),
        (None, Some(prefix)) => Template::before_tag(prefix),
        (Some(_), Some(_)) => {
            faults.add("log_stream_prefix", "`log_stream_name` is given as well: leave one of them out");
            Template::default()
        }
        // Where records can lack what the template needs, the tag is their stream's name, as with an empty prefix.
        (None, None) if template.as_ref().is_some_and(Template::can_fail) => Template::before_tag(""),
        (None, None) if template.is_some() => Template::literal("_"),
        (None, None) => {
            if config.log_stream_template.is_none() {
                faults.add(
                    "log_stream_name",
                    "no log stream is named: write `log_stream_name`, `log_stream_prefix` (the tag follows it) or `log_stream_template`",
                );
            }
            Template::default()
        }
    };
    Naming::new(Rules::Stream, template, fallback)
}

fn check_static(option: &str, name: &str, rules: Rules, faults: &mut Faults) {
    let template = if rules == Rules::Group { "log_group_template" } else { "log_stream_template" };
    if name.is_empty() {
        faults.add(option, "it is empty");
    } else if name.contains("$TAG") || name.contains("${") || name.contains("$(") {
        faults.add(option, format!("it is taken as it is: what begins with `$` belongs to `{template}`"));
    } else if name.len() > MAX_NAME {
        faults.add(option, format!("it has {} bytes, and AWS takes {MAX_NAME}", name.len()));
    } else {
        check_letters(option, name, rules, faults);
        check_reserved(option, name, rules, faults);
    }
}

fn check_letters(option: &str, text: &str, rules: Rules, faults: &mut Faults) {
    if let Some(c) = text.chars().find(|c| !rules.allow(*c)) {
        let allowed = match rules {
            Rules::Group => "letters a-z and A-Z, digits, `_`, `-`, `/`, `.` and `#`",
            Rules::Stream => "anything but `:`, `*` and control characters",
        };
        faults.add(option, format!("{c:?} is not allowed there: AWS takes {allowed}"));
    }
}

fn check_reserved(option: &str, name: &str, rules: Rules, faults: &mut Faults) {
    if rules == Rules::Group && name.starts_with(RESERVED) {
        faults.add(
            option,
            format!("names that begin with `{RESERVED}` are AWS's own: begin it with `/aws/`, or with something else"),
        );
    }
}

fn template_of(option: &str, text: Option<&str>, rules: Rules, faults: &mut Faults) -> Option<Template> {
    let template = match template::parse(text?) {
        Ok(template) => template,
        Err(messages) => {
            messages.into_iter().for_each(|message| faults.add(option, message));
            return None;
        }
    };
    let all: String = template.literals().collect();
    check_letters(option, &all, rules, faults);
    check_reserved(option, template.beginning().0, rules, faults);
    if all.len() > MAX_NAME {
        faults.add(option, format!("every name would have more than AWS's {MAX_NAME} characters"));
    }
    Some(template)
}

/// Rules of
/// <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_Entity.html>, and which type has which attributes from
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/adding-your-own-related-telemetry.html>.
fn entity_of(entity: &EntityConfig, faults: &mut Faults) -> Entity {
    const SERVICES: [&str; 3] = ["Service", "RemoteService", "AWS::Service"];
    const TYPES: [&str; 5] = ["Service", "RemoteService", "AWS::Service", "Resource", "AWS::Resource"];
    let kind = faults.one_of("entity/type", Some(&entity.kind), &TYPES);
    let services = TYPES.contains(&entity.kind.as_str()).then_some(SERVICES.contains(&kind));
    let mut key_attributes = vec![("Type".to_owned(), kind.to_owned())];
    for (option, name, value, needed, wanted) in [
        ("entity/name", "Name", &entity.name, services == Some(true), services != Some(false)),
        ("entity/environment", "Environment", &entity.environment, false, true),
        (
            "entity/resource_type",
            "ResourceType",
            &entity.resource_type,
            services == Some(false),
            services != Some(true),
        ),
        ("entity/identifier", "Identifier", &entity.identifier, services == Some(false), services != Some(true)),
    ] {
        match value {
            None if needed => faults.add(option, format!("an entity of type `{kind}` needs it")),
            None => {}
            Some(_) if !wanted => faults.add(option, format!("an entity of type `{kind}` has none: leave it out")),
            Some(value) => {
                check_length(option, "the value", value, 512, faults);
                key_attributes.push((name.to_owned(), value.clone()));
            }
        }
    }
    if entity.attributes.len() > 10 {
        faults.add("entity/attributes", format!("{} attributes: AWS takes 10", entity.attributes.len()));
    }
    for (name, value) in &entity.attributes {
        check_length("entity/attributes", "a name", name, 256, faults);
        check_length("entity/attributes", &format!("the value of `{name}`"), value, 512, faults);
    }
    let attributes = entity.attributes.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    Entity { key_attributes, attributes }
}

fn check_length(option: &str, what: &str, text: &str, most: usize, faults: &mut Faults) {
    let characters = text.chars().count();
    if !(1..=most).contains(&characters) {
        faults.add(option, format!("{what} has {characters} characters: AWS takes 1 to {most}"));
    }
}

#[cfg(test)]
mod tests;
