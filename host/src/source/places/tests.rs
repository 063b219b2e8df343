//! Who gives up, as a truth table; and places over real sockets.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::standing::{self, At, Standing};
use super::{GIVEN_UP, GivenUp, Place, Places};
use crate::source::testing::{FakeSink, eventually};

/// Connections of a table: `sender what second`, where `-` is nobody known; `waits` and `receives` have the second in which that began. All were
/// opened in the order of the table, a second apart.
fn all(table: &[(&str, &str, u64)], begin: Instant) -> Vec<Standing> {
    let standing = |(n, (sender, what, second)): (usize, &(&str, &str, u64))| {
        let since = begin + Duration::from_secs(*second);
        let at = match *what {
            "waits" => At::Waits(since),
            "receives" => At::Receives(since),
            "stays" => At::Stays,
            _ => At::GaveUp,
        };
        let sender = (*sender != "-").then(|| Arc::from(*sender));
        Standing { sender, opened: begin + Duration::from_secs(n as u64), at }
    };
    table.iter().enumerate().map(standing).collect()
}

/// Who gives up, in second 9.
fn gives_up(table: &[(&str, &str, u64)], places: usize) -> Option<usize> {
    gives_up_in(9, table, places)
}

fn gives_up_in(second: u64, table: &[(&str, &str, u64)], places: usize) -> Option<usize> {
    let begin = Instant::now();
    standing::gives_up(&all(table, begin), places, begin + Duration::from_secs(second))
}

#[test]
fn the_sender_with_the_most_places_gives_up_what_is_idle_longest() {
    for (table, expected, why) in [
        (vec![("a", "waits", 5), ("a", "waits", 3), ("a", "waits", 4), ("b", "waits", 1)], Some(1), "a has the most"),
        (vec![("a", "waits", 5), ("b", "waits", 3), ("b", "waits", 4), ("b", "stays", 0)], Some(1), "b has the most"),
        (vec![("a", "waits", 2), ("a", "waits", 3)], Some(0), "one sender alone has its share too"),
        (vec![("a", "stays", 0), ("a", "stays", 0), ("b", "waits", 1)], None, "b has less than its share"),
        (vec![("a", "stays", 0), ("a", "stays", 0), ("b", "waits", 1), ("b", "stays", 0)], Some(2), "b has its share"),
        (vec![("a", "stays", 0), ("b", "stays", 0)], None, "nobody is idle"),
        (vec![("a", "gone", 0), ("a", "waits", 2), ("b", "stays", 0)], None, "a is about to have its share only"),
    ] {
        assert_eq!(gives_up(&table, table.len()), expected, "{why}");
    }
}

#[test]
fn what_is_on_its_way_goes_only_where_its_sender_has_more_than_its_share_and_nothing_idle() {
    for (table, expected, why) in [
        (vec![("a", "receives", 2), ("a", "receives", 1), ("a", "receives", 3), ("b", "stays", 0)], Some(1), "slowest"),
        (vec![("a", "receives", 1), ("a", "waits", 2), ("a", "receives", 3), ("b", "stays", 0)], Some(1), "idle first"),
        (vec![("a", "receives", 1), ("a", "receives", 2)], None, "alone, all places are its share"),
        (vec![("a", "receives", 1), ("b", "receives", 2)], None, "both have their share"),
    ] {
        assert_eq!(gives_up(&table, table.len()), expected, "{why}");
    }
}

#[test]
fn what_is_long_on_its_way_goes_where_whoever_waits_would_have_less_than_a_share() {
    let alone = [("a", "receives", 1), ("a", "receives", 0), ("a", "stays", 0)];
    assert_eq!(gives_up_in(9, &alone, 3), None, "not long");
    assert_eq!(gives_up_in(10, &alone, 3), Some(1), "who waits may be another sender, and would have none");
    let both = [("a", "receives", 0), ("a", "stays", 0), ("b", "receives", 0), ("b", "stays", 0)];
    assert_eq!(gives_up_in(99, &both, 4), Some(0), "with who waits, a third is a share");
    let one_is_free = [("a", "receives", 0), ("-", "receives", 9)];
    assert_eq!(
        gives_up_in(10, &one_is_free, 2),
        None,
        "somebody unknown has a place already, and is about to say who it is"
    );
}

#[test]
fn whoever_is_unknown_goes_first_but_for_a_part_of_the_places() {
    // Of 16 places, 2 are left to them.
    let mut table = vec![("a", "waits", 0); 13];
    table.extend([("-", "waits", 90), ("-", "receives", 80), ("-", "waits", 70)]);
    assert_eq!(gives_up(&table, 16), Some(13), "opened first, whatever it has sent since");
    table[15] = ("a", "waits", 1);
    assert_eq!(gives_up(&table, 16), Some(0), "two of them are spared");
    let table = [("-", "waits", 1), ("a", "stays", 0)];
    assert_eq!(gives_up(&table, 2), Some(0), "it has its share, and is idle");
    let table = [("-", "receives", 0)];
    assert_eq!(gives_up(&table, 1), None, "it is the only one, and about to say who it is");
}

struct Server {
    places: Places,
    listener: TcpListener,
    sink: Arc<FakeSink>,
    clients: Vec<TcpStream>,
}

impl Server {
    async fn with(connections: usize) -> Self {
        let sink = FakeSink::new();
        let places = Places::new("web".into(), Arc::new(Arc::clone(&sink)), connections);
        Self { places, listener: TcpListener::bind("127.0.0.1:0").await.unwrap(), sink, clients: vec![] }
    }

    async fn connects(&mut self) {
        self.clients.push(TcpStream::connect(self.listener.local_addr().unwrap()).await.unwrap());
    }

    async fn place(&mut self) -> Place {
        self.connects().await;
        self.places.next(&self.listener, &mut false).await.unwrap().2
    }
}

#[tokio::test]
async fn a_connection_past_the_limit_has_the_place_of_one_that_is_idle() {
    let mut server = Server::with(2).await;
    let (idle, busy) = (server.place().await, server.place().await);
    idle.is_of(None);
    idle.waits();
    busy.is_of(None);
    busy.stays().unwrap();
    server.connects().await;
    let mut said = false;
    let third = {
        let next = server.places.next(&server.listener, &mut said);
        tokio::pin!(next);
        tokio::select! {
            _ = &mut next => panic!("a place for a third"),
            () = idle.given_up() => {}
        }
        assert_eq!(idle.stays(), Err(GivenUp), "what comes now is not taken");
        drop(idle);
        next.await.unwrap().2
    };
    assert!(said);
    third.stays().unwrap();
    assert!(!busy.holder.given_up.is_cancelled());
    assert_eq!(server.sink.refused(), [(GIVEN_UP, 1)].into());
    assert_eq!(server.sink.connections(), 2);
}

#[tokio::test]
async fn a_connection_past_the_limit_waits_where_none_is_idle_until_one_is() {
    let mut server = Server::with(1).await;
    let first = Arc::new(server.place().await);
    server.connects().await;
    let (places, listener) = (server.places.clone(), server.listener);
    let second = tokio::spawn(async move { places.next(&listener, &mut false).await.map(|(_, _, place)| place) });
    let open = Arc::clone(&first.open);
    eventually("it waits", || (open.waiting.load(std::sync::atomic::Ordering::SeqCst) == 1).then_some(())).await;
    assert!(!first.holder.given_up.is_cancelled(), "it never said that it is idle");
    first.is_of(None);
    first.waits();
    first.given_up().await;
    drop(first);
    assert!(second.await.unwrap().is_some());
    assert_eq!(open.waiting.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(server.sink.refused(), [(GIVEN_UP, 1)].into());
}

#[tokio::test]
async fn a_sender_that_is_long_about_what_it_sends_on_all_places_gives_one_up() {
    let mut server = Server::with(2).await;
    let slow = [server.place().await, server.place().await];
    // Long in a moment: nothing else will happen that tells of it.
    let since = Instant::now() + Duration::from_millis(300) - standing::LONG;
    for place in &slow {
        place.is_of(Some(&"acme".into()));
        place.receives(since);
    }
    server.connects().await;
    let (places, listener) = (server.places.clone(), server.listener);
    let third = tokio::spawn(async move { places.next(&listener, &mut false).await.map(|(_, _, place)| place) });
    let [first, second] = slow;
    let first_goes = tokio::select! {
        () = first.given_up() => true,
        () = second.given_up() => false,
    };
    assert!(since.elapsed() >= standing::LONG);
    drop(if first_goes { first } else { second });
    assert!(third.await.unwrap().is_some());
}
