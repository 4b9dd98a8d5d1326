//! Entry points for coverage-guided tests of what bounds an agent's clients: the limits of a trial, and the queue. Only for `fuzz/`.

use std::net::Ipv4Addr;

use model::Stop;

use crate::agent::limits::{Limits, Load};
use crate::agent::queue::{Place, Queue};
use crate::frame::Decoder;
use crate::message::{Message, ToAgent};

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
            Stop::TimeNs(ns) | Stop::AboutNs(ns) => sum.saturating_add(ns),
            _ => sum,
        });
        assert!(ns <= limits.hold_ns, "{ns} ns");
    }
}

/// Clients that join the queue, ask for their turn and leave, as two bytes each: what happens, and who.
///
/// # Panics
/// If more measurements run than there are slots, or a machine with free slots has no client that may enter.
pub fn queue(bytes: &[u8]) {
    let Some((first, steps)) = bytes.split_first() else { return };
    let slots = usize::from(first % 4);
    let mut queue = Queue::new(slots);
    let slots = slots.max(1);
    let (mut waiting, mut granted): (Vec<Place>, usize) = (Vec::new(), 0);
    for [what, who] in steps.as_chunks::<2>().0 {
        let at = usize::from(*who) % waiting.len().max(1);
        match what % 5 {
            0 => waiting.push(queue.join(Some(Ipv4Addr::new(192, 0, 2, *who % 8).into()))),
            1 if !waiting.is_empty() => queue.give_up(&waiting.swap_remove(at)),
            2 if !waiting.is_empty() && queue.enter(&waiting[at]).is_ok() => {
                waiting.swap_remove(at);
                granted += 1;
            }
            3 => granted += usize::from(queue.enter_at_once()),
            4 if granted > 0 => {
                queue.leave();
                granted -= 1;
            }
            _ => {}
        }
        assert!(queue.running() <= slots && granted == queue.running(), "{granted} granted, {slots} slots");
        assert_eq!(queue.waiting(), waiting.len());
    }
    // Each client that waits gets the machine after the others have left, one after the other.
    (0..granted).for_each(|_| queue.leave());
    while !waiting.is_empty() {
        let next = waiting.iter().position(|place| queue.enter(place).is_ok());
        assert!(next.is_some(), "{} wait for a free machine", waiting.len());
        next.map(|next| waiting.swap_remove(next));
        queue.leave();
    }
    assert_eq!(queue.running(), 0);
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_is_survived() {
        corpus::inputs("limits").unwrap().iter().for_each(|input| super::limits(input));
        corpus::inputs("queue").unwrap().iter().for_each(|input| super::queue(input));
    }
}
