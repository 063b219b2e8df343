//! Many outputs over many tenants: what one that has nothing to do costs. The full size is a benchmark: `cargo xtask bench --scale`.

use std::fmt::Write as _;

use wharf_e2e::{Place, free_port};
use wharf_local_aws::Sink;

const EACH: u32 = 5;

fn configuration(tenants: u32) -> String {
    let port = free_port().unwrap();
    let mut text = format!("sources:\n  keeps-running: {{ type: http, listen: \"127.0.0.1:{port}\" }}\ntenants:\n");
    for tenant in 0..tenants {
        let _ =
            writeln!(text, "  t{tenant}:\n    sources:\n      one: {{ type: generate, count: 1, tag: \"t{tenant}\" }}");
        text.push_str("    outputs:\n");
        for output in 0..EACH {
            let _ = writeln!(
                text,
                "      o{output}: {{ plugin: s3, match: \"t{tenant}\", batch: {{ max_age: 100ms }}, \
                 config: {{ bucket: b{tenant}, key_format: \"/o{output}/$INDEX\" }} }}"
            );
        }
    }
    text
}

/// A number of `/proc/PID/status`.
fn kernel_says(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Resident memory in KiB after each output has delivered a record. Waits until no more threads run than Wharf has whatever its outputs are.
fn resident(tenants: u32) -> u64 {
    let (place, sink) = (Place::new().unwrap(), Sink::start().unwrap());
    place.configure(&sink.endpoint(), &configuration(tenants)).unwrap();
    let mut wharf = place.start().unwrap();
    let process = wharf.id();
    let wanted = f64::from(tenants * EACH);
    wharf.wait_until("each output has delivered", 120, || {
        place.metric_at_least("wharf_delivered_records_total", wanted)
    });
    let resident = kernel_says(process, "VmRSS:");
    // Those for work that blocks end when they had none for ten seconds.
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    wharf.wait_until("threads that are not needed end", 60, || kernel_says(process, "Threads:") <= 30 + 3 * cores);
    wharf.sigterm();
    assert!(wharf.wait_exit(60).success());
    resident
}

#[test]
fn an_output_costs_no_thread_and_less_than_a_mebibyte() {
    let (few, many) = (resident(1), resident(20));
    let more = 19 * u64::from(EACH);
    assert!(many < few + more * 1024, "{few} KiB with {EACH} outputs, {many} with {more} more");
}
