//! Findings of single outcomes: stream, transfer, rr, crr, a pingpong of one size.

use model::units::count;
use model::{
    BoundKind, Direction, Engine, Estimate, Finding, FindingKind, Outcome, Ratio, Responsiveness, SendBy, Shares,
    SocketFacts, Summary, WorkingConditions,
};
use text::{Count, Rate, Text, Time, say};

use super::variation::MIN_REPORTED;
use super::wording;
use crate::ceiling::excess;
use crate::outcome::{Headline, explain};

/// For each outcome the headline figure with its interval and the meaning of its verdicts, then what is known of its ceiling, the
/// sources of its variation, its probe, its one-way delays, the parts of its round trips, and whether these have two modes.
#[must_use]
pub fn of_single(outcomes: &[Outcome]) -> Vec<Finding> {
    outcomes
        .iter()
        .flat_map(|outcome| {
            std::iter::once(headline(outcome))
                .chain(above(outcome))
                .chain(super::variation::of_outcome(outcome))
                .chain(probed(outcome))
                .chain(super::one_way::of_directions(outcome))
                .chain(super::anatomy::of_parts(outcome))
                .chain(super::modes::of_outcome(outcome))
        })
        .collect()
}

fn headline(outcome: &Outcome) -> Finding {
    let spec = &outcome.spec;
    let size = if spec.mix.is_empty() { wording::size(spec.block) } else { spec.block_words().into() };
    let subject = say!("{} {} with blocks of {size}", spec.transport, spec.pattern);
    let figure = match &outcome.estimate {
        None => say!("{subject} gave no value."),
        Some(estimate) => {
            let figure = wording::estimate(estimate);
            let trials = outcome.summary.trials;
            let verb = match Headline::of(spec) {
                Headline::Goodput => "carries",
                Headline::Transactions => "completes",
                Headline::RoundTrip => "has a median RTT of",
            };
            let lossless = if spec.no_loss { " without loss" } else { "" };
            let trials_of = match (spec.no_loss, trials) {
                (true, 1) => "search",
                (true, _) => "searches",
                (false, 1) => "trial",
                (false, _) => "trials",
            };
            let packets = outcome.summary.packets_per_s.filter(|_| spec.no_loss);
            let packets = packets.map_or(Text::default(), |rate| say!(", {} datagrams/s", count(rate)));
            let rtt = rtt(&outcome.summary);
            say!("{subject} {verb} {figure}{lossless}{packets} over {trials} {trials_of}{rtt}.")
        }
    };
    // How far an interval is from its target depends on the run: the caveats say it, with what would meet it.
    let verdicts = outcome.summary.verdicts.iter().filter(|verdict| **verdict != model::Verdict::TargetMissed);
    let verdicts = verdicts.map(|verdict| wording::sentence(explain(*verdict)));
    let sentences = std::iter::once(figure)
        .chain(each_direction(outcome))
        .chain(fairness(outcome))
        .chain(send_method(&spec.engine))
        .chain(delayed_reads(outcome))
        .chain(paced(outcome))
        .chain(super::rules::of_rules(outcome))
        .chain(verdicts);
    let statement = Text::join(sentences, " ");
    Finding {
        kind: FindingKind::Note,
        statement,
        estimate: outcome.estimate.clone(),
        block: Some(spec.block),
        cells: vec![outcome.cell],
        comparison: None,
    }
}

/// What each direction of `both` carried: the headline is their sum.
fn each_direction(outcome: &Outcome) -> Option<Text> {
    let words =
        |(direction, estimate): (Direction, Estimate)| say!("{} {}", direction.way(), wording::estimate(&estimate));
    let each: Vec<Text> = outcome.directions().map(words).collect();
    (!each.is_empty()).then(|| say!("That is the sum of {}.", Text::join(each, " and ")))
}

/// Jain's index of the flows and the range of their shares.
fn fairness(outcome: &Outcome) -> Option<Text> {
    let index = outcome.summary.fairness?;
    let shares = outcome.summary.shares.map_or(Text::default(), |shares| range(&shares));
    Some(say!("Jain's fairness index of the {} flows is {index:.3}{shares}.", outcome.spec.flows))
}

fn range(shares: &Shares) -> Text {
    let empty = match shares.empty {
        0 => Text::default(),
        1 => "; 1 flow got nothing".into(),
        many => say!("; {many} flows got nothing"),
    };
    say!(
        "; they got {:.2} to {:.2} of an equal share, {:.2} at the median{empty}",
        shares.min,
        shares.max,
        shares.median
    )
}

/// How the blocks were sent, if not by plain calls.
fn send_method(engine: &Engine) -> Option<Text> {
    if engine.is_plain() {
        return None;
    }
    let why = if engine.auto { ", the fastest of those tried" } else { "" };
    // Segments of one large packet cost less than packets, so the figure is not comparable with one of single datagrams.
    let segments = if engine.send == SendBy::Gso {
        " With UDP GSO, up to 64 datagrams (64 KiB in all) pass the stack as one packet, which only the device splits, if at all."
    } else {
        ""
    };
    Some(say!("The engine was {engine}{why}.{segments}"))
}

/// How long receivers slept between reads, if long enough to matter. Other tools do not, and may carry less.
fn delayed_reads(outcome: &Outcome) -> Option<Text> {
    let ends = outcome.trials.iter().flat_map(|trial| [&trial.near, &trial.far]);
    let delayed_reads = |flow: &model::FlowTally| flow.socket.delayed_reads.unwrap_or(0);
    let (mut most, mut receiving_ns) = (0, 0);
    for end in ends {
        most += end.flows.iter().map(delayed_reads).max().unwrap_or(0);
        receiving_ns += end.receiving_ns;
    }
    let share = (most * SocketFacts::READ_DELAY_NS) as f64 / receiving_ns.max(1) as f64;
    (share >= MIN_REPORTED)
        .then(|| say!("Receivers slept for {:.0} % of the time to save sender wake-ups.", share * 100.0))
}

/// The probe's RTT with and without load.
fn probed(outcome: &Outcome) -> Option<Finding> {
    let probe = outcome.summary.probe.as_ref()?;
    if !probe.working.is_empty() {
        return Some(Finding { statement: working(probe), ..note(outcome) });
    }
    let figures = |rtt: &model::RttTally| {
        let tail = rtt.p99_ns.map_or(Text::default(), |ns| say!(" ({} at the 99th percentile)", Time(ns as f64)));
        say!("{}{tail}", Time(rtt.p50_ns as f64))
    };
    let idle = probe.idle.as_ref().map_or(Text::default(), |idle| say!("{} without load and ", figures(idle)));
    let statement = say!(
        "The probe's median RTT is {idle}{} under load{}. Responsiveness under load is {} round trips per minute (RPM).",
        figures(&probe.loaded),
        added(probe),
        Count::rounded(probe.rpm)
    );
    Some(Finding { statement, ..note(outcome) })
}

/// A note on an outcome, without its statement.
fn note(outcome: &Outcome) -> Finding {
    Finding {
        kind: FindingKind::Note,
        statement: Text::default(),
        estimate: None,
        comparison: None,
        block: None,
        cells: vec![outcome.cell],
    }
}

/// Responsiveness under working conditions, and what each kind of probe took; of several trials each one.
fn working(probe: &Responsiveness) -> Text {
    let idle = probe.idle.as_ref().map_or(Text::default(), |idle| {
        say!(" Without load the median from request to response is {}.", Time(idle.p50_ns as f64))
    });
    let trial = |one: &WorkingConditions| {
        say!(
            "Responsiveness under working conditions is {} round trips per minute (RPM, draft-ietf-ippm-responsiveness without TLS), \
             confidence {}: {} on new connections (handshake {}, request to response {}), {} on the loaded ones (TCP's RTT {}). The \
             goodput was {} with {}, confidence {}; all are means from {} to {} s of the trial.",
            Count::rounded(one.rpm),
            one.confidence.name(),
            Count::rounded(one.foreign_rpm),
            Time(one.connect_ns),
            Time(one.request_ns),
            Count::rounded(one.loaded_rpm),
            Time(one.rtt_ns),
            Rate(one.goodput_bps),
            wording::plural(one.flows as usize, "flow"),
            one.goodput_confidence.name(),
            one.from_ns / 1_000_000_000,
            one.to_ns / 1_000_000_000,
        )
    };
    Text::join(probe.working.iter().map(trial), " ") + idle
}

/// What the load added to the RTT, if it exceeds the interquartile range without load and there are enough samples.
fn added(probe: &Responsiveness) -> Text {
    let Some(idle) = &probe.idle else { return Text::default() };
    let Some(ns) = probe.bufferbloat_ns else {
        return say!(
            " ({} and {} samples are too few to tell what the load adds: use a longer `--time` or a higher `--probe`)",
            Count(idle.count),
            Count(probe.loaded.count)
        );
    };
    let quartile = |q| idle.histogram.as_ref().and_then(|all| all.quantile(q)).unwrap_or(idle.p50_ns);
    let spread = (quartile(0.75) - quartile(0.25)) as f64;
    if ns > spread {
        return say!(": the load adds {} (bufferbloat)", Time(ns));
    }
    say!(": the load adds less than the idle interquartile range, {} (bufferbloat)", Time(spread.max(1.0)))
}

/// What may be wrong if the goodput is above its ceiling.
fn above(outcome: &Outcome) -> Option<Finding> {
    let (excess, ceiling) = (excess(outcome)?, outcome.summary.ceiling.as_ref()?);
    let suspect = match ceiling.kind {
        BoundKind::Line => {
            "the interface's speed or MTU differs from what the driver reports, or the data took another interface"
        }
        BoundKind::Window | BoundKind::SendBuffer => {
            "the minimum RTT is not from this path, or the buffer was larger earlier in the trial"
        }
        _ => "the sender exceeded the requested rate, or the trials were too short for their rate",
    };
    let statement = say!(
        "The goodput is at least {} above the ceiling of {} ({}). One of the two is wrong: {suspect}.",
        Ratio(excess),
        Rate(ceiling.bound_bps),
        ceiling.reason
    );
    Some(Finding {
        kind: FindingKind::Anomaly,
        statement,
        estimate: None,
        comparison: None,
        block: Some(outcome.spec.block),
        cells: vec![outcome.cell],
    })
}

/// The requested rate of a paced sender, the rate that it sent at and how evenly.
fn paced(outcome: &Outcome) -> Option<Text> {
    if outcome.spec.paced_to_receiver {
        return Some("The sender was paced to the receiver, so losses come from the path.".into());
    }
    let requested = outcome.spec.rate_bps?;
    let sent = outcome.summary.sender_bps.map_or(Text::default(), |bps| say!(", the sent rate {}", Rate(bps)));
    let worst = outcome
        .trials
        .iter()
        .flat_map(|trial| [trial.near.pacing, trial.far.pacing])
        .flatten()
        .reduce(model::PacingTally::worse);
    let evenly = match worst.map(|worst| (worst.p50_ns, worst.p99_ns)) {
        Some((p50, Some(p99))) => say!(
            " In the worst trial the time between two sends was off by {} at the median and {} at the 99th percentile.",
            Time(p50 as f64),
            Time(p99 as f64)
        ),
        _ => Text::default(),
    };
    Some(say!("The requested rate was {}{sent}.{evenly}", Rate(requested as f64)))
}

/// The RTT of a transaction test, which is not its headline.
fn rtt(summary: &Summary) -> Text {
    let with = |ns: f64, interval: Option<[f64; 2]>| {
        let range = interval.map_or(Text::default(), |[low, high]| say!(" ({} to {})", Time(low), Time(high)));
        say!("{}{range}", Time(ns))
    };
    let p50 = summary.rtt_p50_ns.map(|ns| with(ns, summary.rtt_p50_interval_ns));
    let p99 = summary.rtt_p99_ns.map(|ns| with(ns, summary.rtt_p99_interval_ns));
    match (summary.transactions_per_s, p50, p99) {
        (Some(_), Some(p50), Some(p99)) => say!(", RTT {p50} at the median and {p99} at the 99th percentile"),
        (Some(_), Some(p50), None) => say!(", RTT {p50} at the median"),
        _ => Text::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::made;
    use crate::outcome::add_verdict;
    use model::{EndTally, Pattern, Verdict};

    #[test]
    fn a_stream_has_its_figure_and_its_verdicts() {
        let mut outcome = made(Pattern::Stream, 3, 131_072, &[940e6, 941e6, 939e6, 940e6, 940e6, 940e6]);
        add_verdict(&mut outcome, Verdict::Loss);
        let finding = &of_single(&[outcome])[0];
        assert_eq!(
            finding.statement.plain(),
            "tcp stream with blocks of 128 KiB carries 940 Mbit/s ±0.1 % (95 % interval) over 6 trials. Datagrams were lost."
        );
        assert_eq!((finding.cells.as_slice(), finding.estimate.is_some()), (&[3][..], true));
    }

    #[test]
    fn delayed_reads_are_reported_if_they_matter() {
        let said = |delayed_reads| {
            let mut outcome = made(Pattern::Stream, 3, 131_072, &[40e9; 3]);
            for trial in &mut outcome.trials {
                let socket = SocketFacts { delayed_reads, ..SocketFacts::default() };
                let flows = vec![model::FlowTally { socket, ..model::FlowTally::default() }];
                trial.far = EndTally { receiving_ns: 1_000_000_000, flows, ..EndTally::default() }.into();
            }
            of_single(&[outcome]).remove(0).statement.plain()
        };
        assert!(said(Some(6_000)).contains("Receivers slept for 30 % of the time"), "{}", said(Some(6_000)));
        assert!(!said(Some(6)).contains("slept") && !said(None).contains("slept"));
    }

    #[test]
    fn a_goodput_above_its_ceiling_is_a_finding() {
        let mut outcome = made(Pattern::Stream, 3, 131_072, &[2e9; 6]);
        outcome.spec.rate_bps = Some(1_000_000_000);
        outcome.summary.bytes_received = Some(1 << 40);
        crate::bound(&mut outcome, &model::Inventory::default(), &model::Inventory::default());
        let findings = of_single(&[outcome]);
        assert!(
            findings[0].statement.plain().contains("The goodput is above its ceiling"),
            "{}",
            findings[0].statement.plain()
        );
        let said = &findings[1].statement.plain();
        assert!(said.starts_with("The goodput is at least 100 % above the ceiling of 1.00 Gbit/s"), "{said}");
        assert_eq!(findings[1].kind, FindingKind::Anomaly);
    }

    #[test]
    fn rr_reports_its_rtt() {
        let mut outcome = made(Pattern::Rr, 0, 1, &[16_600.0]);
        outcome.summary.transactions_per_s = Some(16_600.0);
        outcome.summary.rtt_p50_ns = Some(58_000.0);
        let statement = &of_single(&[outcome])[0].statement.plain();
        let rtt = Time(58_000.0);
        assert!(
            statement.contains(&format!("completes 16.6 k/s (no interval) over 1 trial, RTT {rtt} at the median.")),
            "{statement}"
        );
        assert!(statement.contains("Too few trials for an interval: it needs 3, or 10 on a curve."), "{statement}");
    }

    #[test]
    fn a_missing_value_is_reported() {
        let statement = &of_single(&[made(Pattern::Stream, 0, 1, &[])])[0].statement.plain();
        assert!(statement.starts_with("tcp stream with blocks of 1 B gave no value. "), "{statement}");
    }
}
