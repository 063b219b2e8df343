//! Authentication and TLS over real connections.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::handshake::{accepting_pong, denying_pong, parse_helo, ping};
use super::pack::*;
use super::support::{Client, Server, security};
use crate::config::TlsConfig;
use crate::source::testing::eventually;

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

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/tls").join(name)
}

fn tls_server(client_authority: bool) -> Server {
    Server::start_with(|forward| {
        forward.handshake_timeout = Duration::from_secs(30);
        forward.tls = Some(TlsConfig {
            cert_file: file("server.pem"),
            key_file: file("server.key.pem"),
            client_ca_file: client_authority.then(|| file("ca.pem")),
        });
    })
}

/// With the certificate of this name, or none.
async fn tls_client(server: &Server, certificate: Option<&str>) -> std::io::Result<Client<TlsStream<TcpStream>>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match certificate {
        None => config.with_no_client_auth(),
        Some(name) => {
            let chain = vec![CertificateDer::from_pem_file(file(&format!("{name}.pem"))).unwrap()];
            let key = PrivateKeyDer::from_pem_file(file(&format!("{name}.key.pem"))).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let stream = TcpStream::connect(server.address()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map(Client)
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
