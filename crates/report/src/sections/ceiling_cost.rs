//! Sentences on an outcome's ceiling and CPU cost, and on the hosts' self-tests.

use model::units::count;
use model::{EndCost, Inventory, Outcome, Ratio, Run, RunKind, SelfTestCitation, Verdict};
use text::{Rate, Said, Text, Time, say};

use crate::labels;
use crate::screens::selftest::accuracy;
use crate::sections::{host_facts, sides};

/// A ceiling at least this many times the goodput is printed with three digits.
const FAR: f64 = 5.0;
/// Most digits beyond three, to show the difference of two figures.
const MORE_DIGITS: usize = 3;

/// Sentences on ceiling and cost of each outcome of a run; the sides of a comparison are named. Curves have none, because their
/// sizes share a pass.
pub(crate) fn of_run(run: &Run) -> Vec<Text> {
    if run.header.kind == RunKind::Curve {
        return Vec::new();
    }
    let mut lines: Vec<Text> = Vec::new();
    for outcome in sides::shown(run) {
        let side = sides::side(run, outcome).map_or(Text::default(), |side| say!("{side}, "));
        lines.extend(at_most(outcome).map(|text| say!("{side}goodput {text}")));
        lines.extend(cost(run, outcome).into_iter().map(|text| say!("{side}{text}")));
    }
    let missing: Vec<Text> = missing_cycles(run);
    lines.extend(missing);
    lines
}

/// `46.5 of at most 47.1 Mbit/s (MTU 1500 on 50 Mbit/s)`. Uses more than three digits only where three do not tell the two apart.
pub(crate) fn at_most(outcome: &Outcome) -> Option<Text> {
    let ceiling = outcome.summary.ceiling.as_ref()?;
    let goodput = outcome.summary.goodput_bps?;
    let reason = &ceiling.reason;
    if goodput.is_nan() || goodput * FAR <= ceiling.bound_bps {
        return Some(say!("{} of at most {} ({reason})", Rate(goodput), Rate(ceiling.bound_bps)));
    }
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    let (divisor, unit) =
        units.into_iter().find(|(divisor, _)| ceiling.bound_bps >= *divisor).unwrap_or((1.0, "bit/s"));
    let bound = ceiling.bound_bps / divisor;
    let usual: usize = match bound {
        bound if bound >= 100.0 => 0,
        bound if bound >= 10.0 => 1,
        _ => 2,
    };
    let shown = |digits: usize| [goodput / divisor, bound].map(|value| format!("{value:.digits$}"));
    let [did, bound] =
        (usual..usual + MORE_DIGITS).map(shown).find(|[did, bound]| did != bound).unwrap_or(shown(usual));
    Some(say!("{did} of at most {bound} {unit} ({reason})"))
}

/// The bounds above the ceiling: `window 3.00 MiB over 1.00 ms: 25.2 Gbit/s`.
pub(crate) fn other_bounds(outcome: &Outcome) -> Vec<Text> {
    let others = outcome.summary.ceiling.iter().flat_map(|ceiling| &ceiling.others);
    others.map(|bound| say!("{}: {}", bound.reason, Rate(bound.bps))).collect()
}

/// A sentence for each end.
fn cost(run: &Run, outcome: &Outcome) -> Vec<Text> {
    let Some(cost) = &outcome.summary.cost else { return Vec::new() };
    let one_host = outcome.summary.verdicts.contains(&Verdict::SameHost);
    let ends = [("near", Some(&cost.near), &run.header.near), ("far", cost.far.as_ref(), &run.header.far)];
    ends.into_iter()
        .filter_map(|(name, end, host)| Some(say!("{name} end: {}", figures(end?, one_host, host)?)))
        .collect()
}

fn figures(end: &EndCost, one_host: bool, inventory: &Inventory) -> Option<Text> {
    let process = match (end.process_s_per_gb, end.process_ns_per_transaction) {
        (Some(of), _) => say!("{} CPU s/GB", count(of)),
        (None, Some(ns)) => say!("{} of CPU per transaction", Time(ns)),
        (None, None) => return None,
    };
    let mut parts: Vec<Text> = vec![say!("{process} in the measuring processes")];
    let host = end.host_s_per_gb.map(|of| count(of).into()).or(end.host_ns_per_transaction.map(|ns| Time(ns).say()));
    if let Some(host) = host {
        let whole = if one_host { "the whole host (both ends)" } else { "the whole host" };
        let resolution = end.host_resolution_ns.map(|ns| host_facts::cpu_time_resolution(ns, inventory));
        let resolution = resolution.map_or(Text::default(), |text| say!(" ({text})"));
        parts.push(say!("{host} on {whole}, interrupts included{resolution}"));
    }
    parts.extend(end.cycles_per_byte.map(|cycles| say!("{} cycles/byte", count(cycles))));
    Some(Text::join(parts, ", "))
}

/// Why cycles are missing, each reason once.
fn missing_cycles(run: &Run) -> Vec<Text> {
    let costs = run.outcomes.iter().filter_map(|outcome| outcome.summary.cost.as_ref());
    let reasons = costs
        .flat_map(|cost| std::iter::once(&cost.near).chain(&cost.far))
        .filter_map(|end| end.cycles_missing.as_ref());
    let mut lines: Vec<Text> = Vec::new();
    for reason in reasons {
        let text = say!("cycles not measured: {}", labels::plain(reason));
        if !lines.contains(&text) {
            lines.push(text);
        }
    }
    lines
}

/// The self-tests of both hosts, one line each; a single line if both ends are on one host. Then the errors that apply to the
/// outcomes, each line once. Empty if neither host has one.
pub(crate) fn selftests(run: &Run) -> Vec<Text> {
    let (near, far) = (&run.header.near, &run.header.far);
    let same = near.selftest == far.selftest && (near.boot_id == far.boot_id || run.header.target.is_none());
    let hosts: &[&Inventory] = if same { &[near] } else { &[near, far] };
    let mut lines: Vec<Text> = hosts.iter().filter_map(|host| Some(selftest(host, host.selftest.as_ref()?))).collect();
    for line in run.outcomes.iter().filter_map(|outcome| accuracy(&outcome.summary.accuracy)) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn selftest(host: &Inventory, cited: &SelfTestCitation) -> Text {
    say!("{} {}", labels::plain(host.hostname.as_deref().unwrap_or("this host")), citation(cited))
}

/// A self-test in one line, as runs and `thru host` cite it: time, checks passed, worst errors, and what changed since.
#[must_use]
pub fn citation(cited: &SelfTestCitation) -> Text {
    let mut text = say!(
        "{}, version {}{}: {} of {} checks passed",
        labels::when(cited.started_unix_ns),
        labels::plain(&cited.version),
        if cited.quick { " (quick)" } else { "" },
        cited.passed,
        cited.checks
    );
    if let Some(error) = cited.worst_rate_error {
        text += &say!(", rates within {}", Ratio(error));
    }
    if let Some(ns) = cited.worst_rtt_error_ns {
        text += &say!(", round trips within {}", Time(ns));
    }
    if cited.second_attempts > 0 {
        text += &say!(", {} in a second attempt", cited.second_attempts);
    }
    if !cited.changed.is_empty() {
        text += &say!("; changed since: {}", labels::plain(&cited.changed.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use model::{Check, CitedError, Claim};

    use super::*;
    use crate::sample;

    fn plain(texts: &[Text]) -> Vec<String> {
        texts.iter().map(Text::plain).collect()
    }

    #[test]
    fn goodput_and_ceiling_have_enough_digits_to_differ() {
        let mut outcome = sample::pair().outcomes.remove(0);
        let mut text = |goodput, bound| {
            outcome.summary.goodput_bps = Some(goodput);
            outcome.summary.ceiling.as_mut().unwrap().bound_bps = bound;
            at_most(&outcome).unwrap()
        };
        assert_eq!(text(941.2e6, 941.48e6), "941.2 of at most 941.5 Mbit/s (MTU 1500 on 10 Gbit/s)".into());
        assert!(text(9.41e9, 9.4148e9).plain().starts_with("9.410 of at most 9.415 Gbit/s"));
        assert!(text(20.1e6, 26.2144e6).plain().starts_with("20.1 of at most 26.2 Mbit/s"));
        assert!(text(9.67e9, 88e12).plain().starts_with("9.67 Gbit/s of at most 88.0 Tbit/s ("));
        assert_eq!(plain(&other_bounds(&outcome)), ["window 3.00 MiB over 1.00 ms: 25.2 Gbit/s"]);
        outcome.summary.ceiling = None;
        assert_eq!(at_most(&outcome), None);
    }

    #[test]
    fn cost_is_printed_for_each_end_and_a_missing_counter_once() {
        let lines = of_run(&sample::pair());
        let of = |start: &str| lines.iter().filter(|line| line.plain().starts_with(start)).cloned().collect::<Vec<_>>();
        assert!(of("A, goodput ")[0].plain().contains(" of at most 9.41 Gbit/s"), "{lines:#?}");
        assert_eq!(
            plain(&of("B, near end")),
            ["B, near end: 0.210 CPU s/GB in the measuring processes, 0.294 on the whole host, interrupts included \
              (resolution 10.0 ms), 0.620 cycles/byte"]
        );
        assert!(!of("A, far end")[0].plain().contains("cycles/byte"));
        assert_eq!(
            plain(&of("cycles not")),
            ["cycles not measured: this machine has no cycle counter that the kernel can use"]
        );
        assert_eq!(of_run(&sample::curve()), []);
    }

    #[test]
    fn round_trips_have_a_cost_per_transaction() {
        let end = EndCost {
            process_ns_per_transaction: Some(5_000.0),
            host_ns_per_transaction: Some(9_000.0),
            ..EndCost::default()
        };
        let text = figures(&end, true, &Inventory::default()).unwrap();
        assert_eq!(
            text.plain(),
            "5.00 µs of CPU per transaction in the measuring processes, 9.00 µs on the whole host (both ends), interrupts included"
        );
        assert_eq!(figures(&EndCost::default(), false, &Inventory::default()), None);
    }

    #[test]
    fn self_tests_are_cited_for_each_host_once() {
        let mut run = sample::stream();
        assert_eq!(selftests(&run), []);
        let cited = SelfTestCitation {
            started_unix_ns: run.header.started_unix_ns,
            version: "0.1.0".into(),
            passed: 25,
            checks: 26,
            worst_rate_error: Some(0.0012),
            worst_rtt_error_ns: Some(8_100.0),
            changed: vec!["boot".into()],
            ..SelfTestCitation::default()
        };
        run.header.near.selftest = Some(cited.clone());
        let expected = "alpha 2026-11-21 20:37:58 UTC, version 0.1.0: 25 of 26 checks passed, rates within 0.120 %, round trips \
                        within 8.10 µs; changed since: boot";
        assert_eq!(plain(&selftests(&run)), [expected]);
        run.header.far.selftest = Some(cited);
        assert_eq!(selftests(&run).len(), 2);
        run.header.far.boot_id = run.header.near.boot_id.clone();
        assert_eq!(selftests(&run).len(), 1);
        let check = Check::judge(Claim::Rate, "tbf", [1.01e9, 1e9, 1e6], "bit/s", String::new());
        run.outcomes[0].summary.accuracy = vec![CitedError::of(&check)];
        run.outcomes.push(run.outcomes[0].clone());
        assert_eq!(plain(&selftests(&run)[1..]), ["error in this regime: rate 1.000 % (tbf, failed)"]);
    }
}
