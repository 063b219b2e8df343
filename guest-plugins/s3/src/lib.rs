//! The built-in output plugin `s3`: one batch, one object.
//!
//! `config` is what an operator writes, `settings` what it means; `template` and `naming` make the key; `deliver` writes the object,
//! in one request (`single`) or in parts (`multipart`, remembered in `ledger`), and `conflict` decides when its key is taken.
//! `sweep` aborts uploads that were left behind. All of it sees the host through `world`.
//!
//! What it promises: an object is never overwritten, the same batch is always the same object, and what a failed attempt left is
//! found and used, or cleared away, by the next.

mod config;
mod conflict;
mod deliver;
mod ledger;
mod multipart;
mod names;
mod naming;
mod object;
mod parts;
mod settings;
mod single;
mod sweep;
mod template;
mod world;

#[cfg(test)]
mod fake;

use wharf_plugin::{Batch, Context, Failure, Faults, Output, Plan, Report};

use config::Config;
use settings::Settings;
use world::Live;

/// The output.
#[derive(Debug)]
pub struct S3 {
    settings: Settings,
    swept: bool,
}

impl Output for S3 {
    type Config = Config;
    const ALIASES: &'static [(&'static str, &'static str)] = names::ALIASES;
    const ELSEWHERE: &'static [(&'static str, &'static str)] = names::ELSEWHERE;

    fn configure(config: Config, _: &Context) -> Result<(Self, Plan), Faults> {
        let (settings, plan) = Settings::new(config)?;
        Ok((Self { settings, swept: false }, plan))
    }

    fn deliver(&mut self, batch: &Batch) -> Result<Report, Failure> {
        let world = Live::new(batch, &self.settings.target);
        if !self.swept {
            self.swept = true;
            sweep::sweep(&world);
        }
        deliver::deliver(&world, &self.settings)
    }

    fn abandon(&mut self, batch: &Batch) {
        sweep::abandon(&Live::new(batch, &self.settings.target));
    }
}

wharf_plugin::export!(S3, name = "s3");
