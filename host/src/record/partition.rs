//! What keeps records apart before they are put into batches.

/// What tells one record from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PartitionKey {
    /// The record's tag.
    Tag,
    /// The value at this path of keys in a JSON record. A text record has one key, `log`.
    Field(Vec<String>),
}
