//! The built-in output plugin `cloudwatch_logs`: the records of a batch as log events of one log stream.
//!
//! `config` is what an operator writes, `settings` what it means; `template` and `naming` say where a batch belongs. `events` sorts a batch
//! and puts aside what cannot be sent, `oversized` cuts what is too large, `calls` fills calls up to CloudWatch Logs' limits. `deliver` sends
//! them one after the other and writes down in `progress` what was accepted; `place` makes log groups and streams that are missing, and
//! `streams` remembers those that are there. All of it sees the host through `world`.
//!
//! What it promises: nothing is sent again that was accepted, but the one call whose answer was lost; every record is delivered or named
//! with the reason; and nothing of one worker can be seen by another.

mod calls;
mod config;
mod deliver;
mod events;
mod names;
mod naming;
mod oversized;
mod place;
mod progress;
mod settings;
mod streams;
mod template;
mod world;

#[cfg(test)]
mod fake;

use wharf_plugin::{Batch, Context, Failure, Faults, Output, Plan, Report};

use config::Config;
use deliver::Worker;
use settings::Settings;
use world::Live;

/// The output.
#[derive(Debug)]
pub struct CloudWatchLogs {
    worker: Worker,
    /// This worker's number, as metrics name it.
    number: String,
}

impl Output for CloudWatchLogs {
    type Config = Config;
    const ELSEWHERE: &'static [(&'static str, &'static str)] = names::ELSEWHERE;

    fn configure(config: Config, context: &Context) -> Result<(Self, Plan), Faults> {
        let (settings, plan) = Settings::new(config)?;
        Ok((Self { worker: Worker::new(settings), number: context.worker.to_string() }, plan))
    }

    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
        self.worker.deliver(&Live::new(batch, &self.number))
    }
}

wharf_plugin::export!(CloudWatchLogs, name = "cloudwatch_logs");
