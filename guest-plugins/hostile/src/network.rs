//! HTTP requests to where none may go, and in forms that none may have.

use wharf_plugin::bindings::wharf::output::http::{self, Request, Response};

use crate::{Answer, delivered, failed};

pub(crate) fn attack(attack: &str, url: &str) -> Option<Answer> {
    let header = |name: &str, value: &str| answer(get(url, &[(name.to_owned(), value.to_owned())]));
    Some(match attack {
        "get" => answer(get(url, &[])),
        "split_a_header_value" => header("x-a", "1\r\nHost: evil.example\r\n\r\nGET /admin HTTP/1.1"),
        "split_a_header_name" => header("x-a: 1\r\nx-b", "1"),
        "set_the_host" => header("host", "evil.example"),
        "smuggle_a_second_request" => header("transfer-encoding", "chunked"),
        "many_headers" => answer(get(url, &vec![("x-a".to_owned(), "1".to_owned()); 10_000])),
        "use_others_credential" => {
            let (url, name) = url.split_once(' ').unwrap_or_default();
            answer(send(&Request { credential: Some(name.into()), ..request(url, &[]) }))
        }
        "follow_to_metadata" => match get(url, &[]) {
            Ok(response) => {
                let location = response.headers.iter().find(|(name, _)| name == "location");
                let location = location.map_or("", |(_, value)| value);
                answer(get(location, &[]))
            }
            Err(error) => failed(error),
        },
        "want_everything" => {
            let wanted = send(&Request { max_response_bytes: Some(u32::MAX), ..request(url, &[]) });
            failed(wanted.map_or_else(|error| error, |it| format!("{} bytes, more: {}", it.body.len(), it.truncated)))
        }
        "tunnel" => answer(send(&Request { method: "CONNECT".into(), ..request(url, &[]) })),
        "flood_http" => {
            for n in 0..1000 {
                let quick = Request { timeout_ms: Some(100), ..request(url, &[]) };
                if let Err(error) = send(&quick) {
                    return Some(failed(format!("after {n}: {error}")));
                }
            }
            delivered()
        }
        _ => return None,
    })
}

pub(crate) fn get(url: &str, headers: &[(String, String)]) -> Result<Response, String> {
    send(&request(url, headers))
}

fn send(request: &Request) -> Result<Response, String> {
    http::send(request, None).map_err(|error| error.to_string())
}

fn request(url: &str, headers: &[(String, String)]) -> Request {
    Request {
        method: "GET".into(),
        url: url.into(),
        headers: headers.to_vec(),
        credential: None,
        timeout_ms: None,
        max_response_bytes: None,
    }
}

fn answer(tried: Result<Response, String>) -> Answer {
    match tried {
        Ok(response) => failed(format!("answered {}", response.status)),
        Err(error) => failed(error),
    }
}
