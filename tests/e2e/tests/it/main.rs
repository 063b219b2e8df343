//! The promises, shown from outside: the real binary, real servers, injected faults. One theme a file.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests: a panic is a failed assertion")]

mod crash;
mod damage;
mod dev_aws;
mod forward;
mod full_disk;
mod hardening;
mod http_source;
mod independent_server;
mod local_logs;
mod local_server;
mod logs_cache;
mod logs_crash;
mod logs_delivery;
mod logs_faults;
mod logs_missing;
mod logs_order;
mod logs_records;
mod logs_rejected;
mod logs_support;
mod many_outputs;
mod otlp;
mod plugin_languages;
mod plugin_projects;
mod plugin_trial;
mod power_cut;
mod quarantine;
mod reload;
mod reload_refused;
mod reload_support;
mod restart;
mod senders;
mod service_faults;
mod stop;
mod support;
mod syslog;
mod tail_many;
mod tail_rotation;
mod tenants;
mod trust;
mod tutorial;
mod validate;
