//! The result of a check of a path, in parts.

use analysis::checkup::{BloatGrade, Checkup, UnderLoad, objections};
use model::{Direction, FindingKind, Path, Run, RunSummary, units};
use text::{Count, Rate, Size, Text, Time, say};

use crate::labels;

const BOTH: [Direction; 2] = [Direction::Send, Direction::Reverse];

/// What the directions are called, as in expectations.
pub(crate) const WAYS: [&str; 2] = ["out", "back"];

/// Shown for a value that was not measured.
const NONE: &str = "-";

/// The verdict, then the figures: `fine: out 94.1 Mbit/s ±1.0 %, back 93.8 Mbit/s ±1.1 %, RTT 20.1 ms, ...`.
pub(crate) fn headline(run: &Run) -> Option<Text> {
    let checkup = Checkup::of(&run.header, &run.outcomes)?;
    let goodput = |direction| Some(say!("{} {}", way(direction), goodput(checkup, direction)?));
    let mut figures: Vec<Text> = BOTH.into_iter().filter_map(goodput).collect();
    let in_turn = checkup.curve().and_then(|curve| curve.peak);
    figures.extend(in_turn.map(|(_, bps)| say!("out and back in turn {}", Rate(bps))));
    figures.extend(checkup.idle_ns().map(|ns| say!("RTT {}", Time(ns))));
    let worst = BOTH.into_iter().filter_map(|direction| checkup.grade(direction)).max();
    figures.extend(worst.map(|grade| say!("bufferbloat {}", grade.name())));
    let verdict = verdict(run);
    Some(if figures.is_empty() { verdict } else { say!("{verdict}: {}", Text::join(figures, ", ")) })
}

/// Whether the path is as it should be.
pub(crate) fn verdict(run: &Run) -> Text {
    let (expected, against) = (run.header.expected.len(), objections(run).count());
    let early = run.ending.as_ref().filter(|ending| against == 0 && ending.how != "finished");
    match (expected, against) {
        _ if run.outcomes.is_empty() => "not measured".into(),
        _ if early.is_some() => say!("{} before its end", early.map_or("", |ending| ending.how.as_str())),
        (0, 0) => "fine".into(),
        (0, 1) => "1 finding".into(),
        (0, many) => say!("{many} findings"),
        (_, 0) => "as expected".into(),
        (all, unmet) => say!("not as expected ({unmet} of {all})"),
    }
}

/// The rows with a value for each direction, outbound first.
pub(crate) fn each(run: &Run) -> Vec<(&'static str, [Text; 2])> {
    let Some(checkup) = Checkup::of(&run.header, &run.outcomes) else { return Vec::new() };
    let load = |direction| checkup.under_load(direction).map(|load| under_load(load, checkup.grade(direction)));
    let lost = |direction| {
        let (lost, sent) = checkup.lost(direction)?;
        Some(say!("{} of {} datagrams", Count(lost), Count(sent)))
    };
    let jitter = |direction| checkup.jitter_ns(direction).map(|ns| say!("{}", Time(ns)));
    let rows: [(&str, [Option<Text>; 2]); 4] = [
        ("Goodput", BOTH.map(|direction| goodput(checkup, direction))),
        ("RTT loaded", BOTH.map(load)),
        ("Lost", BOTH.map(lost)),
        ("Jitter", BOTH.map(jitter)),
    ];
    let some = rows.into_iter().filter(|(_, values)| values.iter().any(Option::is_some));
    some.map(|(title, values)| (title, values.map(|value| value.unwrap_or_else(|| NONE.into())))).collect()
}

/// The goodput of a direction with its interval, and whether it is final.
fn goodput(checkup: Checkup<'_>, direction: Direction) -> Option<Text> {
    let remark = checkup.stream(direction).map_or("", labels::unsettled);
    Some(say!("{}{remark}", labels::estimated(checkup.goodput(direction)?)))
}

/// The figures of both directions, what limits them, and what to do next: no number stands for both. The headline and the trust are those
/// of any run.
pub(crate) fn summary(run: &Run) -> Option<RunSummary> {
    let checkup = Checkup::of(&run.header, &run.outcomes)?;
    let limits = BOTH.into_iter().filter_map(|direction| {
        let why = checkup.stream(direction)?.summary.why.as_ref()?;
        Some(say!("{}: {}", way(direction), analysis::limiter::named(why)))
    });
    let limits = Text::join(limits, "; ");
    Some(RunSummary {
        limited_by: Some(limits).filter(|limits| !limits.is_empty()),
        next: next(run),
        outbound: checkup.goodput(Direction::Send).cloned(),
        return_trip: checkup.goodput(Direction::Reverse).cloned(),
        ..RunSummary::default()
    })
}

fn under_load(UnderLoad { loaded_ns, added_ns }: UnderLoad, grade: Option<BloatGrade>) -> Text {
    let added = added_ns.zip(grade);
    let added = added.map_or(Text::default(), |(ns, grade)| match ns {
        0.0 => say!(", no more: {}", grade.name()),
        _ => say!(", {} more: {}", Time(ns), grade.name()),
    });
    say!("{}{added}", Time(loaded_ns))
}

/// Rows of a curve, whose figure is for both directions: its goodput, and who answered.
fn curve(run: &Run) -> Vec<(&'static str, Text, usize)> {
    let Some(curve) = Checkup::of(&run.header, &run.outcomes).and_then(|checkup| checkup.curve()) else {
        return Vec::new();
    };
    let goodput = match curve.peak {
        Some((block, bps)) => {
            // The rate may rise further where the time of the check ended the curve.
            let largest = if block == curve.largest { ", the largest measured" } else { "" };
            say!("peak {}, one figure for out and back in turn: blocks of {}{largest}", Rate(bps), Size(block))
        }
        None => "not known: the curve ended before its larger blocks".into(),
    };
    let far = "NPtcp (NetPIPE): it served this one connection and has ended; start it again for another check";
    let unknown =
        "goodput of each direction, RTT under load, loss, jitter, what limits the path: NPtcp only sends blocks back";
    vec![("Goodput", goodput, 2), ("Far end", far.into(), 2), ("Not known", unknown.into(), 2)]
}

/// The round trip without load.
pub(crate) fn idle(run: &Run) -> Option<Text> {
    Checkup::of(&run.header, &run.outcomes)?.idle_ns().map(|ns| say!("{}", Time(ns)))
}

/// The other rows: title, text and the most lines.
pub(crate) fn rows(run: &Run) -> Vec<(&'static str, Text, usize)> {
    let Some(checkup) = Checkup::of(&run.header, &run.outcomes) else { return Vec::new() };
    let mut rows = curve(run);
    for direction in BOTH {
        let why = checkup.stream(direction).and_then(|outcome| outcome.summary.why.as_ref());
        let cause = why.map(|why| say!("{}: {}", way(direction), analysis::limiter::first_cause(why)));
        rows.extend(cause.map(|cause| ("Limited by", cause, 2)));
    }
    rows.extend(run.header.path_outbound.as_ref().and_then(path).map(|path| ("Path", path, 2)));
    let found = run.findings.iter().filter(|finding| matches!(finding.kind, FindingKind::Unmet | FindingKind::Concern));
    rows.extend(found.map(|finding| ("Found", finding.statement.clone(), 2)));
    rows
}

/// The command that would help most.
pub(crate) fn next(run: &Run) -> Option<Text> {
    let checkup = Checkup::of(&run.header, &run.outcomes)?;
    let remedy = checkup.remedy().map(|remedy| remedy.statement.clone());
    // `thru why` has nothing to say about a curve of another program.
    let agent =
        || checkup.curve().map(|_| say!("`thru serve --invite` at that host: a check with it measures all of this"));
    let why = || (!run.outcomes.is_empty()).then(|| say!("`thru why {}` (evidence)", run.header.id));
    remedy.or_else(agent).or_else(why)
}

/// The route as it was probed: `3 hops, path MTU 1500 B`.
fn path(path: &Path) -> Option<Text> {
    let hops = path.hops.as_ref().map(|hops| match hops.len() {
        1 => "1 hop".to_owned(),
        many => format!("{many} hops"),
    });
    let mtu = path.mtu.as_ref().map(|mtu| format!("path MTU {} B", mtu.bytes));
    let ping = path.ping.as_ref().filter(|ping| ping.sent > 0).map(|ping| match ping.median_ns {
        Some(ns) => format!("ping {} ({} of {} answered)", units::seconds(ns as f64), ping.received, ping.sent),
        None => format!("no ping answered ({} sent)", ping.sent),
    });
    let parts: Vec<String> = [hops, mtu, ping].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", ").into())
}

fn way(direction: Direction) -> &'static str {
    WAYS[usize::from(direction == Direction::Reverse)]
}
