//! Curves on recorded legs: every third recorded pass is given to the real schedule in virtual time, the others are held out. The
//! interval that a short budget gives must cover the held-out median of its own window. docs/manual/statistics.md quotes the table
//! that `cargo test -p throughline-schedule --test replay -- --nocapture` prints; scripts/record-legs.sh makes the recordings.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test's helpers, and its table")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use model::{Cell, EndResult, EndTally, Event, Leg, Outcome, Pattern, RttTally, RunHeader, Spec, Stop, Stopping};
use schedule::{Completed, CurvePlan, Methods, PassResult, Schedule, ScheduledRun, Step, TestResult};

/// Names another folder of recordings, such as those that `make truth` makes.
const FOLDER: &str = "THRU_LEGS";
/// Of this many recorded passes, the first is replayed and the others are held out.
const EVERY: usize = 3;
/// Recorded passes of a window, at least, or two thirds of all; the rest comes after it.
const WINDOW: usize = 165;
/// Time for the connections of a pass, and to agree on a leg, ns.
const SET_UP_NS: u64 = 6_000_000;
const AGREEMENT_NS: u64 = 150_000;
/// A short budget, ns, and the passes that it has at least: an interval takes ten legs.
const BUDGET_NS: u64 = 10_000_000_000;
const FEWEST: u64 = 12;

/// The RTT of each size in a pass, ns.
type Recorded = BTreeMap<u64, u64>;

/// A recording: the sizes and the passes.
struct Recording {
    sizes: Vec<u64>,
    passes: Vec<Recorded>,
}

impl Recording {
    fn read(path: &Path) -> Self {
        let mut text = String::new();
        let file = std::fs::File::open(path).expect("a recording");
        GzDecoder::new(file).read_to_string(&mut text).expect("gzip of text");
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let words = lines.next().expect("sizes").split(' ');
        let sizes: Vec<u64> = words.map(|size| size.parse().expect("a size")).collect();
        let leg = |word: &str| {
            let (size, ns) = word.split_once(':')?;
            Some((*sizes.get(size.parse::<usize>().ok()?)?, ns.parse().ok()?))
        };
        let mut passes: Vec<Recorded> = lines.map(|line| line.split(' ').filter_map(leg).collect()).collect();
        // On a slow path the first passes look at a few sizes each.
        passes.retain(|pass| 2 * pass.len() > sizes.len());
        Self { sizes, passes }
    }

    /// Its passes of the window.
    fn window(&self) -> usize {
        WINDOW.max(self.passes.len() * 2 / 3)
    }

    /// Ten seconds, or on a slow path the time of a few passes.
    fn budget_ns(&self) -> u64 {
        let pass = |pass: &Recorded| SET_UP_NS + pass.values().map(|ns| leg_ns(*ns, 3)).sum::<u64>();
        let mut passes: Vec<u64> = self.passes.iter().map(pass).collect();
        passes.sort_unstable();
        BUDGET_NS.max(FEWEST * passes[passes.len() / 2])
    }
}

/// Measures a curve on the replayed passes until they or the budget end; returns its outcomes and the passes that it took.
fn replay(recording: &Recording, budget_ns: u64) -> (Vec<Outcome>, usize) {
    let spec = |block: u64| Spec { block, stop: Stop::AboutNs(0), ..Spec::new("tcp", Pattern::Pingpong) };
    let cells = recording.sizes.iter().zip(0..).map(|(size, id)| Cell::new(id, spec(*size))).collect();
    let stopping = Stopping { min_trials: 6, budget_ns: Some(budget_ns), seed: 7, ..Stopping::default() };
    let header = RunHeader { cells, stopping, ..RunHeader::default() };
    let plan = CurvePlan {
        adaptive: false,
        leg_ns: Some(500_000),
        limit_ns: None,
        ceiling: false,
        anatomy: false,
        check: false,
    };
    let mut run = ScheduledRun::new(&header, &Schedule::Curve(plan), Methods::default());
    let (mut now, mut passes) = (0, 0);
    loop {
        let result = match run.next(now) {
            Step::Run(tests) => {
                let legs = &tests.tests[0].legs;
                let next = passes * EVERY;
                let Some(recorded) = recording.passes.get(next).filter(|_| next < recording.window()) else { break };
                passes += 1;
                pass(legs, recorded, &mut now)
            }
            Step::End(_) => break,
            _ => Completed::Done,
        };
        run.completed(result, now);
    }
    run.close(false);
    let outcome = |event| if let Event::Outcome(outcome) = event { Some(outcome) } else { None };
    (run.events().into_iter().filter_map(outcome).collect(), passes)
}

/// A pass as it was recorded.
fn pass(legs: &[Leg], recorded: &Recorded, now: &mut u64) -> Completed {
    let begun_ns = *now;
    *now += SET_UP_NS;
    let near: Vec<EndTally> = legs.iter().map(|leg| tally(leg, recorded, now)).collect();
    let far = near.iter().map(|_| EndTally::default()).collect();
    let end = |tallies| EndResult { tallies, ..EndResult::default() };
    let (duration_ns, near, far) = (*now - begun_ns, end(near), Some(end(far)));
    let pass = PassResult { begun_ns, duration_ns, near, far, ..PassResult::default() };
    Completed::Tests(vec![TestResult { pass: Ok(pass), changes: Default::default(), begun_unix_ns: 0 }])
}

/// A leg as it was recorded; the nearest larger size stands in for one without a record, such as the warm-up.
fn tally(leg: &Leg, recorded: &Recorded, now: &mut u64) -> EndTally {
    let ns = recorded.range(leg.block..).next().or(recorded.iter().next_back()).map_or(1, |(_, ns)| *ns);
    let count = match leg.stop {
        Stop::Transactions(count) => count,
        Stop::AboutNs(about) => (about / ns.max(1)).max(3),
        _ => 1,
    };
    *now += leg_ns(ns, count);
    let rtt = RttTally {
        count,
        min_ns: ns,
        p50_ns: ns,
        mean_ns: ns as f64,
        p99_ns: None,
        max_ns: ns,
        batch: 1,
        histogram: None,
    };
    EndTally { rtt: Some(rtt), transactions: count, ..EndTally::default() }
}

/// Time of a leg of so many exchanges of `ns` each, ns.
fn leg_ns(ns: u64, count: u64) -> u64 {
    AGREEMENT_NS + ns * (count + 3)
}

/// Median RTT of a size over these passes, ns.
fn centre(size: u64, passes: &[&Recorded]) -> f64 {
    let mut times: Vec<u64> = passes.iter().filter_map(|pass| pass.get(&size).copied()).collect();
    times.sort_unstable();
    times[times.len() / 2] as f64
}

/// The interval of each outcome that has one, with its size: fewer than ten legs give none.
fn intervals(outcomes: &[Outcome]) -> Vec<(u64, f64, f64)> {
    let interval = |outcome: &Outcome| {
        let estimate = outcome.estimate.as_ref().expect("a value");
        Some((outcome.spec.block, estimate.low?, estimate.high?))
    };
    outcomes.iter().filter_map(interval).collect()
}

/// Share of the intervals that cover the median of these passes.
fn covered(intervals: &[(u64, f64, f64)], passes: &[&Recorded]) -> f64 {
    let covers = |(size, low, high): &&(u64, f64, f64)| (*low..=*high).contains(&centre(*size, passes));
    intervals.iter().filter(covers).count() as f64 / intervals.len() as f64
}

/// The median of a width over the outcomes.
fn typical(outcomes: &[Outcome], width: impl Fn(&Outcome) -> Option<f64>) -> f64 {
    let mut widths: Vec<f64> = outcomes.iter().filter_map(width).collect();
    widths.sort_by(f64::total_cmp);
    widths[widths.len() / 2]
}

#[test]
fn the_interval_of_a_short_budget_covers_what_it_did_not_see() {
    let bank = || Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/legs");
    let folder = std::env::var_os(FOLDER).map_or_else(bank, PathBuf::from);
    let entries = std::fs::read_dir(folder).expect("recordings");
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    assert!(files.len() >= if std::env::var_os(FOLDER).is_some() { 1 } else { 5 }, "{files:?}");
    for file in files {
        let recording = Recording::read(&file);
        let (outcomes, passes) = replay(&recording, recording.budget_ns());
        let intervals = intervals(&outcomes);
        let (window, after) = recording.passes.split_at((passes * EVERY).min(recording.passes.len()));
        let held_out: Vec<&Recorded> =
            window.iter().enumerate().filter(|(index, _)| index % EVERY != 0).map(|(_, pass)| pass).collect();
        let share = covered(&intervals, &held_out);
        let after: Vec<&Recorded> = after.iter().collect();
        let predicted = (after.len() >= 30).then(|| covered(&intervals, &after));
        let total = typical(&outcomes, |outcome| outcome.estimate.as_ref()?.relative_half_width());
        let own = typical(&outcomes, |outcome| outcome.summary.within_pass.as_ref()?.relative_half_width());
        println!(
            "| {} | {passes} | {} of {} | {:.0} % | {} | ±{:.1} % | ±{:.1} % |",
            file.file_name().unwrap_or_default().to_string_lossy().trim_end_matches(".txt.gz"),
            intervals.len(),
            outcomes.len(),
            100.0 * share,
            predicted.map_or("-".to_owned(), |share| format!("{:.0} %", 100.0 * share)),
            100.0 * total,
            100.0 * own,
        );
        // Sizes whose legs do not fit into the budget are left out.
        assert!(2 * outcomes.len() > recording.sizes.len(), "{}: {}", file.display(), outcomes.len());
        assert!(2 * intervals.len() > outcomes.len(), "{}: {}", file.display(), intervals.len());
        assert!(share >= 0.9, "{}: {share}", file.display());
    }
}
