//! Option names that people bring along from Fluent Bit and others, and what to do instead.

/// Names that this plugin does not take, and why.
pub const ELSEWHERE: &[(&str, &str)] = &[
    ("region", "it belongs to the output's `aws.region` (or the file's `aws.region`, or AWS_REGION)"),
    ("endpoint", "it belongs to `aws.endpoint` of the output or of the file"),
    ("port", "it belongs into `aws.endpoint`, as in `https://host:8443`"),
    ("role_arn", "it belongs to `aws.role_arn`: plugins never see credentials"),
    ("external_id", "it belongs to `aws.external_id`"),
    ("sts_endpoint", "it belongs to `aws.sts_endpoint`"),
    ("profile", "it belongs to `aws.profile`"),
    ("tls", "TLS is on unless `aws.endpoint` begins with http://"),
    ("workers", "it belongs beside `config`, as the output's `workers`; any number is safe here"),
    ("match", "it belongs beside `config`, as the output's `match`"),
    ("batch", "it belongs beside `config`, as the output's `batch`"),
    ("retry_limit", "retries are limited by time: the output's `retry.max_age` (default 24h)"),
    ("auto_retry_requests", "retries are the host's: the output's `retry`"),
    ("extra_user_agent", "the host sets the user agent; leave it out"),
    (
        "add_entity",
        "in Fluent Bit it takes the entity from Kubernetes metadata; here it is written down: `entity: { type: Service, name: …, environment: … }`",
    ),
    (
        "metric_namespace",
        "Wharf has no metric records; records that are in CloudWatch's embedded metric format carry their own namespace (`log_format: json/emf`)",
    ),
    (
        "metric_dimensions",
        "Wharf has no metric records; records that are in CloudWatch's embedded metric format carry their own dimensions (`log_format: json/emf`)",
    ),
    ("log_group", "it is called `log_group_name`"),
    ("log_stream", "it is called `log_stream_name`"),
    ("group_name", "it is called `log_group_name`"),
    ("stream_name", "it is called `log_stream_name`"),
    ("log_group_tags", "it is called `tags`"),
    ("new_log_group_tags", "it is called `tags`"),
    ("retention_in_days", "it is called `log_retention_days`"),
    ("auto_create_stream", "log streams are always made where they are missing; leave it out"),
    ("default_log_group_name", "it is called `log_group_name`, beside `log_group_template`"),
    ("default_log_stream_name", "it is called `log_stream_name`, beside `log_stream_template`"),
    (
        "max_batch_size",
        "a call is filled up to CloudWatch Logs' own limits; a batch is limited by the output's `batch.max_bytes`",
    ),
    ("sequence_token", "CloudWatch Logs no longer uses sequence tokens; leave it out"),
];

/// Classes of log groups, as AWS's service model lists them.
pub const CLASSES: [&str; 4] = ["STANDARD", "INFREQUENT_ACCESS", "DELIVERY", "ESSENTIALS"];

/// What AWS takes as days of retention
/// (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutRetentionPolicy.html>).
pub const RETENTION_DAYS: [u32; 22] =
    [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653];
