//! Limits of plugins: for all, for a tenant, for an output.

use super::*;
use crate::config::{Limit, OnQuarantine};

const TENANT: &str = r#"
plugins:
  limits: { max_memory: 32MiB, handles: 2000, deliver_timeout: 2m }
sources:
  app: { type: stdin }
outputs:
  archive: { plugin: s3, match: "*", limits: { max_memory: 256MiB }, on_quarantine: dead_letter }
tenants:
  acme:
    plugin_limits: { max_memory: 128MiB, tenant_memory: 512MiB, http_requests: 20 }
    outputs:
      live: { plugin: s3, match: "*", limits: { max_memory: 16MiB, cpu_per_call: 2s } }
      slow: { plugin: s3, match: "*" }
"#;

#[test]
fn an_output_has_what_is_said_nearest_to_it_and_each_limit_is_named_where_that_is() {
    let config = parse(TENANT).unwrap();
    let told = |output: usize, limit: Limit| {
        let output = &config.outputs[output];
        (output.limits.of(limit), output.limits.place(limit, &output.name))
    };
    for (output, limit, amount, place) in [
        (0, Limit::Memory, 256 << 20, "outputs.archive.limits.max_memory"),
        (0, Limit::DeliverTimeout, 120_000, "plugins.limits.deliver_timeout"),
        (1, Limit::Memory, 16 << 20, "tenants.acme.outputs.live.limits.max_memory"),
        (1, Limit::CpuPerCall, 2_000, "tenants.acme.outputs.live.limits.cpu_per_call"),
        (1, Limit::TenantMemory, 512 << 20, "tenants.acme.plugin_limits.tenant_memory"),
        (2, Limit::Memory, 128 << 20, "tenants.acme.plugin_limits.max_memory"),
        (2, Limit::HttpRequests, 20, "tenants.acme.plugin_limits.http_requests"),
        (2, Limit::Handles, 2000, "plugins.limits.handles"),
        (2, Limit::Storage, 16 << 20, "plugins.limits.storage"),
    ] {
        assert_eq!(told(output, limit), (amount, place.to_owned()));
    }
    assert_eq!(config.plugins.limits.of(Limit::Memory), 32 << 20);
    assert_eq!(config.outputs[0].on_quarantine, OnQuarantine::DeadLetter);
    assert_eq!(config.outputs[1].on_quarantine, OnQuarantine::Hold);
    // The pool has room for the largest.
    assert_eq!(crate::plugin::HostOptions::of(&config, None, 1).most_memory, 256 << 20);
}

#[test]
fn a_tenants_output_may_only_lower_what_its_tenant_has() {
    assert_eq!(
        faults(&TENANT.replace("max_memory: 16MiB", "max_memory: 129MiB")),
        "wharf.yaml:12:61: tenants.acme.outputs.live.limits.max_memory: is more than its tenant has, which is 128 MiB\n    \
         help: lower it, or raise tenants.acme.plugin_limits.max_memory"
    );
}

#[test]
fn a_limit_that_is_not_an_outputs_is_answered_with_its_place() {
    assert_eq!(
        faults(&output("limits: { total_memory: 1GiB }")),
        "wharf.yaml:7:15: outputs.archive.limits: unknown key \"total_memory\"; it is one for all, under plugins.limits"
    );
    assert_eq!(
        faults(&output("limits: { memory: 1GiB }\nmax_memory: 1GiB")),
        "wharf.yaml:7:15: outputs.archive.limits: unknown key \"memory\"; did you mean \"max_memory\"?\n\
         wharf.yaml:8:5: outputs.archive: unknown key \"max_memory\"; it belongs under \"limits\""
    );
}

#[test]
fn a_limit_that_is_said_twice_is_a_fault() {
    assert_eq!(
        faults(&top("plugins: { max_memory: 8MiB, limits: { max_memory: 8MiB } }")),
        "wharf.yaml:5:24: plugins.max_memory: is said twice, here and under \"limits\"\n    help: leave this one out"
    );
}
