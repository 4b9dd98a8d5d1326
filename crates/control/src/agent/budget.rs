//! How often an address may do something: so many times at once, and so many in a second after that.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

/// Most addresses that are remembered.
const MAX_SOURCES: usize = 4_096;

/// What each address has left. An IPv6 network of 64 bits is one address.
pub(super) struct Budget {
    most: f64,
    per_second: f64,
    /// And when it was counted. An address without an entry has all.
    left: HashMap<IpAddr, (f64, Instant)>,
}

impl Budget {
    /// `most` at once, and `per_second` after that.
    pub(super) fn new(most: u32, per_second: f64) -> Self {
        Self { most: f64::from(most), per_second, left: HashMap::new() }
    }

    /// Whether `peer` may do it now; it counts as done.
    pub(super) fn spend(&mut self, peer: IpAddr, now: Instant) -> bool {
        let (most, per_second) = (self.most, self.per_second);
        let left = |(left, at): (f64, Instant)| {
            let since = now.saturating_duration_since(at).as_secs_f64();
            (left + since * per_second).min(most)
        };
        let from = network(peer);
        if self.left.len() >= MAX_SOURCES && !self.left.contains_key(&from) {
            self.left.retain(|_, counted| left(*counted) < most);
            // A flood from so many networks is not bounded by address, but its memory is.
            if self.left.len() >= MAX_SOURCES {
                self.left.clear();
            }
        }
        let entry = self.left.entry(from).or_insert((most, now));
        let available = left(*entry);
        let allowed = available >= 1.0;
        *entry = (available - f64::from(u8::from(allowed)), now);
        allowed
    }

    /// What `peer` did last does not count.
    pub(super) fn give_back(&mut self, peer: IpAddr) {
        if let Some((left, _)) = self.left.get_mut(&network(peer)) {
            *left = (*left + 1.0).min(self.most);
        }
    }

    /// Panics if the memory is not bounded.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(super) fn check(&self) {
        assert!(self.left.len() <= MAX_SOURCES, "{} addresses", self.left.len());
    }
}

/// The address that a connection from `peer` counts for: an IPv6 host can have a whole network of 64 bits.
pub(super) fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_address_has_its_own_that_grows_with_time() {
        let [peer, other] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        let (begun, mut budget) = (Instant::now(), Budget::new(20, 4.0));
        let mut count =
            |peer, after_ms| (0..100).filter(|_| budget.spend(peer, begun + Duration::from_millis(after_ms))).count();
        assert_eq!([count(peer, 0), count(other, 0)], [20, 20]);
        assert_eq!(count(peer, 500), 2);
        assert_eq!(count(peer, 3_600_000), 20, "no more than at first");
        budget.give_back(peer);
        budget.give_back("192.0.2.3".parse().unwrap());
        assert!(budget.spend(peer, begun) && !budget.spend(peer, begun));
    }

    #[test]
    fn a_network_of_64_bits_is_one_address_and_many_take_no_more_memory() {
        let (now, mut budget) = (Instant::now(), Budget::new(1, 0.0));
        let mut may = |address: &str| budget.spend(address.parse().unwrap(), now);
        assert!(may("2001:db8:0:1::1") && !may("2001:db8:0:1:ffff::2") && may("2001:db8:0:2::1"));
        assert!(may("192.0.2.1") && !may("::ffff:192.0.2.1"));
        for host in 0..3 * MAX_SOURCES as u32 {
            assert!(budget.spend(IpAddr::V4(host.into()), now));
            budget.check();
        }
    }
}
