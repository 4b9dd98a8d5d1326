//! Drop locations: the hosts' counters compared with the packets that are missing.

use std::collections::BTreeMap;

use model::source::{DEV, QDISC, column, counter};
use model::{LocatedLoss, LossLocation, Losses};

use super::observations::{Observations, sender_flows};
use super::queues::grew;
use crate::direction::{DirectionView, Side};

/// The packets that one location can account for.
struct Claim {
    location: LossLocation,
    packets: u64,
    by: String,
}

/// Locates the datagrams that never arrived, or the segments that TCP retransmitted; `None` if there are none. Counters are those of
/// a whole host, so a location gets at most what is still unaccounted for; the remainder was lost on the path.
pub(super) fn losses(observations: &Observations<'_>) -> Option<Losses> {
    if !observations.bulk() {
        return None;
    }
    let datagrams = observations.directions.iter().any(|direction| direction.sender.tally.datagrams.is_some());
    let mut sums: BTreeMap<LossLocation, (u64, String)> = BTreeMap::new();
    let mut packets = 0;
    for direction in &observations.directions {
        let (missing, claims, left) = located(direction, datagrams);
        packets += missing;
        for claim in claims {
            sums.entry(claim.location).or_insert((0, claim.by)).0 += claim.packets;
        }
        if left > 0 {
            sums.entry(LossLocation::Path).or_insert_with(|| (0, unaccounted(direction))).0 += left;
        }
    }
    let locations = sums.into_iter().map(|(location, (packets, by))| LocatedLoss { location, packets, by }).collect();
    let of = if datagrams { "datagrams" } else { "segments" };
    (packets > 0).then(|| Losses { packets, of: of.into(), locations })
}

/// The missing packets of a direction, the claims of its locations, and what is left for the path.
fn located(direction: &DirectionView<'_>, datagrams: bool) -> (u64, Vec<Claim>, u64) {
    let missing = if datagrams { lost(direction) } else { retransmitted(direction) };
    let mut left = missing;
    let mut claims = if datagrams { claims_of_datagrams(direction) } else { claims_of_segments(direction) };
    for claim in &mut claims {
        claim.packets = claim.packets.min(left);
        left -= claim.packets;
    }
    claims.retain(|claim| claim.packets > 0);
    (missing, claims, left)
}

/// Lost datagrams that no counter of the hosts accounts for.
pub(super) fn on_path(direction: &DirectionView<'_>) -> u64 {
    located(direction, true).2
}

fn lost(direction: &DirectionView<'_>) -> u64 {
    let sent = direction.sender.tally.datagrams.map_or(0, |tally| tally.sent);
    sent.saturating_sub(direction.receiver.tally.datagrams.map_or(0, |tally| tally.received))
}

fn retransmitted(direction: &DirectionView<'_>) -> u64 {
    sender_flows(direction).iter().map(super::observations::SenderFlow::retransmits).sum()
}

/// The sum of host-wide counters; 0 if they are unknown.
fn host(side: &Side<'_>, counters: &[&str]) -> u64 {
    let Some(observed) = side.pass.and_then(|pass| pass.observed.as_ref()) else { return 0 };
    let grown = counters.iter().filter_map(|counter| u64::try_from(observed.grew(counter)?).ok());
    grown.fold(0, u64::saturating_add)
}

/// The claims from the sender's qdisc to the receiver's IP, in this order. The interfaces' totals do not include drops of their
/// qdisc.
fn claims_of_path(direction: &DirectionView<'_>) -> Vec<Claim> {
    let device = |side: &Side<'_>, counters: &[&str]| counters.iter().map(|counter| grew(side, &DEV, counter)).sum();
    let claim = |location, packets, by: &str| Claim { location, packets, by: by.into() };
    vec![
        claim(LossLocation::SenderQdisc, grew(&direction.sender, &QDISC, column::DROPS), "the qdisc's drops"),
        claim(
            LossLocation::SenderInterface,
            device(&direction.sender, &[column::TX_DROPPED, column::TX_ERRORS]),
            "the interface's tx_dropped and tx_errors",
        ),
        claim(
            LossLocation::ReceiverInterface,
            device(&direction.receiver, &[column::RX_DROPPED, column::RX_ERRORS]),
            "the interface's rx_dropped and rx_errors",
        ),
        claim(LossLocation::Softnet, host(&direction.receiver, &[counter::SOFTNET_DROPPED]), "softnet_stat's dropped"),
        claim(
            LossLocation::Ip,
            host(
                &direction.receiver,
                &[counter::IP_IN_DISCARDS, counter::IP_IN_HEADER_ERRORS, counter::IP_REASSEMBLY_FAILS],
            ),
            "Ip's InDiscards, InHdrErrors and ReasmFails",
        ),
    ]
}

fn claims_of_datagrams(direction: &DirectionView<'_>) -> Vec<Claim> {
    // The socket's own count is exact, so it comes first.
    let own = direction.receiver.tally.datagrams.map_or(0, |tally| tally.socket_drops);
    let socket = match own {
        0 => Claim {
            location: LossLocation::SocketBuffer,
            packets: host(&direction.receiver, &[counter::UDP_RCVBUF_ERRORS, counter::UDP6_RCVBUF_ERRORS]),
            by: "Udp's RcvbufErrors".into(),
        },
        own => Claim {
            location: LossLocation::SocketBuffer,
            packets: own,
            by: "the socket's own count (SO_MEMINFO)".into(),
        },
    };
    std::iter::once(socket).chain(claims_of_path(direction)).collect()
}

fn claims_of_segments(direction: &DirectionView<'_>) -> Vec<Claim> {
    let flows = sender_flows(direction);
    let spurious: Option<u64> = flows.iter().map(super::observations::SenderFlow::spurious).sum();
    let arrived = Claim {
        location: LossLocation::Nowhere,
        packets: spurious.unwrap_or_else(|| host(&direction.sender, &[counter::TCP_DSACK_RECEIVED])),
        by: "the receiver already had them (D-SACK, RFC 2883)".into(),
    };
    let socket = Claim {
        location: LossLocation::SocketBuffer,
        packets: host(
            &direction.receiver,
            &[counter::TCP_RCVQ_DROP, counter::TCP_BACKLOG_DROP, counter::TCP_RCV_PRUNED],
        ),
        by: "TcpExt's TCPRcvQDrop, TCPBacklogDrop and RcvPruned".into(),
    };
    std::iter::once(arrived).chain(claims_of_path(direction)).chain([socket]).collect()
}

fn unaccounted(direction: &DirectionView<'_>) -> String {
    let observed = |side: &Side<'_>| side.pass.is_some_and(|pass| pass.observed.is_some());
    match (observed(&direction.sender), observed(&direction.receiver)) {
        (true, true) => "no counter of either host accounts for them".into(),
        (true, false) => "no counter of the sender accounts for them, and the receiver's were not recorded".into(),
        (false, true) => "no counter of the receiver accounts for them, and the sender's were not recorded".into(),
        (false, false) => "the counters of the hosts were not recorded".into(),
    }
}
