//! How many lines of a log strangers may cause: a log must not fill a disk.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use text::{Text, say};

use super::budget::{Budget, network};

/// Lines of one address: a burst of this many, then this many per second.
const OF_ADDRESS: (u32, f64) = (200, 0.1);
/// Lines of all addresses together: a flood may have many.
const OF_ALL: (u32, f64) = (1_000, 1.0);
/// Stands for all addresses.
const ALL: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
/// Most addresses whose lines that were left out are counted.
const MAX_COUNTED: usize = 4_096;

/// The lines of addresses that have proved no token.
pub struct LogLines(Mutex<State>);

struct State {
    of_address: Budget,
    of_all: Budget,
    left_out: HashMap<IpAddr, u64>,
}

impl Default for LogLines {
    fn default() -> Self {
        let (of_address, of_all) = (Budget::new(OF_ADDRESS.0, OF_ADDRESS.1), Budget::new(OF_ALL.0, OF_ALL.1));
        Self(Mutex::new(State { of_address, of_all, left_out: HashMap::new() }))
    }
}

impl LogLines {
    /// The line to log for `text` about `peer`, if there may be one: with the number of its lines that were left out before.
    #[must_use]
    pub fn line(&self, peer: IpAddr, text: Text, now: Instant) -> Option<Text> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = network(peer);
        if !(state.of_address.spend(from, now) && state.of_all.spend(ALL, now)) {
            if state.left_out.len() < MAX_COUNTED || state.left_out.contains_key(&from) {
                *state.left_out.entry(from).or_default() += 1;
            }
            return None;
        }
        Some(match state.left_out.remove(&from) {
            None => text,
            Some(count) => say!("{text} ({count} earlier lines about {from} were left out)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_address_causes_few_lines_and_the_others_are_counted() {
        let (lines, begun) = (LogLines::default(), Instant::now());
        let [peer, other] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().unwrap());
        let logged = (0..100_000).filter(|_| lines.line(peer, "x".into(), begun).is_some()).count();
        assert_eq!(logged, 200);
        assert_eq!(lines.line(other, "y".into(), begun), Some("y".into()));
        let later = lines.line(peer, "x".into(), begun + Duration::from_secs(10)).unwrap();
        assert_eq!(later.plain(), "x (99800 earlier lines about 192.0.2.1 were left out)");
        assert_eq!(lines.line(peer, "x".into(), begun + Duration::from_secs(20)), Some("x".into()));
    }

    #[test]
    fn many_addresses_together_cause_few_lines_and_take_no_more_memory() {
        let (lines, now) = (LogLines::default(), Instant::now());
        let addresses = (0..100_000_u32).map(|number| IpAddr::V4(number.into()));
        assert_eq!(addresses.filter(|peer| lines.line(*peer, "x".into(), now).is_some()).count(), 1_000);
        assert!(lines.0.lock().unwrap().left_out.len() <= MAX_COUNTED);
        let day: usize =
            (0..86_400).filter_map(|second| lines.line(ALL, "x".into(), now + Duration::from_secs(second))).count();
        assert!(day <= 200 + 8_640, "{day} lines a day of one address");
    }
}
