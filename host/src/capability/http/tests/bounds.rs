//! Servers that are slow, endless, broken or gone.

use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use super::raw::{answering, listen};
use super::*;
use crate::capability::aws::testing::serve;

#[tokio::test]
async fn an_endless_answer_is_read_as_far_as_it_is_wanted() {
    let (address, _) = listen(|mut stream| async move {
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = format!("1000\r\n{}\r\n", "x".repeat(0x1000));
        let mut sent = stream.write_all(head).await;
        while sent.is_ok() {
            sent = stream.write_all(chunk.as_bytes()).await;
        }
    })
    .await;
    let url = format!("http://{address}");
    let mut output = Setup::granted(&[&url]).start();
    for (wanted, length) in [(None, 65_536), (Some(10), 10), (Some(u32::MAX), 1 << 20)] {
        let answer = output.send(Request { max_response_bytes: wanted, ..request("GET", &url) }).await.unwrap();
        assert_eq!((answer.body.len(), answer.truncated), (length, true));
    }
}

#[tokio::test]
async fn an_answer_that_just_fits_is_not_truncated() {
    let (url, _) = serve(|_| axum::response::IntoResponse::into_response("0123456789")).await;
    let mut output = Setup::granted(&[&url]).start();
    for (wanted, body, truncated) in [(10, "0123456789", false), (9, "012345678", true), (0, "", true)] {
        let answer = output.send(Request { max_response_bytes: Some(wanted), ..request("GET", &url) }).await.unwrap();
        assert_eq!((&*answer.body, answer.truncated), (body.as_bytes(), truncated));
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_or_stops_in_the_middle_is_waited_for_no_longer_than_allowed() {
    for said in ["", "HTTP/1.1 200 OK\r\ncontent-le", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345"] {
        let (address, _) = listen(move |mut stream| async move {
            let _ = stream.write_all(said.as_bytes()).await;
            std::future::pending::<()>().await;
        })
        .await;
        let url = format!("http://{address}");
        let mut output = Setup::granted(&[&url]).start();
        let text = no_answer(output.send(Request { timeout_ms: Some(50), ..request("GET", &url) }).await);
        assert_eq!(text, format!("{url}: there was no whole answer within 50ms"));
    }
}

#[tokio::test]
async fn what_is_no_whole_http_answer_is_none_and_the_text_has_no_path() {
    for said in [
        "",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n12345",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        "HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n",
    ] {
        let (address, heads) = answering(said).await;
        let url = format!("http://{address}");
        let mut output = Setup::granted(&[&url]).start();
        let text = no_answer(output.send(request("POST", &format!("{url}/path-hush?key=hush"))).await);
        assert!(text.starts_with(&format!("{url}: ")) && !text.contains("hush"), "{text}");
        assert_eq!(heads.lock().unwrap().len(), 1, "one attempt and no more: {said:?}");
    }
}

#[tokio::test]
async fn nobody_there_is_no_answer() {
    // A port that was free a moment ago.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("http://{address}");
    let text = no_answer(Setup::granted(&[&url]).start().send(request("GET", &url)).await);
    assert!(text.starts_with(&url) && text.to_lowercase().contains("refused"), "{text}");
}

#[tokio::test]
async fn headers_of_an_answer_are_bounded() {
    let many = (0..300).map(|n| format!("x-{n}: 1\r\n")).collect::<String>();
    let (address, _) = answering(format!("HTTP/1.1 200 OK\r\n{many}\r\n")).await;
    let url = format!("http://{address}");
    no_answer(Setup::granted(&[&url]).start().send(request("GET", &url)).await);

    let large = (0..100).map(|n| format!("x-{n:02}: {}\r\n", "v".repeat(1020))).collect::<String>();
    let (address, _) = answering(format!("HTTP/1.1 201 Created\r\ncontent-length: 0\r\n{large}\r\n")).await;
    let url = format!("http://{address}");
    let answer = Setup::granted(&[&url]).start().send(request("GET", &url)).await.unwrap();
    let bytes: usize = answer.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert_eq!(answer.status, 201);
    assert!((60_000..=65_536).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn a_header_of_any_bytes_is_text_for_the_guest() {
    let (address, _) =
        answering(b"HTTP/1.1 200 OK\r\nX-Odd: a\xff\r\nX-Two: 1\r\nx-two: 2\r\ncontent-length: 0\r\n\r\n").await;
    let url = format!("http://{address}");
    let answer = Setup::granted(&[&url]).start().send(request("GET", &url)).await.unwrap();
    let named = |name: &str| -> Vec<&str> {
        answer.headers.iter().filter(|(one, _)| one == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!((named("x-odd"), named("x-two")), (vec!["a\u{fffd}"], vec!["1", "2"]));
}

#[tokio::test]
async fn an_exchange_ends_in_time_for_the_guest_to_say_so() {
    let (address, _) = listen(|stream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let url = format!("http://{address}");
    let mut output = Setup::granted(&[&url]).start();
    output.caller.deadline = Instant::now().checked_add(Duration::from_millis(100));
    let text = no_answer(output.send(request("GET", &url)).await);
    assert!(text.contains("there was no whole answer within"), "{text}");
    assert!(output.caller.deadline > Some(Instant::now()));
}
