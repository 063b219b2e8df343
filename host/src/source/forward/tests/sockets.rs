//! Over TCP and Unix sockets.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{UdpSocket, UnixStream};

use super::pack::*;
use super::support::{Client, Server, config, source};
use crate::config::ForwardTag;
use crate::intake::Refused;
use crate::record::BodyKind;
use crate::source::testing::{FakeSink, eventually};
use crate::source::{SourceError, spawn_into};

fn log(text: &str) -> String {
    format!("{{\"log\":\"{text}\"}}")
}

/// v1, "Response Messages": `{"ack": chunk}`, and only to those who ask.
#[tokio::test]
async fn who_asks_is_answered_when_its_events_are_durable_also_when_stopping() {
    let server = Server::start();
    server.sink.allow(0);
    let mut client = server.connect().await;
    client.send(&asked("t", "one", "c1")).await;
    eventually("the chunk is under way", || (server.sink.handed_in() == 1).then_some(())).await;
    client.heard_nothing();
    server.shutdown.cancel();
    client.heard_nothing();
    server.sink.allow(1);
    client.hears(&ack("c1")).await;
    client.is_closed().await;
    assert_eq!(server.sink.lines(), [log("one")]);
    server.stop().await;
}

#[tokio::test]
async fn who_does_not_ask_is_told_nothing() {
    let server = Server::start();
    let mut client = server.connect().await;
    client.send(&[told("a", "1"), nil(), told("b", "2"), told("a", "3")].concat()).await;
    server.sink.wait_for(3).await;
    client.heard_nothing();
    let chunks = server.sink.chunks();
    assert!(chunks.iter().all(|chunk| chunk.meta().kind == BodyKind::Json));
    let mut tags: Vec<_> = chunks.iter().map(|chunk| (chunk.meta().tag.to_string(), chunk.meta().records)).collect();
    tags.sort();
    assert_eq!(tags, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    assert!(chunks.iter().all(|chunk| chunk.meta().first_ns == 1_000_000_000));
    client.0.shutdown().await.unwrap();
    client.is_closed().await;
    server.stop().await;
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_messages() {
    let server = Server::start();
    let mut client = server.connect().await;
    let many: Vec<u8> = (0..500).flat_map(|n| asked(&format!("t{}", n % 7), "x", &n.to_string())).collect();
    client.send(&many).await;
    let answers: Vec<u8> = (0..500).flat_map(|n| ack(&n.to_string())).collect();
    client.hears(&answers).await;
    assert_eq!(server.sink.lines().len(), 500);
    server.stop().await;
}

#[tokio::test]
async fn a_message_may_come_byte_by_byte() {
    let server = Server::start();
    let mut client = server.connect().await;
    for byte in asked("t", "slow", "c") {
        client.send(&[byte]).await;
    }
    client.hears(&ack("c")).await;
    assert_eq!(server.sink.lines(), [log("slow")]);
    server.stop().await;
}

#[tokio::test]
async fn large_and_compressed_messages_keep_their_place_among_small_ones() {
    let server = Server::start();
    let mut client = server.connect().await;
    let entries: Vec<Vec<u8>> = (0..20_000).map(|n| entry(1, &n.to_string())).collect();
    let large = list(&[text("t"), list(&entries), wants_ack("large")]);
    assert!(large.len() > 200_000);
    let options = map(&[(text("chunk"), text("packed")), (text("compressed"), text("zstd"))]);
    let packed = list(&[text("t"), binary(&zstd(&entries.concat())), options]);
    client.send(&[asked("t", "first", "first"), large, packed, asked("t", "last", "last")].concat()).await;
    client.hears(&["first", "large", "packed", "last"].map(ack).concat()).await;
    let expected: Vec<String> = ["first".to_owned()]
        .into_iter()
        .chain((0..20_000).map(|n| n.to_string()))
        .chain((0..20_000).map(|n| n.to_string()))
        .chain(["last".to_owned()])
        .map(|text| log(&text))
        .collect();
    assert!(server.sink.lines() == expected);
    server.stop().await;
}

#[tokio::test]
async fn a_message_without_events_is_answered_too() {
    let server = Server::start();
    let mut client = server.connect().await;
    client.send(&list(&[text("t"), list(&[]), wants_ack("empty")])).await;
    client.hears(&ack("empty")).await;
    assert_eq!(server.sink.handed_in(), 0);
    server.stop().await;
}

/// v1, "Server": "MAY disconnect … when it has received an invalid message".
#[tokio::test]
async fn a_message_that_is_none_ends_its_connection_and_nothing_else() {
    let server = Server::start();
    let mut other = server.connect().await;
    let broken = list(&[text("t"), list(&[entry(1, "not taken"), int(5)]), wants_ack("broken")]);
    for (bytes, reason) in [
        (broken, "malformed"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "malformed"),
        (vec![0xc1], "malformed"),
        (vec![0x91; 300], "too_deep"),
        (list(&[text("t"), binary(b""), map(&[(text("fluent_signal"), int(1))])]), "unsupported"),
        (vec![0x92, 0xa1, b't', 0xc6, 0, 0x40, 0, 1], "too_large"),
    ] {
        let before = server.sink.refused().get(reason).copied().unwrap_or(0);
        let mut client = server.connect().await;
        // What came before stays, and is answered.
        client.send(&[asked("t", "before", "before"), bytes].concat()).await;
        client.hears(&ack("before")).await;
        client.is_closed().await;
        assert_eq!(server.sink.refused().get(reason).copied(), Some(before + 1), "{reason}");
    }
    other.send(&asked("t", "other", "other")).await;
    other.hears(&ack("other")).await;
    let mut expected = vec![log("before"); 6];
    expected.push(log("other"));
    assert_eq!(server.sink.lines(), expected);
    server.stop().await;
}

#[tokio::test]
async fn nothing_is_read_or_answered_while_there_is_no_room_and_that_is_counted() {
    let server = Server::start();
    let mut client = server.connect().await;
    let full = Refused::Full { what: "output x".into(), retry_after: Duration::from_millis(1) };
    for _ in 0..20 {
        server.sink.refuse_next(full.clone());
    }
    client.send(&asked("t", "one", "c1")).await;
    client.hears(&ack("c1")).await;
    // Asked again and again, counted once.
    assert_eq!(server.sink.refused(), [("queue_full", 1)].into());
    assert_eq!(server.sink.lines(), [log("one")]);
    server.stop().await;
}

#[tokio::test]
async fn what_the_disk_fails_later_is_handed_in_again_before_it_is_answered() {
    let server = Server::start();
    let mut client = server.connect().await;
    server.sink.fail_next(Refused::DiskFull { retry_after: Duration::ZERO });
    server.sink.fail_next(Refused::Failed("worn out".into()));
    client.send(&asked("t", "one", "c1")).await;
    client.hears(&ack("c1")).await;
    assert_eq!(server.sink.refused(), [("disk_full", 1), ("journal_failed", 1)].into());
    assert_eq!(server.sink.lines(), [log("one")]);
    server.stop().await;
}

#[tokio::test]
async fn what_the_journal_could_never_hold_closes_its_connection_and_is_not_answered() {
    let server = Server::start();
    for at_once in [true, false] {
        let too_large = Refused::TooLarge { bytes: 600_000, limit: 524_288 };
        match at_once {
            true => server.sink.refuse_next(too_large),
            false => server.sink.fail_next(too_large),
        }
        let mut client = server.connect().await;
        client.send(&asked("t", "one", "c1")).await;
        client.is_closed().await;
    }
    assert_eq!(server.sink.refused(), [("too_large", 2)].into());
    assert!(server.sink.lines().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_sender_that_is_not_kept_up_with_has_to_wait() {
    let server = Server::start();
    server.sink.allow(0);
    let mut client = server.connect().await;
    let block = told("t", &"x".repeat(60_000));
    let mut sent = 0_usize;
    // The system's buffers take a few MiB.
    while let Ok(written) = tokio::time::timeout(Duration::from_secs(2), client.0.write_all(&block)).await {
        written.unwrap();
        sent += block.len();
        assert!(sent < 200 << 20, "{sent} bytes were read that could not be kept");
    }
    server.sink.allow(u64::MAX);
    // The last one was cut off.
    let whole = sent / block.len();
    eventually("the rest is taken", || (server.sink.lines().len() >= whole).then_some(())).await;
    drop(client);
    server.stop().await;
}

/// Each may have 8 MiB under way; all together what the source has room for, which is 32 MiB here, and a chunk each.
#[tokio::test]
async fn many_senders_together_take_no_more_than_there_is_room_for() {
    let server = Server::start();
    server.sink.allow(0);
    let address = server.address();
    let block: Vec<u8> = (0..32).flat_map(|_| told("t", &"x".repeat(32 << 10))).collect();
    let senders: Vec<_> = (0..12)
        .map(|_| {
            let block = block.clone();
            tokio::spawn(async move {
                let mut client = Client(tokio::net::TcpStream::connect(address).await.unwrap());
                for _ in 0..8 {
                    client.send(&block).await;
                }
                client.0.shutdown().await.unwrap();
                client.is_closed().await;
            })
        })
        .collect();
    eventually("most of the room is taken", || (server.sink.most_under_way() > 28 << 20).then_some(())).await;
    server.sink.allow(u64::MAX);
    for sender in senders {
        sender.await.unwrap();
    }
    assert_eq!(server.sink.lines().len(), 12 * 8 * 32);
    let most = server.sink.most_under_way();
    assert!(most <= (32 + 12 * 2) << 20, "{most} bytes were under way at once");
    server.stop().await;
}

#[tokio::test]
async fn a_stop_while_there_is_no_room_answers_nothing_and_does_not_wait() {
    let server = Server::start();
    let mut client = server.connect().await;
    let full = Refused::Full { what: "output x".into(), retry_after: Duration::from_secs(3600) };
    server.sink.refuse_next(full.clone());
    server.sink.refuse_next(full);
    client.send(&asked("t", "one", "c1")).await;
    eventually("it waits", || server.sink.refused().get("queue_full").copied()).await;
    let sink = server.sink.clone();
    server.stop().await;
    client.is_closed().await;
    assert!(sink.lines().is_empty());
}

#[tokio::test]
async fn a_stop_waits_neither_for_idle_connections_nor_for_half_a_message() {
    let server = Server::start();
    let _idle = server.connect().await;
    let mut half = server.connect().await;
    half.send(&[asked("t", "whole", "c"), told("t", "half")[..5].to_vec()].concat()).await;
    half.hears(&ack("c")).await;
    let sink = server.sink.clone();
    server.stop().await;
    half.is_closed().await;
    assert_eq!(sink.lines(), [log("whole")]);
}

#[tokio::test]
async fn tags_are_the_ones_that_were_sent_with_a_prefix_or_the_sources() {
    for (tag, sent, expected) in [
        (ForwardTag::Sent { prefix: String::new() }, "app.x", "app.x"),
        (ForwardTag::Sent { prefix: "edge.".into() }, "app.x", "edge.app.x"),
        (ForwardTag::Sent { prefix: "edge.".into() }, "", "edge."),
        (ForwardTag::Sent { prefix: String::new() }, "", "fw.tag"),
        (ForwardTag::OfSource, "app.x", "fw.tag"),
    ] {
        let server = Server::start_with(|forward| forward.tag = tag);
        let mut client = server.connect().await;
        client.send(&asked(sent, "x", "c")).await;
        client.hears(&ack("c")).await;
        assert_eq!(&*server.sink.chunks()[0].meta().tag, expected);
        server.stop().await;
    }
}

#[tokio::test]
async fn connections_past_the_limit_wait_until_one_ends() {
    let server = Server::start_with(|forward| forward.max_connections = 1);
    let mut first = server.connect().await;
    first.send(&asked("t", "one", "c")).await;
    first.hears(&ack("c")).await;
    assert_eq!(server.sink.connections(), 1);
    let mut second = server.connect().await;
    second.send(&asked("t", "three", "c")).await;
    first.send(&asked("t", "two", "c")).await;
    first.hears(&ack("c")).await;
    second.heard_nothing();
    drop(first);
    second.hears(&ack("c")).await;
    assert_eq!(server.sink.lines(), ["one", "two", "three"].map(log));
    server.stop().await;
}

#[tokio::test]
async fn idle_connections_are_closed_where_that_is_asked_for() {
    let server = Server::start_with(|forward| forward.idle_timeout = Some(Duration::from_millis(200)));
    let mut client = server.connect().await;
    client.send(&asked("t", "one", "c")).await;
    client.hears(&ack("c")).await;
    client.is_closed().await;
    assert!(server.sink.refused().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_connection_that_waits_for_the_disk_is_not_idle() {
    let server = Server::start_with(|forward| forward.idle_timeout = Some(Duration::from_millis(500)));
    server.sink.allow(0);
    let mut waiting = server.connect().await;
    waiting.send(&asked("t", "one", "c")).await;
    eventually("the chunk is under way", || (server.sink.handed_in() == 1).then_some(())).await;
    let mut idle = server.connect().await;
    idle.is_closed().await;
    waiting.heard_nothing();
    server.sink.allow(1);
    waiting.hears(&ack("c")).await;
    server.stop().await;
}

/// v1, "Heartbeat Message": a byte 0x00 by UDP to the same port, and one back.
#[tokio::test]
async fn heartbeats_by_udp_are_answered_where_that_is_asked_for() {
    let server = Server::start_with(|forward| forward.udp_heartbeat = true);
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for beat in [&[0][..], &[0; 1000], b""] {
        socket.send_to(beat, server.address()).await.unwrap();
        let mut answer = [7; 100];
        let received = tokio::time::timeout(Duration::from_secs(30), socket.recv_from(&mut answer)).await;
        let (length, from) = received.expect("no answer").unwrap();
        assert_eq!((&answer[..length], from), (&[0][..], server.address()));
    }
    server.stop().await;
}

#[tokio::test]
async fn a_unix_socket_is_listened_on_and_goes_away_with_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("forward.sock");
    let start = || {
        Server::start_with(|forward| {
            (forward.listen, forward.unix_path, forward.unix_perm) = (None, Some(path.clone()), Some(0o620));
        })
    };
    // One that a killed process left behind is no hindrance.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = start();
    assert_eq!(server.running.address(), None);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o620);
    let mut client = Client(UnixStream::connect(&path).await.unwrap());
    client.send(&asked("t", "one", "c")).await;
    client.hears(&ack("c")).await;
    server.stop().await;
    assert!(!path.exists());
}

#[tokio::test]
async fn what_cannot_be_listened_on_is_an_error_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (file, socket) = (folder.path().join("file"), folder.path().join("socket"));
    std::fs::write(&file, "mine").unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let error = |path: std::path::PathBuf| {
        let forward = crate::config::ForwardConfig { listen: None, unix_path: Some(path), ..config() };
        let started = spawn_into(&source(forward), std::sync::Arc::new(FakeSink::new()), Default::default());
        started.unwrap_err().to_string()
    };
    assert!(error(file.clone()).contains("something that is no socket is there"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "mine");
    assert!(error(socket).contains("another process listens there"));
    assert!(error(folder.path().join("none/socket")).contains("make it, for this user to write in"));
    let server = Server::start();
    let forward = crate::config::ForwardConfig { listen: Some(server.address()), ..config() };
    let started = spawn_into(&source(forward), std::sync::Arc::new(FakeSink::new()), Default::default());
    assert!(matches!(started, Err(SourceError::Listen { .. })));
    server.stop().await;
}

#[tokio::test]
async fn many_connections_are_served_at_once() {
    let server = Server::start();
    let address = server.address();
    let clients: Vec<_> = (0..40)
        .map(|n| {
            tokio::spawn(async move {
                let mut client = Client(tokio::net::TcpStream::connect(address).await.unwrap());
                for message in 0..20 {
                    client.send(&asked("t", &format!("{n}-{message}"), "c")).await;
                    client.hears(&ack("c")).await;
                }
            })
        })
        .collect();
    for client in clients {
        client.await.unwrap();
    }
    let mut lines = server.sink.lines();
    lines.sort();
    let mut expected: Vec<_> = (0..40).flat_map(|n| (0..20).map(move |m| log(&format!("{n}-{m}")))).collect();
    expected.sort();
    assert_eq!(lines, expected);
    server.stop().await;
}
