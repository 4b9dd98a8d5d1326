//! The matrix as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use model::LimiterKind as K;
use model::units::bits_per_second;

use crate::bounds::exact;
use crate::draw::KINDS;
use crate::judge::Judged;

/// The limiters and the heads of their columns.
const COLUMNS: [(K, &str); 19] = [
    (K::SenderApplication, "app"),
    (K::ReceiverApplication, "read"),
    (K::ReceiveWindow, "rwnd"),
    (K::SendBuffer, "sndbuf"),
    (K::Link, "link"),
    (K::Loss, "loss"),
    (K::CongestionWindow, "cwnd"),
    (K::Pacing, "pace"),
    (K::Qdisc, "qdisc"),
    (K::SenderCpu, "scpu"),
    (K::ReceiverCpu, "rcpu"),
    (K::SocketBuffer, "sock"),
    (K::ReturnPath, "back"),
    (K::Jitter, "jit"),
    (K::OtherTraffic, "other"),
    (K::PathMtu, "mtu"),
    (K::Reordering, "order"),
    (K::Softirq, "irq"),
    (K::Unexplained, "none"),
];
const LABEL: usize = 24;

/// The matrix (rows: what was produced, columns: what was named), the rates with their bounds, and what did not count.
pub fn render(judged: &[Judged]) -> String {
    let mut text = format!("{:LABEL$}", "produced \\ named");
    COLUMNS.iter().for_each(|(_, head)| _ = write!(text, " {head}"));
    text.push('\n');
    for kind in KINDS {
        text.push_str(&row(kind.words(), judged, |one| one.path.faults == [kind]));
    }
    text.push_str(&row("innocent", judged, |one| one.path.faults.is_empty()));
    text.push('\n');
    let counted = |of: fn(usize) -> bool| judged.iter().filter(move |one| of(one.path.faults.len()));
    text.push_str(&rate("single faults, right", counted(|faults| faults == 1), true));
    text.push_str(&rate("mixed faults, one of them named", counted(|faults| faults == 2), true));
    text.push_str(&rate("innocent paths, wrong", counted(|faults| faults == 0), false));
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    judged.iter().filter_map(|one| one.not_produced).for_each(|reason| *reasons.entry(reason).or_default() += 1);
    for (reason, count) in reasons {
        let _ = writeln!(text, "not counted, {reason}: {count}");
    }
    text
}

/// A row, if there are such paths.
fn row(label: &str, judged: &[Judged], belongs: impl Fn(&Judged) -> bool) -> String {
    let of: Vec<&Judged> = judged.iter().filter(|one| belongs(one) && one.not_produced.is_none()).collect();
    if of.is_empty() {
        return String::new();
    }
    let mut text = format!("{label:LABEL$}");
    for (kind, head) in COLUMNS {
        let count = of.iter().filter(|one| one.named == kind).count();
        let shown = if count == 0 { ".".to_owned() } else { count.to_string() };
        let _ = write!(text, " {shown:>width$}", width = head.len());
    }
    text.push('\n');
    text
}

/// `single faults, right: 190 of 200, 95.0 % (95 % interval 91.0 % to 97.6 %)`.
fn rate<'a>(label: &str, of: impl Iterator<Item = &'a Judged>, right: bool) -> String {
    let counted: Vec<bool> = of.filter_map(Judged::right).collect();
    let hits = counted.iter().filter(|one| **one == right).count();
    let [low, high] = exact(hits, counted.len()).map(|share| 100.0 * share);
    let share = 100.0 * hits as f64 / counted.len().max(1) as f64;
    format!("{label}: {hits} of {}, {share:.1} % (95 % interval {low:.1} % to {high:.1} %)\n", counted.len())
}

/// The paths with a wrong limiter, and those that do not count.
pub fn wrong(judged: &[Judged]) -> String {
    let mut text = String::new();
    for one in judged.iter().filter(|one| one.right() != Some(true)) {
        let goodput = one.goodput_bps.map_or("no goodput".to_owned(), bits_per_second);
        let why = one.not_produced.unwrap_or("wrong");
        let (seed, index) = (one.path.seed, one.path.index);
        let _ = writeln!(text, "{seed}-{index:04} {why}: {goodput}; {}\n    {}", one.path.about(), one.statement);
    }
    text
}
