//! What is wrong with an entity: events are taken all the same, and the answer says it.
//! <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_Entity.html>

use super::input::Entity;
use super::rules;

/// Why the entity is rejected, as one of [`rules::ENTITY_ERRORS`].
pub(crate) fn fault_of(entity: &Entity) -> Option<&'static str> {
    let Some(keys) = entity.key_attributes.as_ref().filter(|keys| !keys.is_empty()) else {
        return Some("MissingRequiredFields");
    };
    let fits = |value: &str, most: usize| (1..=most).contains(&value.chars().count());
    let known = |name: &str| rules::KEY_ATTRIBUTE_NAMES.contains(&name);
    let keys_fit = keys.iter().all(|(name, value)| known(name) && fits(value, rules::MAX_ATTRIBUTE_VALUE_CHARACTERS));
    if !rules::KEY_ATTRIBUTES.contains(&keys.len()) || !keys_fit {
        return Some("InvalidKeyAttributes");
    }
    let Some(kind) = keys.get("Type") else {
        return Some("MissingRequiredFields");
    };
    // https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/adding-your-own-related-telemetry.html
    if !["Service", "RemoteService", "AWS::Service", "Resource", "AWS::Resource"].contains(&kind.as_str()) {
        return Some("InvalidTypeValue");
    }
    let attributes = entity.attributes.as_ref()?;
    let attributes_fit = attributes.iter().all(|(name, value)| {
        fits(name, rules::MAX_ATTRIBUTE_NAME_CHARACTERS) && fits(value, rules::MAX_ATTRIBUTE_VALUE_CHARACTERS)
    });
    (attributes.len() > rules::MAX_ATTRIBUTES || !attributes_fit).then_some("InvalidAttributes")
}
