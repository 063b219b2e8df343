//! `wharf dev-http`: an HTTP destination on this machine, to try an output against before it meets the real one.

mod answer;
mod records;
mod server;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Ended, counted, print, say};
use answer::Answer;
use server::{Destination, Rules};

const EXAMPLES: &str = "\
Examples:
  wharf dev-http                                         takes everything: 200 {}
  wharf dev-http --answer '429;retry-after=2' --answer 503 --answer 200
  wharf dev-http --reject broken                         records with `broken` are rejected
  wharf dev-http --token s3cret --out received.jsonl

An answer is STATUS[;HEADER=VALUE]…[;body=TEXT]. Several are given in their order, the last one
for ever. It takes any path and any method, JSON arrays, JSON lines and text, also compressed
(gzip, zstd), and tells the records of a request apart: the elements of an array, else the lines.
With --reject, an answer 200 has the body
  {\"rejected\":[{\"index\":1,\"reason\":\"it contains `broken`\"}]}
For development only. SIGTERM or SIGINT ends it.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8088")]
    listen: SocketAddr,
    /// What is answered, see below; may be repeated
    #[arg(long = "answer", value_name = "SPEC", default_value = "200;body={}")]
    answers: Vec<Answer>,
    /// Reject each record that contains this text, in an answer that is otherwise 200; may be repeated
    #[arg(long = "reject", value_name = "TEXT")]
    rejected: Vec<String>,
    /// Answer 401 to a request without `authorization: Bearer TOKEN`
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Append the records that were taken to this file, one a line
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print headers and records, too
    #[arg(long)]
    show: bool,
    /// Listen where other machines can reach it
    #[arg(long)]
    allow_remote: bool,
}

pub(super) fn run(args: Args) -> Result<(), Ended> {
    if !args.listen.ip().is_loopback() && !args.allow_remote {
        return Err(Ended::Failed(format!(
            "dev-http would listen on {}, where other machines can reach it. Listen on 127.0.0.1, or say --allow-remote",
            args.listen
        )));
    }
    let rules = Rules {
        answers: args.answers,
        rejected: args.rejected,
        token: args.token,
        out: args.out.as_deref().map(server::open).transpose()?,
        show: args.show,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let totals = runtime.block_on(async {
        // Before anybody is told that it runs: they may end it at once.
        let ended = super::ended()?;
        let destination = Destination::start(args.listen, rules)
            .await
            .map_err(|cause| Ended::Failed(format!("dev-http cannot listen on {}: {cause}", args.listen)))?;
        print(&format!(
            "An HTTP destination on http://{}, for development only. Each request is told here.\n",
            destination.address()
        ))?;
        ended.await;
        Ok::<_, Ended>(destination.totals())
    })?;
    say(&format!(
        "wharf dev-http: ended; {} with {} taken, {} rejected",
        counted(totals.requests, "request", "requests"),
        counted(totals.taken, "record", "records"),
        counted(totals.rejected, "record", "records"),
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_reach_it_only_where_that_was_said() {
        use clap::Parser;
        #[derive(Debug, Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let args = Line::try_parse_from(["x", "--listen", "0.0.0.0:0"]).unwrap().args;
        let Err(Ended::Failed(message)) = run(args) else { panic!("it listens to everybody") };
        assert!(message.contains("--allow-remote"), "{message}");
    }
}
