//! What stands for AWS. It runs in threads of this process, so that nothing of it is counted as Wharf's.

use anyhow::ensure;
use wharf_local_aws::logs::{self, Logs, Signatures, rules};
use wharf_local_aws::{Fault, Operation, Rule, Sink};

use crate::input::Input;
use crate::measure::Calls;
use crate::scenario::{Destination, Scenario};

pub enum Service {
    /// Reads as fast as it can and looks at nothing.
    Sink(Sink),
    /// Reads every event, and refuses what CloudWatch Logs refuses.
    Strict(Box<Logs>),
}

impl Service {
    pub fn start(of: &Scenario, strict: bool) -> anyhow::Result<Self> {
        if !strict || of.to == Destination::S3 {
            return Ok(Self::Sink(Sink::far_away(of.distance)?));
        }
        let options = logs::Options { discard: true, signatures: Signatures::Ignored, ..logs::Options::default() };
        let logs = Logs::start(options)?;
        if !of.distance.is_zero() {
            logs.faults().add(Rule::on(Operation::PutLogEvents, Fault::StallReply(of.distance)));
        }
        Ok(Self::Strict(Box::new(logs)))
    }
    pub fn endpoint(&self) -> String {
        match self {
            Self::Sink(sink) => sink.endpoint(),
            Self::Strict(logs) => logs.endpoint(),
        }
    }
    /// Bytes of bodies; of a strict CloudWatch Logs, bytes as it counts them.
    pub fn sent_bytes(&self) -> u64 {
        match self {
            Self::Sink(sink) => sink.body_bytes(),
            Self::Strict(logs) => logs.totals().bytes,
        }
    }
    /// A strict service refused nothing but the first call to a stream that is not there yet.
    pub fn check(&self) -> anyhow::Result<()> {
        let Self::Strict(logs) = self else { return Ok(()) };
        let mut refused = logs.refused().into_iter();
        let wrong = refused.find(|request| request.code.as_deref() != Some("ResourceNotFoundException"));
        let said = wrong.map(|request| format!("{:?}: {:?}", request.operation, request.message));
        ensure!(said.is_none(), "CloudWatch Logs refused {}", said.unwrap_or_default());
        Ok(())
    }
    /// The calls of PutLogEvents, where there were any. A strict service has counted what they carried; of a sink it is known, since each event
    /// of the input was sent once.
    pub fn calls(&self, input: &Input, as_objects: bool) -> Option<Calls> {
        match self {
            Self::Sink(sink) => {
                let count = Some(sink.put_log_events()).filter(|calls| *calls > 0)?;
                let overhead = input.lines() * rules::EVENT_OVERHEAD_BYTES as u64;
                let of_bytes = (input.message_bytes(as_objects) + overhead) as f64 / rules::MAX_CALL_BYTES as f64;
                let of_events = input.lines() as f64 / rules::MAX_CALL_EVENTS as f64;
                Some(Calls { count, fill: of_bytes.max(of_events) / count as f64 })
            }
            Self::Strict(logs) => {
                let totals = logs.totals();
                Some(Calls { count: totals.calls, fill: totals.fill() })
            }
        }
    }
}
