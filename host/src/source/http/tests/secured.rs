//! TLS, and certificates of clients.

use super::*;
use crate::source::testing_tls::{tls_connect, tls_files};

fn server(client_authority: bool, patience: Duration) -> Server {
    Server::start_with(|http| {
        (http.handshake_timeout, http.tls) = (patience, Some(tls_files(client_authority)));
    })
}

#[tokio::test]
async fn records_come_by_tls() {
    let server = server(false, LONG);
    // With the protocol's name, as browsers and libraries send it, and without.
    for protocols in [&["http/1.1"][..], &["h2", "http/1.1"], &[]] {
        let mut client = Client(tls_connect(server.address, None, protocols).await.unwrap());
        assert_eq!(client.request("POST", &[TEXT], b"one\ntwo").await.status, 200);
        assert_eq!(client.request("POST", &[JSON], b"{}").await.status, 200);
    }
    assert_eq!(server.sink.lines(), ["one", "two", "{}"].repeat(3));
    server.stop().await;
}

#[tokio::test]
async fn who_speaks_no_tls_is_not_heard() {
    let server = server(false, LONG);
    let mut client = Client::connect(server.address).await;
    client.begin().await;
    let mut said = Vec::new();
    // An alert of TLS may come first.
    let _ = client.0.read_to_end(&mut said).await;
    eventually("it is counted", || (server.sink.refused() == [("tls", 1)].into()).then_some(())).await;
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_has_an_end_and_a_stop_does_not_wait_for_it() {
    let server = server(false, Duration::from_millis(100));
    Client::connect(server.address).await.closed().await;
    assert_eq!(server.sink.refused(), [("tls", 1)].into());
    server.stop().await;

    let server = self::server(false, LONG);
    let _silent = Client::connect(server.address).await;
    eventually("it is there", || (server.sink.connections() == 1).then_some(())).await;
    let stopped = tokio::time::timeout(Duration::from_secs(30), server.stop()).await;
    assert!(stopped.is_ok(), "the stop waits");
}

#[tokio::test]
async fn with_an_authority_of_clients_only_its_clients_are_heard() {
    let server = server(true, LONG);
    let mut client = Client(tls_connect(server.address, Some("client"), &[]).await.unwrap());
    assert_eq!(client.request("POST", &[TEXT], b"one").await.status, 200);
    for (certificate, refused) in [(Some("stranger"), 1), (None, 2)] {
        // With TLS 1.3 the client learns it when it reads.
        if let Ok(mut stranger) = tls_connect(server.address, certificate, &[]).await {
            assert!(stranger.read_to_end(&mut Vec::new()).await.is_err(), "{certificate:?}");
        }
        eventually("it is counted", || (server.sink.refused() == [("tls", refused)].into()).then_some(())).await;
    }
    assert_eq!(server.sink.lines(), ["one"]);
    server.stop().await;
}
