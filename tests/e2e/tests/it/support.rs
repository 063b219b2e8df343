//! What several themes share.

use std::net::{Ipv4Addr, SocketAddr};

use wharf_e2e::{Delivered, LogWriter, Place, Wharf, free_port};
use wharf_local_aws::{Options, S3};

/// Where the tests' objects lie.
pub const PREFIX: &str = "logs/demo/segment_";

/// A local S3 with the bucket `logs`, that refuses to overwrite.
pub fn s3() -> S3 {
    S3::start(Options::default()).unwrap()
}

/// One output `archive` into [`PREFIX`] with `$INDEX`, small batches, quick retries. `more` is further lines of the output, `config` of the
/// plugin's configuration.
pub fn archive(workers: u32, batch: &str, config: &[&str]) -> String {
    let mut text = format!(
        "outputs:\n  archive:\n    plugin: s3\n    match: \"*\"\n    workers: {workers}\n    batch: {{ {batch} }}\n    \
         retry: {{ initial: 100ms, max: 1s }}\n    config:\n      bucket: logs\n      key_format: /{PREFIX}$INDEX\n"
    );
    for line in config {
        text.push_str("      ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// A place that tails `app*` into an `archive` on `s3`.
pub fn tail_place(s3: &S3, workers: u32, batch: &str) -> Place {
    let place = Place::new().unwrap();
    place.configure(&s3.endpoint(), &format!("{}{}", place.tail("app"), archive(workers, batch, &[]))).unwrap();
    place
}

/// Writes lines in so many steps, each of them durable before the next: a step is a chunk at least, and a batch is made of whole chunks.
pub fn write_in_steps(writer: &mut LogWriter, steps: u64, lines: u64, wharf: &mut Wharf, place: &Place) {
    for _ in 0..steps {
        writer.write(lines).unwrap();
        let wanted = writer.written() as f64;
        wharf.wait_until("a step is durable", 30, || place.metric_at_least("wharf_durable_records_total", wanted));
    }
}

/// What was delivered below [`PREFIX`].
pub fn delivered(s3: &S3) -> Delivered {
    Delivered::of(s3, PREFIX)
}

/// Nothing was overwritten, nor was it tried.
pub fn assert_no_overwrites(s3: &S3) {
    assert!(s3.overwrites().is_empty(), "somebody tried to overwrite {:?}", s3.overwrites());
}

/// Makes `place` take records by HTTP into an `archive` on `s3`. Gives the address too.
pub fn http_place(s3: &S3, place: Place, batch: &str) -> (Place, SocketAddr) {
    let port = free_port().unwrap();
    let source = format!("sources:\n  http:\n    type: http\n    listen: \"127.0.0.1:{port}\"\n");
    place.configure(&s3.endpoint(), &format!("{source}{}", archive(2, batch, &[]))).unwrap();
    (place, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}
