//! Names that resolve to what they should not.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Mutex;

use super::raw::answering;
use super::*;
use crate::capability::aws::testing::serve;

const OK: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

/// Gives these answers one after the other, the last one for ever.
#[derive(Debug)]
struct Answers(Mutex<VecDeque<Vec<IpAddr>>>);

impl Lookup for Answers {
    fn look_up(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let mut left = self.0.lock().unwrap();
        let answer = if left.len() > 1 { left.pop_front() } else { left.front().cloned() };
        Box::pin(async move { Ok(answer.unwrap_or_default()) })
    }
}

fn answers(list: &[&[&str]]) -> Arc<dyn Lookup> {
    let parse = |addresses: &&[&str]| addresses.iter().map(|address| address.parse().unwrap()).collect();
    Arc::new(Answers(Mutex::new(list.iter().map(parse).collect())))
}

/// May send requests to this name, at these addresses.
fn granted(url: &str, addresses: &[&str], lookup: &Arc<dyn Lookup>) -> Output {
    let nets = addresses.iter().map(|net| net.parse().unwrap()).collect();
    let grant = HttpDestination::parse(url).unwrap().with_addresses(nets);
    Setup { grants: vec![grant], lookup: Some(Arc::clone(lookup)), ..Setup::default() }.start()
}

#[tokio::test]
async fn a_name_of_this_machine_or_of_the_clouds_metadata_is_not_connected_to() {
    let (address, heads) = answering(OK).await;
    let url = format!("http://api.example.com:{}", address.port());
    for (resolved, kind) in [
        ("127.0.0.1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("169.254.169.254", "link-local"),
        ("fd00:ec2::254", "private"),
        ("10.0.0.5", "private"),
        ("0.0.0.0", "unspecified"),
        ("::", "unspecified"),
        ("64:ff9b::7f00:1", "loopback"),
    ] {
        let text = denied(granted(&url, &[], &answers(&[&[resolved]])).send(request("GET", &url)).await);
        let expected = format!(
            "api.example.com has the address {resolved}, which is {kind}: if it may be reached, grant it with {{ to: \"{url}\", addresses: [\"{resolved}\"] }}"
        );
        assert_eq!(text, expected);
    }
    assert!(heads.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_address_that_the_grant_covers_is_connected_to_under_the_name() {
    let (address, heads) = answering(OK).await;
    let url = format!("http://api.example.com:{}", address.port());
    let mut output = granted(&url, &["127.0.0.0/8"], &answers(&[&["127.0.0.1"]]));
    assert_eq!(output.send(request("GET", &url)).await.unwrap().status, 204);
    let head = heads.lock().unwrap().remove(0);
    assert!(head.contains(&format!("host: api.example.com:{}\r\n", address.port())), "{head}");
}

#[tokio::test]
async fn of_several_addresses_only_those_that_are_allowed_are_tried() {
    let (address, heads) = answering(OK).await;
    let url = format!("http://api.example.com:{}", address.port());
    let lookup = answers(&[&["127.0.0.2", "169.254.169.254", "127.0.0.1"]]);
    let mut output = granted(&url, &["127.0.0.1/32"], &lookup);
    assert_eq!(output.send(request("GET", &url)).await.unwrap().status, 204);
    assert_eq!(heads.lock().unwrap().len(), 1);
}

/// The address that was checked is the address that is connected to: a second answer of the name's owner is checked anew.
#[tokio::test]
async fn a_name_that_is_bound_anew_is_checked_anew() {
    let (address, heads) = answering(OK).await;
    let url = format!("http://api.example.com:{}", address.port());
    let lookup = answers(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let mut output = granted(&url, &["127.0.0.1/32"], &lookup);
    assert_eq!(output.send(request("GET", &url)).await.unwrap().status, 204);
    assert!(denied(output.send(request("GET", &url)).await).contains("127.0.0.2"));
    assert_eq!(heads.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_connection_that_one_output_may_have_does_not_serve_another_that_may_not() {
    // This server keeps connections open.
    let (url, seen) = serve(|_| axum::response::IntoResponse::into_response("")).await;
    let url = url.replace("127.0.0.1", "api.example.com");
    let lookup = answers(&[&["127.0.0.1"]]);
    let mut may = granted(&url, &["127.0.0.0/8"], &lookup);
    let mut may_not = granted(&url, &[], &lookup);
    assert_eq!(may.send(request("GET", &url)).await.unwrap().status, 200);
    denied(may_not.send(request("GET", &url)).await);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_name_without_addresses_is_no_answer() {
    let mut output = granted("http://api.example.com", &[], &answers(&[&[]]));
    no_answer(output.send(request("GET", "http://api.example.com/")).await);
}

#[tokio::test]
async fn addresses_themselves_need_a_grant_of_their_own_however_they_are_written() {
    let (address, heads) = answering(OK).await;
    let port = address.port();
    let mut output = Setup::granted(&[&format!("http://127.0.0.1:{port}"), "https://*.example.com"]).start();
    for host in ["127.0.0.1", "0x7f000001", "2130706433", "127.1", "0177.0.0.1"] {
        let answer = output.send(request("GET", &format!("http://{host}:{port}/"))).await;
        assert_eq!(answer.unwrap().status, 204, "{host}");
    }
    for host in ["127.0.0.2", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"] {
        denied(output.send(request("GET", &format!("http://{host}:{port}/"))).await);
    }
    assert_eq!(heads.lock().unwrap().len(), 5);
}

#[tokio::test]
async fn localhost_is_this_machine_where_it_is_granted() {
    let (address, _) = answering(OK).await;
    let url = format!("http://localhost:{}", address.port());
    assert_eq!(Setup::granted(&[&url]).start().send(request("GET", &url)).await.unwrap().status, 204);
    let elsewhere = granted(&url, &[], &answers(&[&["10.0.0.1"]])).send(request("GET", &url)).await;
    assert!(denied(elsewhere).contains("10.0.0.1"));
}
