//! One request and its answer, under the fault that struck it. The same for every service: how a fault looks on the wire is decided
//! here and nowhere else.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::StreamExt as _;
use hyper::body::Frame;
use hyper::http::{HeaderValue, Response, StatusCode, header};
use s3s::{Body, StdError};

use crate::Fault;
use crate::connection::Ending;

/// An answer; an error ends the connection without one.
pub(crate) type Answer = Result<Response<Body>, StdError>;

/// Carries a request out as its fault demands. `perform` does what was asked for, with what is left of the body; `refuse` makes the
/// service's answer of an error code.
pub(crate) async fn carry_out<P, F>(
    fault: Option<Fault>,
    mut body: Body,
    ending: &Ending,
    perform: P,
    refuse: fn(&str) -> Answer,
) -> Answer
where
    P: FnOnce(Body) -> F,
    F: Future<Output = Answer>,
{
    match fault {
        None | Some(Fault::Vanish(_) | Fault::Reject(_)) => perform(body).await,
        Some(Fault::Error(code)) => {
            body.store_all_limited(usize::MAX).await?;
            refuse(code)
        }
        Some(Fault::EarlyError(code)) => {
            let mut response = refuse(code)?;
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            Ok(response)
        }
        Some(Fault::LoseReply) => {
            perform(body).await?;
            Err(hang_up())
        }
        Some(Fault::PartialReply { bytes }) => cut(perform(body).await?, bytes),
        Some(Fault::Reset { after }) => {
            let mut taken = 0;
            while taken < after {
                match body.next().await {
                    Some(Ok(piece)) => taken += piece.len(),
                    _ => break,
                }
            }
            ending.reset();
            Err(hang_up())
        }
        Some(Fault::Stall(time)) => {
            tokio::time::sleep(time).await;
            perform(body).await
        }
        Some(Fault::StallReply(time)) => {
            let response = perform(body).await?;
            tokio::time::sleep(time).await;
            Ok(response)
        }
        Some(Fault::ErrorInside200 { code, performed }) => {
            if performed {
                perform(body).await?;
            } else {
                body.store_all_limited(usize::MAX).await?;
            }
            let mut response = refuse(code)?;
            *response.status_mut() = StatusCode::OK;
            Ok(response)
        }
    }
}

/// Ends the connection without an answer.
fn hang_up() -> StdError {
    "the connection ends here, as a fault demands".into()
}

/// The answer with its right length, of which only the first `bytes` come.
fn cut(response: Response<Body>, bytes: usize) -> Answer {
    let (mut head, body) = response.into_parts();
    let whole = body.bytes().unwrap_or_default();
    // An answer that is whole all the same would be no fault.
    let shown = whole.slice(..bytes.min(whole.len().saturating_sub(1)));
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(whole.len().max(1)));
    Ok(Response::from_parts(head, Body::http_body_unsync(Cut { shown: Some(shown), flushed: false })))
}

struct Cut {
    shown: Option<Bytes>,
    flushed: bool,
}

impl hyper::body::Body for Cut {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        if let Some(shown) = self.shown.take() {
            return Poll::Ready(Some(Ok(Frame::data(shown))));
        }
        if !self.flushed {
            // An error right behind the data would take the data with it: while it waits, hyper sends what it has.
            self.flushed = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Err(hang_up())))
    }
}
