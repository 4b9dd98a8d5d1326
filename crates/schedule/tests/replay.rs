//! Curves on recorded legs: every third recorded pass is given to the real schedule in virtual time, the others are held out. The
//! interval that a short budget gives must cover the held-out median of its own window. docs/manual/statistics.md quotes the table
//! that `cargo test -p throughline-schedule --test replay -- --nocapture` prints; scripts/record-legs.sh makes the recordings.

#![allow(clippy::expect_used, clippy::print_stdout, reason = "a test's helpers, and its table")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use model::{Cell, EndTally, Event, Outcome, RttTally, RunHeader, Spec, Stop, Stopping};
use schedule::{Completed, CurvePlan, EndResult, Leg, Methods, PassResult, Run, Schedule, Step};

/// Names another folder of recordings, such as those that `make truth` makes.
const FOLDER: &str = "THRU_LEGS";
/// Of this many recorded passes, the first is replayed and the others are held out.
const EVERY: usize = 3;
/// Recorded passes that are replayed at a time, the fewest, and those of them of a window.
const TIME: usize = 250;
const LEAST: usize = 140;
const WINDOW: usize = 165;
/// Time for the connections of a pass, and to agree on a leg, ns.
const SET_UP_NS: u64 = 6_000_000;
const AGREEMENT_NS: u64 = 150_000;

/// The RTT of each size in a pass, ns.
type Recorded = BTreeMap<u64, u64>;

/// A recording: the sizes and the passes.
#[derive(Clone)]
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
        let passes = lines.map(|line| line.split(' ').filter_map(leg).collect()).collect();
        Self { sizes, passes }
    }

    /// Its parts that are long enough for a window.
    fn parts(&self) -> Vec<Self> {
        let part = |passes: &[Recorded]| Self { sizes: self.sizes.clone(), passes: passes.to_vec() };
        self.passes.chunks(TIME).filter(|passes| passes.len() >= LEAST).map(part).collect()
    }
}

/// Measures a curve on the replayed passes until they or the budget end; returns its outcomes and the passes that it took.
fn replay(recording: &Recording, budget_ns: u64) -> (Vec<Outcome>, usize) {
    let spec = |block: u64| Spec { block, stop: Stop::AboutNs(0), ..Spec::new("tcp", "pingpong") };
    let cells = recording.sizes.iter().zip(0..).map(|(size, id)| Cell::new(id, spec(*size))).collect();
    let stopping = Stopping { budget_ns: Some(budget_ns), seed: 7, ..Stopping::default() };
    let header = RunHeader { cells, stopping, ..RunHeader::default() };
    let plan = CurvePlan { adaptive: false, leg_ns: Some(500_000), limit_ns: None, ceiling: false, anatomy: false };
    let mut run = Run::new(&header, &Schedule::Curve(plan), Methods::default());
    let (mut now, mut passes) = (0, 0);
    loop {
        let result = match run.next(now) {
            Step::Pass { legs, .. } => {
                let next = passes * EVERY;
                let Some(recorded) = recording.passes.get(next).filter(|_| next < WINDOW) else { break };
                passes += 1;
                pass(&legs, recorded, &mut now)
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
    Completed::Pass(Box::new(PassResult {
        begun_ns,
        duration_ns: *now - begun_ns,
        near: end(near),
        far: Some(end(far)),
        ..PassResult::default()
    }))
}

/// A leg as it was recorded; the nearest larger size stands in for one without a record, such as the warm-up.
fn tally(leg: &Leg, recorded: &Recorded, now: &mut u64) -> EndTally {
    let ns = recorded.range(leg.block..).next().or(recorded.iter().next_back()).map_or(1, |(_, ns)| *ns);
    let count = match leg.stop {
        Stop::Transactions(count) => count,
        Stop::AboutNs(about) => (about / ns.max(1)).max(3),
        _ => 1,
    };
    *now += AGREEMENT_NS + ns * (count + 3);
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

/// Median RTT of a size over these passes, ns.
fn centre(size: u64, passes: &[&Recorded]) -> f64 {
    let mut times: Vec<u64> = passes.iter().filter_map(|pass| pass.get(&size).copied()).collect();
    times.sort_unstable();
    times[times.len() / 2] as f64
}

/// The interval of an outcome; `None` for a size with fewer than ten legs, which claims nothing.
fn interval(outcome: &Outcome) -> Option<[f64; 2]> {
    let estimate = outcome.estimate.as_ref().expect("a value");
    Some([estimate.low?, estimate.high?])
}

/// Share of the intervals that cover the median of these passes.
fn covered(outcomes: &[Outcome], passes: &[&Recorded]) -> f64 {
    let covers = |outcome: &Outcome| {
        let centre = centre(outcome.spec.block, passes);
        interval(outcome).map(|[low, high]| low <= centre && centre <= high)
    };
    let all: Vec<bool> = outcomes.iter().filter_map(covers).collect();
    all.iter().filter(|covers| **covers).count() as f64 / all.len() as f64
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
    assert!(!files.is_empty());
    for file in files {
        let parts: Vec<Part> = Recording::read(&file).parts().iter().map(Part::replayed).collect();
        let mean = |of: fn(&Part) -> Option<f64>| {
            let known: Vec<f64> = parts.iter().filter_map(of).collect();
            (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
        };
        let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        println!(
            "| {} | {} | {} | {} | {} | {} | ±{} | ±{} |",
            file.file_name().unwrap_or_default().to_string_lossy().trim_end_matches(".txt.gz"),
            parts.len(),
            parts.iter().map(|part| part.passes).sum::<usize>(),
            percent(mean(|part| Some(part.with_interval))),
            percent(mean(|part| Some(part.covered))),
            percent(mean(|part| part.predicted)),
            percent(mean(|part| Some(part.total))),
            percent(mean(|part| Some(part.own))),
        );
        let share = mean(|part| Some(part.covered)).expect("a part that is long enough");
        assert!(share >= 0.9, "{}: {share}", file.display());
        let with = mean(|part| Some(part.with_interval)).expect("a part");
        assert!(with >= 0.9, "{}: {with}", file.display());
    }
}

/// What the replay of a part of a recording gives.
struct Part {
    /// Replayed passes.
    passes: usize,
    /// Share of the sizes that have an interval.
    with_interval: f64,
    /// Share of the intervals that cover the median of the window's held-out passes, and of the passes after it.
    covered: f64,
    predicted: Option<f64>,
    /// Typical half width of a size, relative: with the level that all sizes share, and without.
    total: f64,
    own: f64,
}

impl Part {
    fn replayed(recording: &Recording) -> Self {
        let (outcomes, passes) = replay(recording, 10_000_000_000);
        assert_eq!(outcomes.len(), recording.sizes.len());
        let (window, after) = recording.passes.split_at((passes * EVERY).min(recording.passes.len()));
        let held_out: Vec<&Recorded> =
            window.iter().enumerate().filter(|(index, _)| index % EVERY != 0).map(|(_, pass)| pass).collect();
        let after: Vec<&Recorded> = after.iter().collect();
        Self {
            passes,
            with_interval: outcomes.iter().filter_map(interval).count() as f64 / outcomes.len() as f64,
            covered: covered(&outcomes, &held_out),
            predicted: (after.len() >= 30).then(|| covered(&outcomes, &after)),
            total: typical(&outcomes, |outcome| outcome.estimate.as_ref()?.relative_half_width()),
            own: typical(&outcomes, |outcome| outcome.summary.within_pass.as_ref()?.relative_half_width()),
        }
    }
}
