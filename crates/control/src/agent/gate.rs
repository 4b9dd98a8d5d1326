//! Limits on unauthenticated connections, and which one is closed when a limit is reached.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::oneshot;

use super::budget::{Budget, network};

/// Most unauthenticated connections, if the process may open twice as many files.
const MAX_TOTAL: usize = 4_096;

/// TLS handshakes of one address: so many at once, and so many in a second after that. One costs some tenths of a millisecond of
/// the agent's thread.
const HANDSHAKES: u32 = 2_000;
const HANDSHAKES_PER_SECOND: f64 = 200.0;

/// The unauthenticated connections at one agent's port.
pub(super) struct Gate {
    max_total: usize,
    /// From one address, or from one IPv6 network of 64 bits.
    max_per_source: usize,
    state: Mutex<State>,
}

struct State {
    next: u64,
    count: usize,
    /// Dropping a connection's sender closes it. Numbers grow, so the first one is the oldest.
    unauthenticated: HashMap<IpAddr, BTreeMap<u64, oneshot::Sender<()>>>,
    handshakes: Budget,
}

/// One unauthenticated connection; dropping it makes room for another.
pub(super) struct Unauthenticated {
    gate: Arc<Gate>,
    from: IpAddr,
    number: u64,
    ended: oneshot::Receiver<()>,
}

impl Gate {
    /// For a process that may open `files` files: half of them are left for authenticated connections.
    pub(super) fn new(files: u64) -> Arc<Self> {
        let half = usize::try_from(files / 2).unwrap_or(usize::MAX);
        Self::bounded(half.clamp(2, MAX_TOTAL))
    }

    fn bounded(max_total: usize) -> Arc<Self> {
        let handshakes = Budget::new(HANDSHAKES, HANDSHAKES_PER_SECOND);
        let state = State { next: 0, count: 0, unauthenticated: HashMap::new(), handshakes };
        Arc::new(Self { max_total, max_per_source: max_total / 2, state: Mutex::new(state) })
    }

    /// Admits a connection. At a limit, the oldest connection of its address is closed, or of the address with most connections.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Unauthenticated {
        let from = network(peer);
        let mut state = self.lock();
        if state.unauthenticated.get(&from).is_some_and(|own| own.len() >= self.max_per_source) {
            state.close_oldest(from);
        } else if state.count >= self.max_total
            && let Some(largest) = state.largest_source()
        {
            state.close_oldest(largest);
        }
        let (keep_open, ended) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.count += 1;
        state.unauthenticated.entry(from).or_default().insert(number, keep_open);
        Unauthenticated { gate: self.clone(), from, number, ended }
    }

    /// Whether `peer` may begin a TLS handshake now; it counts as begun.
    pub(super) fn may_shake_hands(&self, peer: IpAddr, now: Instant) -> bool {
        self.lock().handshakes.spend(peer, now)
    }

    /// Panics if more than `most` connections are counted, or the memory is not bounded.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn check(&self, most: usize) {
        let state = self.lock();
        let held = state.unauthenticated.values().map(BTreeMap::len).collect::<Vec<_>>();
        assert!(state.count <= most && held.iter().sum::<usize>() == state.count, "{held:?}, {} counted", state.count);
        assert!(held.iter().all(|own| (1..=self.max_per_source).contains(own)), "{held:?}");
        state.handshakes.check();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The address with most connections; of several, the one with the oldest connection.
    fn largest_source(&self) -> Option<IpAddr> {
        let oldest = |own: &BTreeMap<u64, _>| own.keys().next().copied();
        let most = self.unauthenticated.iter().max_by_key(|(_, own)| (own.len(), std::cmp::Reverse(oldest(own))));
        most.map(|(from, _)| *from)
    }

    fn close_oldest(&mut self, from: IpAddr) {
        if let Some(number) = self.unauthenticated.get(&from).and_then(|own| own.keys().next().copied()) {
            self.remove(from, number);
        }
    }

    fn remove(&mut self, from: IpAddr, number: u64) {
        let Some(own) = self.unauthenticated.get_mut(&from) else { return };
        self.count -= usize::from(own.remove(&number).is_some());
        if own.is_empty() {
            self.unauthenticated.remove(&from);
        }
    }
}

impl Unauthenticated {
    /// Completes when the connection must be closed.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.ended).await;
    }
}

impl Drop for Unauthenticated {
    fn drop(&mut self) {
        self.gate.lock().remove(self.from, self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open(connection: &mut Unauthenticated) -> bool {
        connection.ended.try_recv() == Err(oneshot::error::TryRecvError::Empty)
    }

    fn enter(gate: &Arc<Gate>, from: &str, count: usize) -> Vec<Unauthenticated> {
        (0..count).map(|_| gate.enter(from.parse().unwrap())).collect()
    }

    #[test]
    fn one_address_has_half_and_its_own_oldest_is_closed() {
        let gate = Gate::bounded(8);
        let mut one = enter(&gate, "192.0.2.1", 6);
        let mut other = enter(&gate, "192.0.2.2", 4);
        let open: Vec<bool> = one.iter_mut().chain(&mut other).map(is_open).collect();
        assert_eq!(open, [false, false, true, true, true, true, true, true, true, true]);
        assert_eq!(gate.lock().count, 8);
    }

    #[test]
    fn at_the_total_limit_the_oldest_of_the_largest_source_is_closed() {
        let gate = Gate::bounded(8);
        let mut most = enter(&gate, "2001:db8:0:1::1", 2);
        most.extend(enter(&gate, "2001:db8:0:1:ffff::2", 2));
        let mut others: Vec<Unauthenticated> =
            (1..=5).flat_map(|host| enter(&gate, &format!("192.0.2.{host}"), 1)).collect();
        let open: Vec<bool> = most.iter_mut().map(is_open).collect();
        assert_eq!(open, [false, true, true, true], "a network of 64 bits is one address");
        assert!(others.iter_mut().all(is_open));
        // Of many with one each, the oldest is closed.
        drop(most);
        let mut more: Vec<Unauthenticated> =
            (11..=14).flat_map(|host| enter(&gate, &format!("192.0.2.{host}"), 1)).collect();
        assert!(!is_open(&mut others[0]) && others[1..].iter_mut().chain(&mut more).all(is_open));
    }

    #[test]
    fn an_address_has_a_budget_of_handshakes() {
        let (gate, peer, now) = (Gate::bounded(8), "192.0.2.1".parse().unwrap(), Instant::now());
        assert_eq!((0..10_000).filter(|_| gate.may_shake_hands(peer, now)).count(), 2_000);
    }

    #[test]
    fn a_closed_connection_makes_room() {
        let gate = Gate::bounded(8);
        for _ in 0..100 {
            let mut four = enter(&gate, "192.0.2.1", 4);
            assert!(four.iter_mut().all(is_open));
        }
        assert_eq!(gate.lock().count, 0);
        assert!(gate.lock().unauthenticated.is_empty());
        assert_eq!((Gate::new(1_024).max_total, Gate::new(u64::MAX).max_total), (512, MAX_TOTAL));
    }
}
