//! Both tables, and plain words.

use wharf_local_aws::Aws;
use wharf_task_kit::show;

use crate::stage::Stage;
use crate::{BUCKET, GROUP, Played, events, objects, shown};

/// Shows what was delivered and what happened.
///
/// # Errors
/// Where a line is missing or doubled, or something else that is promised does not hold.
pub fn show(stage: &Stage, aws: &Aws, played: &Played) -> anyhow::Result<()> {
    events::write_down(aws.logs(), &stage.events())?;
    let numbers = objects::show(aws.s3(), played)?;
    println!();
    let streams = events::show(aws.logs(), played)?;
    println!(
        "\n{} all {} lines are in S3, each once, in objects 0 to {} without a gap, and nothing was overwritten.\n\
         {:9}All of them are in CloudWatch Logs too, each once, in {streams} log streams, in their order.\n",
        show::good("Checked:"),
        played.lines().count(),
        numbers.saturating_sub(1),
        "",
    );
    what_happened(played);
    where_things_are(stage);
    what_to_try(stage);
    Ok(())
}

fn what_happened(played: &Played) {
    println!(
        "What happened: a program wrote three log files, and rotated one of them. Wharf followed them, and made every line durable in\n\
         its data directory, once for both outputs. Its S3 component delivered batches, each under the next number. Its CloudWatch\n\
         Logs component made the log group and a stream for each tag, and sent the lines as events. Half way Wharf got SIGTERM,\n\
         delivered what was open, and ended; {} more lines were written while it was down. Started again on the same data\n\
         directory, it went on where it had stopped: in S3 with number {}, in CloudWatch Logs behind the last event.\n\
         (A call takes 10,000 events or 1 MiB. These are far from full, since no line waits longer than a second here.)\n",
        played.lines_while_down, played.objects_before_restart,
    );
}

fn where_things_are(stage: &Stage) {
    println!("Where things are:");
    println!("  objects         {}", shown(&stage.objects().join(BUCKET).join("logs/demo")));
    println!("  events          {}: a file for each log stream of {GROUP}, time and message", shown(&stage.events()));
    println!("  data directory  {}", shown(&stage.data()));
    println!("  the log files   {}", shown(&stage.logs()));
    println!("  configuration   {}", shown(&stage.config()));
    println!("  Wharf's log     {}", shown(&stage.wharf_log()));
}

fn what_to_try(stage: &Stage) {
    let binary = shown(stage.binary());
    let config = shown(&stage.config());
    println!("\nWhat to try next:");
    println!("  head -3 {}/segment_0", shown(&stage.objects().join(BUCKET).join("logs/demo")));
    println!("  {binary} validate -c {config}");
    println!("  {binary} dev-aws --bucket {BUCKET}");
    println!(
        "      is both services, until you stop it. Put its address under `endpoint`, export what it prints, and elsewhere"
    );
    println!("  {binary} run -c {config}");
    println!("  echo hello >>{}/web.log; curl http://127.0.0.1:4566/_wharf", shown(&stage.logs()));
    println!("  For AWS itself put your own files, bucket and log group there, take `endpoint` out, and run the same.");
    println!("  cargo xtask test    kills it at random moments, cuts the power, and looks for a lost line");
}
