//! Connections that have not shown yet who they are: how many there may be, and which one has to go when there are too many.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// Most of them in all, where the process may open that many files twice.
const IN_ALL: usize = 4_096;

/// The strangers at one agent's port.
pub(super) struct Gate {
    in_all: usize,
    /// From one address, or from one network of IPv6.
    of_one: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    count: usize,
    /// The sender of each is dropped when it has to go. Numbers grow, so that the first one is the oldest.
    unauthenticated: HashMap<IpAddr, BTreeMap<u64, oneshot::Sender<()>>>,
}

/// A stranger's stay; dropping it makes room for another one.
pub(super) struct Stay {
    gate: Arc<Gate>,
    from: IpAddr,
    number: u64,
    ended: oneshot::Receiver<()>,
}

impl Gate {
    /// For a process that may open so many files: half of them are left to those who have shown who they are.
    pub(super) fn new(files: u64) -> Arc<Self> {
        let half = usize::try_from(files / 2).unwrap_or(usize::MAX);
        Self::bounded(half.clamp(2, IN_ALL))
    }

    fn bounded(in_all: usize) -> Arc<Self> {
        Arc::new(Self { in_all, of_one: in_all / 2, state: Mutex::default() })
    }

    /// Takes a stranger in. Where there are too many, the oldest of its address goes, or of the address that has most.
    pub(super) fn enter(self: &Arc<Self>, peer: IpAddr) -> Stay {
        let from = network(peer);
        let mut state = self.lock();
        if state.unauthenticated.get(&from).is_some_and(|own| own.len() >= self.of_one) {
            state.dismiss_oldest(from);
        } else if state.count >= self.in_all
            && let Some(most) = state.most()
        {
            state.dismiss_oldest(most);
        }
        let (stays, ended) = oneshot::channel();
        let number = state.next;
        state.next += 1;
        state.count += 1;
        state.unauthenticated.entry(from).or_default().insert(number, stays);
        Stay { gate: self.clone(), from, number, ended }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The address with most strangers; of several, that of the oldest one.
    fn most(&self) -> Option<IpAddr> {
        let oldest = |own: &BTreeMap<u64, _>| own.keys().next().copied();
        let most = self.unauthenticated.iter().max_by_key(|(_, own)| (own.len(), std::cmp::Reverse(oldest(own))));
        most.map(|(from, _)| *from)
    }

    fn dismiss_oldest(&mut self, from: IpAddr) {
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

impl Stay {
    /// Ends when it has to go.
    pub(super) async fn ended(&mut self) {
        let _ = (&mut self.ended).await;
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.gate.lock().remove(self.from, self.number);
    }
}

/// Whom connections from `peer` are counted for: a host of IPv6 has a network of 64 bits to itself.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stays(stay: &mut Stay) -> bool {
        stay.ended.try_recv() == Err(oneshot::error::TryRecvError::Empty)
    }

    fn enter(gate: &Arc<Gate>, from: &str, count: usize) -> Vec<Stay> {
        (0..count).map(|_| gate.enter(from.parse().unwrap())).collect()
    }

    #[test]
    fn one_address_has_half_and_loses_its_own_oldest() {
        let gate = Gate::bounded(8);
        let mut one = enter(&gate, "192.0.2.1", 6);
        let mut other = enter(&gate, "192.0.2.2", 4);
        let stay: Vec<bool> = one.iter_mut().chain(&mut other).map(stays).collect();
        assert_eq!(stay, [false, false, true, true, true, true, true, true, true, true]);
        assert_eq!(gate.lock().count, 8);
    }

    #[test]
    fn where_all_is_full_the_address_with_most_loses_its_oldest() {
        let gate = Gate::bounded(8);
        let mut most = enter(&gate, "2001:db8:0:1::1", 2);
        most.extend(enter(&gate, "2001:db8:0:1:ffff::2", 2));
        let mut others: Vec<Stay> = (1..=5).flat_map(|host| enter(&gate, &format!("192.0.2.{host}"), 1)).collect();
        let stay: Vec<bool> = most.iter_mut().map(stays).collect();
        assert_eq!(stay, [false, true, true, true], "a network of 64 bits is one address");
        assert!(others.iter_mut().all(stays));
        // Of many with one each, the oldest goes.
        drop(most);
        let mut more: Vec<Stay> = (11..=14).flat_map(|host| enter(&gate, &format!("192.0.2.{host}"), 1)).collect();
        assert!(!stays(&mut others[0]) && others[1..].iter_mut().chain(&mut more).all(stays));
    }

    #[test]
    fn who_leaves_makes_room() {
        let gate = Gate::bounded(8);
        for _ in 0..100 {
            let mut four = enter(&gate, "192.0.2.1", 4);
            assert!(four.iter_mut().all(stays));
        }
        assert_eq!(gate.lock().count, 0);
        assert!(gate.lock().unauthenticated.is_empty());
        assert_eq!((Gate::new(1_024).in_all, Gate::new(u64::MAX).in_all), (512, IN_ALL));
    }
}
