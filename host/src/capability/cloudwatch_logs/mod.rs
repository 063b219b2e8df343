//! `cloudwatch-logs`: Amazon CloudWatch Logs and what speaks like it.
//!
//! Every call is first checked against the output's grant: names of log groups, or their beginnings. A guest decides which events go together,
//! in which order, and what is cut; their messages stay here, and are written from the journal into the request in one pass. Each call
//! is one attempt; what came back is told as it is, and the guest decides what it means.
//!
//! `events` is what a guest knows of its events; `put` checks and writes one request, whose form `body` knows; `grant` is what it may touch.

mod body;
mod events;
pub(crate) mod grant;
mod put;
mod recent;
#[cfg(test)]
mod tests;

use aws_smithy_runtime_api::http::HttpError;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use wasmtime::component::Resource;

use super::aws::{Answer, sort};
use super::batch::Batch;
use super::bindings::cloudwatch_logs::{self, Accepted, Error, Put};
use super::bindings::records::Selection;
use super::bindings::types::HostError;
use super::records::too_many_listed;
use super::{Caller, LimitReached, blocking, encoding};
use crate::record::encode;

pub use self::body::PutBody;
pub use self::events::Events;

/// What asks the service to take metrics out of messages:
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>.
const FORMAT_HEADER: &str = "x-amzn-logs-format";

impl cloudwatch_logs::Host for Caller {
    async fn prepare(
        &mut self,
        of: Resource<Batch>,
        select: Selection,
        log_key: Option<String>,
    ) -> wasmtime::Result<Result<Resource<Events>, HostError>> {
        let batch = self.table.get(&of)?.clone();
        let prepared = encoding::selection(select, batch.count()).and_then(|selection| {
            let charge = match &selection {
                encode::Selection::Indexes(numbers) => Some(self.reserve(4 * numbers.len() as u64)?),
                _ => None,
            };
            Ok(Events::new(batch, selection, log_key.as_deref(), charge))
        });
        Ok(prepared.and_then(|events| self.hand_out(events)))
    }

    async fn put_log_events(&mut self, of: Resource<Events>, what: Put) -> Answer<Accepted> {
        let events = self.table.get(&of)?.clone();
        if let Err(refused) = self.may_touch_group(&what.log_group).and_then(|()| put::check(&events, &what)) {
            return Ok(Err(Error::Host(refused)));
        }
        let (what, body) = blocking(move || {
            let body = put::body(&events, &what);
            (what, body)
        })
        .await?;
        let body = match body {
            Ok(body) => Bytes::from(body),
            Err(refused) => return Ok(Err(Error::Host(refused))),
        };
        self.ask(move |connection| async move {
            let request = connection.logs().await.put_log_events();
            let request = request.log_group_name(what.log_group).log_stream_name(what.log_stream);
            // The SDK writes a request without events, and this puts the real content in its place before it is signed.
            let request = request.customize().map_request(move |mut request| {
                *request.body_mut() = SdkBody::from(body.clone());
                request.headers_mut().try_insert("content-length", body.len().to_string())?;
                if let Some(format) = &what.log_format {
                    request.headers_mut().try_insert(FORMAT_HEADER, format.clone())?;
                }
                Ok::<_, HttpError>(request)
            });
            let taken = request.send().await.map_err(sort)?;
            let rejected = taken.rejected_log_events_info.as_ref();
            let place = |index: Option<i32>| index.and_then(|index| u32::try_from(index).ok());
            Ok(Accepted {
                too_new_start: place(rejected.and_then(|rejected| rejected.too_new_log_event_start_index)),
                too_old_end: place(rejected.and_then(|rejected| rejected.too_old_log_event_end_index)),
                expired_end: place(rejected.and_then(|rejected| rejected.expired_log_event_end_index)),
                rejected_entity: taken.rejected_entity_info.map(|entity| entity.error_type.as_str().to_owned()),
            })
        })
        .await
    }

    async fn create_log_group(
        &mut self,
        name: String,
        class: Option<String>,
        tags: Vec<(String, String)>,
        kms_key_id: Option<String>,
    ) -> Answer<()> {
        if let Err(refused) = self.may_touch_group(&name) {
            return Ok(Err(Error::Host(refused)));
        }
        self.ask(|connection| async move {
            let request = connection.logs().await.create_log_group();
            let tags = (!tags.is_empty()).then(|| tags.into_iter().collect());
            let request = request.log_group_name(name).set_log_group_class(class.as_deref().map(Into::into));
            request.set_tags(tags).set_kms_key_id(kms_key_id).send().await.map_err(sort)?;
            Ok(())
        })
        .await
    }

    async fn create_log_stream(&mut self, log_group: String, name: String) -> Answer<()> {
        let checked = self.may_touch_group(&log_group).and_then(|()| grant::check_stream_name(&name));
        if let Err(refused) = checked {
            return Ok(Err(Error::Host(refused)));
        }
        self.ask(|connection| async move {
            let request = connection.logs().await.create_log_stream();
            request.log_group_name(log_group).log_stream_name(name).send().await.map_err(sort)?;
            Ok(())
        })
        .await
    }

    async fn put_retention_policy(&mut self, log_group: String, days: u32) -> Answer<()> {
        let checked = self.may_touch_group(&log_group).and_then(|()| {
            i32::try_from(days)
                .map_err(|_| HostError::Invalid(format!("{days} days are more than the service can keep")))
        });
        let days = match checked {
            Ok(days) => days,
            Err(refused) => return Ok(Err(Error::Host(refused))),
        };
        self.ask(move |connection| async move {
            let request = connection.logs().await.put_retention_policy();
            request.log_group_name(log_group).retention_in_days(days).send().await.map_err(sort)?;
            Ok(())
        })
        .await
    }
}

impl cloudwatch_logs::HostEvents for Caller {
    async fn count(&mut self, events: Resource<Events>) -> wasmtime::Result<u32> {
        Ok(self.table.get(&events)?.count())
    }

    async fn times(&mut self, events: Resource<Events>, first: u32, count: u32) -> wasmtime::Result<Vec<i64>> {
        let events = self.table.get(&events)?.clone();
        if let Some(too_many) = too_many_listed(first, count, events.count()) {
            return Err(LimitReached(too_many).into());
        }
        Ok(blocking(move || events.times(first, count)).await??)
    }

    async fn sizes(
        &mut self,
        events: Resource<Events>,
        first: u32,
        count: u32,
    ) -> wasmtime::Result<Result<Vec<u32>, HostError>> {
        let events = self.table.get(&events)?.clone();
        if let Some(too_many) = too_many_listed(first, count, events.count()) {
            return Ok(Err(too_many.refusal()));
        }
        let sizes = blocking(move || events.sizes(first, count)).await?;
        Ok(sizes.map_err(|error| super::records::unreadable(&error)))
    }

    async fn read(
        &mut self,
        events: Resource<Events>,
        event: u32,
        offset: u32,
        length: u32,
    ) -> wasmtime::Result<Result<Vec<u8>, HostError>> {
        let events = self.table.get(&events)?.clone();
        blocking(move || events.read(event, offset, length)).await
    }

    async fn drop(&mut self, events: Resource<Events>) -> wasmtime::Result<()> {
        self.table.delete(events)?;
        Ok(())
    }
}

impl Caller {
    fn may_touch_group(&mut self, name: &str) -> Result<(), HostError> {
        let checked = self.work().map(drop).and_then(|()| self.services.may_touch_log_group(name));
        self.note_refused("cloudwatch_logs", &checked);
        checked
    }
}
