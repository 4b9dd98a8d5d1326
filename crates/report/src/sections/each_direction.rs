//! What each direction of streams in both carried, a line each.

use model::{Direction, Outcome, Run, Summary, units};

use crate::labels;
use crate::sections::limiter::name_of;
use crate::sections::{outcome_line, sides};

/// A line for each direction: `outbound: goodput 28.1 Mbit/s ±0.4 %, RTT 20.0 ms, 12 segments retransmitted, trust fair`. Without lines
/// of runs in one direction.
pub(crate) fn of_run(run: &Run) -> Vec<String> {
    let of = |outcome: &&Outcome| {
        let name = name_of(run, outcome).map_or(String::new(), |name| format!("{name}, "));
        let line = |(direction, summary)| labels::plain(&format!("{name}{}", line(outcome, direction, summary)));
        outcome.summary.directions().map(line).collect::<Vec<_>>()
    };
    sides::shown(run).iter().flat_map(of).collect()
}

fn line(outcome: &Outcome, direction: Direction, of: &Summary) -> String {
    let own = outcome.directions().find(|(other, _)| *other == direction);
    let goodput = own.map(|(_, estimate)| format!("goodput {}", outcome_line::estimate_words(&estimate)));
    let parts = [
        Some(goodput.unwrap_or_else(|| "no value".to_owned())),
        of.tcp_rtt_ns.map(|ns| format!("RTT {}", units::seconds(ns))),
        of.retransmits.map(|count| format!("{count} segments retransmitted")),
        of.packets_lost.map(|lost| format!("{} datagrams lost", labels::lost(lost, of.packets_sent))),
        of.jitter_ns.map(|ns| format!("jitter {}", units::seconds(ns))),
        of.trust.map(|trust| format!("trust {}", labels::trust(trust))),
    ];
    format!("{}: {}", direction.way(), parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}
