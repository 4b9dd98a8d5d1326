//! The anatomy of a round trip: how much of it is the network, and how much each host.
//!
//! Each end has stamps by its own clock, and only differences of times of one clock are used. The near end has the times from its
//! send call to the departure, from there to the reply's arrival, and from there to its program; the far end those from the request's
//! arrival to its program, to its send call, and to the departure. The network is what is left: the near host's time between departure
//! and arrival less the far host's time between arrival and departure. So the six parts of an exchange add up to its round trip.

use model::stamps::{Part, Parts};
use model::{Anatomy, AnatomyTally, Outcome, Spec, StampedExchange, Stamps, Strategy, Trial};
use text::{Text, Time, say};

/// The parts of the stamped round trips of a trial, joined by the numbers of the exchanges; `None` if the spec does not request it.
#[must_use]
pub fn of_trial(spec: &Spec, near: Option<Stamps>, far: Option<Stamps>) -> Option<AnatomyTally> {
    if !spec.anatomy {
        return None;
    }
    let refused = |reason: String| Some(AnatomyTally { refused: Some(reason), ..AnatomyTally::default() });
    let (near, far) = match (near, far) {
        (Some(near), Some(far)) => (near, far),
        (None, _) => return refused("the near end sent none".into()),
        (_, None) => return refused("the far end sent none".into()),
    };
    match (&near.refused, &far.refused) {
        (Some(reason), _) => refused(format!("near host: {reason}")),
        (_, Some(reason)) => refused(format!("far host: {reason}")),
        (None, None) => Some(joined(&near, &far)),
    }
}

/// Joins both ends' stamps.
#[must_use]
pub fn joined(near: &Stamps, far: &Stamps) -> AnatomyTally {
    let every = near.every.max(far.every).max(Stamps::BLOCK);
    // An end that stopped later may have left out blocks that the other one still has.
    let kept = |number: u64| number % every < Stamps::BLOCK;
    let is_in = |list: &[u64], number: u64| list.binary_search(&number).is_ok();
    let mut tally = AnatomyTally::default();
    for exchange in near.exchanges.iter().filter(|exchange| kept(exchange.number)) {
        if is_in(&far.stepped, exchange.number) {
            tally.stepped += 1;
            continue;
        }
        let found = far.exchanges.binary_search_by_key(&exchange.number, |other| other.number);
        match found.ok().and_then(|at| parts(exchange, &far.exchanges[at])) {
            Some((parts, hardware)) => {
                tally.stamped += 1;
                tally.hardware += u64::from(hardware);
                tally.round_trip.record(exchange.parts_ns.iter().sum());
                Part::ALL.into_iter().for_each(|part| tally.parts.get_mut(part).record(*parts.get(part)));
            }
            None => tally.missing += 1,
        }
    }
    tally.stepped += near.stepped.iter().filter(|number| kept(**number)).count() as u64;
    let (missing, stepped) = {
        let both = near.missing.iter().filter(|number| kept(**number));
        let stepped = both.clone().filter(|number| is_in(&far.stepped, **number)).count() as u64;
        (both.count() as u64 - stepped, stepped)
    };
    tally.missing += missing;
    tally.stepped += stepped;
    tally
}

/// The parts of one exchange and whether the network's is by the NICs' clocks; `None` if a part would be negative.
fn parts(near: &StampedExchange, far: &StampedExchange) -> Option<(Parts<u64>, bool)> {
    let ([near_send, away, near_wakeup], [far_wakeup, far_turnaround, far_send]) = (near.parts_ns, far.parts_ns);
    let stay = far.parts_ns.iter().sum();
    let by_software =
        Parts { near_send, network: away.checked_sub(stay)?, far_wakeup, far_turnaround, far_send, near_wakeup };
    let by_hardware = || {
        let (nic_away, nic_stay) = (near.hardware_ns?, far.hardware_ns?);
        // The time between the NICs' and the kernel's stamps is in the hosts, and most of it before the wake-up: interrupts.
        Some(Parts {
            network: nic_away.checked_sub(nic_stay)?,
            far_wakeup: far_wakeup + nic_stay.checked_sub(stay)?,
            near_wakeup: near_wakeup + away.checked_sub(nic_away)?,
            ..by_software
        })
    };
    Some(by_hardware().map_or((by_software, false), |parts| (parts, true)))
}

/// The figures of a cell over its trials; `plain_p50_ns` is the median of the round trips without stamps. `None` without any.
pub(crate) fn of_cell(trials: &[Trial], plain_p50_ns: Option<f64>) -> Option<Anatomy> {
    let mut all: Option<AnatomyTally> = None;
    for tally in trials.iter().filter_map(|trial| trial.near.anatomy.as_ref()) {
        all.get_or_insert_default().merge(tally);
    }
    Some(all?.figures(plain_p50_ns))
}

/// Mean times to wake up the two programs, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WakeUps {
    /// Of the far program's thread.
    pub far_ns: f64,
    /// Of the near program's thread.
    pub near_ns: f64,
}

/// The wake-ups alone: what receiving takes longer with blocking waits than with spinning ones, never below 0. `None` if one of the two
/// has no stamps.
#[must_use]
pub fn wake_ups(blocking: &Anatomy, spinning: &Anatomy) -> Option<WakeUps> {
    let excess = |of: fn(&Anatomy) -> Option<f64>| Some((of(blocking)? - of(spinning)?).max(0.0));
    Some(WakeUps { far_ns: excess(|one| one.far_wakeup_ns)?, near_ns: excess(|one| one.near_wakeup_ns)? })
}

/// The name of a part on screens. A thread that spins is not woken up.
#[must_use]
pub fn name(part: Part, strategy: Strategy) -> &'static str {
    match part {
        Part::NearSend => "near send",
        Part::Network => "network, there and back",
        Part::FarWakeup if strategy == Strategy::Spin => "far receive",
        Part::FarWakeup => "far wake-up and receive",
        Part::FarTurnaround => "far turnaround",
        Part::FarSend => "far send",
        Part::NearWakeup if strategy == Strategy::Spin => "near receive",
        Part::NearWakeup => "near wake-up and receive",
    }
}

/// Smallest ratio of the mean round trip to the median one that is reported.
const RAISED: f64 = 1.5;

/// What takes the time of an outcome's round trips, or why that is not known; `None` if it was not requested.
#[must_use]
pub fn sentence(outcome: &Outcome) -> Option<Text> {
    let anatomy = outcome.summary.anatomy.as_ref()?;
    if let Some(reason) = &anatomy.refused {
        return Some(say!("No time stamps: {reason}."));
    }
    let (Some(whole), Some(network), Some(parts)) = (anatomy.round_trip_ns, anatomy.network_ns, &anatomy.parts) else {
        let missing = anatomy.missing + anatomy.stepped;
        return Some(match missing {
            0 => "No time stamps: the trials ended before the first stamped exchange.".into(),
            _ => say!("No time stamps: {missing} exchanges lack a stamp."),
        });
    };
    let spins = outcome.spec.strategy == Strategy::Spin;
    let hosts = parts.far_wakeup.mean_ns + parts.near_wakeup.mean_ns;
    let doing = if spins { "receiving" } else { "waking up and receiving" };
    let median = anatomy.round_trip_p50_ns.map_or(whole, |ns| ns as f64);
    let raised = if whole > RAISED * median {
        say!(" A few long round trips raise these means: the median is {}.", Time(median))
    } else {
        Text::default()
    };
    let without = if spins { Text::default() } else { say!(" `--spin` measures without the wake-ups.") };
    let segments = if has_segments(outcome) {
        " Messages span several segments here, so the network's part includes sending them one after another and waiting for \
         acknowledgements."
    } else {
        ""
    };
    Some(if network > hosts {
        say!(
            "The network takes {}; the two hosts spend {} {doing}.{raised}{segments}",
            of_whole(network, whole),
            Time(hosts)
        )
    } else {
        say!(
            "The two hosts spend {} {doing}; the network takes {}.{without}{raised}{segments}",
            of_whole(hosts, whole),
            Time(network)
        )
    })
}

/// `42.9 of 51.4 µs`, or `950 ns of 51.4 µs`.
fn of_whole(part: f64, whole: f64) -> Text {
    let (part, whole) = (Time(part), Time(whole));
    match (part.to_string().split_once(' '), whole.to_string().split_once(' ')) {
        (Some((digits, own)), Some((_, unit))) if own == unit => say!("{digits} of {whole}"),
        _ => say!("{part} of {whole}"),
    }
}

/// Whether a request or a reply is larger than a segment of the connection. Datagrams have no segments.
fn has_segments(outcome: &Outcome) -> bool {
    let largest = outcome.spec.block.max(outcome.spec.reply_bytes());
    let flows = outcome.trials.iter().flat_map(|trial| &trial.near.flows);
    flows.filter_map(|flow| flow.socket.mss).any(|mss| largest > u64::from(mss))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Pattern, Strategy, Summary};
    use proptest::prelude::*;

    fn exchange(number: u64, parts_ns: [u64; 3], hardware_ns: Option<u64>) -> StampedExchange {
        StampedExchange { number, parts_ns, hardware_ns }
    }

    fn stamps(exchanges: Vec<StampedExchange>) -> Stamps {
        Stamps { every: 16, exchanges, ..Stamps::default() }
    }

    proptest! {
        /// Whatever the two clocks say, the parts of an exchange that is kept add up to its round trip, and each exchange of the near end
        /// is counted once.
        #[test]
        fn the_parts_add_up_to_the_whole(
            exchanges in prop::collection::vec(
                ([0u64..1 << 40, 0u64..1 << 40, 0u64..1 << 40], [0u64..1 << 40, 0u64..1 << 40, 0u64..1 << 40],
                 prop::option::of(0u64..1 << 41), prop::option::of(0u64..1 << 41)), 0..40),
        ) {
            let near = exchanges.iter().zip(8..).map(|((near, _, nic, _), number)| exchange(number, *near, *nic)).collect();
            let far = exchanges.iter().zip(8..).map(|((_, far, _, nic), number)| exchange(number, *far, *nic)).collect();
            let (near, far) = (Stamps { every: 64, ..stamps(near) }, stamps(far));
            let tally = joined(&near, &far);
            let sum: u64 = Part::ALL.into_iter().map(|part| tally.parts.get(part).sum_ns).sum();
            prop_assert_eq!(sum, tally.round_trip.sum_ns);
            prop_assert_eq!(tally.stamped + tally.missing, exchanges.len().min(8) as u64);
            let figures = tally.figures(None);
            if let (Some(parts), Some(whole)) = (figures.parts, figures.round_trip_ns) {
                let sum: f64 = Part::ALL.into_iter().map(|part| parts.get(part).mean_ns).sum();
                prop_assert!((sum / whole.max(1.0) - 1.0).abs() < 1e-9 || whole < 1.0, "{sum} {whole}");
            }
        }
    }

    #[test]
    fn exchanges_are_joined_by_their_numbers() {
        let near = Stamps {
            missing: vec![10],
            stepped: vec![11],
            ..stamps([8, 9, 24, 25, 40].map(|number| exchange(number, [2, 60, 3], None)).into())
        };
        let far = Stamps {
            missing: vec![9],
            stepped: vec![25],
            ..stamps([8, 10, 11, 24].map(|number| exchange(number, [20, 1, 4], None)).into())
        };
        let tally = joined(&near, &far);
        assert_eq!((tally.stamped, tally.missing, tally.stepped), (2, 3, 2));
        let parts = Parts::of(|part| tally.parts.get(part).sum_ns);
        let expected =
            Parts { near_send: 4, network: 70, far_wakeup: 40, far_turnaround: 2, far_send: 8, near_wakeup: 6 };
        assert_eq!((parts, tally.round_trip.sum_ns), (expected, 130));
        // The far end left out the second block.
        let thinned = joined(&near, &Stamps { every: 32, ..far });
        assert_eq!((thinned.stamped, thinned.missing, thinned.stepped), (1, 3, 1));
    }

    #[test]
    fn the_nics_clocks_count_only_together() {
        let parts_of = |near, far| parts(&exchange(8, [2, 60, 3], near), &exchange(8, [20, 1, 4], far)).unwrap();
        let (parts, hardware) = parts_of(Some(50), Some(30));
        assert!(hardware);
        assert_eq!((parts.network, parts.far_wakeup, parts.near_wakeup), (20, 25, 13));
        for (near, far) in [(Some(50), None), (None, Some(30)), (Some(61), Some(30)), (Some(50), Some(24))] {
            assert_eq!(parts_of(near, far).0.network, 35, "{near:?} {far:?}");
        }
    }

    #[test]
    fn an_end_without_stamps_is_named_with_its_reason() {
        let spec = Spec { anatomy: true, ..Spec::new("tcp", Pattern::Rr) };
        let refused = |text: &str| Some(Stamps { refused: Some(text.into()), ..Stamps::default() });
        let reason = |near, far| of_trial(&spec, near, far).unwrap().refused.unwrap();
        assert_eq!(reason(refused("a"), refused("b")), "near host: a");
        assert_eq!(reason(Some(Stamps::default()), refused("b")), "far host: b");
        assert_eq!(reason(Some(Stamps::default()), None), "the far end sent none");
        assert_eq!(of_trial(&Spec::new("tcp", Pattern::Rr), None, None), None);
    }

    /// An anatomy of these parts in ns.
    fn anatomy(parts: [u64; 6]) -> Anatomy {
        let mut tally = AnatomyTally { stamped: 1, ..AnatomyTally::default() };
        tally.round_trip.record(parts.iter().sum());
        Part::ALL.into_iter().zip(parts).for_each(|(part, ns)| tally.parts.get_mut(part).record(ns));
        tally.figures(None)
    }

    fn said(anatomy: Anatomy, strategy: Strategy) -> String {
        let spec = Spec { strategy, ..Spec::new("tcp", Pattern::Rr) };
        let summary = Summary { anatomy: Some(anatomy.into()), ..Summary::default() };
        sentence(&Outcome { cell: 0, spec: spec.into(), summary, estimate: None, histogram: None, trials: Vec::new() })
            .unwrap()
            .plain()
    }

    #[test]
    fn the_sentence_names_what_takes_the_time() {
        let blocking = anatomy([2_400, 2_300, 21_400, 200, 2_600, 21_500]);
        assert_eq!(
            said(blocking.clone(), Strategy::Auto),
            format!(
                "The two hosts spend 42.9 of {} waking up and receiving; the network takes {}. `--spin` measures without the wake-ups.",
                Time(50_400.0),
                Time(2_300.0)
            )
        );
        let spinning = anatomy([2_300, 2_200, 3_900, 0, 2_200, 3_900]);
        let text = said(spinning.clone(), Strategy::Spin);
        assert!(
            text.starts_with("The two hosts spend 7.80 of ") && text.contains("µs receiving") && !text.contains("wake"),
            "{text}"
        );
        let far = said(anatomy([2_000, 20_000_000, 20_000, 0, 2_000, 20_000]), Strategy::Blocking);
        assert!(far.starts_with("The network takes 20.0 of 20.0 ms; the two hosts spend 40.0 "), "{far}");
        let stalled = Anatomy { round_trip_p50_ns: Some(16_000), ..blocking.clone() };
        let raised = format!("raise these means: the median is {}.", Time(16_000.0));
        assert!(said(stalled, Strategy::Auto).ends_with(&raised));
        assert_eq!(wake_ups(&blocking, &spinning), Some(WakeUps { far_ns: 17_500.0, near_ns: 17_600.0 }));
        assert_eq!(wake_ups(&spinning, &blocking), Some(WakeUps { far_ns: 0.0, near_ns: 0.0 }));
        assert_eq!(wake_ups(&Anatomy::default(), &spinning), None);
    }

    #[test]
    fn without_stamps_the_sentence_gives_the_reason() {
        let refused =
            Anatomy { refused: Some("near host: SO_TIMESTAMPING: not permitted".into()), ..Anatomy::default() };
        assert_eq!(said(refused, Strategy::Auto), "No time stamps: near host: SO_TIMESTAMPING: not permitted.");
        let missing = Anatomy { missing: 7, ..Anatomy::default() };
        assert!(said(missing, Strategy::Auto).contains("7 exchanges lack a stamp"));
        assert!(said(Anatomy::default(), Strategy::Auto).contains("before the first stamped exchange"));
    }
}
