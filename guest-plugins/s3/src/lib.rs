//! The built-in output plugin `s3`.
use wharf_plugin::{Batch, ConfigFault, Context, Encoding, Failure, Output, Plan, Report, s3, schema, sequence};

/// Draft.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The bucket.
    bucket: String,
    /// The key.
    #[serde(default)]
    key_format: String,
}

/// The output.
pub struct S3 {
    config: Config,
}

impl Output for S3 {
    const NAME: &'static str = "s3";
    type Config = Config;
    fn schema() -> serde_json::Value {
        schema::of::<Config>()
    }
    fn configure(config: Config, _: &Context) -> Result<(Self, Plan), Vec<ConfigFault>> {
        let plan = Plan { s3: vec![s3::Scope::new(&config.bucket, "")], ..Plan::default() };
        Ok((Self { config }, plan))
    }
    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
        let index = sequence::assign("output", batch, 0)?;
        let key = self.config.key_format.trim_start_matches('/').replace("$INDEX", &index.to_string());
        let mut encoder = batch.encode(&Encoding::json_lines())?;
        if let Some(body) = encoder.next(64 << 20)? {
            s3::put_object(&self.config.bucket, &key, &body, &s3::Attributes::default(), true)?;
        }
        Ok(Report::all_delivered())
    }
}

wharf_plugin::export!(S3);
