//! What each direction of streams in both carried, a line each.

use model::{Direction, Outcome, Run, Summary};
use text::{Count, Text, Time, say};

use crate::labels;
use crate::sections::limiter::name_of;
use crate::sections::sides;

/// A line for each direction: `outbound: goodput 28.1 Mbit/s ±0.4 %, RTT 20.0 ms, 12 segments retransmitted, trust fair`. Without lines
/// of runs in one direction.
pub(crate) fn of_run(run: &Run) -> Vec<Text> {
    let of = |outcome: &&Outcome| {
        let name = name_of(run, outcome).map_or(Text::default(), |name| say!("{name}, "));
        let line = |(direction, summary)| say!("{name}{}", line(outcome, direction, summary));
        outcome.summary.directions().map(line).collect::<Vec<_>>()
    };
    sides::shown(run).iter().flat_map(of).collect()
}

fn line(outcome: &Outcome, direction: Direction, of: &Summary) -> Text {
    let own = outcome.directions().find(|(other, _)| *other == direction);
    let goodput = own.map(|(_, estimate)| say!("goodput {}", labels::estimated(&estimate)));
    let parts = [
        Some(goodput.unwrap_or_else(|| "no value".into())),
        of.tcp_rtt_ns.map(|ns| say!("RTT {}", Time(ns))),
        of.retransmits.map(|count| say!("{} segments retransmitted", Count(count))),
        of.packets_lost.map(|lost| say!("{} datagrams lost", labels::lost(lost, of.packets_sent))),
        of.jitter_ns.map(|ns| say!("jitter {}", Time(ns))),
        of.trust.map(|trust| say!("trust {}", labels::trust(trust))),
    ];
    say!("{}: {}", direction.way(), Text::join(parts.into_iter().flatten(), ", "))
}
