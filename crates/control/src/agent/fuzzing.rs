//! Entry points for coverage-guided tests of what bounds an agent's clients: the limits of a trial, the budget of connections,
//! and the queue. They hold the state that a real agent has, and no socket, clock or process.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::budget;
use super::gate::Gate;
use super::limits::{Limits, Load};
use super::queue::{Queue, QueuePosition};
use crate::proto::frame::Decoder;
use crate::proto::message::{Message, ToAgent};

/// A frame with a request to prepare a trial, against limits.
///
/// # Panics
/// If a trial within the limits has more than they allow.
pub fn limits(bytes: &[u8]) {
    let limits = Limits {
        flows: 100,
        processes: 4,
        memory_bytes: 1 << 20,
        hold_ns: 10_000_000_000,
        rate_bps: Some(1_000_000_000),
        ..Limits::default()
    };
    let mut decoder = Decoder::new(ToAgent::MAX_FRAME);
    decoder.push(bytes);
    while let Ok(Some(message)) = decoder.take::<ToAgent>() {
        let ToAgent::Prepare(prepare) = message else { continue };
        let (spec, legs) = (&prepare.spec, &prepare.legs);
        if limits.check(spec, legs, &Load::default()).is_err() {
            continue;
        }
        assert!(spec.flows <= limits.flows && spec.processes <= limits.processes && legs.len() <= 5_000);
        let largest = legs.iter().map(|leg| leg.block.max(leg.reply)).max().unwrap_or_default();
        assert!(largest.max(spec.block) <= limits.memory_bytes || spec.flows == 0, "{largest} bytes");
        let ns = legs.iter().fold(0_u64, |sum, leg| match leg.stop {
            model::Stop::TimeNs(ns) | model::Stop::AboutNs(ns) => sum.saturating_add(ns),
            _ => sum,
        });
        assert!(ns <= limits.hold_ns, "{ns} ns");
        // What a passing trial is checked for next.
        let _ = engine::pattern::check(spec);
        for leg in legs {
            let _ = engine::pattern::check(&leg.of(spec));
        }
    }
}

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

/// Clients that join the queue, ask for their turn and leave, as two bytes each: what happens, and who.
///
/// # Panics
/// If more measurements run than there are slots, or a machine with free slots has no client that may enter.
pub fn queue(bytes: &[u8]) {
    let Some((first, steps)) = bytes.split_first() else { return };
    let slots = usize::from(first % 4);
    let queue = Queue::new(slots);
    let slots = slots.max(1);
    let mut positions: Vec<QueuePosition> = Vec::new();
    for [what, who] in steps.as_chunks::<2>().0 {
        let at = usize::from(*who) % positions.len().max(1);
        match what % 4 {
            0 => positions.push(queue.join(Some(Ipv4Addr::new(192, 0, 2, *who % 8).into()))),
            1 if !positions.is_empty() => drop(positions.swap_remove(at)),
            2 if !positions.is_empty() && !positions[at].is_granted() => {
                let _ = positions[at].enter();
            }
            3 => positions.extend(queue.enter_at_once()),
            _ => {}
        }
        let granted = positions.iter().filter(|position| position.is_granted()).count();
        assert!(queue.running() <= slots && granted == queue.running(), "{granted} granted, {slots} slots");
    }
    // Whoever waits gets the machine after the others have left, one after the other.
    positions.retain(|position| !position.is_granted());
    while !positions.is_empty() {
        let next = positions.iter_mut().position(|position| position.enter().is_ok());
        assert!(next.is_some(), "{} wait for a free machine", positions.len());
        next.map(|next| positions.swap_remove(next));
    }
    assert_eq!(queue.running(), 0);
}
