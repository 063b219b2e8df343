//! The promises, shown from outside: the real binary, real servers, injected faults. One theme a file.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests: a panic is a failed assertion")]

mod crash;
mod damage;
mod dev_aws;
mod full_disk;
mod http_source;
mod independent_server;
mod local_logs;
mod local_server;
mod power_cut;
mod restart;
mod service_faults;
mod stop;
mod support;
mod validate;
