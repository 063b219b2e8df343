//! The content of one PutLogEvents request, written straight as JSON.
//!
//! Form: <https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutLogEvents.html>. The SDK would take a string for each
//! event and write them once more; over a gigabyte of log that is seconds of CPU time.

use std::io::Write as _;

use crate::record::encode::write_json_string;

/// What stands between a message and its time.
const TIME: &[u8] = b"\",\"timestamp\":";

/// Names and values, each name once.
type Pairs = [(String, String)];

/// The content of a request, event after event.
#[derive(Debug)]
pub struct PutBody {
    out: Vec<u8>,
    any: bool,
    /// Written behind a message; made anew only when the time changes.
    ending: Vec<u8>,
    ending_ms: Option<i64>,
}

impl PutBody {
    /// Begins one that will have about so many bytes.
    #[must_use]
    pub fn new(log_group: &str, log_stream: &str, bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.extend_from_slice(b"{\"logGroupName\":");
        write_json_string(log_group, &mut out);
        out.extend_from_slice(b",\"logStreamName\":");
        write_json_string(log_stream, &mut out);
        out.extend_from_slice(b",\"logEvents\":[");
        Self { out, any: false, ending: TIME.to_vec(), ending_ms: None }
    }

    /// Appends an event. `message` writes the inside of a JSON string.
    pub fn event(&mut self, time_ms: i64, message: impl FnOnce(&mut Vec<u8>)) {
        self.out.extend_from_slice(if self.any { b",{\"message\":\"" } else { b"{\"message\":\"" });
        self.any = true;
        message(&mut self.out);
        if self.ending_ms != Some(time_ms) {
            self.ending.truncate(TIME.len());
            // Writing into a Vec cannot fail.
            let _ = write!(self.ending, "{time_ms}}}");
            self.ending_ms = Some(time_ms);
        }
        self.out.extend_from_slice(&self.ending);
    }

    /// Ends it, with the attributes of an entity where there is one: what tells it from others, and what else is known of it.
    #[must_use]
    pub fn finish(mut self, entity: Option<(&Pairs, &Pairs)>) -> Vec<u8> {
        self.out.push(b']');
        if let Some((key_attributes, attributes)) = entity {
            self.out.extend_from_slice(b",\"entity\":{\"keyAttributes\":");
            self.map(key_attributes);
            if !attributes.is_empty() {
                self.out.extend_from_slice(b",\"attributes\":");
                self.map(attributes);
            }
            self.out.push(b'}');
        }
        self.out.push(b'}');
        self.out
    }

    fn map(&mut self, pairs: &[(String, String)]) {
        self.out.push(b'{');
        for (n, (name, value)) in pairs.iter().enumerate() {
            if n > 0 {
                self.out.push(b',');
            }
            write_json_string(name, &mut self.out);
            self.out.push(b':');
            write_json_string(value, &mut self.out);
        }
        self.out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_form_that_the_service_documents() {
        let mut body = PutBody::new("/my\"app", "s\\1", 0);
        for (time, message) in [(1_396_035_378_988, "one"), (1_396_035_378_988, ""), (-1, "\\n")] {
            body.event(time, |out| out.extend_from_slice(message.as_bytes()));
        }
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let keys = [pair("Type", "Service"), pair("Name", "a\"b")];
        let attributes = [pair("k", "v")];
        assert_eq!(
            String::from_utf8(body.finish(Some((&keys, &attributes)))).unwrap(),
            concat!(
                r#"{"logGroupName":"/my\"app","logStreamName":"s\\1","logEvents":["#,
                r#"{"message":"one","timestamp":1396035378988},{"message":"","timestamp":1396035378988},"#,
                r#"{"message":"\n","timestamp":-1}],"#,
                r#""entity":{"keyAttributes":{"Type":"Service","Name":"a\"b"},"attributes":{"k":"v"}}}"#
            )
        );
    }

    #[test]
    fn an_entity_without_further_attributes_names_none() {
        let keys = [("Type".to_owned(), "Service".to_owned())];
        let body = PutBody::new("g", "s", 0).finish(Some((&keys, &[])));
        let expected =
            r#"{"logGroupName":"g","logStreamName":"s","logEvents":[],"entity":{"keyAttributes":{"Type":"Service"}}}"#;
        assert_eq!(String::from_utf8(body).unwrap(), expected);
        assert_eq!(
            PutBody::new("g", "s", 0).finish(None),
            br#"{"logGroupName":"g","logStreamName":"s","logEvents":[]}"#
        );
    }
}
