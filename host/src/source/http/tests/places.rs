//! Places of connections: who keeps out nobody.

use super::tokens::{ACME, OWN, given, with};
use super::*;
use crate::source::places::GIVEN_UP;

const GLOBEX: &str = "globex-token-0123456";

fn shared(max_connections: usize) -> Server {
    Server::start_with(|http| {
        http.max_connections = max_connections;
        http.tokens = vec![given(ACME, Some("acme")), given(GLOBEX, Some("globex")), given(OWN, None)];
    })
}

async fn sends(client: &mut Client, token: &str, line: &str) {
    assert_eq!(client.request("POST", &[TEXT, &with(token)], line.as_bytes()).await.status, 200);
}

#[tokio::test]
async fn a_connection_past_the_limit_has_the_place_of_the_one_that_is_idle_longest() {
    let server = Server::start_with(|http| http.max_connections = 2);
    let mut first = Client::connect(server.address).await;
    assert_eq!(first.request("POST", &[TEXT], b"one").await.status, 200);
    let mut second = Client::connect(server.address).await;
    assert_eq!(second.request("POST", &[TEXT], b"two").await.status, 200);
    assert_eq!(first.request("POST", &[TEXT], b"three").await.status, 200);
    let mut third = Client::connect(server.address).await;
    assert_eq!(third.request("POST", &[TEXT], b"four").await.status, 200);
    second.closed().await;
    assert_eq!(first.request("POST", &[TEXT], b"five").await.status, 200);
    assert_eq!(server.sink.refused(), [(GIVEN_UP, 1)].into());
    server.stop().await;
}

#[tokio::test]
async fn a_connection_past_the_limit_waits_while_requests_are_in_hand_on_all() {
    let server = Server::start_with(|http| http.max_connections = 1);
    server.sink.allow(0);
    let mut first = Client::connect(server.address).await;
    first.0.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none").await.unwrap();
    eventually("the chunk is under way", || (server.sink.handed_in() == 1).then_some(())).await;
    let mut second = Client::connect(server.address).await;
    second.0.write_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\ntwo").await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(second.0.try_read(&mut [0; 1]).is_err(), "answered past the limit");
    server.sink.allow(2);
    assert_eq!(first.answer().await.status, 200);
    assert_eq!(second.answer().await.status, 200);
    first.closed().await;
    assert_eq!(server.sink.lines(), ["one", "two"]);
    server.stop().await;
}

/// The attack that found it: connections that are opened and never used.
#[tokio::test]
async fn connections_of_nobody_known_keep_no_tenant_out() {
    let server = shared(16);
    let mut regular = Client::connect(server.address).await;
    sends(&mut regular, ACME, "before").await;
    let mut silent = Vec::new();
    for n in 0..200 {
        let mut client = Client::connect(server.address).await;
        // Some say half of something, some what is refused.
        match n % 3 {
            0 => client.begin().await,
            1 => drop(client.0.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await),
            _ => {}
        }
        silent.push(client);
        if n % 50 == 0 {
            let mut late = Client::connect(server.address).await;
            sends(&mut late, GLOBEX, "late").await;
        }
    }
    let mut late = Client::connect(server.address).await;
    sends(&mut late, GLOBEX, "late").await;
    // A connection on which somebody known has sent is not the one that goes.
    sends(&mut regular, ACME, "after").await;
    assert_eq!(server.sink.lines().iter().filter(|line| *line == "late").count(), 5);
    assert!(server.sink.refused()[GIVEN_UP] >= 180, "{:?}", server.sink.refused());
    server.stop().await;
}

/// A tenant with a token of its own can do the same with requests, and slowly.
#[tokio::test]
async fn connections_of_one_tenant_keep_no_other_out() {
    for slowly in [false, true] {
        let server = shared(8);
        let mut regular = Client::connect(server.address).await;
        sends(&mut regular, ACME, "before").await;
        let mut many = Vec::new();
        for _ in 0..40 {
            let mut client = Client::connect(server.address).await;
            if slowly {
                // Its body never comes to its end.
                let head = format!("POST / HTTP/1.1\r\nHost: x\r\n{}\r\nContent-Length: 100\r\n\r\nx", with(GLOBEX));
                client.0.write_all(head.as_bytes()).await.unwrap();
            } else {
                sends(&mut client, GLOBEX, "many").await;
            }
            many.push(client);
        }
        let mut late = Client::connect(server.address).await;
        sends(&mut late, OWN, "late").await;
        sends(&mut regular, ACME, "after").await;
        let refused = server.sink.refused();
        assert!(refused[GIVEN_UP] >= 30, "slowly {slowly}: {refused:?}");
        assert!(server.sink.lines().contains(&"late".to_owned()));
        server.stop().await;
    }
}

/// The attack that found it: the room for bodies taken by one tenant, byte after byte.
#[tokio::test]
async fn bodies_of_one_tenant_that_come_slowly_do_not_take_the_room_of_another() {
    let server = Server::start_with(|http| {
        http.max_body_bytes = 1 << 10;
        http.tokens = vec![given(ACME, Some("acme")), given(GLOBEX, Some("globex"))];
    });
    let mut slow = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(server.address).await;
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\n{TEXT}\r\n{}\r\nContent-Length: 1024\r\n\r\n", with(GLOBEX));
        client.0.write_all(head.as_bytes()).await.unwrap();
        client.0.write_all(&[b'g'; 1020]).await.unwrap();
        slow.push(client);
    }
    // All of them have come when there is no room for more of the same tenant.
    loop {
        let mut more = Client::connect(server.address).await;
        if more.request("POST", &[TEXT, &with(GLOBEX)], &[b'g'; 100]).await.status == 503 {
            break;
        }
    }
    let mut other = Client::connect(server.address).await;
    sends(&mut other, ACME, &"a".repeat(400)).await;
    assert_eq!(slow[0].answer().await.status, 503, "the one that began first gave up");
    // The others go on.
    slow[1].0.write_all(b"gggg").await.unwrap();
    assert_eq!(slow[1].answer().await.status, 200);
    server.stop().await;
}
