//! Paths from a seed.

use model::LimiterKind as K;

use crate::chance::Chance;
use crate::faults;
use crate::path::Path;

/// Paths after which each kind of fault has occurred once more.
pub const CYCLE: u32 = 30;

/// The kinds of faults.
pub const KINDS: [K; 17] = [
    K::SenderApplication,
    K::ReceiverApplication,
    K::ReceiveWindow,
    K::SendBuffer,
    K::Link,
    K::Loss,
    K::CongestionWindow,
    K::Pacing,
    K::Qdisc,
    K::SenderCpu,
    K::ReceiverCpu,
    K::SocketBuffer,
    K::ReturnPath,
    K::Jitter,
    K::OtherTraffic,
    K::PathMtu,
    K::Reordering,
];

/// Number of the first kinds that may occur together: each has a rate that can be chosen for the same path.
const COMBINABLE: usize = 9;

/// Paths of a cycle with two faults; those after them are innocent.
const MIXED: u32 = 3;

/// What a path of a cycle is.
#[derive(Debug, Clone, Copy)]
enum Slot {
    Single(K),
    Mixed,
    Innocent,
}

/// The path of that number. A cycle has each kind of fault once, mixed paths and innocent ones, in random order.
pub fn path(seed: u64, index: u32) -> Path {
    let mut slots: Vec<Slot> = KINDS.iter().map(|kind| Slot::Single(*kind)).collect();
    slots.extend(
        (slots.len() as u32..CYCLE)
            .map(|at| if at < KINDS.len() as u32 + MIXED { Slot::Mixed } else { Slot::Innocent }),
    );
    Chance::new(!seed, index / CYCLE).shuffle(&mut slots);
    let chance = &mut Chance::new(seed, index);
    let path = Path::bare(seed, index);
    match slots[(index % CYCLE) as usize] {
        Slot::Single(kind) => single(path, chance, kind),
        Slot::Mixed => mixed(path, chance),
        Slot::Innocent => faults::innocent(path, chance),
    }
}

fn single(mut path: Path, chance: &mut Chance, kind: K) -> Path {
    path.name = kind.words().to_owned();
    path.faults = vec![kind];
    match kind {
        K::SenderCpu | K::ReceiverCpu => faults::processor(&mut path, chance, kind),
        K::SocketBuffer => faults::socket_buffer(&mut path, chance),
        K::ReturnPath => faults::return_path(&mut path, chance),
        K::Jitter => faults::jitter(&mut path, chance),
        K::OtherTraffic => faults::other_traffic(&mut path, chance),
        K::PathMtu => faults::hole(&mut path, chance),
        K::Reordering => faults::reordering(&mut path, chance),
        K::Qdisc if chance.happens(0.3) => faults::short_queue(&mut path, chance),
        K::CongestionWindow if chance.happens(0.4) => faults::slow_start(&mut path, chance),
        K::SenderApplication | K::Link if chance.happens(0.25) => faults::datagrams(&mut path, chance, kind),
        _ => {
            let cable = faults::works_without_delay(kind) && chance.happens(0.25);
            let rate = faults::base(&mut path, chance, &[kind], cable);
            faults::apply(&mut path, chance, kind, rate);
        }
    }
    path
}

fn mixed(mut path: Path, chance: &mut Chance) -> Path {
    let mut kinds = KINDS;
    chance.shuffle(&mut kinds[..COMBINABLE]);
    // The link's rate first: others must not widen it.
    let mut kinds = [kinds[0], kinds[1]];
    kinds.sort_by_key(|kind| *kind != K::Link);
    path.name = kinds.map(K::words).join(" + ");
    path.faults = kinds.to_vec();
    let rate = faults::base(&mut path, chance, &kinds, false);
    let other = rate * chance.between(0.7, 1.4);
    // The rate of random loss follows from the loss.
    let of = |kind| if kind == kinds[0] && kinds[1] != K::Loss || kind == K::Loss { rate } else { other };
    for kind in kinds {
        faults::apply(&mut path, chance, kind, of(kind));
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_has_every_kind_of_fault_once() {
        for cycle in 0..20 {
            let paths: Vec<Path> = (0..CYCLE).map(|at| path(9, cycle * CYCLE + at)).collect();
            for kind in KINDS {
                assert_eq!(paths.iter().filter(|path| path.faults == [kind]).count(), 1, "{kind:?}");
            }
            assert_eq!(paths.iter().filter(|path| path.faults.len() == 2).count(), MIXED as usize);
            assert_eq!(paths.iter().filter(|path| path.faults.is_empty()).count(), 10);
        }
    }

    #[test]
    fn a_seed_gives_the_same_paths_and_another_one_others() {
        let all = |seed| (0..100).map(|index| path(seed, index).about()).collect::<Vec<_>>();
        assert_eq!(all(3), all(3));
        assert_ne!(all(3), all(4));
    }

    #[test]
    fn a_fault_binds_before_the_link_does() {
        for index in 0..2_000 {
            let path = path(5, index);
            let bound = path.expected_bps.map_or(0.0, |[_, high]| high);
            if let Some(rate) = path.rate_bps.filter(|_| !path.faults.contains(&K::Link)) {
                assert!(bound <= 0.7 * rate as f64 && bound > 0.0, "{}: {:?}", path.about(), path.expected_bps);
            }
            assert!(path.rate_bps.is_none_or(|bps| (9_000_000..=1_000_000_000).contains(&bps)), "{}", path.about());
        }
    }
}
