//! Requests of Protocol Buffers.
//!
//! Down to the records, messages are gone through without decoding them, so that a record which is none (text that is no UTF-8, nested too deep)
//! costs only itself; what a resource and a scope say, the schema last, is read before their records. Unknown fields are skipped.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::denied::Denied;
use super::gather::{Gather, LARGEST_RECORD};

/// Numbers of fields (opentelemetry/proto/logs/v1/logs.proto). In `ExportLogsServiceRequest`:
const RESOURCE_LOGS: u32 = 1;
/// In `ResourceLogs` and `ScopeLogs` alike: the resource or scope, what is of it, and its schema.
const WHOSE: u32 = 1;
const INSIDE: u32 = 2;
const SCHEMA_URL: u32 = 3;

/// Reads an `ExportLogsServiceRequest`.
pub(crate) fn read(request: &[u8], gather: &mut Gather<'_>) -> Result<(), Denied> {
    each(request, |number, bytes| if number == RESOURCE_LOGS { resource_logs(bytes, gather) } else { Ok(()) })
}

fn resource_logs(message: &[u8], gather: &mut Gather<'_>) -> Result<(), Denied> {
    let (resource, schema_url) = whose::<Resource>(message, "a resource")?;
    gather.resource(resource, schema_url)?;
    each(message, |number, bytes| if number == INSIDE { scope_logs(bytes, gather) } else { Ok(()) })
}

fn scope_logs(message: &[u8], gather: &mut Gather<'_>) -> Result<(), Denied> {
    let (scope, schema_url) = whose::<InstrumentationScope>(message, "a scope")?;
    gather.scope(scope.as_ref(), &schema_url)?;
    each(message, |number, bytes| {
        if number != INSIDE {
            return Ok(());
        }
        gather.record(if bytes.len() > LARGEST_RECORD {
            Err(format!("it has {} bytes; the most is {LARGEST_RECORD}", bytes.len()))
        } else {
            LogRecord::decode(bytes).map_err(|e| e.to_string())
        })
    })
}

/// The first field of a message, and its third.
fn whose<M: Message + Default>(message: &[u8], what: &str) -> Result<(Option<M>, String), Denied> {
    let (mut found, mut schema_url) = (None::<M>, String::new());
    each(message, |number, bytes| {
        match number {
            WHOSE if bytes.len() > LARGEST_RECORD => {
                return Err(Denied::Malformed(format!("{what} has more than {LARGEST_RECORD} bytes")));
            }
            // A field that comes twice is merged, as Protocol Buffers have it.
            WHOSE => {
                let merged = found.get_or_insert_with(M::default).merge(bytes);
                merged.map_err(|e| Denied::Malformed(format!("{what}: {e}")))?;
            }
            SCHEMA_URL => schema_url = String::from_utf8_lossy(bytes).into_owned(),
            _ => {}
        }
        Ok(())
    })?;
    Ok((found, schema_url))
}

/// The fields with bytes of a message, in their order.
fn each(message: &[u8], mut field: impl FnMut(u32, &[u8]) -> Result<(), Denied>) -> Result<(), Denied> {
    let malformed = |e: prost::DecodeError| Denied::Malformed(e.to_string());
    let mut rest = message;
    while !rest.is_empty() {
        let (number, kind) = decode_key(&mut rest).map_err(malformed)?;
        if kind != WireType::LengthDelimited {
            skip_field(kind, number, &mut rest, DecodeContext::default()).map_err(malformed)?;
            continue;
        }
        let length = decode_varint(&mut rest).map_err(malformed)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
        let Some((bytes, behind)) = length.and_then(|length| rest.split_at_checked(length)) else {
            return Err(Denied::Malformed("it ends inside a field".to_owned()));
        };
        rest = behind;
        field(number, bytes)?;
    }
    Ok(())
}
