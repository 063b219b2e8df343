//! The plugin's `config`, as it is written. `settings` makes sense of it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use wharf_plugin::units::Time;

/// Sends records to Amazon CloudWatch Logs, or to what speaks like it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The log group's name; with `log_group_template`, the group of records that lack one of its fields.
    pub log_group_name: String,
    /// The log stream's name, taken as it is. Either this or `log_stream_prefix`.
    #[serde(default)]
    pub log_stream_name: Option<String>,
    /// What the log stream's name begins with; the tag follows.
    #[serde(default)]
    pub log_stream_prefix: Option<String>,
    /// The log group's name, made of record fields (`$key`, `$key['sub']`) and of the tag (`$TAG`, `$TAG[n]`).
    #[serde(default)]
    pub log_group_template: Option<String>,
    /// The log stream's name, made likewise. Records that lack one of its fields go to `log_stream_name`, or to `log_stream_prefix` and the
    /// tag.
    #[serde(default)]
    pub log_stream_template: Option<String>,

    /// Send only the value of this key. Records without it become dead letters. Default: the whole record as JSON.
    #[serde(default)]
    pub log_key: Option<String>,
    /// `json/emf`: CloudWatch takes metrics out of the records.
    #[serde(default)]
    #[schemars(extend("examples" = ["json/emf"]))]
    pub log_format: Option<String>,
    /// What becomes of a record that is larger than CloudWatch Logs takes (1,048,550 bytes): `split` (default) into numbered parts,
    /// `truncate`, or `dead_letter`.
    #[serde(default)]
    #[schemars(extend("examples" = ["split", "truncate", "dead_letter"]))]
    pub oversized: Option<String>,

    /// Make log groups that do not exist. Default: false. Log streams are always made.
    #[serde(default)]
    pub auto_create_group: Option<bool>,
    /// Class of log groups that Wharf makes: `STANDARD`, `INFREQUENT_ACCESS` or `DELIVERY`. Default: the service's (`STANDARD`).
    #[serde(default)]
    #[schemars(extend("examples" = ["STANDARD", "INFREQUENT_ACCESS", "DELIVERY"]))]
    pub log_group_class: Option<String>,
    /// Days for which log groups that Wharf makes keep their events: 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096,
    /// 1827, 2192, 2557, 2922, 3288 or 3653. Default: 0, for ever.
    #[serde(default)]
    pub log_retention_days: Option<u32>,
    /// Tags of log groups that Wharf makes, at most 50.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    /// The KMS key that encrypts log groups that Wharf makes: its ARN.
    #[serde(default)]
    pub kms_key_id: Option<String>,

    /// What the records are about, for CloudWatch's *Explore related*.
    #[serde(default)]
    pub entity: Option<EntityConfig>,

    /// How long a worker remembers a log stream that it has not written to: `4h` (default), or a number of seconds.
    #[serde(default)]
    pub stream_cache_ttl: Option<Time>,
    /// How many log streams a worker remembers. Default: 10000.
    #[serde(default)]
    pub stream_cache_size: Option<u64>,
    /// Let workers send batches of one log stream side by side. Default: false, one after the other, in their order.
    #[serde(default)]
    pub unordered: Option<bool>,
}

/// What records are about. Names and values as in CloudWatch's documentation of entities.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct EntityConfig {
    /// `Service`, `RemoteService`, `AWS::Service`, `Resource` or `AWS::Resource`.
    #[serde(rename = "type")]
    #[schemars(extend("examples" = ["Service", "RemoteService", "AWS::Service", "Resource", "AWS::Resource"]))]
    pub kind: String,
    /// Name of a service.
    #[serde(default)]
    pub name: Option<String>,
    /// Where it is hosted, such as `eks:cluster/namespace`.
    #[serde(default)]
    pub environment: Option<String>,
    /// What kind of resource, such as `AWS::EC2::Instance`.
    #[serde(default)]
    pub resource_type: Option<String>,
    /// Which resource.
    #[serde(default)]
    pub identifier: Option<String>,
    /// What else is known of it, at most 10.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
}
