//! The ledger: the byte counts of the two ends compared.

use model::{EndTally, Ledger, SizeCount, Spec};

use super::headline::Headline;

/// Sums both directions of a trial: sent = received + lost + in flight. Bytes lost come from the datagrams' sequence numbers,
/// never from the difference itself, so an unexplained gap does not balance.
#[must_use]
pub fn ledger(spec: &Spec, near: &EndTally, far: &EndTally) -> Ledger {
    let transactional = Headline::of(spec) != Headline::Goodput;
    let far_block = if transactional { spec.reply_bytes() } else { spec.block };
    let flows = u64::from(spec.flows);
    let received_near = distinct_received(near, far_block);
    let received_far = distinct_received(far, spec.block);
    let lost = bytes_lost(near, far, received_far, spec.block, flows).saturating_add(bytes_lost(
        far,
        near,
        received_near,
        far_block,
        flows,
    ));
    let sent = near.bytes_sent.saturating_add(far.bytes_sent);
    let received = received_near.saturating_add(received_far);
    // Bytes without an acknowledgement may have arrived all the same: in flight is what is missing, up to what the send queues
    // hold.
    let unsent = near.bytes_unsent.saturating_add(far.bytes_unsent);
    // Another program does not report what it left unread at the end.
    let most = if spec.speak.is_some() { u64::MAX } else { unsent };
    let in_flight = sent.saturating_sub(received.saturating_add(lost)).min(most);
    // Checked sums: counts of an end that overflow do not balance.
    let accounted = received.checked_add(lost).and_then(|sum| sum.checked_add(in_flight));
    Ledger { sent, received, lost, in_flight, balanced: accounted == Some(sent) }
}

/// Datagrams that never arrived, both directions; `None` for transports without datagrams. Never negative.
pub(crate) fn datagrams_lost(near: &EndTally, far: &EndTally) -> Option<u64> {
    if near.datagrams.is_none() && far.datagrams.is_none() {
        return None;
    }
    Some(lost_between(near, far).saturating_add(lost_between(far, near)))
}

fn lost_between(sender: &EndTally, receiver: &EndTally) -> u64 {
    // Another program reports its losses; what was in flight at the end is not among them.
    if let Some(missed) = receiver.datagrams.and_then(|tally| tally.missed) {
        return missed;
    }
    let sent = sender.datagrams.map_or(0, |tally| tally.sent);
    sent.saturating_sub(receiver.datagrams.map_or(0, |tally| tally.received))
}

/// What `sender` sent of a mix and `receiver` got of it, by size.
pub(crate) fn by_size(sender: &EndTally, receiver: &EndTally) -> Vec<SizeCount> {
    let mut sizes: Vec<SizeCount> = Vec::new();
    SizeCount::add(&mut sizes, &sender.sizes.iter().map(|size| SizeCount { received: 0, ..*size }).collect::<Vec<_>>());
    SizeCount::add(&mut sizes, &receiver.sizes.iter().map(|size| SizeCount { sent: 0, ..*size }).collect::<Vec<_>>());
    sizes
}

/// Payload bytes that arrived, without duplicates.
fn distinct_received(end: &EndTally, block: u64) -> u64 {
    match end.datagrams {
        Some(tally) if tally.duplicates > 0 => end.bytes_received.min(tally.received.saturating_mul(block)),
        _ => end.bytes_received,
    }
}

/// Bytes of the datagrams lost from `sender` to `receiver`. Each is a block, but the last one of a flow may be shorter, so the
/// difference of the byte counts is used if it fits. Never more than was sent.
fn bytes_lost(sender: &EndTally, receiver: &EndTally, received: u64, block: u64, flows: u64) -> u64 {
    if !sender.sizes.is_empty() {
        return by_size(sender, receiver).iter().map(|size| size.lost().saturating_mul(size.payload_bytes)).sum();
    }
    let datagrams = lost_between(sender, receiver);
    let most = datagrams.saturating_mul(block);
    let least = datagrams.saturating_sub(flows).saturating_mul(block);
    let missing = sender.bytes_sent.saturating_sub(received);
    if (least..most).contains(&missing) && missing > 0 { missing } else { most.min(sender.bytes_sent) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DatagramTally, Pattern};
    use proptest::prelude::*;

    fn sender(bytes: u64, datagrams: u64) -> EndTally {
        let tally = DatagramTally { sent: datagrams, ..DatagramTally::default() };
        EndTally { bytes_sent: bytes, datagrams: Some(tally), ..EndTally::default() }
    }

    fn receiver(bytes: u64, datagrams: u64, duplicates: u64) -> EndTally {
        let tally = DatagramTally { received: datagrams, duplicates, ..DatagramTally::default() };
        EndTally { bytes_received: bytes, datagrams: Some(tally), ..EndTally::default() }
    }

    #[test]
    fn tcp_balances_to_the_byte_with_what_is_in_flight_or_not_at_all() {
        let spec = Spec::new("tcp", Pattern::Stream);
        let near = EndTally { bytes_sent: 1000, bytes_unsent: 40, ..EndTally::default() };
        let far = |bytes| EndTally { bytes_received: bytes, ..EndTally::default() };
        for bytes in [960, 961, 1000] {
            let balanced = ledger(&spec, &near, &far(bytes));
            assert!(balanced.balanced && balanced.in_flight == 1000 - bytes, "{bytes}");
        }
        for bytes in [0, 959, 1001] {
            let mismatch = ledger(&spec, &near, &far(bytes));
            assert!(!mismatch.balanced && mismatch.lost == 0, "{bytes}");
        }
    }

    #[test]
    fn one_ended_copies_balance() {
        let near = EndTally { bytes_sent: 77, bytes_received: 77, ..EndTally::default() };
        assert!(ledger(&Spec::new("memcpy", Pattern::Stream), &near, &EndTally::default()).balanced);
    }

    #[test]
    fn losses_of_a_mix_have_the_bytes_of_their_sizes() {
        let mix = "imix:64,1518".parse::<model::Mix>().unwrap().steps(false);
        let spec = Spec { block: 1472, mix: mix.clone(), ..Spec::new("udp", Pattern::Stream) };
        let of = |sent: [u64; 2], received: [u64; 2]| -> Vec<SizeCount> {
            let sizes = SizeCount::of(&mix).into_iter().enumerate();
            sizes.map(|(at, size)| SizeCount { sent: sent[at], received: received[at], ..size }).collect()
        };
        let near = EndTally { sizes: of([10, 10], [0, 0]), ..sender(10 * 1490, 20) };
        let far = EndTally { sizes: of([0, 0], [9, 7]), ..receiver(9 * 18 + 7 * 1472, 16, 0) };
        let found = ledger(&spec, &near, &far);
        assert_eq!((found.lost, found.in_flight, found.balanced), (18 + 3 * 1472, 0, true));
        let lost: Vec<u64> = by_size(&near, &far).iter().map(SizeCount::lost).collect();
        assert_eq!(lost, [1, 3]);
    }

    #[test]
    fn a_short_last_datagram_may_be_the_lost_one() {
        let spec = Spec { block: 100, ..Spec::new("udp", Pattern::Transfer) };
        let ledger = ledger(&spec, &sender(950, 10), &receiver(900, 9, 0));
        assert_eq!((ledger.lost, ledger.balanced), (50, true));
    }

    #[test]
    fn duplicates_do_not_hide_a_loss() {
        let spec = Spec { block: 100, ..Spec::new("udp", Pattern::Stream) };
        let ledger = ledger(&spec, &sender(1000, 10), &receiver(1000, 9, 1));
        assert_eq!((ledger.received, ledger.lost, ledger.balanced), (900, 100, true));
    }

    #[test]
    fn replies_have_their_own_size() {
        let spec = Spec { block: 10, reply: Some(200), ..Spec::new("udp", Pattern::Rr) };
        let near = EndTally { bytes_received: 1600, ..sender(100, 10) };
        let near =
            EndTally { datagrams: Some(DatagramTally { sent: 10, received: 8, ..DatagramTally::default() }), ..near };
        let far = EndTally {
            bytes_sent: 1800,
            datagrams: Some(DatagramTally { sent: 9, received: 9, ..DatagramTally::default() }),
            bytes_received: 90,
            ..EndTally::default()
        };
        let ledger = ledger(&spec, &near, &far);
        assert_eq!((ledger.lost, ledger.balanced), (210, true));
        assert_eq!(datagrams_lost(&near, &far), Some(2));
    }

    #[test]
    fn more_received_than_sent_is_not_a_negative_loss() {
        let spec = Spec { block: 100, ..Spec::new("udp", Pattern::Stream) };
        let (near, far) = (sender(1000, 10), receiver(1100, 11, 0));
        assert_eq!(datagrams_lost(&near, &far), Some(0));
        assert!(!ledger(&spec, &near, &far).balanced);
        assert_eq!(datagrams_lost(&EndTally::default(), &EndTally::default()), None);
    }

    proptest! {
        #[test]
        fn honest_udp_always_balances(block in 1u64..2000, whole in 1u64..50, last in 1u64..2000, lost_mask: u64, dup in 0u64..5) {
            let last = last.min(block);
            let spec = Spec { block, ..Spec::new("udp", Pattern::Transfer) };
            let sizes: Vec<u64> = (0..whole).map(|_| block).chain([last]).collect();
            let arrived: Vec<u64> = sizes.iter().enumerate().filter(|(i, _)| lost_mask >> i & 1 == 0).map(|(_, size)| *size).collect();
            let near = sender(sizes.iter().sum(), sizes.len() as u64);
            // Duplicates are recognised for certain only if all blocks have the same size.
            let dup = if last == block && !arrived.is_empty() { dup } else { 0 };
            let far = receiver(arrived.iter().sum::<u64>() + dup * block, arrived.len() as u64, dup);
            let ledger = ledger(&spec, &near, &far);
            prop_assert!(ledger.balanced, "{:?}", ledger);
        }

        #[test]
        fn whatever_is_counted_no_part_is_more_than_the_whole(
            numbers in prop::array::uniform8(0u64..1 << 40), duplicates in 0u64..1 << 20, block in 1u64..65_536, flows in 1u32..64,
            rr: bool,
        ) {
            let [sent, received, unsent, datagrams, arrived, back_sent, back_received, back] = numbers;
            let spec = Spec { block, flows, ..Spec::new("udp", if rr { Pattern::Rr } else { Pattern::Stream }) };
            let tally = |sent, received, duplicates| Some(DatagramTally { sent, received, duplicates, ..DatagramTally::default() });
            let near = EndTally {
                bytes_sent: sent, bytes_received: back_received, bytes_unsent: unsent, datagrams: tally(datagrams, back, 0),
                ..EndTally::default()
            };
            let far = EndTally {
                bytes_sent: back_sent, bytes_received: received, datagrams: tally(back, arrived, duplicates), ..EndTally::default()
            };
            let ledger = ledger(&spec, &near, &far);
            prop_assert!(ledger.lost <= ledger.sent && ledger.in_flight <= ledger.sent, "{:?}", ledger);
            prop_assert_eq!(ledger.balanced, ledger.sent == ledger.received + ledger.lost + ledger.in_flight);
            prop_assert!(datagrams_lost(&near, &far).is_some_and(|lost| lost <= datagrams + back));
        }

        #[test]
        fn numbers_of_any_size_make_no_sum_that_wraps(numbers in prop::array::uniform8(0u64..), block in 1u64..) {
            let spec = Spec { block, ..Spec::new("udp", Pattern::Stream) };
            let end = |n: &[u64]| EndTally {
                bytes_sent: n[0], bytes_received: n[1], bytes_unsent: n[2],
                datagrams: Some(DatagramTally { sent: n[3], received: n[0], ..DatagramTally::default() }),
                ..EndTally::default()
            };
            let ledger = ledger(&spec, &end(&numbers[..4]), &end(&numbers[4..]));
            let sum = u128::from(ledger.received) + u128::from(ledger.lost) + u128::from(ledger.in_flight);
            prop_assert!(!ledger.balanced || sum == u128::from(ledger.sent), "{:?}", ledger);
        }
    }
}
