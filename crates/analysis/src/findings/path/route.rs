//! MTUs and routes.

use model::{EndTally, Outcome, RunHeader};
use text::{Text, Time, say};

use super::End;
use crate::direction::{local, with_address};

/// The largest IP packet: a path MTU of this on a loopback of 65,536 bytes is not smaller.
const LARGEST: u32 = 65_535;
/// Two minimum RTTs of one path differ by less than this factor or this time, ns. The handshake is TCP's only sample of the
/// unloaded path, and the host may be busy.
const FACTOR: f64 = 1.5;
const MARGIN_NS: u64 = 2_000_000;
/// The slower of the two was measured on an unloaded path if its repetitions vary by at most this part of the difference, and this
/// many ns for a busy host.
const STEADY: f64 = 0.1;
const NOISE_NS: f64 = 1e6;

/// Whether the interfaces of the data have different MTUs: those of the routes, or where an end's route is not known that with the
/// address of the data.
pub(super) fn unequal_mtus(near: &End<'_>, far: &End<'_>, outcomes: &[Outcome]) -> Option<Text> {
    let trial = outcomes.iter().flat_map(|outcome| &outcome.trials).next();
    let ((near_name, near_mtu), (far_name, far_mtu)) =
        (mtu(near, trial.map(|trial| &*trial.near))?, mtu(far, trial.map(|trial| &*trial.far))?);
    let ([less, small], [more, large]) = if near_mtu < far_mtu {
        ([near.side, near_name], [far.side, far_name])
    } else {
        ([far.side, far_name], [near.side, near_name])
    };
    let (least, most) = (near_mtu.min(far_mtu), near_mtu.max(far_mtu));
    (least != most).then(|| {
        say!(
            "The MTUs differ: {near_mtu} bytes on {near_name} (near) and {far_mtu} on {far_name} (far). TCP uses the smaller one in \
            both directions; larger datagrams are fragmented or dropped. Remedy: `thru tune set dev.{small}.mtu={most}` on the {less} \
             host if all devices in between carry {most} bytes, else `thru tune set dev.{large}.mtu={least}` on the {more} host."
        )
    })
}

/// The interface of an end's data, and its MTU.
fn mtu<'a>(end: &End<'a>, tally: Option<&EndTally>) -> Option<(&'a str, u32)> {
    let by_route = || {
        let route = end.path?.route.as_ref()?;
        Some((route.interface.as_deref()?, route.interface_mtu?))
    };
    let by_address = || {
        let interface = with_address(end.host, local(tally?.flows.first()?)?)?;
        Some((interface.name.as_str(), interface.mtu?))
    };
    by_route().or_else(by_address)
}

pub(super) fn narrow_path(end: &End<'_>) -> Option<Text> {
    let path = end.path?;
    let (route, found) = (path.route.as_ref()?, path.mtu.as_ref()?);
    let interface_mtu = route.interface_mtu?.min(LARGEST);
    let source = match (&found.reported_by, found.confirmed) {
        (Some(router), true) => say!(" (reported by {router})"),
        (Some(router), false) => say!(" (reported by {router}, not confirmed)"),
        (None, true) => Text::default(),
        (None, false) => " (by the kernel, not confirmed)".into(),
    };
    (found.bytes < interface_mtu).then(|| {
        say!(
            "The path MTU from the {} end is {} bytes{source}, smaller than the {interface_mtu} bytes of its interface{}.",
            end.side,
            found.bytes,
            route.interface.as_ref().map_or(Text::default(), |name| say!(" {name}"))
        )
    })
}

/// Compares the minimum RTT of ping with TCP's: different ones mean different paths or queues, if neither was measured on a loaded
/// path. On an unloaded one all echoes took about as long, and so did the fastest segments of all connections.
pub(super) fn two_paths(header: &RunHeader, outcomes: &[Outcome]) -> Option<Text> {
    let path = header.path_outbound.as_ref()?;
    let ping = path.ping.as_ref()?;
    let trials = outcomes.iter().flat_map(|outcome| &outcome.trials);
    let sockets = trials.flat_map(|trial| &trial.near.flows).map(|flow| &flow.socket);
    let minima: Vec<(u64, Option<&str>)> =
        sockets.filter_map(|socket| Some((socket.min_rtt_ns?, socket.peer.as_deref()))).collect();
    let ((tcp, peer), (slowest, _)) = (*minima.iter().min()?, *minima.iter().max()?);
    let echo = ping.min_ns?;
    let (less, more) = (echo.min(tcp), echo.max(tcp));
    if more as f64 <= FACTOR * less as f64 || more - less <= MARGIN_NS {
        return None;
    }
    // Only the slower of the two can have waited in a queue.
    let varied = if tcp > echo { slowest - tcp } else { ping.max_ns.unwrap_or(echo).saturating_sub(echo) };
    if varied as f64 > STEADY * (more - less) as f64 + NOISE_NS {
        return None;
    }
    let elsewhere = match peer.filter(|peer| !is_address(peer, &path.peer)) {
        Some(peer) => say!(": ping went to {}, the data to {peer}", path.peer),
        None if tcp > echo => {
            ", although both went to the same address: packets are routed or queued by type or flow".into()
        }
        None => ", although both went to the same address: echo replies are delayed or take another path".into(),
    };
    Some(say!(
        "Ping and the data took different paths or queues: the minimum RTT is {} by ping and {} by TCP{elsewhere}.",
        Time(echo as f64),
        Time(tcp as f64)
    ))
}

/// Whether `peer`, with its port, is at `address`.
fn is_address(peer: &str, address: &str) -> bool {
    peer.rsplit_once(':').is_some_and(|(host, _)| host.trim_matches(['[', ']']).split('%').next() == Some(address))
}
