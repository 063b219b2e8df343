//! By a proxy, when the configuration names one.

use super::raw::answering;
use super::*;
use crate::config::Secret;

fn by_proxy(address: std::net::SocketAddr, granted: &str) -> Output {
    let proxy = Some(Secret::new(format!("http://user:hush@{address}")));
    let http = HttpConfig { proxy, ..HttpConfig::default() };
    assert!(!format!("{http:?}").contains("hush"));
    Setup { http, ..Setup::granted(&[granted]) }.start()
}

/// Absolute form: RFC 9112, section 3.2.2. `dXNlcjpodXNo` is `user:hush`.
#[tokio::test]
async fn a_proxy_gets_plain_requests_whole_and_its_own_password() {
    let (address, heads) = answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let answer = by_proxy(address, "http://api.example.com").send(request("GET", "http://api.example.com/x?y=1")).await;
    assert_eq!(answer.unwrap().status, 204);
    let head = heads.lock().unwrap().remove(0);
    assert!(head.starts_with("GET http://api.example.com/x?y=1 HTTP/1.1\r\n"), "{head}");
    for line in ["host: api.example.com\r\n", "proxy-authorization: basic dxnlcjpodxno\r\n"] {
        assert!(head.to_lowercase().contains(line), "{line} is not in {head}");
    }
}

/// RFC 9110, section 9.3.6.
#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_where_there_is_tls_and_its_refusal_is_no_answer_of_the_destination() {
    let (address, heads) = answering("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    let text =
        no_answer(by_proxy(address, "https://api.example.com").send(request("GET", "https://api.example.com/x")).await);
    assert!(
        text.starts_with("https://api.example.com: ") && !text.contains("hush") && !text.contains("dXNlcjpodXNo"),
        "{text}"
    );
    let head = heads.lock().unwrap().remove(0);
    assert!(head.starts_with("CONNECT api.example.com:443 HTTP/1.1\r\n"), "{head}");
}

#[tokio::test]
async fn what_is_granted_is_checked_before_the_proxy_is_asked() {
    let (address, heads) = answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    let mut output = by_proxy(address, "http://api.example.com");
    denied(output.send(request("GET", "http://169.254.169.254/latest/meta-data/")).await);
    denied(output.send(request("GET", "http://other.example.com/")).await);
    assert!(heads.lock().unwrap().is_empty());
}
