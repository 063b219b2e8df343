//! Where requests come in: read, recorded, struck by faults, checked, handed to the operation.

use futures_util::StreamExt as _;
use hyper::Method;
use hyper::http::header;
use hyper::http::request::Parts;
use s3s::{Body, StdError};
use serde::Deserialize;

use super::clock::Clock;
use super::failure::{CONTENT_TYPE, Failure, Outcome, nothing, refuse, reply};
use super::input::Input;
use super::put::Undocumented;
use super::rate::Rates;
use super::requests::{Request, Requests};
use super::server::{Options, Signatures};
use super::store::Store;
use crate::connection::Ending;
use crate::exchange::{Answer, carry_out};
use crate::signature::{is_signed, verify};
use crate::{ACCOUNT_ID, Fault, Faults, Operation, Vanish};

/// The CloudWatch Logs behind a port.
pub(crate) struct LogsEndpoint {
    pub(crate) store: Store,
    pub(crate) requests: Requests,
    pub(crate) faults: Faults,
    pub(crate) rates: Rates,
    pub(crate) clock: Clock,
    pub(crate) undocumented: Undocumented,
    pub(crate) discard: bool,
    pub(crate) max_groups: usize,
    signatures: Signatures,
    region: String,
}

/// Reads a body into one piece, which is as long as it says, within reason.
async fn read_whole(head: &Parts, mut body: Body) -> Result<Vec<u8>, StdError> {
    let length = head.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let mut whole = Vec::with_capacity(length.unwrap_or_default().min(4 << 20));
    while let Some(piece) = body.next().await {
        whole.extend_from_slice(&piece?);
    }
    Ok(whole)
}

impl LogsEndpoint {
    pub(crate) fn new(options: Options) -> anyhow::Result<Self> {
        let endpoint = Self {
            store: Store::default(),
            requests: Requests::default(),
            faults: Faults::new(options.seed),
            rates: Rates::documented(),
            clock: options.clock,
            undocumented: options.undocumented,
            discard: options.discard,
            max_groups: options.max_groups,
            signatures: options.signatures,
            region: options.region,
        };
        for group in &options.groups {
            let made = endpoint.place_group(group);
            made.map_err(|failure| anyhow::anyhow!("the log group {group} cannot be made: {}", failure.message))?;
        }
        Ok(endpoint)
    }
    /// A log group's ARN, without `:*`.
    pub(crate) fn arn(&self, group: &str) -> String {
        format!("arn:aws:logs:{}:{ACCOUNT_ID}:log-group:{group}", self.region)
    }
    pub(crate) async fn answer(&self, request: hyper::Request<Body>, ending: &Ending) -> Answer {
        let (head, body) = request.into_parts();
        let target = head.headers.get("x-amz-target").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let operation = Operation::of_target(target);
        if let Some(fault) = self.faults.strike_unread(operation) {
            let number = self.note(operation, ("", ""), (0, 0), Some(fault.clone()));
            let response = carry_out(Some(fault), body, ending, async |_| nothing(), refuse).await?;
            self.close(number, &response);
            return Ok(response);
        }
        let bytes = read_whole(&head, body).await?;
        let input = Input::read(operation, target, &bytes);
        let names = input.as_ref().map_or(("", ""), Input::names);
        let fault = self.faults.strike_read(operation, &format!("{}:{}", names.0, names.1));
        let volume = input.as_ref().map_or((0, 0), Input::volume);
        let number = self.note(operation, names, volume, fault.clone());
        if let Some(Fault::Vanish(what)) = &fault {
            self.vanish(*what, names);
        }
        let perform = async |_| self.perform(&head, &bytes, operation, &input, fault.as_ref());
        let response = carry_out(fault.clone(), Body::empty(), ending, perform, refuse).await?;
        self.close(number, &response);
        Ok(response)
    }

    fn perform(
        &self,
        head: &Parts,
        body: &[u8],
        operation: Operation,
        input: &Outcome<Input<'_>>,
        fault: Option<&Fault>,
    ) -> Answer {
        let admitted = self.admit(head, body, operation);
        match admitted.and_then(|()| input.as_ref().map_err(Failure::clone)) {
            Ok(input) => self.operate(head, input, fault),
            Err(failure) => failure.answer(),
        }
    }
    /// What every operation demands.
    fn admit(&self, head: &Parts, body: &[u8], operation: Operation) -> Outcome<()> {
        let kind = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if head.method != Method::POST || head.uri.path() != "/" || kind != CONTENT_TYPE {
            return Err(Failure::new("UnknownOperationException", format!("requests are POST / of {CONTENT_TYPE}")));
        }
        match self.signatures {
            Signatures::Checked => verify(head, body, "logs", Some(&self.region))?,
            Signatures::AnyKey => is_signed(head)?,
            Signatures::Ignored => {}
        }
        if !self.rates.allow(operation) {
            return Err(Failure::new("ThrottlingException", "Rate exceeded"));
        }
        Ok(())
    }
    fn operate(&self, head: &Parts, input: &Input<'_>, fault: Option<&Fault>) -> Answer {
        fn content(outcome: Outcome<impl serde::Serialize>) -> Answer {
            outcome.map_or_else(|failure| failure.answer(), |content| reply(&content))
        }
        fn done(outcome: Outcome<()>) -> Answer {
            outcome.map_or_else(|failure| failure.answer(), |()| nothing())
        }
        match input {
            Input::PutLogEvents(input) => {
                let format = head.headers.get("x-amzn-logs-format").and_then(|value| value.to_str().ok());
                let reject = match fault {
                    Some(Fault::Reject(reject)) => Some(reject),
                    _ => None,
                };
                content(self.put_log_events(input, format, reject))
            }
            Input::CreateLogGroup(input) => done(self.create_log_group(input)),
            Input::CreateLogStream(input) => done(self.create_log_stream(input)),
            Input::DeleteLogGroup(input) => done(self.delete_log_group(input)),
            Input::DeleteLogStream(input) => done(self.delete_log_stream(input)),
            Input::PutRetentionPolicy(input) => done(self.put_retention_policy(input)),
            Input::DeleteRetentionPolicy(input) => done(self.delete_retention_policy(input)),
            Input::DescribeLogGroups(input) => content(self.describe_log_groups(input)),
            Input::DescribeLogStreams(input) => content(self.describe_log_streams(input)),
            Input::GetLogEvents(input) => content(self.get_log_events(input)),
            Input::FilterLogEvents(input) => content(self.filter_log_events(input)),
            Input::TagResource(input) => done(self.tag_resource(input)),
            Input::UntagResource(input) => done(self.untag_resource(input)),
            Input::ListTagsForResource(input) => content(self.list_tags_for_resource(input)),
            Input::ListTagsLogGroup(input) => content(self.list_tags_log_group(input)),
        }
    }
    /// Deletes what a request names, as somebody else could have.
    pub(crate) fn vanish(&self, what: Vanish, (group, stream): (&str, &str)) {
        let mut held = self.store.lock();
        match what {
            Vanish::Group => {
                held.groups.remove(group);
            }
            Vanish::Stream => {
                if let Some(group) = held.groups.get_mut(group) {
                    group.streams.remove(stream);
                }
            }
        }
    }
    fn note(&self, operation: Operation, names: (&str, &str), volume: (usize, usize), fault: Option<Fault>) -> usize {
        self.requests.begin(Request {
            operation,
            group: names.0.to_owned(),
            stream: names.1.to_owned(),
            events: volume.0,
            bytes: volume.1,
            status: None,
            code: None,
            message: None,
            fault,
        })
    }
    fn close(&self, number: usize, response: &hyper::Response<Body>) {
        #[derive(Deserialize)]
        struct Refusal {
            #[serde(rename = "__type")]
            code: String,
            message: String,
        }
        let status = response.status().as_u16();
        let refusal = (status >= 400).then(|| response.body().bytes()).flatten();
        let refusal = refusal.and_then(|bytes| serde_json::from_slice::<Refusal>(&bytes).ok());
        self.requests.end(number, status, refusal.map(|refusal| (refusal.code, refusal.message)));
    }
}
