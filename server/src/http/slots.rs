//! Connection slots: bounds the number of connections, in total and per client.
//!
//! If no slot is free, a new connection evicts the connection that has been inactive longest: an
//! idle one, one whose request head is incomplete, or one whose body arrives slowly. So no kind can
//! block others. If all connections have a request in progress, a new one gets one of a few spare
//! slots. On a spare slot only `/healthz` is answered and every other request is rejected.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::http::connection::ClientConnection;
use crate::limits::HttpLimits;

/// Number of spare slots.
const SPARE_SLOTS: usize = 64;

/// The connection slots of a server.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    limits: HttpLimits,
    open: Mutex<OpenConnections>,
}

/// The open connections by number.
#[derive(Debug, Default)]
struct OpenConnections {
    next_number: u64,
    regular: BTreeMap<u64, ClientConnection>,
    spare: BTreeMap<u64, ClientConnection>,
    /// Number of regular connections of each client.
    by_client: HashMap<IpAddr, usize>,
}

/// A connection slot, released on drop.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    /// Whether only `/healthz` is answered.
    pub(super) is_spare: bool,
}

impl ConnectionSlots {
    pub(super) fn new(limits: HttpLimits) -> Arc<ConnectionSlots> {
        Arc::new(ConnectionSlots { limits, open: Mutex::default() })
    }

    /// Acquires a slot for a new connection; `None` if requests occupy even all spare slots.
    pub(super) fn acquire(self: &Arc<Self>, client: &ClientConnection) -> Option<ConnectionSlot> {
        let client_key = client_key(client);
        let mut open = self.open.lock();
        let client_count = open.by_client.get(&client_key).copied().unwrap_or(0);
        let is_regular = if client_count >= self.limits.connections_per_peer {
            open.evict(|other| self::client_key(other) == client_key)
        } else {
            open.regular.len() < self.limits.connections || open.evict(|_| true)
        };
        if !is_regular && open.spare.len() >= SPARE_SLOTS && !open.evict_spare() {
            return None;
        }
        let number = open.next_number;
        open.next_number += 1;
        if is_regular {
            open.regular.insert(number, client.clone());
            *open.by_client.entry(client_key).or_default() += 1;
        } else {
            open.spare.insert(number, client.clone());
        }
        Some(ConnectionSlot { slots: self.clone(), number, is_spare: !is_regular })
    }
}

impl OpenConnections {
    /// Evicts the longest inactive regular connection that matches, if there is one.
    fn evict(&mut self, matches: impl Fn(&ClientConnection) -> bool) -> bool {
        let number = longest_inactive(&self.regular, matches);
        number.and_then(|number| self.remove(number)).is_some_and(|client| client.evict())
    }

    fn evict_spare(&mut self) -> bool {
        let number = longest_inactive(&self.spare, |_| true);
        number.and_then(|number| self.remove(number)).is_some_and(|client| client.evict())
    }

    fn remove(&mut self, number: u64) -> Option<ClientConnection> {
        let Some(client) = self.regular.remove(&number) else { return self.spare.remove(&number) };
        let client_key = client_key(&client);
        if let Some(count) = self.by_client.get_mut(&client_key) {
            *count -= 1;
            if *count == 0 {
                self.by_client.remove(&client_key);
            }
        }
        Some(client)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        // No effect if another connection has evicted this one.
        self.slots.open.lock().remove(self.number);
    }
}

/// The matching connection that has been inactive longest.
fn longest_inactive(
    connections: &BTreeMap<u64, ClientConnection>,
    matches: impl Fn(&ClientConnection) -> bool,
) -> Option<u64> {
    let inactive = connections.iter().filter(|(_, client)| client.is_inactive() && matches(client));
    inactive
        .min_by_key(|(number, client)| (client.last_activity(), **number))
        .map(|(number, _)| *number)
}

/// The client that connection limits count: an IPv4 address, or the /64 network of an IPv6 address,
/// because a host chooses the lower half freely.
fn client_key(client: &ClientConnection) -> IpAddr {
    match client.address.ip().to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: &str) -> ClientConnection {
        ClientConnection::new(address.parse().unwrap())
    }

    fn slots(connections: usize, connections_per_peer: usize) -> Arc<ConnectionSlots> {
        ConnectionSlots::new(HttpLimits {
            connections,
            connections_per_peer,
            ..HttpLimits::default()
        })
    }

    #[test]
    fn inactive_connections_are_evicted() {
        let slots = slots(3, 2);
        let (a, b, c) = (client("10.0.0.1:1"), client("10.0.0.1:2"), client("10.0.0.2:1"));
        let acquire = |client: &ClientConnection| slots.acquire(client).unwrap();
        let held = [acquire(&a), acquire(&b), acquire(&c)];
        assert!(held.iter().all(|slot| !slot.is_spare));
        // A client at its own limit evicts one of its own connections, although others are older or
        // free.
        let active_request = a.begin_request();
        let d = client("10.0.0.1:3");
        let held_d = acquire(&d);
        assert!(!held_d.is_spare && b.is_evicted() && !a.is_evicted() && !c.is_evicted());
        // If all slots are taken, the connection that has been inactive longest is evicted.
        drop(c.begin_request());
        drop(active_request);
        let e = client("10.0.0.3:1");
        assert!(!acquire(&e).is_spare && d.is_evicted() && !a.is_evicted() && !c.is_evicted());
        // Dropping an evicted slot does not free it twice.
        drop(held_d);
        assert_eq!(slots.open.lock().regular.len(), 2);
        drop(held);
        let open = slots.open.lock();
        assert!(open.regular.is_empty() && open.by_client.is_empty() && open.spare.is_empty());
    }

    #[test]
    fn spare_slots_are_bounded_and_reused() {
        let slots = slots(2, 1);
        let busy = [client("10.0.0.1:1"), client("10.0.0.2:1")];
        let held: Vec<_> = busy
            .iter()
            .map(|client| (slots.acquire(client).unwrap(), client.begin_request()))
            .collect();
        let spare: Vec<ClientConnection> = (0..SPARE_SLOTS as u16 + 1)
            .map(|port| client(&format!("10.0.0.1:{}", port + 2)))
            .collect();
        let held_spare: Vec<ConnectionSlot> =
            spare.iter().map(|client| slots.acquire(client).unwrap()).collect();
        assert!(held_spare.iter().all(|slot| slot.is_spare));
        assert!(spare[0].is_evicted() && !spare[1].is_evicted());
        let active_request: Vec<_> = spare.iter().map(ClientConnection::begin_request).collect();
        assert!(slots.acquire(&client("10.0.0.3:1")).is_none());
        drop(active_request);
        drop(held);
        assert!(!slots.acquire(&client("10.0.0.3:1")).unwrap().is_spare);
    }

    #[test]
    fn ipv6_peers_are_networks() {
        let client_key_of = |address: &str| client_key(&client(address)).to_string();
        assert_eq!(client_key_of("[2001:db8:1:2:3:4:5:6]:1"), "2001:db8:1:2::");
        assert_eq!(client_key_of("[::ffff:10.0.0.1]:1"), "10.0.0.1");
        assert_eq!(client_key_of("10.0.0.1:7"), "10.0.0.1");
    }
}
