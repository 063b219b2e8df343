//! Handles of host objects: too many, forged, dropped twice, of another kind.

use wharf_plugin::__private::WitBatch;
use wharf_plugin::bindings::wharf::output::records::{Body, Encoder, Encoding, Selection};
use wharf_plugin::bindings::wharf::output::s3;
use wharf_plugin::bindings::wharf::output::types::HostError;

use crate::{Answer, KEPT, delivered, failed};

/// What a worker keeps and never uses.
pub(crate) enum Hoarded {
    #[expect(dead_code, reason = "it is only kept")]
    Body(Body),
    #[expect(dead_code, reason = "it is only kept")]
    Encoder(Encoder),
    Bomb(TrapsWhenDropped),
}

/// Traps where it is dropped.
pub(crate) struct TrapsWhenDropped;

impl Drop for TrapsWhenDropped {
    fn drop(&mut self) {
        crate::trap("a destructor")
    }
}

pub(crate) fn attack(attack: &str, batch: &WitBatch) -> Option<Answer> {
    Some(match attack {
        "hoard_encoders" => hoard(|| encoder(batch).map(Hoarded::Encoder)),
        "hoard_bodies" => hoard(|| Body::from_bytes(b"x").map(Hoarded::Body)),
        "hoard_bytes" => {
            let bytes = vec![0; 4 << 20];
            hoard(|| Body::from_bytes(&bytes).map(Hoarded::Body))
        }
        "double_a_body" => told(double()),
        "hand_over_too_much" => told(Body::from_bytes(&vec![0; (8 << 20) + 1]).map(drop)),
        "hand_over_far_too_much" => told(Body::from_bytes(&vec![0; 20 << 20]).map(drop)),
        "forge_a_handle" => forge(4711),
        "forge_a_handle_of_another_kind" => match encoder(batch) {
            Ok(encoder) => forge(encoder.take_handle()),
            Err(error) => failed(error.to_string()),
        },
        "drop_twice" => match Body::from_bytes(b"x") {
            Ok(body) => {
                // SAFETY: none; the host must see that there is nothing behind the second one.
                drop(unsafe { Body::from_handle(body.handle()) });
                drop(body);
                delivered()
            }
            Err(error) => failed(error.to_string()),
        },
        "drop_the_batch_twice" => {
            // SAFETY: none; it is lent, and given back by whoever it was lent to.
            drop(unsafe { WitBatch::from_handle(batch.handle()) });
            delivered()
        }
        "trap_in_a_destructor" => {
            drop(TrapsWhenDropped);
            delivered()
        }
        "wild_pieces" => {
            let tried = [0, 1, u64::MAX].map(|bytes| encoder(batch).and_then(|encoder| encoder.next(bytes).map(drop)));
            told(tried.into_iter().find(Result::is_ok).unwrap_or(Err(HostError::Invalid("all are refused".into()))))
        }
        "wild_slice" => told(Body::from_bytes(b"x").and_then(|body| body.slice(u64::MAX, u64::MAX).map(drop))),
        "wild_compression" => {
            told(Body::from_bytes(b"x").and_then(|body| body.compress("zstd", Some(i32::MAX)).map(drop)))
        }
        "list_everything" => {
            let lists = [batch.times(0, u32::MAX).len(), batch.sizes(u32::MAX, u32::MAX).len()];
            failed(format!("{lists:?} {:?}", batch.read(u32::MAX, u32::MAX).map(|bytes| bytes.len())))
        }
        "leave_parts_behind" => told(leave_parts()),
        _ => return None,
    })
}

fn encoder(batch: &WitBatch) -> Result<Encoder, HostError> {
    let options = Encoding {
        format: "text".into(),
        date_key: None,
        date_format: "iso8601".into(),
        log_key: None,
        compression: "none".into(),
        level: None,
    };
    batch.encode(&Selection::All, &options)
}

/// A million of them, or until the host says no.
fn hoard(mut one: impl FnMut() -> Result<Hoarded, HostError>) -> Answer {
    for n in 0..1_000_000 {
        match one() {
            Ok(object) => KEPT.with_borrow_mut(|kept| kept.objects.push(object)),
            Err(error) => return failed(format!("after {n}: {error}")),
        }
    }
    delivered()
}

/// Wraps a body around itself until it is larger than the host.
fn double() -> Result<(), HostError> {
    let seed = vec![b'x'; 4 << 20];
    let mut body = Body::from_bytes(&seed)?;
    for _ in 0..64 {
        body = body.wrap(&seed, &seed)?;
    }
    Ok(())
}

fn forge(handle: u32) -> Answer {
    // SAFETY: none; the host must see that there is no body behind it.
    let size = unsafe { Body::from_handle(handle) }.size();
    failed(format!("a body of {size} bytes"))
}

fn leave_parts() -> Result<(), HostError> {
    let body = Body::from_bytes(b"x")?;
    for number in 1..=4 {
        match s3::upload_part("bucket", "logs/x", "upload", number, &body, "crc32c", None) {
            Ok(part) => std::mem::forget(part),
            Err(error) => return Err(HostError::Invalid(error.to_string())),
        }
    }
    Ok(())
}

pub(crate) fn told(tried: Result<(), HostError>) -> Answer {
    match tried {
        Ok(()) => delivered(),
        Err(error) => failed(error.to_string()),
    }
}
