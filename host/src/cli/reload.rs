//! `wharf reload`: asks a running Wharf to read its configuration again, and tells what came of it.

use clap::Args as ClapArgs;

use super::admin_server::{AdminServer, why_not};
use super::{Ended, print};
use crate::admin::{Parts, ReloadAsked, ReloadResult, Reloaded};

const EXAMPLES: &str = "\
Examples:
  wharf reload -c /etc/wharf/wharf.yaml
  wharf reload --admin 127.0.0.1:9600 --discard old-archive --discard acme/live
  wharf reload -c /etc/wharf/wharf.yaml --discard acme/       (all outputs of tenant acme)

It asks the admin server (POST /reload) of a Wharf on this machine, and waits until the new
configuration is at work or was refused. Exit codes: 0 at work, 78 the configuration has faults
(the old one goes on), 1 everything else: another reload is under way, undelivered records
stand against it, nobody answers.";

/// Arguments.
#[derive(Debug, ClapArgs)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    server: AdminServer,
    /// Drop the undelivered records of an output that the configuration has no more; acme/ is all of tenant acme's (may be repeated)
    #[arg(long, value_name = "NAME")]
    discard: Vec<String>,
    /// Print the answer as it is
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), Ended> {
    let asked = serde_json::to_string(&ReloadAsked { discard: args.discard.clone() })?;
    let answer = args.server.post("/reload", &asked)?;
    if args.json {
        print(&format!("{}\n", answer.body))?;
    }
    let Ok(reloaded) = serde_json::from_str::<Reloaded>(&answer.body) else {
        return Err(Ended::Failed(format!("no reload: {}", why_not(&answer))));
    };
    match reloaded.result {
        ReloadResult::Applied | ReloadResult::Unchanged if args.json => Ok(()),
        ReloadResult::Applied | ReloadResult::Unchanged => print(&shown(&reloaded)),
        ReloadResult::Refused if reloaded.undelivered.is_empty() => Err(Ended::Refused(reloaded.faults)),
        ReloadResult::Refused | ReloadResult::Failed => {
            Err(Ended::Failed(format!("the configuration before it goes on:\n{}", reloaded.faults.join("\n"))))
        }
    }
}

fn shown(reloaded: &Reloaded) -> String {
    let mut text = match reloaded.result {
        ReloadResult::Unchanged => format!("{} is at work already\n", reloaded.file),
        _ => format!("{} is at work, after {:.2} s\n", reloaded.file, reloaded.seconds),
    };
    for (what, parts) in [("output", &reloaded.outputs), ("source", &reloaded.sources)] {
        for line in lines(what, parts) {
            text.push_str(&line);
        }
    }
    for held in &reloaded.discarded {
        text.push_str(&format!("  dropped: {held}\n"));
    }
    for key in &reloaded.needs_restart {
        text.push_str(&format!("  needs a restart: {key}\n"));
    }
    text
}

fn lines(what: &str, parts: &Parts) -> Vec<String> {
    let added = parts.added.iter().map(|name| format!("  added: {what} {name}\n"));
    let changed = parts.changed.iter().map(|one| format!("  changed: {what} {} ({})\n", one.name, one.what.join(", ")));
    let removed = parts.removed.iter().map(|name| format!("  removed: {what} {name}\n"));
    added.chain(changed).chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::{Changed, Undelivered};

    #[test]
    fn an_answer_is_told_line_by_line() {
        let outputs = Parts {
            added: vec!["live".into()],
            changed: vec![Changed { name: "archive".into(), what: vec!["plugin".into(), "workers".into()] }],
            removed: vec!["old".into()],
            unchanged: vec!["other".into()],
        };
        let reloaded = Reloaded {
            result: ReloadResult::Applied,
            file: "wharf.yaml".into(),
            trigger: "api".into(),
            seconds: 0.123,
            faults: vec![],
            undelivered: vec![],
            outputs,
            sources: Parts::default(),
            discarded: vec![Undelivered { output: "old".into(), records: 7, bytes: 900 }],
            needs_restart: vec!["journal".into()],
        };
        let expected = "wharf.yaml is at work, after 0.12 s\n  added: output live\n  changed: output archive (plugin, workers)\n  \
                        removed: output old\n  dropped: output old: 7 records, 900 bytes\n  needs a restart: journal\n";
        assert_eq!(shown(&reloaded), expected);
    }
}
