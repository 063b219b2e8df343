//! The parsers of all sources, as [`crate::fuzz`] calls them.

use super::{http, otlp, parse, syslog, tail};

pub(crate) use http::fuzzed as http;
pub(crate) use otlp::fuzzed::{json as otlp_json, protobuf as otlp_protobuf};
pub(crate) use parse::fuzzed as parse;
pub(crate) use syslog::fuzzed::{frames as syslog_frames, message as syslog_message};
pub(crate) use tail::fuzzed as tail_position;
