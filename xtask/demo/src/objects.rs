//! The objects in S3: their table, and what must hold of them.

use anyhow::Context as _;
use wharf_e2e::Delivered;
use wharf_local_aws::S3;
use wharf_task_kit::show;

use crate::{PREFIX, Played};

/// Shows all objects, then checks them. Gives how many there are.
pub fn show(s3: &S3, played: &Played) -> anyhow::Result<usize> {
    let all = Delivered::of(s3, PREFIX);
    table(&all, played.objects_before_restart);
    all.check_each_once(played.lines()).context("S3: not every line is there once")?;
    all.check_contiguous(0).context("S3: the object numbers are not contiguous")?;
    let overwrites = s3.overwrites();
    anyhow::ensure!(overwrites.is_empty(), "S3: somebody tried to overwrite {overwrites:?}");
    Ok(all.objects.len())
}

fn table(all: &Delivered, before_restart: usize) {
    let width = all.objects.iter().map(|object| object.key.len()).max().unwrap_or(3);
    println!("  {}", show::strong(&format!("{:<width$}  {:>9}  {:>6}  batch", "S3 object", "size", "lines")));
    for (number, object) in all.objects.iter().enumerate() {
        if number == before_restart {
            println!("  {}", show::strong(&format!("{:-^1$}", " stopped, and started again ", width + 53)));
        }
        let batch = object.metadata.get("wharf-batch").map_or("", String::as_str);
        let size = show::bytes(object.size as u64);
        println!("  {:<width$}  {size:>9}  {:>6}  {batch}", object.key, object.lines.len());
    }
}
