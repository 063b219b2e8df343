//! The glue between [`Output`](crate::Output) and the component's exports.

/// Makes a type that implements [`Output`](crate::Output) the component's output. Once a crate.
///
/// The plugin's name and version are those of the cargo package; `export!(MyOutput, name = "my_output")` gives it another name. A name has
/// lower-case letters, digits, `_` and `-`.
#[macro_export]
macro_rules! export {
    ($output:ty) => {
        $crate::export!($output, name = ::core::env!("CARGO_PKG_NAME"));
    };
    ($output:ty, name = $name:expr $(,)?) => {
        const _: () = {
            ::std::thread_local! {
                static WORKER: $crate::__private::Slot<$output> = const { $crate::__private::Slot::new(None) };
            }

            #[allow(dead_code, reason = "natively, in tests, nobody calls it")]
            struct Component;

            impl $crate::__private::Guest for Component {
                fn describe() -> $crate::__private::Descriptor {
                    $crate::__private::describe::<$output>($name, ::core::env!("CARGO_PKG_VERSION"))
                }
                fn configure(
                    config: ::std::string::String,
                    surroundings: $crate::__private::WitContext,
                ) -> ::core::result::Result<$crate::__private::WitPlan, ::std::vec::Vec<$crate::__private::WitFault>>
                {
                    $crate::__private::configure(&WORKER, &config, surroundings)
                }
                fn deliver(
                    batch: &$crate::__private::WitBatch,
                ) -> ::core::result::Result<$crate::__private::WitReport, $crate::__private::WitFailure> {
                    $crate::__private::deliver(&WORKER, batch)
                }
                fn abandon(batch: &$crate::__private::WitBatch) {
                    $crate::__private::abandon(&WORKER, batch);
                }
                fn close() {
                    $crate::__private::close(&WORKER);
                }
            }

            // A section of its own, which `wharf plugin inspect` shows.
            #[cfg(target_family = "wasm")]
            #[used]
            #[unsafe(link_section = "wharf-sdk")]
            static SDK: [u8; $crate::__private::SDK_VERSION.len()] = *$crate::__private::SDK_VERSION;

            // Native linkers do not take the names of a component's exports, and native tests do not need them.
            #[cfg(target_family = "wasm")]
            $crate::__private::bindings::export! { Component with_types_in $crate::__private::bindings }
        };
    };
}

/// What [`export!`](crate::export) expands to. No part of the interface.
#[doc(hidden)]
#[allow(missing_docs, reason = "not for people")]
pub mod __private {
    use std::cell::RefCell;
    use std::thread::LocalKey;

    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use crate::source::Source;
    use crate::{Batch, ConfigFault, Context, Failure, Output, PartitionKey, Plan, Report, schema};

    pub use crate::bindings;

    /// This crate's version, to be an array in a section of the component.
    pub const SDK_VERSION: &[u8; env!("CARGO_PKG_VERSION").len()] =
        match env!("CARGO_PKG_VERSION").as_bytes().first_chunk() {
            Some(version) => version,
            None => panic!("a text is as long as it is"),
        };
    pub use crate::bindings::exports::wharf::output::output::{
        ConfigFault as WitFault, Context as WitContext, Descriptor, Guest, Plan as WitPlan, Report as WitReport,
    };
    use crate::bindings::exports::wharf::output::output::{
        PartitionKey as WitPartitionKey, Rejection as WitRejection, S3Scope,
    };
    pub use crate::bindings::wharf::output::records::Batch as WitBatch;
    pub use crate::bindings::wharf::output::types::Failure as WitFailure;

    /// The worker, once it is configured.
    pub type Slot<T> = RefCell<Option<T>>;

    pub fn describe<T: Output>(name: &str, version: &str) -> Descriptor {
        Descriptor { name: name.into(), version: version.into(), config_schema: schema::of_output::<T>().to_string() }
    }

    pub fn configure<T: Output>(
        slot: &'static LocalKey<Slot<T>>,
        config: &str,
        surroundings: WitContext,
    ) -> Result<WitPlan, Vec<WitFault>> {
        install_panic_log();
        let WitContext { output, hostname, worker } = surroundings;
        let context = Context { output, hostname, worker };
        let (output, plan) = read::<T>(config)
            .map_err(Into::into)
            .and_then(|config| T::configure(config, &context))
            .map_err(|faults| faults.into_iter().map(Into::into).collect::<Vec<_>>())?;
        slot.set(Some(output));
        Ok(plan.into())
    }

    /// A configuration's text, with other names put right.
    pub fn read<T: Output>(config: &str) -> Result<T::Config, Vec<ConfigFault>> {
        let mut value: Value = serde_json::from_str(config).map_err(|error| vec![whole(&error.to_string())])?;
        schema::resolve_aliases(&mut value, T::ALIASES)?;
        serde_json::from_value(value.clone()).map_err(|error| unreadable::<T::Config>(value, error.to_string()))
    }

    fn whole(error: &str) -> ConfigFault {
        ConfigFault { path: String::new(), message: format!("the configuration cannot be read: {error}") }
    }

    /// Which options cannot be read. What reads them says only what is wrong, and only the first time: so each option is tried for being the
    /// one without which another complaint comes, or none.
    fn unreadable<C: DeserializeOwned>(mut config: Value, mut error: String) -> Vec<ConfigFault> {
        let complaint = |config: Value| serde_json::from_value::<C>(config).err().map(|error| error.to_string());
        let without = |config: &Value, option: &str| {
            let mut config = config.clone();
            config.as_object_mut().map(|map| map.remove(option));
            config
        };
        let mut faults = Vec::new();
        loop {
            let options: Vec<String> = config.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            let culprit =
                options.into_iter().find(|option| complaint(without(&config, option)).as_ref() != Some(&error));
            let Some(option) = culprit else { break };
            faults.push(ConfigFault::of(&option, format!("it cannot be read: {error}")));
            config = without(&config, &option);
            match complaint(config.clone()) {
                Some(next) => error = next,
                None => break,
            }
        }
        if faults.is_empty() { vec![whole(&error)] } else { faults }
    }

    pub fn deliver<T: Output>(slot: &'static LocalKey<Slot<T>>, batch: &WitBatch) -> Result<WitReport, WitFailure> {
        slot.with_borrow_mut(|worker| match worker {
            Some(worker) => worker.deliver(&Batch::new(Source::Host(batch))).map(Into::into).map_err(Into::into),
            None => Err(Failure::transient("deliver was called before configure").into()),
        })
    }

    pub fn abandon<T: Output>(slot: &'static LocalKey<Slot<T>>, batch: &WitBatch) {
        slot.with_borrow_mut(|worker| {
            if let Some(worker) = worker {
                worker.abandon(&Batch::new(Source::Host(batch)));
            }
        });
    }

    pub fn close<T: Output>(slot: &'static LocalKey<Slot<T>>) {
        if let Some(mut worker) = slot.take() {
            worker.close();
        }
    }

    /// Where there is no standard error, a panic's text would be lost: it goes to the host's log before the trap.
    fn install_panic_log() {
        std::panic::set_hook(Box::new(|panic| {
            crate::log::write(crate::log::Level::Error, &panic.to_string(), &[]);
        }));
    }

    impl From<ConfigFault> for WitFault {
        fn from(ConfigFault { path, message }: ConfigFault) -> Self {
            Self { path, message }
        }
    }

    impl From<Plan> for WitPlan {
        fn from(plan: Plan) -> Self {
            Self {
                partition_by: plan.partition_by.into_iter().map(Into::into).collect(),
                in_order: plan.in_order,
                record_overhead: plan.record_overhead,
                max_bytes: plan.max_bytes,
                max_records: plan.max_records,
                max_age_ms: plan.max_age_ms,
                s3: plan
                    .s3
                    .into_iter()
                    .map(|scope| S3Scope { bucket: scope.bucket, key_prefix: scope.key_prefix })
                    .collect(),
                log_groups: plan.log_groups,
                http: plan.http,
                credentials: plan.credentials,
            }
        }
    }

    impl From<PartitionKey> for WitPartitionKey {
        fn from(key: PartitionKey) -> Self {
            match key {
                PartitionKey::Tag => Self::Tag,
                PartitionKey::Field(path) => Self::Field(path),
            }
        }
    }

    impl From<Report> for WitReport {
        fn from(report: Report) -> Self {
            let rejection = |(reason, records)| WitRejection { records, reason };
            Self { rejected: report.into_reasons().into_iter().map(rejection).collect() }
        }
    }

    #[cfg(test)]
    mod tests {
        use serde_json::json;

        use super::*;

        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code, reason = "it is only read into")]
        struct Config {
            bucket: String,
            level: Option<i32>,
            start: Option<u64>,
        }

        #[test]
        fn each_option_that_cannot_be_read_is_named() {
            let paths = |config: Value| {
                let error = serde_json::from_value::<Config>(config.clone()).unwrap_err().to_string();
                unreadable::<Config>(config, error).into_iter().map(|fault| fault.path).collect::<Vec<_>>()
            };
            assert_eq!(paths(json!({ "bucket": "b", "level": 99_999_999_999_u64 })), ["/level"]);
            assert_eq!(paths(json!({ "bucket": "b", "level": "x", "start": -1 })), ["/level", "/start"]);
            assert_eq!(paths(json!({ "bucket": 5, "start": 1 })), ["/bucket"], "that it is missing then is no news");
            assert_eq!(paths(json!({ "start": 1 })), [""]);
        }
    }
}
