//! Which connection gives its place up where all are taken and one more comes.
//!
//! Places are shared out by sender, not first come: who has the most of them gives up one, of those that are idle the one that is so longest. What
//! nobody known has sent on yet is a sender of its own, and the first to go, but for a part of the places that is left to those who are
//! about to say who they are.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The part of the places, as one in so many, that connections keep on which nobody known has sent yet.
const UNKNOWN_KEEP: usize = 8;

/// How long a request may be on its way where its sender has all places, and one more waits. Nobody knows who that is: it may be another
/// sender, who has none.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// What a connection is, as far as its place goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    /// Who sends on it, once that is known.
    pub(super) sender: Option<Arc<str>>,
    pub(super) opened: Instant,
    pub(super) at: At,
}

/// What a connection is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// Nothing, since then.
    Waits(Instant),
    /// Something that began to come then.
    Receives(Instant),
    /// Something that must be ended.
    Stays,
    /// It is closed already, and its place is about to be free.
    GaveUp,
}

/// What a sender has.
#[derive(Default)]
struct Held {
    places: usize,
    /// The connections that wait, and those that receive, each that has been at it longest.
    waits: Option<(Instant, usize)>,
    receives: Option<(Instant, usize)>,
}

/// The index of the connection that gives up its place; none where none should.
///
/// Only a sender with its share of the places or more is asked (all places, divided by those who have one): first who has most. Of one with more
/// than its share, a connection whose request is still on its way may go too, where none is idle: else a sender that sends very slowly on
/// each would have all of them. What has been on its way for [`LONG`] goes as if whoever waits were a sender more.
pub(super) fn gives_up(all: &[Standing], places: usize, now: Instant) -> Option<usize> {
    let mut held: HashMap<Option<&str>, Held> = HashMap::new();
    for (n, standing) in all.iter().enumerate() {
        let of = held.entry(standing.sender.as_deref()).or_default();
        // Whoever is unknown does not become younger by sending what is refused.
        let since = |since| if standing.sender.is_some() { since } else { standing.opened };
        match standing.at {
            At::Waits(at) => keep_oldest(&mut of.waits, since(at), n),
            At::Receives(at) => keep_oldest(&mut of.receives, since(at), n),
            At::Stays => {}
            At::GaveUp => continue,
        }
        of.places += 1;
    }
    let senders = held.values().filter(|held| held.places > 0).count();
    let and_who_waits = senders + usize::from(held.get(&None).is_none_or(|unknown| unknown.places == 0));
    let mut held: Vec<(Option<&str>, Held)> = held.into_iter().collect();
    let is_first =
        |(sender, held): &(Option<&str>, Held)| sender.is_none() && held.places > (places / UNKNOWN_KEEP).max(1);
    // Names decide between those who have as many, so that what happens can be foretold; who has none comes first.
    held.sort_by(|a, b| (is_first(b), b.1.places).cmp(&(is_first(a), a.1.places)).then(a.0.cmp(&b.0)));
    held.iter().find_map(|of @ (sender, held)| {
        let (share, is_first) = (held.places * senders, is_first(of));
        if share < places && !is_first {
            return None;
        }
        let is_long = |since: Instant| now.saturating_duration_since(since) >= LONG;
        let in_hand = held.receives.filter(|(since, _)| {
            is_first || share > places || (held.places * and_who_waits > places && is_long(*since))
        });
        let oldest =
            if sender.is_none() { held.waits.into_iter().chain(in_hand).min() } else { held.waits.or(in_hand) };
        oldest.map(|(_, n)| n)
    })
}

fn keep_oldest(oldest: &mut Option<(Instant, usize)>, since: Instant, n: usize) {
    if oldest.is_none_or(|(earlier, _)| since < earlier) {
        *oldest = Some((since, n));
    }
}
