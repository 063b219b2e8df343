//! The command line: what can be asked for, one file a subcommand, and the exit codes.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Config, Draft, Faults};

mod admin_server;
mod convert;
mod dead_letter;
mod dev_aws;
mod dev_http;
mod plugin;
mod quarantine;
mod reload;
mod run;
mod table;
mod validate;

/// Something failed at run time.
const FAILED: u8 = 1;
/// The configuration is wrong: EX_CONFIG of sysexits.h. Wrong arguments are 2, as clap has it.
const WRONG_CONFIG: u8 = 78;

const EXAMPLES: &str = "\
A first configuration, wharf.yaml:

  sources:
    app: { type: tail, paths: [/var/log/app/*.log] }
  outputs:
    archive:
      plugin: s3
      match: \"*\"
      config: { bucket: my-bucket, key_format: /logs/app/segment_$INDEX }

Then:

  wharf validate -c wharf.yaml      check it, touching nothing
  wharf run -c wharf.yaml           take records in and deliver them
  wharf dead-letter list -c wharf.yaml
  wharf quarantine list -c wharf.yaml
  wharf dev-aws                     an S3 and CloudWatch Logs to try it on, in memory
  wharf dev-http                    an HTTP destination to try a plugin on

Exit codes: 0 done, 1 failed, 2 wrong arguments, 78 wrong configuration.
docs/configuration.md has every key, docs/operations.md everything about running it.";

/// Takes records in, keeps them durably, and delivers them through WebAssembly components.
#[derive(Debug, Parser)]
#[command(name = "wharf", version, after_help = EXAMPLES, max_term_width = 120)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Take records in and deliver them, until a signal
    Run(run::Args),
    /// Let a running Wharf read its configuration again
    Reload(reload::Args),
    /// Check a configuration without touching anything: every fault at once, with its place
    Validate(validate::Args),
    /// See, replay or remove records that could not be delivered
    #[command(name = "dead-letter", visible_alias = "dead-letters")]
    DeadLetter(dead_letter::Args),
    /// See which outputs are held because their component dies of whatever it is given, and let one go
    Quarantine(quarantine::Args),
    /// Make a configuration of one of Fluent Bit
    Convert(convert::Args),
    /// For authors of plugins: make one, build it, test it; and what a component is
    Plugin(plugin::Args),
    /// A local S3 and CloudWatch Logs to develop against, in memory
    DevAws(dev_aws::Args),
    /// A local HTTP destination to develop a plugin against, that tells what it gets
    DevHttp(dev_http::Args),
}

/// The file that most subcommands want.
#[derive(Debug, clap::Args)]
struct ConfigFile {
    /// The configuration
    #[arg(short, long, value_name = "FILE", env = "WHARF_CONFIG")]
    config: PathBuf,
}

/// How a subcommand ends, when not well.
#[derive(Debug)]
enum Ended {
    /// Exit code 78.
    Config(Faults),
    /// Exit code 78: another process has found these.
    Refused(Vec<String>),
    /// Exit code 1.
    Failed(String),
    /// Whoever read our output has gone: nothing to say.
    Silent,
}

impl<E: std::error::Error> From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs the command line that this process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let command = Cli::parse().command;
    // Everything that is written here may hold what logs hold, secrets too: whatever makes a file or a folder, it is its user's alone.
    // A plugin's sources and its component are for others as well, as its author's own settings have it.
    if !matches!(command, Command::Plugin(_)) {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    }
    let ended = match command {
        Command::Run(args) => run::run(&args),
        Command::Reload(args) => reload::run(&args),
        Command::Validate(args) => validate::run(&args),
        Command::DeadLetter(args) => dead_letter::run(args),
        Command::Quarantine(args) => quarantine::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Plugin(args) => plugin::run(args),
        Command::DevAws(args) => dev_aws::run(&args),
        Command::DevHttp(args) => dev_http::run(args),
    };
    match ended {
        Ok(()) | Err(Ended::Silent) => ExitCode::SUCCESS,
        Err(Ended::Failed(message)) => {
            say(&format!("wharf: {message}"));
            ExitCode::from(FAILED)
        }
        Err(Ended::Refused(faults)) => {
            faults.iter().for_each(|fault| say(fault));
            let told = counted(faults.len(), "fault", "faults");
            say(&format!("wharf: {told}; the configuration before it goes on"));
            ExitCode::from(WRONG_CONFIG)
        }
        Err(Ended::Config(faults)) => {
            say(&faults.to_string());
            say(&format!("wharf: {} in the configuration", counted(faults.len(), "fault", "faults")));
            ExitCode::from(WRONG_CONFIG)
        }
    }
}

/// Reads the configuration. Where it has a fault, its outputs' components are asked as well, so that all faults come at once.
fn load(file: &ConfigFile) -> Result<Config, Ended> {
    let draft = Draft::load(&file.config);
    if draft.faults().is_empty() { draft.finish().map_err(Ended::Config) } else { Err(validate::faulty(draft)) }
}

/// Prints to standard output. A reader that has gone (`| head`) ends the command in peace.
fn print(text: &str) -> Result<(), Ended> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => Err(Ended::Silent),
        Err(cause) => Err(Ended::Failed(format!("the standard output could not be written: {cause}"))),
    }
}

/// The end of something that a signal ends, from now on. Must be called inside a tokio runtime.
fn ended() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

/// `1 fault`, `2 faults`.
fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// A line on standard error. Where nobody can hear it, the exit code still tells.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Clap breaks longer lines where the width is not known, and the words behind the break stand alone.
    #[test]
    fn no_line_of_the_help_is_broken() {
        fn look(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(look);
        }
        look(&Cli::command());
    }

    /// The example of the help is one that works.
    #[test]
    fn the_example_in_the_help_is_a_valid_configuration() {
        let yaml: Vec<&str> = EXAMPLES.lines().skip(2).take_while(|l| *l != "Then:").collect();
        Config::parse(&yaml.join("\n"), "help.yaml".as_ref(), &|_| None).unwrap();
    }

    #[test]
    fn every_subcommand_reads_its_arguments() {
        for line in [
            "wharf run -c a.yaml",
            "wharf run -c a.yaml --discard old --discard acme",
            "wharf reload -c a.yaml --discard old --json",
            "wharf reload --admin 127.0.0.1:9600",
            "wharf quarantine list -c a.yaml --json",
            "wharf quarantine end acme/live --admin 127.0.0.1:9600",
            "wharf validate --config a.yaml",
            "wharf dead-letter list -c a.yaml",
            "wharf dead-letter show --data-dir /d --output archive --json",
            "wharf dead-letter replay --data-dir /d --all",
            "wharf plugin inspect ./own.wasm --json",
            "wharf plugin inspect own --dir plugins --dir more",
            "wharf dev-aws --listen 127.0.0.1:1 --bucket abc --bucket def --log-group /a --fault *=SlowDown,next=1",
            "wharf dev-http --listen 127.0.0.1:1 --answer 429;retry-after=2 --answer 200 --reject a --token t --out f --show",
            "wharf plugin inspect ./own.wasm --against wharf.yaml --output acme/live",
            "wharf plugin keygen team",
            "wharf plugin keygen team --type p256",
            "wharf plugin sign own.wasm --key team.key",
            "wharf plugin verify own.wasm --key team.pub --key other.pub --signature own.sig",
            "wharf plugin pull oci://r.example/own:1 --to own.wasm",
            "wharf plugin pull oci://r.example/own:1 -c wharf.yaml",
            "wharf plugin push own.wasm oci://r.example/own:1 --key team.key --plain-http r.example",
            "wharf plugin new to-acme",
            "wharf plugin new plugins/to-acme --lang python",
            "wharf plugin build",
            "wharf plugin update-sdk my-output",
            "wharf plugin build my-output --lang c",
            "wharf plugin test my-plugin tests/a.yaml --plugin my.wasm --filter a --update --report --jobs 2",
            "wharf dead-letter export -c a.yaml --output archive --batch 00112233445566778899aabbccddeeff --to tests",
            "wharf plugin run my.wasm lines.txt --config {} --grant http=https://h --grant all --aws-endpoint http://h",
            "wharf dead-letters purge --data-dir /d --batch 00112233445566778899aabbccddeeff",
        ] {
            Cli::try_parse_from(line.split(' ')).unwrap();
        }
        for line in ["wharf", "wharf dead-letter list -c a --data-dir b", "wharf run -c a.yaml more"] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }
}
