//! An entry point for coverage-guided tests of what bounds an agent's clients: the budget of connections.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::budget;
use super::gate::Gate;

/// Connections that enter and leave the gate, and handshakes over time, as three bytes each: what happens, the address,
/// and how much.
///
/// # Panics
/// If more connections are open than allowed, an address has more handshakes than its budget, or memory is not bounded.
pub fn gate(bytes: &[u8]) {
    const FILES: u64 = 32;
    const STEPS: usize = 200;
    /// Of one address: at once, and in a second.
    const BUDGET: (u64, u64) = (2_000, 200);
    let gate = Gate::new(FILES);
    let (mut open, mut now, begun) = (Vec::new(), Duration::ZERO, Instant::now());
    let mut begun_by: HashMap<IpAddr, u64> = HashMap::new();
    for [what, host, much] in bytes.as_chunks::<3>().0.iter().take(STEPS) {
        let peer = address(*what, *host, *much);
        match what % 4 {
            0 => open.push(gate.enter(peer)),
            1 if !open.is_empty() => drop(open.swap_remove(usize::from(*host) % open.len())),
            2 => now += Duration::from_millis(u64::from(*much)),
            _ => {
                let more = (0..=*much).filter(|_| gate.may_shake_hands(peer, begun + now)).count();
                *begun_by.entry(budget::network(peer)).or_default() += more as u64;
            }
        }
        gate.check((FILES / 2) as usize);
    }
    let most = BUDGET.0 + BUDGET.1 * now.as_secs() + BUDGET.1;
    // With more networks than it remembers, an address may begin anew.
    assert!(begun_by.values().all(|count| *count <= most), "{begun_by:?} in {now:?}");
    drop(open);
    gate.check(0);
}

/// IPv4, and IPv6 within a few networks.
fn address(what: u8, host: u8, much: u8) -> IpAddr {
    if what & 0x80 == 0 {
        return Ipv4Addr::new(192, 0, 2, host).into();
    }
    Ipv6Addr::new(0x2001, 0xdb8, 0, u16::from(host), 0, 0, 0, u16::from(much)).into()
}
