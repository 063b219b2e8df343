//! The table, the checks, and plain words.

use anyhow::Context as _;
use wharf_e2e::Delivered;
use wharf_local_aws::S3;

use wharf_task_kit::show;

use crate::stage::Stage;
use crate::{BUCKET, PREFIX, Played, shown};

pub fn show(stage: &Stage, s3: &S3, played: &Played) -> anyhow::Result<()> {
    let all = Delivered::of(s3, PREFIX);
    table(&all, played.objects_before_restart);
    let names = played.writers.iter().flat_map(wharf_e2e::LogWriter::names);
    let written: u64 = played.writers.iter().map(wharf_e2e::LogWriter::written).sum();
    all.check_each_once(names).context("not every line is there once")?;
    all.check_contiguous(0).context("the object numbers are not contiguous")?;
    let overwrites = s3.overwrites();
    anyhow::ensure!(overwrites.is_empty(), "somebody tried to overwrite {overwrites:?}");
    println!(
        "\n{} all {written} lines are there, each once; numbers 0 to {} without a gap; nothing was overwritten.\n",
        show::good("Checked:"),
        all.objects.len().saturating_sub(1),
    );
    println!(
        "What happened: a program wrote three log files, and rotated one of them. Wharf followed them, made every line durable in\n\
         its data directory, and delivered batches through its S3 component, each under the next number. Half way it got SIGTERM,\n\
         delivered what was open, and ended; {} more lines were written while it was down. Started again on the same data\n\
         directory, it went on where it had stopped, with number {}.\n",
        played.lines_while_down, played.objects_before_restart,
    );
    let binary = shown(stage.binary());
    let config = shown(&stage.config());
    println!("Where things are:");
    println!("  objects         {}", shown(&stage.objects().join(BUCKET).join("logs/demo")));
    println!("  data directory  {}", shown(&stage.data()));
    println!("  the log files   {}", shown(&stage.logs()));
    println!("  configuration   {config}");
    println!("  Wharf's log     {}", shown(&stage.wharf_log()));
    println!("\nWhat to try next:");
    println!("  head -3 {}/segment_0", shown(&stage.objects().join(BUCKET).join("logs/demo")));
    println!("  {binary} validate -c {config}");
    println!("  {binary} --help");
    println!("  Put your own files under `paths`, your bucket under `bucket`, take out `endpoint`, and run");
    println!("  {binary} run -c {config}");
    println!("  cargo xtask test    kills it at random moments, cuts the power, and looks for a lost line");
    Ok(())
}

fn table(all: &Delivered, before_restart: usize) {
    let width = all.objects.iter().map(|object| object.key.len()).max().unwrap_or(3);
    println!("  {}", show::strong(&format!("{:<width$}  {:>9}  {:>6}  batch", "key", "size", "lines")));
    for (number, object) in all.objects.iter().enumerate() {
        if number == before_restart {
            println!("  {}", show::strong(&format!("{:-^1$}", " stopped, and started again ", width + 60)));
        }
        let batch = object.metadata.get("wharf-batch").map_or("", String::as_str);
        let size = show::bytes(object.size as u64);
        println!("  {:<width$}  {size:>9}  {:>6}  {batch}", object.key, object.lines.len());
    }
}
