//! The answer of a stream, a transfer or a round-trip test: at most ten lines with what says of whom the run is. Everything else is
//! in the whole report.

mod each_direction;

use model::{Confidence, Direction, FindingKind, Outcome, Pattern, Ratio, Remedy, Role, Run, RunKind, Summary, units};

pub(super) use each_direction::beside;

use analysis::outcome::Shortfall;
use text::{Count, Rate, Said, Text, Time, say};

use crate::lines::{cut, hanging};
use crate::sections::next_step;
use crate::sections::responsiveness::{of_trials, working};
use crate::sections::{captures, one_way, sides};
use crate::{Layout, headline, labels};

/// Width of the titles.
pub(super) const TITLE: usize = 13;
/// The row that says how to see the rest.
const MORE: &str = "More";
/// Lines that a cause may have.
const WRAPPED: usize = 2;

/// The only outcome of a run that was measured as one.
pub(super) fn of(run: &Run) -> Option<&Outcome> {
    match sides::shown(run).as_slice() {
        [outcome] if run.header.origin.is_none() && run.header.plan.is_none() && run.header.kind != RunKind::Curve => {
            Some(*outcome)
        }
        _ => None,
    }
}

/// The figures, what limited them, what to know before relying on them, and what to do next; `whole` is how to see the rest.
pub(super) fn screen(run: &Run, outcome: &Outcome, layout: Layout, whole: &str) -> String {
    let mut text = each_direction::table(outcome, TITLE, layout);
    for (title, answer, lines) in rows(run, outcome, whole) {
        let mut row = String::new();
        hanging(&format!("{title:<0$}", TITLE - 1), &answer, TITLE, layout, &mut row);
        text.push_str(&cut(&row, lines, layout.width()));
    }
    text
}

/// The rows with whole texts, for a page that has the rest too.
pub(super) fn whole_rows(run: &Run, outcome: &Outcome) -> Vec<(&'static str, Text)> {
    let rows = rows(run, outcome, "").into_iter();
    let rows = rows.filter(|(title, ..)| *title != MORE).map(|(title, text, _)| (title, text));
    each_direction::rows(outcome).into_iter().chain(rows).collect()
}

type Row = (&'static str, Text, usize);

fn rows(run: &Run, outcome: &Outcome, whole: &str) -> Vec<Row> {
    let summary = &outcome.summary;
    let way = |of: Option<Direction>| of.map_or(Text::default(), |direction| say!("{}: ", direction.way()));
    let limits = summary.limits().map(|(of, why)| {
        let cause = analysis::limiter::first_cause(why);
        ("Limited by", Some(say!("{}{cause}", way(of))), WRAPPED)
    });
    // A run that is not stored cannot be asked about.
    let is_known = summary.limits().next().is_some();
    let next = (is_known && whole.contains(&run.header.id)).then(|| next_step::of(run, outcome));
    let remedies = summary.limits().flat_map(|(of, why)| why.remedies.iter().map(move |remedy| (of, remedy)));
    let remedies = remedies.enumerate().map(|(index, (of, remedy))| match index {
        0 => ("Remedy", Some(say!("{}{}", way(of), remedy.statement)), WRAPPED),
        _ => ("Then", Some(say!("{}{}", way(of), next_remedy(remedy))), 1),
    });
    // In both directions each has its own figures.
    let is_one = summary.directions().next().is_none();
    let of_one = |answer: Option<Text>| answer.filter(|_| is_one);
    let mut rows: Vec<(&'static str, Option<Text>, usize)> = vec![
        ("RPM", responsiveness(outcome), WRAPPED),
        ("Latency", working_latency(outcome), WRAPPED),
        ("Carried", working_goodput(outcome), WRAPPED),
        ("Offered", offered(outcome), WRAPPED),
        (title(outcome), Some(figure(outcome)), WRAPPED),
        ("Measured", measured(outcome), 1),
        ("Seconds", seconds(outcome), 1),
        ("RTT", of_one(round_trips(outcome)).filter(|_| working(outcome).is_none()), 1),
        ("Transferred", transferred(outcome), 1),
        ("Ledger", ledger(outcome), WRAPPED),
        ("Retransmits", of_one(retransmits(summary, " segments")), 1),
        ("Lost", of_one(lost(summary)), 1),
        ("By size", by_size(outcome), WRAPPED),
        ("Flows", flows(outcome.spec.flows, summary), 1),
        ("Under load", under_load(outcome), WRAPPED),
        ("Outbound", one_way(outcome, one_way::outbound), WRAPPED),
        ("Return", one_way(outcome, one_way::return_trip), WRAPPED),
        ("Anatomy", analysis::anatomy::sentence(outcome), WRAPPED),
    ];
    rows.extend(limits);
    rows.extend(remedies);
    rows.extend([
        ("Captured", captures::files(run), WRAPPED + 2),
        ("Rules", rules(outcome), WRAPPED),
        ("Path", path(run), WRAPPED),
        ("Caveats", caveats(run, outcome), WRAPPED + 1),
        ("Next", next, WRAPPED),
        (MORE, Some(say!("{whole}: hosts, cores, ceiling, cost, all caveats")), 1),
    ]);
    rows.into_iter().filter_map(|(title, answer, lines)| Some((title, answer?, lines))).collect()
}

fn title(outcome: &Outcome) -> &'static str {
    match (outcome.summary.goodput_bps, outcome.summary.transactions_per_s) {
        (Some(_), _) if outcome.spec.no_loss => "Highest rate without loss:",
        (Some(_), _) if outcome.summary.directions().next().is_some() => "Together",
        (Some(_), _) => "Goodput",
        (None, Some(_)) => "Transactions",
        // Nothing arrived.
        _ if matches!(outcome.spec.pattern, Pattern::Stream | Pattern::Transfer) => "Goodput",
        _ => "RTT",
    }
}

/// The figure with its interval, or why there is none: `26.8 Gbit/s ±1.2 % (95 % interval, 14 trials, trust high)`.
fn figure(outcome: &Outcome) -> Text {
    if let Some(why) = headline::reason(outcome) {
        return say!("no result: {why}");
    }
    let summary = &outcome.summary;
    let figure = outcome.estimate.as_ref().map_or_else(|| "no value".into(), labels::estimated);
    let has_interval = outcome.estimate.as_ref().is_some_and(|estimate| estimate.low.is_some());
    let interval = if has_interval { "95 % interval, " } else { "" };
    let trials = if summary.trials == 1 { "trial" } else { "trials" };
    let trust = summary.trust.map_or(Text::default(), |trust| say!(", trust {}", labels::trust(trust)));
    say!("{figure}{} ({interval}{} {trials}{trust})", labels::unsettled(outcome), summary.trials)
}

/// What was measured although it is not to be used.
fn measured(outcome: &Outcome) -> Option<Text> {
    headline::reason(outcome)?;
    Some(say!("{}, not to be used", labels::estimated(outcome.estimate.as_ref()?)))
}

/// The spread over the seconds of a single trial.
fn seconds(outcome: &Outcome) -> Option<Text> {
    let seconds = outcome.summary.seconds?;
    let [min, median, max] = [seconds.min_bps, seconds.median_bps, seconds.max_bps].map(Rate);
    Some(say!("{min} at the least, {median} at the median, {max} at the most"))
}

/// The rate that a paced sender did not reach, and why: it is not the one that the other figures were asked for.
fn offered(outcome: &Outcome) -> Option<Text> {
    let Shortfall { offered_bps, requested_bps, cause } = analysis::outcome::shortfall(outcome)?;
    Some(say!("{} of {} requested: {}", Rate(offered_bps), Rate(requested_bps), cause.words()))
}

/// Round trips of a request test, or of TCP during a stream.
fn round_trips(outcome: &Outcome) -> Option<Text> {
    let summary = &outcome.summary;
    if summary.goodput_bps.is_none() {
        let p50 = summary.rtt_p50_ns.filter(|_| summary.transactions_per_s.is_some())?;
        let p99 = summary.rtt_p99_ns.map_or(Text::default(), |ns| say!(", {} at the 99th percentile", Time(ns)));
        return Some(say!("{} median{p99}", Time(p50)));
    }
    let rtt = summary.tcp_rtt_ns?;
    let cwnd = summary.cwnd_bytes.map_or(Text::default(), |bytes| say!(", cwnd {}", units::amount(bytes)));
    let each = if outcome.spec.flows > 1 { " each" } else { "" };
    Some(say!("{} under this load (TCP, median){cwnd}{each}", Time(rtt)))
}

/// What a transfer moved, and how long it took.
fn transferred(outcome: &Outcome) -> Option<Text> {
    let bytes = outcome.summary.bytes_received.filter(|_| outcome.spec.pattern == Pattern::Transfer)?;
    let took = outcome.summary.duration_ns?;
    let trials = if outcome.summary.trials > 1 { " in all trials" } else { "" };
    Some(say!("{} ({} B) in {}{trials}", units::amount(bytes as f64), Count(bytes), Time(took as f64)))
}

/// What limits after the first remedy.
fn next_remedy(remedy: &Remedy) -> Text {
    let end = if remedy.role == Role::Active { "near" } else { "far" };
    say!("{} = {} at the {end} end", remedy.setting, remedy.value)
}

/// The rules for single destinations that had less effect than their file asks for.
fn rules(outcome: &Outcome) -> Option<Text> {
    let said = analysis::findings::of_rules(outcome);
    (!said.is_empty()).then(|| Text::join(said, " "))
}

/// The first finding on the hosts and the path.
fn path(run: &Run) -> Option<Text> {
    Some(run.findings.iter().find(|finding| finding.kind == FindingKind::Path)?.statement.clone())
}

/// Where a transfer's bytes are.
fn ledger(outcome: &Outcome) -> Option<Text> {
    let known = || outcome.trials.iter().map(|trial| &trial.ledger).filter(|ledger| !ledger.is_unknown());
    if outcome.spec.pattern != Pattern::Transfer || known().next().is_none() {
        return None;
    }
    let sum = |count: fn(&model::Ledger) -> u64| known().map(count).sum::<u64>();
    let mut text =
        say!("{} B sent, {} B received", Count(sum(|ledger| ledger.sent)), Count(sum(|ledger| ledger.received)));
    for (count, what) in [(sum(|ledger| ledger.lost), "lost"), (sum(|ledger| ledger.in_flight), "in flight at the end")]
    {
        text += say!(", {} B {what}", Count(count));
    }
    Some(if known().all(|ledger| ledger.balanced) { text } else { say!("{text}: the counts do not match") })
}

/// What was sent again, with the word for it.
fn retransmits(summary: &Summary, segments: &str) -> Option<Text> {
    let count = summary.retransmits?;
    let share = summary.bytes_retransmitted.zip(summary.bytes_sent).filter(|(again, sent)| *again > 0 && *sent > 0);
    let share = share.map_or(Text::default(), |(again, sent)| {
        let share = again as f64 / (sent + again) as f64;
        let share = if share < 1e-5 { "less than 0.001 %".into() } else { Ratio(share).to_string() };
        say!(" ({share} of the bytes)")
    });
    let segments = if count == 1 { segments.trim_end_matches('s') } else { segments };
    Some(say!("{}{segments}{share}", Count(count)))
}

/// Loss, reordering and jitter of datagrams.
fn lost(summary: &Summary) -> Option<Text> {
    let lost = summary.packets_lost?;
    let mut text = Text::from(labels::lost(lost, summary.packets_sent));
    if let Some(sent) = summary.packets_sent {
        text += say!(" of {} datagrams", Count(sent));
    }
    for (count, what) in [(summary.packets_reordered, "reordered"), (summary.packets_duplicated, "duplicated")] {
        text += count.filter(|count| *count > 0).map_or(Text::default(), |count| say!(", {} {what}", Count(count)));
    }
    text += summary.jitter_ns.map_or(Text::default(), |ns| say!("; jitter {}", Time(ns)));
    Some(text)
}

/// The datagrams of a mix by the size of their frames.
fn by_size(outcome: &Outcome) -> Option<Text> {
    let sizes = &outcome.summary.sizes;
    let of = |size: &model::SizeCount| {
        let lost = labels::lost(size.lost(), Some(size.sent));
        say!("{lost} of {} frames of {} B", Count(size.sent), size.frame_bytes)
    };
    let list: Vec<Text> = sizes.iter().map(of).collect();
    (!list.is_empty()).then(|| say!("lost {}", Text::join(list, ", ")))
}

/// How many flows shared the total, the median and the extremes of what they got, and how fair that was.
fn flows(flows: u32, summary: &Summary) -> Option<Text> {
    let (index, shares) = (summary.fairness?, summary.shares?);
    let each = summary.goodput_bps.map(|bps| bps / f64::from(flows.max(1)));
    let got = |share: f64| each.map_or_else(|| say!("{share:.2}"), |bps| Rate(share * bps).say());
    let of = if each.is_none() { " of an equal share" } else { " each" };
    let range = say!("{} to {}{of}, median {}", got(shares.min), got(shares.max), got(shares.median));
    Some(say!("{flows} flows: {range} (Jain's index {index:.3})"))
}

/// The responsiveness with the lowest confidence of the trials.
fn responsiveness(outcome: &Outcome) -> Option<Text> {
    let trials = working(outcome)?;
    let rpm = Count::rounded(of_trials(trials, |one| one.rpm));
    let lowest = trials.iter().map(|one| one.confidence).min()?;
    let why = match lowest {
        Confidence::High => "it was stable",
        Confidence::Medium => "it still varied by more than 5 %",
        Confidence::Low => "it had too little time",
    };
    let both = if outcome.spec.direction == Direction::Both { "both directions at once, " } else { "" };
    Some(say!("{rpm} round trips per minute under load ({both}confidence {}: {why})", lowest.name()))
}

/// What round trips took without load and in the working conditions.
fn working_latency(outcome: &Outcome) -> Option<Text> {
    let trials = working(outcome)?;
    let idle = outcome.summary.probe.as_ref().and_then(|probe| probe.idle.as_ref());
    let idle = idle.map_or(Text::default(), |idle| say!("{} idle; under load ", Time(idle.p50_ns as f64)));
    let of = |figure| Time(of_trials(trials, figure));
    Some(say!(
        "{idle}{} to connect, {} to answer on a new connection, {} on the loaded ones (TCP)",
        of(|one| one.connect_ns),
        of(|one| one.request_ns),
        of(|one| one.rtt_ns)
    ))
}

/// The goodput in the working conditions.
fn working_goodput(outcome: &Outcome) -> Option<Text> {
    let trials = working(outcome)?;
    let lowest = trials.iter().map(|one| one.goodput_confidence).min()?;
    let flows = trials.iter().map(|one| one.flows).max()?;
    let rate = Rate(of_trials(trials, |one| one.goodput_bps));
    let count = if flows == 1 { "1 flow".into() } else { say!("{flows} flows") };
    Some(say!("{rate} meanwhile, with {count} (confidence {})", lowest.name()))
}

/// A probe's median RTT without and with load.
fn under_load(outcome: &Outcome) -> Option<Text> {
    let probe = outcome.summary.probe.as_ref().filter(|probe| probe.working.is_empty())?;
    let idle = probe.idle.as_ref().map_or(Text::default(), |idle| say!("{} without, ", Time(idle.p50_ns as f64)));
    let loaded = Time(probe.loaded.p50_ns as f64);
    let rpm = Count::rounded(probe.rpm);
    Some(say!("RTT of the probe {idle}{loaded} with load (median); {rpm} round trips per minute (RPM)"))
}

/// One direction of the one-way delays.
fn one_way(outcome: &Outcome, direction: fn(&model::OneWay) -> Text) -> Option<Text> {
    outcome.summary.one_way.as_deref().map(direction)
}

fn caveats(run: &Run, outcome: &Outcome) -> Option<Text> {
    let verdicts = outcome.summary.verdicts.iter();
    let sentences: Vec<Text> = verdicts.map(|one| labels::meaning(run, *one)).collect();
    (!sentences.is_empty()).then(|| Text::join(sentences, "; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use model::{Verdict, WorkingConditions};

    fn shown(run: &Run, columns: u16) -> String {
        screen(
            run,
            of(run).unwrap(),
            Layout { columns, ..Layout::default() },
            &format!("`thru show {} -v`", run.header.id),
        )
    }

    #[test]
    fn an_answer_has_the_figure_first_and_at_most_ten_lines() {
        for run in [sample::stream(), sample::rr()] {
            let text = shown(&run, 100);
            assert!(text.lines().count() <= 10, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
            let first = text.lines().next().unwrap();
            assert!(first.contains('±') && first.contains("95 % interval, ") && first.contains("trust "), "{text}");
            assert!(text.ends_with(" -v`: hosts, cores, ceiling, cost, all caveats\n"), "{text}");
        }
    }

    #[test]
    fn the_first_line_says_that_a_rate_is_not_settled_and_why() {
        for (verdict, why) in [(Verdict::NotSettled, "still growing"), (Verdict::SendBufferLimited, "send buffer")] {
            let mut run = sample::stream();
            run.outcomes[0].summary.verdicts = vec![verdict];
            let first = shown(&run, 100).lines().next().unwrap().to_owned();
            assert!(
                first.contains(&format!(", not settled: {why} (95 % interval")) && first.contains("trust"),
                "{first}"
            );
        }
    }

    #[test]
    fn a_rate_that_was_not_offered_comes_first() {
        let mut run = sample::stream();
        assert!(!shown(&run, 100).contains("Offered"));
        let outcome_of = |run: &mut Run, bps: u64| run.outcomes[0].spec.rate_bps = Some(bps);
        let sent =
            analysis::outcome::trial_summary(&run.header.cells[0], &run.outcomes[0].trials[0]).sender_bps.unwrap();
        outcome_of(&mut run, (2.0 * sent) as u64);
        let text = shown(&run, 100);
        assert!(
            text.starts_with("Offered      ") && text.contains(" requested: the path or one of the ends"),
            "{text}"
        );
        outcome_of(&mut run, (0.9 * sent) as u64);
        assert!(!shown(&run, 100).contains("Offered"));
    }

    #[test]
    fn the_highest_rate_without_loss_is_called_that() {
        let mut run = sample::stream();
        run.outcomes[0].spec.no_loss = true;
        assert!(shown(&run, 100).starts_with("Highest rate without loss: 9.4"), "{}", shown(&run, 100));
        assert!(
            crate::headline(&run).plain().starts_with("highest rate without loss 9.4"),
            "{:?}",
            crate::headline(&run)
        );
    }

    #[test]
    fn a_remedy_and_the_first_finding_on_the_path_are_rows() {
        let mut run = sample::stream();
        let remedy = |role, setting: &str| Remedy {
            role,
            setting: setting.into(),
            now: "4096 16384 4194304".into(),
            value: "4096 16384 20971520".into(),
            window_bytes: 10_000_000,
            command: "thru tune set".into(),
            statement: "`thru tune set` on the near host (now 4 MiB): a window of 9.54 MiB".into(),
        };
        let mut why = sample::why("4 MiB");
        why.remedies = vec![remedy(Role::Active, "sysctl.a"), remedy(Role::Passive, "sysctl.b")];
        run.outcomes[0].summary.why = Some(why.into());
        let finding = |kind, statement: &str| model::Finding {
            kind,
            statement: statement.into(),
            estimate: None,
            block: None,
            cells: Vec::new(),
            comparison: None,
        };
        run.findings = vec![finding(FindingKind::Note, "A note."), finding(FindingKind::Path, "The MTUs differ.")];
        let text = shown(&run, 100);
        let rows = "Remedy       `thru tune set` on the near host (now 4 MiB): a window of 9.54 MiB\n\
                    Then         sysctl.b = 4096 16384 20971520 at the far end\n\
                    Path         The MTUs differ.\n";
        assert!(text.contains(rows), "{text}");
    }

    #[test]
    fn what_limits_comes_without_lesser_causes_and_with_the_next_command() {
        let mut run = sample::stream();
        run.header.target = Some("beta".into());
        run.outcomes[0].summary.why = Some(sample::why("a standing queue").into());
        let text = shown(&run, 100);
        assert!(text.contains("Limited by   link rate (strong): a standing queue\n"), "{text}");
        assert!(text.contains(", `thru advise beta` (settings)\n"), "{text}");
    }

    #[test]
    fn a_transfer_has_its_bytes_time_and_ledger() {
        let mut run = sample::stream();
        let outcome = &mut run.outcomes[0];
        outcome.spec.pattern = Pattern::Transfer;
        outcome.trials.truncate(1);
        outcome.trials[0].ledger = model::Ledger { sent: 4096, received: 4000, lost: 96, in_flight: 0, balanced: true };
        let summary = &mut outcome.summary;
        (summary.trials, summary.bytes_received, summary.duration_ns) = (1, Some(4000), Some(2_000_000));
        (summary.retransmits, summary.bytes_retransmitted, summary.bytes_sent) = (Some(3), Some(40), Some(4096));
        let text = shown(&run, 100);
        assert!(text.contains("Transferred  4.00 kB (4,000 B) in 2.00 ms\n"), "{text}");
        assert!(
            text.contains("Ledger       4,096 B sent, 4,000 B received, 96 B lost, 0 B in flight at the end\n"),
            "{text}"
        );
        assert!(text.contains("Retransmits  3 segments (0.967 % of the bytes)\n"), "{text}");
        run.outcomes[0].trials[0].ledger.balanced = false;
        assert!(shown(&run, 120).contains("the counts do not match"));
    }

    #[test]
    fn datagrams_have_loss_and_jitter() {
        let mut run = sample::stream();
        let summary = &mut run.outcomes[0].summary;
        (summary.packets_lost, summary.packets_sent, summary.packets_reordered) = (Some(12), Some(1200), Some(3));
        summary.jitter_ns = Some(13_000.0);
        assert!(
            shown(&run, 100).contains("Lost         12 (1.00 %) of 1,200 datagrams, 3 reordered; jitter 13.0 µs\n"),
            "{}",
            shown(&run, 100)
        );
    }

    #[test]
    fn a_probe_has_its_round_trips_without_and_with_load() {
        let mut run = sample::stream();
        let rtt = |ns: u64| {
            let mut all = model::Histogram::new();
            all.record(ns);
            model::RttTally::weighted(all, 100).unwrap()
        };
        let (idle, loaded) = (Some(rtt(20_000_000)), rtt(200_000_000));
        run.outcomes[0].summary.probe =
            Some(model::Responsiveness { idle, loaded, bufferbloat_ns: None, rpm: 300.0, working: Vec::new() }.into());
        let text = shown(&run, 100);
        let said =
            "Under load   RTT of the probe 20.0 ms without, 200 ms with load (median); 300 round trips per minute";
        assert!(text.replace("\n             ", " ").contains(said), "{text}");
    }

    #[test]
    fn responsiveness_comes_first_with_its_confidence_and_the_other_direction_next() {
        let mut run = sample::stream();
        let rtt = |ns: u64| {
            let mut all = model::Histogram::new();
            all.record(ns);
            model::RttTally::weighted(all, 100).unwrap()
        };
        let one = |rpm, confidence| WorkingConditions {
            rpm,
            foreign_rpm: rpm,
            loaded_rpm: rpm,
            confidence,
            goodput_confidence: Confidence::High,
            goodput_bps: 19e6,
            flows: 12,
            from_ns: 8_000_000_000,
            to_ns: 12_000_000_000,
            connect_ns: 170e6,
            request_ns: 160e6,
            rtt_ns: 150e6,
            probes: 180,
            intervals: Vec::new(),
        };
        let working = vec![one(350.0, Confidence::High), one(370.0, Confidence::Medium)];
        let (idle, loaded) = (Some(rtt(20_000_000)), rtt(160_000_000));
        run.header.target = Some("beta".into());
        run.outcomes[0].summary.why = Some(sample::why("a standing queue").into());
        run.outcomes[0].summary.probe =
            Some(model::Responsiveness { idle, loaded, bufferbloat_ns: None, rpm: 360.0, working }.into());
        let text = shown(&run, 130);
        let first = "RPM          360 round trips per minute under load (confidence medium: it still varied by more than 5 %)\n\
                     Latency      20.0 ms idle; under load 170 ms to connect, 160 ms to answer on a new connection, 150 ms on the";
        assert!(text.starts_with(first), "{text}");
        assert!(
            text.contains("\nCarried      19.0 Mbit/s meanwhile, with 12 flows (confidence high)\nGoodput "),
            "{text}"
        );
        assert!(text.contains("`thru stream beta --responsiveness --reverse` (the other direction)"), "{text}");
    }

    #[test]
    fn a_mix_of_sizes_has_its_losses_by_size() {
        let mut run = sample::stream();
        let size = |frame_bytes, sent, received| model::SizeCount { frame_bytes, payload_bytes: 1, sent, received };
        run.outcomes[0].summary.sizes = vec![size(64, 700, 700), size(1518, 100, 98)];
        let text = shown(&run, 100);
        assert!(
            text.contains("By size      lost 0 of 700 frames of 64 B, 2 (2.00 %) of 100 frames of 1518 B\n"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_cut_in_a_terminal_without_columns() {
        let run = sample::rr();
        assert!(!screen(&run, of(&run).unwrap(), Layout { columns: 1, ..Layout::default() }, "").is_empty());
    }

    #[test]
    fn a_long_caveat_is_cut() {
        let mut run = sample::stream();
        run.outcomes[0].summary.verdicts =
            vec![Verdict::TargetMissed, Verdict::SameHost, Verdict::Drifting, Verdict::Overlapped];
        let text = shown(&run, 80);
        let caveats: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Caveats")).take(4).collect();
        assert!(caveats[2].ends_with(" …") && !caveats[3].starts_with(' '), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn curves_plans_and_comparisons_have_no_such_answer() {
        assert!([sample::curve(), sample::planned(), sample::pair()].iter().all(|run| of(run).is_none()));
    }
}
