//! Behind the HTTP capability: requests that were granted and are well-formed come here instead of to the network.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::Request;
use serde_json::{Map, Value};

use super::asked::{headers, text_of};
use super::{Notes, Scripts};
use crate::author::trial::case::{Answer, Says};
use crate::capability::bindings::http::Error;
use crate::capability::http::{Incoming, Outgoing, Wire};

/// The wire to HTTP destinations.
#[derive(Debug)]
pub(crate) struct HttpWire {
    notes: Arc<Notes>,
    scripts: Arc<Scripts>,
}

impl HttpWire {
    pub(crate) fn new(notes: Arc<Notes>, scripts: Arc<Scripts>) -> Self {
        Self { notes, scripts }
    }
}

impl Wire for HttpWire {
    fn send(&self, request: Outgoing) -> BoxFuture<'static, Result<Incoming, Error>> {
        let line = line(&request);
        let answer = self.scripts.http(&line);
        let call = self.notes.asked(said(&line, &request));
        let notes = Arc::clone(&self.notes);
        Box::pin(async move {
            let (word, answered) = answered(answer, &request).await;
            notes.answered(call, &word);
            answered
        })
    }
}

/// `POST https://api.example.com/v1/logs`.
pub(super) fn line(request: &Outgoing) -> String {
    format!("{} {}", request.method, request.url)
}

/// What is to be said of a request.
pub(super) fn said(line: &str, request: &Outgoing) -> Map<String, Value> {
    let mut said = Map::new();
    said.insert("http".into(), line.into());
    if let Some(credential) = &request.credential {
        said.insert("credential".into(), credential.to_string().into());
    }
    let mut head = Request::new(()).into_parts().0;
    head.headers = request.headers.clone();
    let headers = headers(&head);
    if !headers.is_empty() {
        said.insert("headers".into(), headers.into());
    }
    if let Some(body) = &request.body {
        said.insert("body".into(), text_of(&head, body));
    }
    said
}

async fn answered(answer: Answer, request: &Outgoing) -> (String, Result<Incoming, Error>) {
    let to = request.url.origin().ascii_serialization();
    let broken = |word: &str, what: String| (word.to_owned(), Err(Error::Connection(what)));
    match answer {
        Answer::Ok => ("ok".to_owned(), Ok(Incoming { status: 200, ..Incoming::default() })),
        Answer::Reset | Answer::Lost => {
            let word = if answer == Answer::Lost { "lost" } else { "reset" };
            broken(word, format!("{to}: connection reset by peer"))
        }
        Answer::Timeout => broken("timeout", format!("{to} gave no answer within {:?}", request.timeout)),
        Answer::Hang => std::future::pending().await,
        Answer::NoCredentials => {
            let name = request.credential.as_deref().unwrap_or("?");
            let what = format!("the credential {name} could not be had, as the test has it");
            ("no-credentials".to_owned(), Err(Error::Credentials(what)))
        }
        Answer::Says(says) => {
            tokio::time::sleep(says.after).await;
            let word = match says.status {
                200..=299 => "ok".to_owned(),
                status => status.to_string(),
            };
            (word, Ok(written(says, request.max_response_bytes)))
        }
    }
}

fn written(says: Says, most: usize) -> Incoming {
    let text = says.body.or(says.message).unwrap_or_default();
    let is_json = serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object() || value.is_array());
    let mut headers = says.headers;
    if is_json && !headers.iter().any(|(name, _)| name == "content-type") {
        headers.push(("content-type".into(), "application/json".into()));
    }
    let mut body = text.into_bytes();
    let truncated = body.len() > most;
    body.truncate(most);
    Incoming { status: says.status, headers, body, truncated }
}
