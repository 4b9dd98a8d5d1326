//! Where missing packets went: the hosts' counters set against what the ends miss.

use std::collections::BTreeMap;

use model::{LocatedLoss, LossLocation, Losses};

use super::observations::{Observations, courses};
use super::rules::path_counter as grew;
use crate::direction::{DirectionView, Side};

/// What one place may account for.
struct Claim {
    place: LossLocation,
    packets: u64,
    by: String,
}

/// Places the datagrams that never arrived, or the segments that TCP sent again; `None` where there are none. Counters are a whole
/// host's: a place gets at most what is left to be placed, and what nobody claims went missing on the path.
pub(super) fn losses(observations: &Observations<'_>) -> Option<Losses> {
    if !observations.bulk() {
        return None;
    }
    let datagrams = observations.directions.iter().any(|direction| direction.sender.tally.datagrams.is_some());
    let mut sums: BTreeMap<LossLocation, (u64, String)> = BTreeMap::new();
    let mut packets = 0;
    for direction in &observations.directions {
        let (missing, claims, left) = placed(direction, datagrams);
        packets += missing;
        for claim in claims {
            sums.entry(claim.place).or_insert((0, claim.by)).0 += claim.packets;
        }
        if left > 0 {
            sums.entry(LossLocation::Path).or_insert_with(|| (0, nobody(direction))).0 += left;
        }
    }
    let places = sums.into_iter().map(|(place, (packets, by))| LocatedLoss { location: place, packets, by }).collect();
    let of = if datagrams { "datagrams" } else { "segments" };
    (packets > 0).then(|| Losses { packets, of: of.into(), locations: places })
}

/// How many packets of a direction are missing, what places account for, and what is left for the path.
fn placed(direction: &DirectionView<'_>, datagrams: bool) -> (u64, Vec<Claim>, u64) {
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

/// Datagrams that went missing where no counter of the hosts accounts for them.
pub(super) fn on_path(direction: &DirectionView<'_>) -> u64 {
    placed(direction, true).2
}

fn lost(direction: &DirectionView<'_>) -> u64 {
    let sent = direction.sender.tally.datagrams.map_or(0, |tally| tally.sent);
    sent.saturating_sub(direction.receiver.tally.datagrams.map_or(0, |tally| tally.received))
}

fn retransmitted(direction: &DirectionView<'_>) -> u64 {
    courses(direction).iter().map(super::observations::Course::retransmits).sum()
}

/// The sum of host-wide counters; 0 where nothing is known of them.
fn host(side: &Side<'_>, counters: &[&str]) -> u64 {
    let Some(observed) = side.pass.and_then(|pass| pass.observed.as_ref()) else { return 0 };
    let grown = counters.iter().filter_map(|counter| u64::try_from(observed.grew(counter)?).ok());
    grown.fold(0, u64::saturating_add)
}

/// What happens on the way, from the sender's qdisc to the receiver's IP, in this order. The interfaces' own totals count what
/// their qdisc dropped nowhere.
fn claims_of_path(direction: &DirectionView<'_>) -> Vec<Claim> {
    let device = |side: &Side<'_>, counters: &[&str]| counters.iter().map(|counter| grew(side, "dev", counter)).sum();
    let claim = |place, packets, by: &str| Claim { place, packets, by: by.into() };
    vec![
        claim(LossLocation::SenderQdisc, grew(&direction.sender, "qdisc", "drops"), "the qdisc's drops"),
        claim(
            LossLocation::SenderInterface,
            device(&direction.sender, &["tx_dropped", "tx_errors"]),
            "the interface's tx_dropped and tx_errors",
        ),
        claim(
            LossLocation::ReceiverInterface,
            device(&direction.receiver, &["rx_dropped", "rx_errors"]),
            "the interface's rx_dropped and rx_errors",
        ),
        claim(LossLocation::Softnet, host(&direction.receiver, &["softnet.dropped"]), "softnet_stat's dropped"),
        claim(
            LossLocation::Ip,
            host(&direction.receiver, &["snmp.Ip.InDiscards", "snmp.Ip.InHdrErrors", "snmp.Ip.ReasmFails"]),
            "Ip's InDiscards, InHdrErrors and ReasmFails",
        ),
    ]
}

fn claims_of_datagrams(direction: &DirectionView<'_>) -> Vec<Claim> {
    // The socket's own count is exact, so it goes first.
    let own = direction.receiver.tally.datagrams.map_or(0, |tally| tally.socket_drops);
    let socket = match own {
        0 => Claim {
            place: LossLocation::SocketBuffer,
            packets: host(&direction.receiver, &["snmp.Udp.RcvbufErrors", "snmp6.Udp6RcvbufErrors"]),
            by: "Udp's RcvbufErrors".into(),
        },
        own => {
            Claim { place: LossLocation::SocketBuffer, packets: own, by: "the socket's own count (SO_MEMINFO)".into() }
        }
    };
    std::iter::once(socket).chain(claims_of_path(direction)).collect()
}

fn claims_of_segments(direction: &DirectionView<'_>) -> Vec<Claim> {
    let courses = courses(direction);
    let spurious: Option<u64> = courses.iter().map(super::observations::Course::spurious).sum();
    let arrived = Claim {
        place: LossLocation::Nowhere,
        packets: spurious.unwrap_or_else(|| host(&direction.sender, &["netstat.TcpExt.TCPDSACKRecv"])),
        by: "the receiver said that it had them already (D-SACK, RFC 2883)".into(),
    };
    let socket = Claim {
        place: LossLocation::SocketBuffer,
        packets: host(
            &direction.receiver,
            &["netstat.TcpExt.TCPRcvQDrop", "netstat.TcpExt.TCPBacklogDrop", "netstat.TcpExt.RcvPruned"],
        ),
        by: "TcpExt's TCPRcvQDrop, TCPBacklogDrop and RcvPruned".into(),
    };
    std::iter::once(arrived).chain(claims_of_path(direction)).chain([socket]).collect()
}

fn nobody(direction: &DirectionView<'_>) -> String {
    let observed = |side: &Side<'_>| side.pass.is_some_and(|pass| pass.observed.is_some());
    match (observed(&direction.sender), observed(&direction.receiver)) {
        (true, true) => "no counter of either host accounts for them".into(),
        (true, false) => "no counter of the sender accounts for them, and the receiver's were not recorded".into(),
        (false, true) => "no counter of the receiver accounts for them, and the sender's were not recorded".into(),
        (false, false) => "neither host's counters were recorded, so this is all that is left to say".into(),
    }
}
