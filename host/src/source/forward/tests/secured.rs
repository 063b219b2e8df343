//! Authentication and TLS over real connections.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::handshake::{accepting_pong, denying_pong, parse_helo, ping};
use super::pack::*;
use super::support::{Client, Server, security};
use crate::source::testing::eventually;
use crate::source::testing_tls::{tls_connect, tls_files};

#[tokio::test]
async fn events_are_taken_after_a_handshake_and_not_before() {
    let server = Server::start_with(|forward| forward.security = Some(security(&[("alice", "pw")])));
    let mut client = server.connect().await;
    let helo = client.next().await;
    // In pieces, and with a message right behind.
    let ping_ = ping(&helo, "geheim", "alice", "pw");
    client.send(&ping_[..50]).await;
    client.send(&[ping_[50..].to_vec(), asked("t", "one", "c")].concat()).await;
    client.hears(&accepting_pong(&helo, "geheim")).await;
    client.hears(&ack("c")).await;

    let mut wrong = server.connect().await;
    let helo = wrong.next().await;
    wrong.send(&ping(&helo, "geheim", "alice", "wrong")).await;
    wrong.hears(&denying_pong("username/password mismatch")).await;
    wrong.is_closed().await;

    let mut hasty = server.connect().await;
    parse_helo(&hasty.next().await);
    hasty.send(&asked("t", "two", "c")).await;
    hasty.hears(&denying_pong("the message is no PING")).await;
    assert_eq!(server.sink.lines().len(), 1);
    assert_eq!(server.sink.refused(), [("auth", 2)].into());
    server.stop().await;
}

#[tokio::test]
async fn events_of_a_user_who_has_a_tenant_are_the_tenants() {
    let server = Server::start_with(|forward| {
        let mut security = security(&[("alice", "pw"), ("bob", "pw")]);
        security.users[0].tenant = Some("acme".into());
        forward.security = Some(security);
    });
    for (user, event) in [("alice", "one"), ("bob", "two"), ("alice", "three")] {
        let mut client = server.connect().await;
        let helo = client.next().await;
        client.send(&[ping(&helo, "geheim", user, "pw"), asked("t", event, "c")].concat()).await;
        client.hears(&accepting_pong(&helo, "geheim")).await;
        client.hears(&ack("c")).await;
    }
    let tenants: Vec<_> = server.sink.by_tenant().into_iter().map(|(tenant, _)| tenant).collect();
    assert_eq!(tenants, [Some("acme".to_owned()), None, Some("acme".to_owned())]);
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_has_an_end_in_time_and_in_bytes() {
    let server = Server::start_with(|forward| {
        (forward.security, forward.handshake_timeout) = (Some(security(&[])), Duration::from_millis(200));
    });
    let mut silent = server.connect().await;
    parse_helo(&silent.next().await);
    silent.is_closed().await;
    assert_eq!(server.sink.refused(), [("slow", 1)].into());
    let mut long = server.connect().await;
    parse_helo(&long.next().await);
    long.send(&[0x96, 0xda, 0xff, 0xff]).await;
    long.is_closed().await;
    assert_eq!(server.sink.refused(), [("slow", 1), ("too_large", 1)].into());
    server.stop().await;
}

fn tls_server(client_authority: bool) -> Server {
    Server::start_with(|forward| {
        forward.handshake_timeout = Duration::from_secs(30);
        forward.tls = Some(tls_files(client_authority));
    })
}

/// With the certificate of this name, or none.
async fn tls_client(server: &Server, certificate: Option<&str>) -> std::io::Result<Client<TlsStream<TcpStream>>> {
    tls_connect(server.address(), certificate, &[]).await.map(Client)
}

#[tokio::test]
async fn events_come_by_tls() {
    let server = tls_server(false);
    let mut client = tls_client(&server, None).await.unwrap();
    client.send(&asked("t", "one", "c")).await;
    client.hears(&ack("c")).await;
    assert_eq!(server.sink.lines().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn who_speaks_no_tls_is_not_heard() {
    let server = tls_server(false);
    let mut client = server.connect().await;
    client.send(&asked("t", "one", "c")).await;
    let mut said = Vec::new();
    // An alert of TLS may come first.
    let _ = client.0.read_to_end(&mut said).await;
    eventually("it is counted", || (server.sink.refused() == [("tls", 1)].into()).then_some(())).await;
    assert!(server.sink.lines().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn with_an_authority_of_clients_only_its_clients_are_heard() {
    let server = tls_server(true);
    let mut client = tls_client(&server, Some("client")).await.unwrap();
    client.send(&asked("t", "one", "c")).await;
    client.hears(&ack("c")).await;
    for (certificate, refused) in [(Some("stranger"), 1), (None, 2)] {
        // With TLS 1.3 the client learns it when it reads.
        if let Ok(mut stranger) = tls_client(&server, certificate).await {
            assert!(stranger.0.read_to_end(&mut Vec::new()).await.is_err(), "{certificate:?}");
        }
        eventually("it is counted", || (server.sink.refused() == [("tls", refused)].into()).then_some(())).await;
    }
    assert_eq!(server.sink.lines().len(), 1);
    server.stop().await;
}

/// Alice's and Bob's tenants share the source.
fn shared(max_connections: usize) -> Server {
    Server::start_with(|forward| {
        let mut security = security(&[("alice", "pw"), ("bob", "pw")]);
        security.users[0].tenant = Some("acme".into());
        security.users[1].tenant = Some("globex".into());
        (forward.security, forward.max_connections) = (Some(security), max_connections);
    })
}

async fn greeted(server: &Server, user: &str) -> Client<TcpStream> {
    let mut client = server.connect().await;
    let helo = client.next().await;
    client.send(&ping(&helo, "geheim", user, "pw")).await;
    client.hears(&accepting_pong(&helo, "geheim")).await;
    client
}

#[tokio::test]
async fn idle_connections_of_nobody_known_or_of_one_tenant_keep_no_other_out() {
    let server = shared(8);
    let mut regular = greeted(&server, "alice").await;
    let mut silent = Vec::new();
    for n in 0..60 {
        silent.push(if n % 2 == 0 { server.connect().await } else { greeted(&server, "bob").await });
    }
    let mut late = greeted(&server, "alice").await;
    late.send(&asked("t", "late", "c")).await;
    late.hears(&ack("c")).await;
    // It has less than its share, and so its place.
    regular.send(&asked("t", "regular", "d")).await;
    regular.hears(&ack("d")).await;
    assert_eq!(server.sink.lines().len(), 2);
    assert!(server.sink.refused()["max_connections"] >= 50, "{:?}", server.sink.refused());
    drop(silent);
    server.stop().await;
}

#[tokio::test]
async fn who_waits_for_an_acknowledgement_keeps_its_place() {
    let server = shared(2);
    server.sink.allow(0);
    let mut one = greeted(&server, "bob").await;
    one.send(&asked("t", "one", "c")).await;
    eventually("it is under way", || (server.sink.handed_in() == 1).then_some(())).await;
    let idle = greeted(&server, "bob").await;
    let mut late = greeted(&server, "alice").await;
    server.sink.allow(2);
    one.hears(&ack("c")).await;
    late.send(&asked("t", "two", "d")).await;
    late.hears(&ack("d")).await;
    assert_eq!(server.sink.refused(), [("max_connections", 1)].into());
    drop(idle);
    server.stop().await;
}
