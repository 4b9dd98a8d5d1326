//! Background traffic while nothing is measured: the interfaces' counters over a short time.

use std::collections::BTreeMap;

use model::{Inventory, Traffic};

use super::device::NET;
use crate::sys::Sys;

/// How long a sample should last, in ns. Counters of most drivers move with every packet; some only once a second, and
/// then show nothing in so short a time.
pub const TRAFFIC_SAMPLE_NS: u64 = 100_000_000;

/// Packets and bytes, received and sent.
type Counters = [u64; 4];
const FILES: [&str; 4] = ["rx_packets", "tx_packets", "rx_bytes", "tx_bytes"];

/// A started sample.
#[derive(Debug, Clone)]
pub struct TrafficSample {
    at_ns: u64,
    counters: BTreeMap<String, Counters>,
}

impl TrafficSample {
    /// Reads all counters for the first time.
    #[must_use]
    pub fn start(sys: &dyn Sys) -> Self {
        Self { at_ns: sys.now_ns(), counters: counters(sys) }
    }

    /// The remaining time of the sample, in ns.
    #[must_use]
    pub fn left_ns(&self, sys: &dyn Sys) -> u64 {
        TRAFFIC_SAMPLE_NS.saturating_sub(sys.now_ns().saturating_sub(self.at_ns))
    }

    /// Reads them again: each interface's traffic since the start. An interface that came or went is left out.
    #[must_use]
    pub fn finish(&self, sys: &dyn Sys) -> BTreeMap<String, Traffic> {
        let window_ns = sys.now_ns().saturating_sub(self.at_ns);
        let now = counters(sys);
        let both = self.counters.iter().filter_map(|(name, before)| Some((name, before, now.get(name)?)));
        both.filter_map(|(name, before, after)| Some((name.clone(), traffic(before, after, window_ns)?))).collect()
    }
}

/// Writes a sample's result into the interfaces of an inventory.
pub fn note_traffic(inventory: &mut Inventory, seen: &BTreeMap<String, Traffic>) {
    for interface in &mut inventory.interfaces {
        if let Some(traffic) = seen.get(&interface.name) {
            interface.device.get_or_insert_default().traffic = Some(*traffic);
        }
    }
}

fn traffic(before: &Counters, after: &Counters, window_ns: u64) -> Option<Traffic> {
    if window_ns == 0 {
        return None;
    }
    let mut rates = [0.0; 4];
    for ((rate, after), before) in rates.iter_mut().zip(after).zip(before) {
        *rate = after.checked_sub(*before)? as f64 * 1e9 / window_ns as f64;
    }
    let [rx_packets_per_s, tx_packets_per_s, rx_bytes, tx_bytes] = rates;
    Some(Traffic { window_ns, rx_packets_per_s, tx_packets_per_s, rx_bps: 8.0 * rx_bytes, tx_bps: 8.0 * tx_bytes })
}

fn counters(sys: &dyn Sys) -> BTreeMap<String, Counters> {
    let of = |name: String| {
        let mut counters = [0; 4];
        for (counter, file) in counters.iter_mut().zip(FILES) {
            *counter = sys.read(&format!("{NET}/{name}/statistics/{file}")).ok()?.trim().parse().ok()?;
        }
        Some((name, counters))
    };
    sys.list(NET).unwrap_or_default().into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_over_the_time_that_really_passed() {
        let seen = traffic(&[10, 20, 1_000, 2_000], &[60, 20, 26_000, 2_000], 200_000_000).unwrap();
        assert_eq!((seen.rx_packets_per_s, seen.tx_packets_per_s), (250.0, 0.0));
        assert_eq!((seen.rx_bps, seen.tx_bps), (1_000_000.0, 0.0));
        // A counter that ran back belongs to a device that was replaced.
        assert_eq!(traffic(&[10, 0, 0, 0], &[9, 0, 0, 0], 1_000), None);
    }
}
