//! Packets' sizes and ways.

use model::units::seconds;
use model::{Outcome, Ping, RunHeader};

use super::End;

/// The largest IP packet: a loopback of 65,536 bytes is not narrowed by it.
const LARGEST: u32 = 65_535;
/// Two shortest round trips of one path lie nearer to each other than this factor and this much, ns. The handshake is TCP's only
/// sample of the unloaded path, and may meet a busy host.
const FACTOR: f64 = 1.5;
const MARGIN_NS: u64 = 2_000_000;

pub(super) fn unequal_mtus(near: &End<'_>, far: &End<'_>) -> Option<String> {
    let mtu = |end: &End<'_>| {
        let route = end.path?.route.as_ref()?;
        Some((route.interface.clone()?, route.interface_mtu?))
    };
    let ((near_name, near_mtu), (far_name, far_mtu)) = (mtu(near)?, mtu(far)?);
    (near_mtu != far_mtu).then(|| {
        format!(
            "The ends' MTUs differ, {near_mtu} bytes on {near_name} (near) and {far_mtu} on {far_name} (far), so that TCP sends \
             segments of the smaller one both ways and larger datagrams come in pieces or not at all."
        )
    })
}

pub(super) fn narrow_path(end: &End<'_>) -> Option<String> {
    let path = end.path?;
    let (route, found) = (path.route.as_ref()?, path.mtu.as_ref()?);
    let interface_mtu = route.interface_mtu?.min(LARGEST);
    let teller = found.reported_by.as_ref().map_or(String::new(), |router| format!(" ({router} says so)"));
    let sure = if found.confirmed { "" } else { ", as far as the kernel knows" };
    (found.bytes < interface_mtu).then(|| {
        format!(
            "From the {} end the path carries packets of {} bytes{teller}{sure}, less than the {interface_mtu} of its interface {}.",
            end.side,
            found.bytes,
            route.interface.as_deref().unwrap_or("there")
        )
    })
}

/// Ping's shortest round trip against TCP's own. The record of 2003 pinged one address at 65 ms and sent to another at 183.
pub(super) fn two_paths(header: &RunHeader, outcomes: &[Outcome]) -> Option<String> {
    let path = header.path_outbound.as_ref()?;
    let ping = path.ping.as_ref().and_then(shortest)?;
    let trials = outcomes.iter().flat_map(|outcome| &outcome.trials);
    let sockets = trials.flat_map(|trial| &trial.near.flows).map(|flow| &flow.socket);
    let (tcp, peer) = sockets.filter_map(|socket| Some((socket.min_rtt_ns?, socket.peer.as_deref()))).min()?;
    let (less, more) = (ping.min(tcp), ping.max(tcp));
    if more as f64 <= FACTOR * less as f64 || more - less <= MARGIN_NS {
        return None;
    }
    let elsewhere = match peer.filter(|peer| !is_address(peer, &path.peer)) {
        Some(peer) => format!(": ping went to {}, the data to {peer}", path.peer),
        None if tcp > ping => {
            ", although both went to the same address: packets are treated by kind or flow, or the path was loaded"
                .into()
        }
        None => ", although both went to the same address: echoes are answered late, or take another way".into(),
    };
    Some(format!(
        "Ping and the data took different paths or queues: the shortest round trip is {} by ping and {} by TCP{elsewhere}.",
        seconds(ping as f64),
        seconds(tcp as f64)
    ))
}

fn shortest(ping: &Ping) -> Option<u64> {
    ping.min_ns
}

/// Whether `peer`, with its port, is at `address`.
fn is_address(peer: &str, address: &str) -> bool {
    peer.rsplit_once(':').is_some_and(|(host, _)| host.trim_matches(['[', ']']).split('%').next() == Some(address))
}
