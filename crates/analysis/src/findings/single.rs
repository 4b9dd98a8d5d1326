//! Outcomes that stand alone: stream, transfer, rr, crr, a pingpong of one size.

use model::units::{bits_per_second, count, seconds};
use model::{
    BoundKind, Engine, Finding, FindingKind, Outcome, Ratio, Responsiveness, SendBy, Shares, SocketFacts, Summary,
};

use super::wording;
use crate::ceiling::excess;
use crate::outcome::{Headline, explain};
use crate::stats::{VarianceSplit, batch_means, mean, variance_split};

/// Batches that a trial's series is cut into when the spread is split.
const BATCHES: usize = 10;
/// Least relative spread of the batches that is worth a sentence.
const WORTH_SAYING: f64 = 0.01;

/// One sentence for each outcome: the headline figure with its interval, and what its verdicts mean; and one on where the
/// spread comes from, where trials on several connections kept a series.
#[must_use]
pub fn of_single(outcomes: &[Outcome]) -> Vec<Finding> {
    outcomes
        .iter()
        .flat_map(|outcome| {
            std::iter::once(headline(outcome))
                .chain(above(outcome))
                .chain(spread(outcome))
                .chain(probed(outcome))
                .chain(super::one_way::of_ways(outcome))
        })
        .collect()
}

fn headline(outcome: &Outcome) -> Finding {
    let spec = &outcome.spec;
    let subject = format!("{} {} with blocks of {}", spec.transport, spec.pattern, wording::size(spec.block));
    let mut statement = match &outcome.estimate {
        None => format!("{subject} gave no value"),
        Some(estimate) => {
            let figure = wording::estimate(estimate);
            let trials = outcome.summary.trials;
            let plural = if trials == 1 { "" } else { "s" };
            let verb = match Headline::of(spec) {
                Headline::Goodput => "carries",
                Headline::Transactions => "completes",
                Headline::RoundTrip => "has a median round trip of",
            };
            let (lossless, trials_of) = if spec.no_loss { (" without loss", "search") } else { ("", "trial") };
            let plural = if trials == 1 {
                ""
            } else if spec.no_loss {
                "es"
            } else {
                plural
            };
            let packets = outcome.summary.packets_per_s.filter(|_| spec.no_loss);
            let packets = packets.map_or(String::new(), |rate| format!(", {} datagrams/s", count(rate)));
            format!(
                "{subject} {verb} {figure}{lossless}{packets} over {trials} {trials_of}{plural}{}",
                tail(&outcome.summary)
            )
        }
    };
    if let Some(fairness) = outcome.summary.fairness {
        statement.push_str(&format!("; {} flows share it with a fairness of {fairness:.3} (Jain)", spec.flows));
        if let Some(shares) = outcome.summary.shares {
            statement.push_str(&apart(&shares));
        }
    }
    statement.push_str(&moved(&spec.engine));
    statement.push_str(&rested(outcome));
    statement.push_str(&paced(outcome));
    for verdict in &outcome.summary.verdicts {
        statement.push_str("; ");
        statement.push_str(explain(*verdict));
    }
    statement.push('.');
    Finding {
        kind: FindingKind::Note,
        statement,
        estimate: outcome.estimate.clone(),
        block: Some(spec.block),
        cells: vec![outcome.cell],
        comparison: None,
    }
}

/// How far the flows' shares lie apart.
fn apart(shares: &Shares) -> String {
    let empty = match shares.empty {
        0 => String::new(),
        1 => ", 1 flow without anything".to_owned(),
        many => format!(", {many} flows without anything"),
    };
    format!(
        ", from {:.2} to {:.2} of an equal share and {:.2} at the median{empty}",
        shares.min, shares.max, shares.median
    )
}

/// How the blocks were moved, where not by plain calls.
fn moved(engine: &Engine) -> String {
    if engine.is_plain() {
        return String::new();
    }
    let why = if engine.auto { ", which carried most of the ways that were tried" } else { "" };
    // Segments that share one way through the stack are cheaper than packets are, and must not pass for them.
    let segments = if engine.send == SendBy::Gso {
        "; its datagrams are segments: up to 64 of them, 64 KiB in all, pass the stack in one piece and are cut apart by the device, if at all"
    } else {
        ""
    };
    format!("; moved by engine {engine}{why}{segments}")
}

/// That receivers rested to spare their senders the waking, where they did so for long enough to matter: other tools do not, and
/// carry less where waking is dear.
fn rested(outcome: &Outcome) -> String {
    let ends = outcome.trials.iter().flat_map(|trial| [&trial.near, &trial.far]);
    let delayed_reads = |flow: &model::FlowTally| flow.socket.delayed_reads.unwrap_or(0);
    let (mut most, mut receiving_ns) = (0, 0);
    for end in ends {
        most += end.flows.iter().map(delayed_reads).max().unwrap_or(0);
        receiving_ns += end.receiving_ns;
    }
    let share = (most * SocketFacts::READ_DELAY_NS) as f64 / receiving_ns.max(1) as f64;
    if share < WORTH_SAYING {
        return String::new();
    }
    format!("; its receivers rested for {:.0} % of the time, so that senders had nobody to wake up", share * 100.0)
}

/// What the load did to the probe's round trips.
fn probed(outcome: &Outcome) -> Option<Finding> {
    let probe = outcome.summary.probe.as_ref()?;
    let figures = |rtt: &model::RttTally| {
        let tail = rtt.p99_ns.map_or(String::new(), |ns| format!(" ({} at the 99th percentile)", seconds(ns as f64)));
        format!("{}{tail}", seconds(rtt.p50_ns as f64))
    };
    let idle = probe.idle.as_ref().map_or(String::new(), |idle| format!("{} without load and ", figures(idle)));
    let statement = format!(
        "A probe's round trip takes {idle}{} under it at the median{}; {} round trips per minute (RPM) under load.",
        figures(&probe.loaded),
        added(probe),
        model::units::three_digits(probe.rpm)
    );
    Some(Finding {
        kind: FindingKind::Note,
        statement,
        estimate: None,
        comparison: None,
        block: None,
        cells: vec![outcome.cell],
    })
}

/// What the load added, where that is more than the spread of the round trips without it, and where there are enough to tell.
fn added(probe: &Responsiveness) -> String {
    let Some(idle) = &probe.idle else { return String::new() };
    let Some(ns) = probe.bufferbloat_ns else {
        return format!(
            ", of {} and {} round trips: too few to tell what the load adds, use a longer --time or a higher --probe",
            idle.count, probe.loaded.count
        );
    };
    let quartile = |q| idle.histogram.as_ref().and_then(|all| all.quantile(q)).unwrap_or(idle.p50_ns);
    let spread = (quartile(0.75) - quartile(0.25)) as f64;
    if ns > spread {
        return format!(": the load adds {} (bufferbloat)", seconds(ns));
    }
    format!(
        ": the load adds no more than half of them differ by without it, {} (bufferbloat)",
        seconds(spread.max(1.0))
    )
}

/// What to look for where the goodput is above what the path could carry.
fn above(outcome: &Outcome) -> Option<Finding> {
    let (excess, ceiling) = (excess(outcome)?, outcome.summary.ceiling.as_ref()?);
    let suspect = match ceiling.kind {
        BoundKind::Line => {
            "the interface's speed or MTU is not what the driver says, or the data took another interface"
        }
        BoundKind::Window | BoundKind::SendBuffer => {
            "the shortest round trip is not that of this path, or the buffer was larger before the end"
        }
        _ => "the sender did not keep to what was asked, or the trials were too short for their rate",
    };
    let statement = format!(
        "The goodput is surely {} above the {} that the path could carry ({}), so one of the two is wrong: {suspect}.",
        Ratio(excess),
        bits_per_second(ceiling.bound_bps),
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

/// What was asked of a paced sender and what it did.
fn paced(outcome: &Outcome) -> String {
    if outcome.spec.paced_to_receiver {
        return "; paced to the receiver, so that what is lost is lost on the path".to_owned();
    }
    let Some(requested) = outcome.spec.rate_bps else { return String::new() };
    let did = outcome.summary.sender_bps.map_or(String::new(), |did| format!(", sent {}", bits_per_second(did)));
    let worst = outcome
        .trials
        .iter()
        .flat_map(|trial| [trial.near.pacing, trial.far.pacing])
        .flatten()
        .reduce(model::PacingTally::worse);
    let evenly = match worst.map(|worst| (worst.p50_ns, worst.p99_ns)) {
        Some((p50, Some(p99))) => format!(
            "; the time between two sends was off by {} at the median and {} at the 99th percentile of the worst trial",
            seconds(p50 as f64),
            seconds(p99 as f64)
        ),
        _ => String::new(),
    };
    format!("; asked for {}{did}{evenly}", bits_per_second(requested as f64))
}

/// The round trips of a transaction test, which are not its headline.
fn tail(summary: &Summary) -> String {
    match (summary.transactions_per_s, summary.rtt_p50_ns, summary.rtt_p99_ns) {
        (Some(_), Some(p50), Some(p99)) => {
            format!(", round trips {} at the median and {} at the 99th percentile", seconds(p50), seconds(p99))
        }
        (Some(_), Some(p50), None) => format!(", round trips {} at the median", seconds(p50)),
        _ => String::new(),
    }
}

/// Where the spread of a stream comes from: the share between connections.
fn spread(outcome: &Outcome) -> Option<Finding> {
    let (split, centre) = connection_split(outcome)?;
    let relative = (split.within + split.between).sqrt() / centre;
    if relative < WORTH_SAYING {
        return None;
    }
    let statement = format!(
        "Stretches of a tenth of a trial spread by {} (standard deviation); {:.0} % of that variance lies between connections and the rest \
         within them.",
        Ratio(relative),
        100.0 * split.share_between()
    );
    Some(Finding {
        kind: FindingKind::Note,
        statement,
        estimate: None,
        block: None,
        cells: vec![outcome.cell],
        comparison: None,
    })
}

/// Splits the variance of the trials' goodput series, each cut into ten batches, with the mean rate in bit/s. `None` unless
/// two trials kept ten readings. A direction's readings count at whichever end received.
fn connection_split(outcome: &Outcome) -> Option<(VarianceSplit, f64)> {
    if Headline::of(&outcome.spec) != Headline::Goodput {
        return None;
    }
    let groups: Vec<Vec<f64>> = outcome
        .trials
        .iter()
        .map(|trial| if trial.far.bytes_received > 0 { &trial.far } else { &trial.near })
        .map(|end| {
            let whole = end.intervals.iter().filter(|reading| {
                let length = reading.end_ns.saturating_sub(reading.start_ns);
                // The last reading of a trial is often a stub.
                length * 2 > outcome.spec.interval_ns && reading.start_ns >= outcome.spec.warmup_ns
            });
            whole
                .map(|reading| reading.bytes_received as f64 * 8e9 / (reading.end_ns - reading.start_ns) as f64)
                .collect()
        })
        .filter(|series: &Vec<f64>| series.len() >= BATCHES)
        .map(|series| batch_means(&series, series.len() / BATCHES))
        .collect();
    let split = variance_split(&groups)?;
    let centre = mean(&groups.concat()).filter(|centre| *centre > 0.0)?;
    Some((split, centre))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::testing::made;
    use crate::outcome::add_verdict;
    use crate::stats::SplitMix64;
    use model::{EndTally, Interval, Verdict};

    #[test]
    fn a_stream_in_one_sentence_with_its_verdicts() {
        let mut outcome = made("stream", 3, 131_072, &[940e6, 941e6, 939e6, 940e6, 940e6, 940e6]);
        add_verdict(&mut outcome, Verdict::Loss);
        let finding = &of_single(&[outcome])[0];
        assert_eq!(
            finding.statement,
            "tcp stream with blocks of 128 KiB carries 940 Mbit/s ± 0.076 % (95 % interval) over 6 trials; datagrams were lost."
        );
        assert_eq!((finding.cells.as_slice(), finding.estimate.is_some()), (&[3][..], true));
    }

    #[test]
    fn rests_of_receivers_are_said_where_they_matter() {
        let said = |delayed_reads| {
            let mut outcome = made("stream", 3, 131_072, &[40e9; 3]);
            for trial in &mut outcome.trials {
                let socket = SocketFacts { delayed_reads, ..SocketFacts::default() };
                let flows = vec![model::FlowTally { socket, ..model::FlowTally::default() }];
                trial.far = EndTally { receiving_ns: 1_000_000_000, flows, ..EndTally::default() };
            }
            of_single(&[outcome]).remove(0).statement
        };
        assert!(said(Some(6_000)).contains("its receivers rested for 30 % of the time"), "{}", said(Some(6_000)));
        assert!(!said(Some(6)).contains("rested") && !said(None).contains("rested"));
    }

    #[test]
    fn a_goodput_above_its_ceiling_is_a_finding() {
        let mut outcome = made("stream", 3, 131_072, &[2e9; 6]);
        outcome.spec.rate_bps = Some(1_000_000_000);
        outcome.summary.bytes_received = Some(1 << 40);
        crate::bound(&mut outcome, &model::Inventory::default(), &model::Inventory::default());
        let findings = of_single(&[outcome]);
        assert!(findings[0].statement.contains("it is above what the path could carry"), "{}", findings[0].statement);
        let said = &findings[1].statement;
        assert!(said.starts_with("The goodput is surely 100 % above the 1.00 Gbit/s"), "{said}");
        assert_eq!(findings[1].kind, FindingKind::Anomaly);
    }

    #[test]
    fn rr_names_its_round_trips() {
        let mut outcome = made("rr", 0, 1, &[16_600.0]);
        outcome.summary.transactions_per_s = Some(16_600.0);
        outcome.summary.rtt_p50_ns = Some(58_000.0);
        let statement = &of_single(&[outcome])[0].statement;
        assert!(
            statement.contains("completes 16.6 k/s (no interval) over 1 trial, round trips 58.0 us"),
            "{statement}"
        );
        assert!(statement.contains("fewer than 3 trials"), "{statement}");
    }

    #[test]
    fn no_value_is_said() {
        let statement = &of_single(&[made("stream", 0, 1, &[])])[0].statement;
        assert!(statement.starts_with("tcp stream with blocks of 1 B gave no value; "), "{statement}");
    }

    #[test]
    fn the_spread_is_told_apart() {
        let mut random = SplitMix64::new(2);
        let mut outcome = made("stream", 0, 1024, &[1e9; 12]);
        for trial in &mut outcome.trials {
            let connection = 1e9 * (1.0 + 0.1 * random.normal());
            let reading = |i: u64| Interval {
                start_ns: i * 100_000_000,
                end_ns: (i + 1) * 100_000_000,
                bytes_received: ((connection + 1e7 * random.normal()) / 80.0) as u64,
                ..Interval::default()
            };
            trial.far =
                EndTally { bytes_received: 1, intervals: (0..30).map(reading).collect(), ..EndTally::default() };
        }
        let (split, centre) = connection_split(&outcome).unwrap();
        assert!(split.share_between() > 0.95 && (centre / 1e9 - 1.0).abs() < 0.2);
        let findings = of_single(&[outcome]);
        assert!(findings[1].statement.contains("between connections"), "{}", findings[1].statement);
    }
}
