//! TLS with certificates that `openssl` makes.

use std::path::Path;
use std::process::Command;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::TlsAcceptor;

use super::raw::head;
use super::*;

/// An authority (`ca.pem`), and a server's key and certificate for `localhost` by it.
fn make(folder: &Path) -> bool {
    let run = |arguments: &str| {
        Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output().map(|done| {
            assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
        })
    };
    std::fs::write(folder.join("leaf.ext"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n").unwrap();
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    if run(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=Test-Authority")).is_err() {
        eprintln!("SKIPPED: a server with TLS needs the program openssl (on Debian: apt-get install -y openssl)");
        return false;
    }
    run(&format!("req {key} -keyout leaf.key -out leaf.csr -subj /CN=localhost")).unwrap();
    run("x509 -req -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out leaf.pem -days 2 -extfile leaf.ext")
        .unwrap();
    true
}

/// A server's side of TLS that offers these protocols (RFC 7301).
fn acceptor(folder: &Path, protocols: &[&str]) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(folder.join("leaf.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("leaf.key")).unwrap();
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(ring).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// Answers 204 to each request. Gives the port.
async fn server(folder: &Path) -> u16 {
    let acceptor = acceptor(folder, &[]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                if head(&mut stream).await.is_some() {
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
                    let _ = stream.shutdown().await;
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn a_certificate_is_good_by_a_trusted_authority_for_the_name_and_by_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    if !make(folder.path()) {
        return;
    }
    let port = server(folder.path()).await;
    let url = format!("https://localhost:{port}");
    let trusting = |ca_file| HttpConfig { ca_file, ..HttpConfig::default() };

    let mut trusts = Setup { http: trusting(Some(folder.path().join("ca.pem"))), ..Setup::granted(&[&url]) }.start();
    assert_eq!(trusts.send(request("GET", &url)).await.unwrap().status, 204);

    let text =
        no_answer(Setup { http: trusting(None), ..Setup::granted(&[&url]) }.start().send(request("GET", &url)).await);
    assert!(text.starts_with(&url) && text.contains("certificate"), "{text}");

    let by_address = format!("https://127.0.0.1:{port}");
    let mut another =
        Setup { http: trusting(Some(folder.path().join("ca.pem"))), ..Setup::granted(&[&by_address]) }.start();
    let text = no_answer(another.send(request("GET", &by_address)).await);
    assert!(text.contains("certificate"), "{text}");
}

#[tokio::test]
async fn authorities_that_cannot_be_read_are_told_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    for content in [None, Some("no certificate")] {
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let http = HttpConfig { ca_file: Some(path.clone()), ..HttpConfig::default() };
        let answer = Setup { http, ..Setup::granted(&["https://a.example"]) }
            .start()
            .send(request("GET", "https://a.example"))
            .await;
        let Err(Error::Host(HostError::Unavailable(text))) = answer else { panic!("{answer:?}") };
        assert!(text.starts_with(&format!("http.ca_file {}: ", path.display())), "{text}");
    }
}

#[tokio::test]
async fn http_2_is_spoken_where_the_server_offers_it() {
    let folder = tempfile::tempdir().unwrap();
    if !make(folder.path()) {
        return;
    }
    let acceptor = acceptor(folder.path(), &["h2", "http/1.1"]);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
        let serve = hyper::service::service_fn(async |request: ::http::Request<hyper::body::Incoming>| {
            let (head, body) = request.into_parts();
            let body = axum::body::to_bytes(axum::body::Body::new(body), usize::MAX).await.unwrap();
            let told = format!("{:?} {} {}", head.version, head.uri, body.len());
            Ok::<_, std::convert::Infallible>(::http::Response::new(axum::body::Body::from(told)))
        });
        let executor = hyper_util::rt::TokioExecutor::new();
        let served = hyper::server::conn::http2::Builder::new(executor);
        let _ = served.serve_connection(hyper_util::rt::TokioIo::new(stream), serve).await;
    });
    let url = format!("https://localhost:{port}");
    let http = HttpConfig { ca_file: Some(folder.path().join("ca.pem")), ..HttpConfig::default() };
    let mut output = Setup { http, ..Setup::granted(&[&url]) }.start();
    // More than a window (RFC 9113, section 6.9.2), and on one connection: the server takes no second one.
    for bytes in [0, 1 << 20, 7] {
        let answer = output.send_body(request("POST", &format!("{url}/v1")), vec![b'x'; bytes]).await.unwrap();
        let expected = format!("HTTP/2.0 {url}/v1 {bytes}");
        assert_eq!(String::from_utf8(answer.body).unwrap(), expected);
    }
}
