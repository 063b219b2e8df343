//! `wharf quarantine`: which outputs are held because their component dies of whatever it is given, and letting one go.

use clap::{Args as ClapArgs, Subcommand};
use serde::Deserialize;

use super::admin_server::{AdminServer, Answer, why_not};
use super::table::table;
use super::{Ended, counted, print};
use crate::admin::{EndAsked, OutputHealth, QuarantineEnded, QuarantineHealth};
use crate::config::units::format_size;

const EXAMPLES: &str = "\
Examples:
  wharf quarantine list -c /etc/wharf/wharf.yaml
  wharf quarantine end acme/live -c /etc/wharf/wharf.yaml

Both ask the admin server (GET /health, POST /quarantine/end) of a Wharf on this machine.
A quarantine also ends by itself: one batch is tried every two minutes, and the first that gets
through ends it. Where the component is as bad as it was, it is quarantined again, after two
more batches have become dead letters.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Outputs whose batches are held, what waits, and why
    List(List),
    /// Try what is held at once
    End(End),
}

#[derive(Debug, ClapArgs)]
struct List {
    #[command(flatten)]
    server: AdminServer,
    /// JSON, as /health has it, one object a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, ClapArgs)]
struct End {
    /// The output, acme/archive of a tenant's
    #[arg(value_name = "NAME")]
    output: String,
    #[command(flatten)]
    server: AdminServer,
    /// Print the answer as it is
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    match &args.action {
        Action::List(args) => list(args),
        Action::End(args) => end(args),
    }
}

/// What is wanted of `/health`.
#[derive(Debug, Deserialize)]
struct Seen {
    outputs: Vec<OutputHealth>,
}

fn list(args: &List) -> Result<(), Ended> {
    let held = held(&args.server.get("/health")?)?;
    if args.json {
        let lines = held.iter().map(|(output, _)| Ok(serde_json::to_string(output)? + "\n"));
        return print(&lines.collect::<Result<String, serde_json::Error>>()?);
    }
    print(&shown(&held))
}

fn held(answer: &Answer) -> Result<Vec<(OutputHealth, QuarantineHealth)>, Ended> {
    let seen: Seen = serde_json::from_str(&answer.body).map_err(|cause| {
        Ended::Failed(format!("what /health answered (HTTP status {}) is not understood: {cause}", answer.status))
    })?;
    let quarantined = |output: OutputHealth| output.quarantine.clone().map(|quarantine| (output, quarantine));
    Ok(seen.outputs.into_iter().filter_map(quarantined).collect())
}

fn shown(held: &[(OutputHealth, QuarantineHealth)]) -> String {
    if held.is_empty() {
        return "no output is in quarantine\n".into();
    }
    let row = |(output, quarantine): &(OutputHealth, QuarantineHealth)| {
        let why = output.last_failure.as_ref().map_or_else(String::new, |failure| {
            // Of a trap the frames come first, and what happened comes last.
            let last = failure.message.lines().map(str::trim).rfind(|line| !line.is_empty());
            format!("{}: {}", failure.kind, last.unwrap_or_default())
        });
        vec![
            output.name.clone(),
            output.plugin.clone(),
            output.queue_records.to_string(),
            format_size(output.queue_bytes),
            format!("{:.0} s", quarantine.next_try_in_seconds),
            quarantine.with.join(" "),
            why,
        ]
    };
    let headings = ["OUTPUT", "PLUGIN", "RECORDS", "SIZE", "NEXT TRY IN", "AS IN", "LAST FAILURE"];
    table(&headings, &held.iter().map(row).collect::<Vec<_>>())
}

fn end(args: &End) -> Result<(), Ended> {
    let asked = serde_json::to_string(&EndAsked { output: args.output.clone() })?;
    let answer = args.server.post("/quarantine/end", &asked)?;
    if args.json {
        print(&format!("{}\n", answer.body))?;
    }
    let Ok(ended) = serde_json::from_str::<QuarantineEnded>(&answer.body) else {
        return Err(Ended::Failed(format!("no quarantine was ended: {}", why_not(&answer))));
    };
    if args.json { Ok(()) } else { print(&told(&ended)) }
}

fn told(ended: &QuarantineEnded) -> String {
    let with = match ended.with.as_slice() {
        [] => String::new(),
        with => format!("; held no longer either: {}", with.join(", ")),
    };
    let batches = counted(ended.batches, "batch that was held is", "batches that were held are");
    format!("the quarantine of {} ({}) is over, and {batches} tried now{with}\n", ended.output, ended.plugin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_that_are_held_are_listed_with_what_waits_and_why() {
        let health = r#"{ "status": "degraded", "outputs": [
            { "name": "fine", "plugin": "s3 0.1.0 (d1)", "oldest_undelivered_seconds": null, "queue_bytes": 0, "queue_records": 0, "workers": [] },
            { "name": "acme/live", "tenant": "acme", "plugin": "own 1.2 (d2)", "oldest_undelivered_seconds": 7.5, "queue_bytes": 4100,
              "queue_records": 12, "workers": [{ "worker": 0, "state": "waiting_for_retry" }],
              "quarantine": { "next_try_in_seconds": 83.7, "with": ["acme/other"] },
              "last_failure": { "kind": "trap", "message": "error while executing:\n    0: 0x16c82\n    Caused by:\n    wasm trap: unreachable", "seconds_ago": 3.0 } } ] }"#;
        let answer = |body: &str| Answer { status: 200, body: body.into() };
        let text = shown(&held(&answer(health)).unwrap());
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect()).collect();
        assert_eq!(lines[0], ["OUTPUT", "PLUGIN", "RECORDS", "SIZE", "NEXT TRY IN", "AS IN", "LAST FAILURE"]);
        assert_eq!(
            lines[1],
            ["acme/live", "own 1.2 (d2)", "12", "4100 B", "84 s", "acme/other", "trap: wasm trap: unreachable"]
        );
        assert_eq!(lines.len(), 2);
        assert_eq!(shown(&held(&answer(r#"{ "outputs": [] }"#)).unwrap()), "no output is in quarantine\n");
        let Err(Ended::Failed(why)) = held(&answer("<html>")) else { panic!("that is no /health") };
        assert!(why.starts_with("what /health answered (HTTP status 200) is not understood: "), "{why}");
    }

    #[test]
    fn the_end_of_a_quarantine_is_told_with_whoever_else_was_held() {
        let mut ended =
            QuarantineEnded { output: "live".into(), plugin: "own 1.2 (d)".into(), batches: 1, with: vec![] };
        assert_eq!(
            told(&ended),
            "the quarantine of live (own 1.2 (d)) is over, and 1 batch that was held is tried now\n"
        );
        (ended.batches, ended.with) = (3, vec!["a".into(), "acme/b".into()]);
        let expected = "the quarantine of live (own 1.2 (d)) is over, and 3 batches that were held are tried now; held no longer either: a, acme/b\n";
        assert_eq!(told(&ended), expected);
    }
}
