//! `cargo xtask fuzz`: damaged input for the parsers of outside bytes, for as long as is asked.

use anyhow::ensure;

use crate::cargo;

/// The targets, and the tests that they are.
const TARGETS: [(&str, &str); 12] = [
    ("forward", "source::forward::tests::torture::"),
    ("otlp_json", "fuzz::sources::otlp_json"),
    ("otlp_protobuf", "fuzz::sources::otlp_protobuf"),
    ("syslog_message", "fuzz::sources::syslog_message"),
    ("syslog_framing", "fuzz::sources::syslog_framing"),
    ("parse", "fuzz::sources::parse"),
    ("http_json", "fuzz::sources::http_json"),
    ("tail_position", "fuzz::sources::tail_position"),
    ("configuration", "fuzz::files::configuration"),
    ("chunk", "fuzz::files::chunk"),
    ("dead_letter", "fuzz::files::dead_letter"),
    ("all", "fuzz::"),
];

#[derive(Debug, clap::Args)]
pub struct Options {
    /// What to feed; all is every target but forward
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(TARGETS.map(|(name, _)| name)))]
    target: String,
    /// How many damaged inputs
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    iterations: u64,
    /// Where chance begins; the same seed gives the same inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub fn run(options: &Options) -> anyhow::Result<()> {
    let found = TARGETS.iter().find(|(name, _)| *name == options.target);
    ensure!(found.is_some(), "there is no target {}", options.target);
    let filter = found.map_or("", |(_, filter)| filter);
    let mut tests = cargo()?;
    tests
        .args(["test", "--workspace", "--lib", "--", filter, "--nocapture", "--test-threads=1"])
        .env("WHARF_FUZZ_ITERATIONS", options.iterations.to_string())
        .env("WHARF_SEED", options.seed.to_string())
        .env("WHARF_FUZZ_ALONE", "1");
    crate::run(&mut tests, "fuzzing")
}
