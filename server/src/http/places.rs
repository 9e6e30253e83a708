//! How many connections there may be, in all and of one peer.
//!
//! A connection that finds no place takes that of the one on which nothing has been asked for longest:
//! idle, or with a head that is only half there. So neither can keep others out. Where requests are being
//! answered on all of them, further connections get a spare place, of which there are few; there
//! `/healthz` is answered and everything else refused.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::http::connection::Peer;
use crate::limits::HttpLimits;

/// Spare places.
const SPARE: usize = 64;

/// The places of a server.
#[derive(Debug)]
pub(super) struct Places {
    limits: HttpLimits,
    open: Mutex<Open>,
}

/// The connections that have a place, by number.
#[derive(Debug, Default)]
struct Open {
    next: u64,
    full: BTreeMap<u64, Peer>,
    spare: BTreeMap<u64, Peer>,
    /// How many of those with a full place each peer has.
    by_peer: HashMap<IpAddr, usize>,
}

/// A place, which is free when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    /// Whether only `/healthz` is answered.
    pub(super) is_spare: bool,
}

impl Places {
    pub(super) fn new(limits: HttpLimits) -> Arc<Places> {
        Arc::new(Places { limits, open: Mutex::default() })
    }

    /// A place for a new connection; none if even the spare ones are taken by requests.
    pub(super) fn enter(self: &Arc<Self>, peer: &Peer) -> Option<Place> {
        let owner = owner(peer);
        let mut open = self.open.lock();
        let own = open.by_peer.get(&owner).copied().unwrap_or(0);
        let is_free = if own >= self.limits.connections_per_peer {
            open.evict(|other| self::owner(other) == owner)
        } else {
            open.full.len() < self.limits.connections || open.evict(|_| true)
        };
        if !is_free && open.spare.len() >= SPARE && !open.evict_spare() {
            return None;
        }
        let number = open.next;
        open.next += 1;
        if is_free {
            open.full.insert(number, peer.clone());
            *open.by_peer.entry(owner).or_default() += 1;
        } else {
            open.spare.insert(number, peer.clone());
        }
        Some(Place { places: self.clone(), number, is_spare: !is_free })
    }
}

impl Open {
    /// Takes the place of a connection of a kind on which nothing is asked, if there is one.
    fn evict(&mut self, is_of_kind: impl Fn(&Peer) -> bool) -> bool {
        let number = longest_quiet(&self.full, is_of_kind);
        number.and_then(|number| self.remove(number)).is_some_and(|peer| peer.evict())
    }

    fn evict_spare(&mut self) -> bool {
        let number = longest_quiet(&self.spare, |_| true);
        number.and_then(|number| self.remove(number)).is_some_and(|peer| peer.evict())
    }

    fn remove(&mut self, number: u64) -> Option<Peer> {
        let Some(peer) = self.full.remove(&number) else { return self.spare.remove(&number) };
        let owner = owner(&peer);
        if let Some(count) = self.by_peer.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.by_peer.remove(&owner);
            }
        }
        Some(peer)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // None if another connection has it already.
        self.places.open.lock().remove(self.number);
    }
}

/// The connection of a kind on which nothing has been asked for longest.
fn longest_quiet(
    connections: &BTreeMap<u64, Peer>,
    is_of_kind: impl Fn(&Peer) -> bool,
) -> Option<u64> {
    let quiet = connections.iter().filter(|(_, peer)| peer.is_quiet() && is_of_kind(peer));
    quiet.min_by_key(|(number, peer)| (peer.last(), **number)).map(|(number, _)| *number)
}

/// Who has a connection: an IPv4 address, or the network of an IPv6 address, whose lower half its
/// owner chooses.
fn owner(peer: &Peer) -> IpAddr {
    match peer.address.ip().to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::new(address.parse().unwrap())
    }

    fn places(connections: usize, connections_per_peer: usize) -> Arc<Places> {
        Places::new(HttpLimits { connections, connections_per_peer, ..HttpLimits::default() })
    }

    #[test]
    fn places_are_taken_from_those_that_ask_nothing() {
        let places = places(3, 2);
        let (a, b, c) = (peer("10.0.0.1:1"), peer("10.0.0.1:2"), peer("10.0.0.2:1"));
        let enter = |peer: &Peer| places.enter(peer).unwrap();
        let held = [enter(&a), enter(&b), enter(&c)];
        assert!(held.iter().all(|place| !place.is_spare));
        // A peer at its own bound takes one of its own places, although others are older or free.
        let answering = a.answering();
        let d = peer("10.0.0.1:3");
        let held_d = enter(&d);
        assert!(!held_d.is_spare && b.is_evicted() && !a.is_evicted() && !c.is_evicted());
        // Where all are taken, anyone's: the one that has been quiet for longest, whichever came first.
        drop(c.answering());
        drop(answering);
        let e = peer("10.0.0.3:1");
        assert!(!enter(&e).is_spare && d.is_evicted() && !a.is_evicted() && !c.is_evicted());
        // What was evicted is not freed twice.
        drop(held_d);
        assert_eq!(places.open.lock().full.len(), 2);
        drop(held);
        let open = places.open.lock();
        assert!(open.full.is_empty() && open.by_peer.is_empty() && open.spare.is_empty());
    }

    #[test]
    fn spare_places_are_few_and_given_on() {
        let places = places(2, 1);
        let busy = [peer("10.0.0.1:1"), peer("10.0.0.2:1")];
        let held: Vec<_> =
            busy.iter().map(|peer| (places.enter(peer).unwrap(), peer.answering())).collect();
        let spare: Vec<Peer> =
            (0..SPARE as u16 + 1).map(|port| peer(&format!("10.0.0.1:{}", port + 2))).collect();
        let held_spare: Vec<Place> = spare.iter().map(|peer| places.enter(peer).unwrap()).collect();
        assert!(held_spare.iter().all(|place| place.is_spare));
        assert!(spare[0].is_evicted() && !spare[1].is_evicted());
        let answering: Vec<_> = spare.iter().map(Peer::answering).collect();
        assert!(places.enter(&peer("10.0.0.3:1")).is_none());
        drop(answering);
        drop(held);
        assert!(!places.enter(&peer("10.0.0.3:1")).unwrap().is_spare);
    }

    #[test]
    fn peers_are_networks() {
        let owner_of = |address: &str| owner(&peer(address)).to_string();
        assert_eq!(owner_of("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::");
        assert_eq!(owner_of("[::ffff:10.0.0.1]:1"), "10.0.0.1");
        assert_eq!(owner_of("10.0.0.1:7"), "10.0.0.1");
    }
}
