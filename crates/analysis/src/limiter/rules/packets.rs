//! Packets that the path does not carry as they were sent: too large, or in another order.

use core::net::{IpAddr, SocketAddr};

use model::LimiterKind;
use text::{Count, Rate, Text, say};

use super::super::bottleneck;
use super::super::observations::{Observations, SenderFlow, each, ramp, sender_flows};
use super::super::threads::busiest;
use super::{Rule, Signal};
use crate::direction::{DirectionView, with_address};

/// Headers of UDP over IPv4 and over IPv6, bytes (RFC 768, RFC 791, RFC 8200).
const HEADERS: [u64; 2] = [28, 48];
/// Headers of IPv4 and TCP without options, bytes.
const TCP_HEADERS: u64 = 40;
/// Share of the datagrams from which the path counts as carrying them.
const ARRIVES: f64 = 0.05;

pub(super) const SIZE: Rule = Rule {
    name: "packet-size",
    speaks_for: &[LimiterKind::PathMtu],
    about: "Hardly any datagrams arrived and each is larger than an MTU on the path, or no full segment was acknowledged although \
            smaller ones were.",
    source: "RFC 4821, section 1, and RFC 2923, section 2.1 (black holes of path MTU discovery); RFC 8085, section 3.2",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let path_mtu = observations.path_mtu();
        datagram_size(direction, path_mtu).into_iter().chain(segment_size(direction, path_mtu)).flatten().collect()
    },
};

/// Datagrams that are larger than the MTU of an end, or that all disappeared.
fn datagram_size(direction: &DirectionView<'_>, path_mtu: Option<u32>) -> Option<Vec<Signal>> {
    let (sent, arrived) = (direction.sender.tally.datagrams?.sent, direction.receiver.tally.datagrams?.received);
    if sent == 0 || arrived as f64 > ARRIVES * sent as f64 {
        return None;
    }
    let flow = direction.sender.flows().next()?;
    let address = |text: &Option<String>| Some(text.as_ref()?.parse::<SocketAddr>().ok()?.ip().to_canonical());
    let peer = address(&flow.socket.peer);
    let ipv6 = peer.or_else(|| address(&flow.socket.local)).is_some_and(|address| matches!(address, IpAddr::V6(_)));
    let packet = direction.sender.tally.bytes_sent / sent + HEADERS[usize::from(ipv6)];
    let of_receiver = peer.and_then(|peer| with_address(direction.receiver.host, peer)?.mtu);
    let least =
        of_receiver.into_iter().chain(flow.socket.pmtu).chain(path_mtu).min().filter(|mtu| u64::from(*mtu) < packet);
    let arrivals = say!("{} of {} datagrams arrived", Count(arrived), Count(sent));
    Some(match least {
        Some(mtu) => Signal::of(LimiterKind::PathMtu, 0.95, || {
            say!("{arrivals}: each is a packet of {packet} bytes, larger than the MTU of {mtu} bytes on the path")
        }),
        // Without an MTU that is known to be smaller, something else may drop them all.
        None if arrived == 0 => Signal::of(LimiterKind::PathMtu, 0.2, || {
            say!("{arrivals}, each a packet of {packet} bytes: a smaller path MTU would drop them all")
        }),
        None => Vec::new(),
    })
}

/// A connection whose full segments are retransmitted after timeouts and never acknowledged.
fn segment_size(direction: &DirectionView<'_>, path_mtu: Option<u32>) -> Option<Vec<Signal>> {
    let stuck = |flow: &model::FlowTally| {
        let (first, last) = (flow.tcp.first()?, flow.tcp.last()?);
        let mss = u64::from(last.mss);
        let acked = last.bytes_acked?.saturating_sub(first.bytes_acked.unwrap_or(0));
        let timeouts = last.timeouts?.saturating_sub(first.timeouts.unwrap_or(0));
        (mss > 0 && acked < mss && timeouts >= 2 && last.unacked > 0).then_some((mss, timeouts))
    };
    let flows: Vec<_> = direction.sender.flows().filter(|flow| !flow.tcp.is_empty()).collect();
    let all: Vec<(u64, u64)> = flows.iter().copied().filter_map(stuck).collect();
    let (mss, _) = *all.first().filter(|_| all.len() == flows.len())?;
    let timeouts: u64 = all.iter().map(|(_, timeouts)| timeouts).sum();
    // The probe of the path found the hole, too, or it did not look.
    let (weight, found) = match path_mtu.filter(|mtu| u64::from(*mtu) < mss + TCP_HEADERS) {
        Some(mtu) => (0.95, say!("the path carries packets of up to {mtu} bytes")),
        None => (0.5, "the path carries no packets of that size".into()),
    };
    Some(Signal::of(LimiterKind::PathMtu, weight, || {
        say!(
            "no segment of {mss} bytes was acknowledged in {timeouts} timeouts although the smaller packets of the handshake \
             passed: {found}, and nothing reports it (a black hole)"
        )
    }))
}

/// Up to the first number, needless retransmissions are not the cause; from the second on they are.
const FEW: [f64; 2] = [2.0, 8.0];
/// Segments that TCP expects out of order at first (net.ipv4.tcp_reordering).
const IN_ORDER: u32 = 3;

pub(super) const ORDER: Rule = Rule {
    name: "reordering",
    speaks_for: &[LimiterKind::Reordering],
    about: "TCP retransmitted segments that had only been overtaken, and reduced its congestion window for them.",
    source: "RFC 2883 (D-SACK); RFC 4653, section 1 (reordering taken for loss); tcpi_reordering in linux/tcp.h",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let flows = sender_flows(direction);
        let needless = needless(&flows);
        let near_threshold = each(&flows, SenderFlow::limited_by_loss).unwrap_or(0.0);
        // A window that reordering keeps small is seldom near the threshold, because each D-SACK may undo the reduction.
        let reduced = near_threshold.max(each(&flows, SenderFlow::recovering).unwrap_or(0.0));
        // Cores that share the work of one connection reorder it, too, and then the work is the limit.
        let ends = [&direction.sender, &direction.receiver];
        let busy = ends.into_iter().filter_map(|side| busiest(observations, side)).map(|thread| thread.share());
        let idle = 1.0 - ramp(busy.fold(0.0, f64::max), 0.5, 0.8);
        let (_, spurious) = totals(&flows);
        let weight = 0.9 * needless * ramp(spurious as f64, FEW[0], FEW[1]) * ramp(reduced, 0.1, 0.4) * idle;
        let weight = weight * (1.0 - bottleneck::weight(observations, direction));
        Signal::of(LimiterKind::Reordering, weight, || {
            let (all, spurious) = totals(&flows);
            let (all, spurious) = (Count(all), Count(spurious));
            let rate: f64 = flows.iter().map(|flow| flow.rate_bps).sum();
            let distance =
                flows.iter().filter_map(SenderFlow::reordering).max().filter(|distance| *distance > IN_ORDER);
            let overtaken = distance
                .map_or(Text::default(), |distance| say!(", and segments were overtaken by up to {distance} others"));
            say!(
                "{spurious} of {all} retransmitted segments had arrived (D-SACK){overtaken}: the path reorders, and TCP took that \
                 for loss at {}",
                Rate(rate)
            )
        })
    },
};

/// The number of retransmitted segments, and how many of them had arrived.
fn totals(flows: &[SenderFlow<'_>]) -> (u64, u64) {
    (flows.iter().map(SenderFlow::retransmits).sum(), flows.iter().filter_map(SenderFlow::spurious).sum())
}

/// Whether retransmissions were needless because of reordering, from 0 to 1. Needless ones after a timeout are those of a late timer,
/// unless TCP learnt that segments overtake each other. A segment that comes later than its retransmission does not teach it that.
pub(super) fn needless(flows: &[SenderFlow<'_>]) -> f64 {
    let (all, spurious) = totals(flows);
    let learnt = flows.iter().filter_map(SenderFlow::reordering).any(|distance| distance > IN_ORDER);
    let timeouts: Option<u64> = flows.iter().map(SenderFlow::timeouts).sum();
    let overtaken = learnt || timeouts.is_some_and(|timeouts| 10 * timeouts <= all);
    if overtaken { ramp(spurious as f64 / all.max(1) as f64, 0.3, 0.6) } else { 0.0 }
}
