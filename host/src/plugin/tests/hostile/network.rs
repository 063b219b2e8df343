//! Requests to where none may go, and in forms that none may have.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;

use super::*;
use crate::capability::aws::testing::{Seen, serve};
use crate::config::HttpDestination;

/// A stage whose hostile output may send requests there.
async fn stage(granted: &[&str]) -> Stage {
    let stage = Stage::new().await;
    let http = granted.iter().map(|to| HttpDestination::parse(to).unwrap()).collect();
    stage.grant(GrantsConfig { http, ..GrantsConfig::default() });
    stage
}

/// A server that answers 200, where no request may arrive, or few.
async fn server() -> (String, Arc<std::sync::Mutex<Vec<Seen>>>) {
    serve(|_| StatusCode::OK.into_response()).await
}

/// What the host says of a form that no request may have. The server hears nothing.
async fn no_request(attack: &str) -> String {
    let (url, seen) = server().await;
    let told = stage(&[&url]).await.told(&format!("{attack} {url}/x"), GUEST_ERROR).await;
    assert_eq!(seen.lock().unwrap().len(), 0);
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn line_breaks_in_a_headers_value_are_no_header() {
    let told = no_request("split_a_header_value").await;
    assert!(told.contains("U+000D"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn line_breaks_in_a_headers_name_are_no_header() {
    let told = no_request("split_a_header_name").await;
    assert!(told.contains("no token of RFC 9110"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_header_is_the_hosts() {
    let told = no_request("set_the_host").await;
    assert!(told.contains("the host's to set"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_framing_is_the_hosts() {
    let told = no_request("smuggle_a_second_request").await;
    assert!(told.contains("the host's to set"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_headers_are_refused() {
    let told = no_request("many_headers").await;
    assert!(told.contains("a request is 64 headers, and 10000 were wanted"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tunnel_is_refused() {
    let told = no_request("tunnel").await;
    assert!(told.contains("is not allowed"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_granted_is_refused() {
    let stage = stage(&["https://api.example.com"]).await;
    let told = stage.told("get http://api.example.com/", REFUSED).await;
    assert!(told.contains("is not granted to output"), "{told}");
    assert_eq!(stage.count("plugin_refused", ",capability=\"http\""), 1);
}

/// Whatever it is written as.
#[tokio::test(flavor = "multi_thread")]
async fn the_clouds_metadata_cannot_be_reached_by_any_of_its_names() {
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9.0xfe.0xa9.0xfe/",
        "http://[::ffff:169.254.169.254]/",
        "http://[fd00:ec2::254]/",
    ] {
        let told = stage(&["https://*.example.com"]).await.told(&format!("get {url}"), REFUSED).await;
        assert!(told.contains("is not granted"), "{url}: {told}");
    }
}

/// A name that was granted, and leads to this machine.
#[tokio::test(flavor = "multi_thread")]
async fn a_granted_name_that_leads_inside_is_refused_after_it_is_resolved() {
    let (url, seen) = server().await;
    let port = url.rsplit(':').next().unwrap();
    let inside = format!("http://rebinding.example:{port}");
    let stage = stage(&[&inside]).await;
    let told = stage.told(&format!("get {inside}/"), REFUSED).await;
    assert!(told.contains("rebinding.example has the address 169.254.169.254, which is link-local"), "{told}");
    assert_eq!(seen.lock().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_metadata_is_an_answer_and_leads_nowhere() {
    let to_metadata = |_: &Seen| (StatusCode::FOUND, [("location", "http://169.254.169.254/")]).into_response();
    let (url, seen) = serve(to_metadata).await;
    let told = stage(&[&url]).await.told(&format!("follow_to_metadata {url}/x"), REFUSED).await;
    assert!(told.contains("http://169.254.169.254 is not granted"), "{told}");
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_neighbours_credential_is_refused() {
    let (url, seen) = server().await;
    let stage = stage(&[&url]).await;
    let told = stage.told(&format!("use_others_credential {url}/x neighbours-token"), REFUSED).await;
    assert!(told.contains("credential \\\"neighbours-token\\\" is not granted"), "{told}");
    assert_eq!(seen.lock().unwrap().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_is_read_to_its_limit() {
    let (url, _) = serve(|_| vec![b'x'; 3 << 20].into_response()).await;
    let told = stage(&[&url]).await.told(&format!("want_everything {url}/x"), GUEST_ERROR).await;
    assert_eq!(told, "1048576 bytes, more: true");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_requests_is_slowed_down_and_then_refused() {
    let (url, seen) = server().await;
    let stage = Stage::with(&[(Limit::HttpRequests, 3)]).await;
    let http = vec![HttpDestination::parse(&url).unwrap()];
    stage.grant(GrantsConfig { http, ..GrantsConfig::default() });
    let told = stage.told(&format!("flood_http {url}/x"), GUEST_ERROR).await;
    let place = stage.place(Limit::HttpRequests);
    assert!(told.contains(&format!("{place} is 3 requests a second, and 1 were wanted")), "{told}");
    // Three at once; one more in each third of a second, had it waited.
    assert!(seen.lock().unwrap().len() < 1000);
    assert_eq!(stage.count("limits_reached", ",limit=\"http_requests\""), 1);
}
