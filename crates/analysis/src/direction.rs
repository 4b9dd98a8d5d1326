//! One direction of a trial: its sender, its receiver and their hosts.

use core::net::{IpAddr, SocketAddr};

use model::{Direction, EndOptions, EndPass, EndTally, FlowTally, Interface, Inventory, Pass, Spec, Trial};

/// One direction that carries payload, in one trial.
pub(crate) struct DirectionView<'a> {
    pub(crate) sender: Side<'a>,
    pub(crate) receiver: Side<'a>,
}

/// One end of a direction, in one trial.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) tally: &'a EndTally,
    pub(crate) options: &'a EndOptions,
    pub(crate) host: &'a Inventory,
    /// Observations of its host around the trial's pass, if they were kept.
    pub(crate) pass: Option<&'a EndPass>,
}

impl<'a> Side<'a> {
    /// Its flows that carried payload.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &'a FlowTally> + use<'a> {
        self.tally.flows.iter().filter(|flow| flow.bytes_sent + flow.bytes_received > 0)
    }

    /// The interface of its first flow; `None` if the inventory does not contain it.
    pub(crate) fn interface(&self) -> Option<&'a Interface> {
        owner(self, local(self.flows().next()?)?, self.options.device.as_deref())
    }
}

/// The directions of a trial that carry payload; `pass` is the trial's own, `hosts` the near and the far one.
pub(crate) fn directions<'a>(
    spec: &'a Spec,
    trial: &'a Trial,
    pass: Option<&'a Pass>,
    hosts: [&'a Inventory; 2],
) -> Vec<DirectionView<'a>> {
    let [near, far] = hosts;
    let near = Side { tally: &trial.near, options: &spec.near, host: near, pass: pass.map(|pass| &pass.near) };
    let far = Side { tally: &trial.far, options: &spec.far, host: far, pass: pass.map(|pass| &pass.far) };
    let outbound = DirectionView { sender: near, receiver: far };
    let return_trip = DirectionView { sender: far, receiver: near };
    match spec.direction {
        Direction::Send => vec![outbound],
        Direction::Reverse => vec![return_trip],
        Direction::Both => vec![outbound, return_trip],
    }
}

/// The largest packet that the kernel's TCP makes by default, bytes.
const LARGEST_PACKET: u64 = 65_536;

/// Payload in flight that a flow's send buffer allows, bytes: SO_SNDBUF as the kernel reports it, which is twice the requested size
/// (socket(7)) and, with large packets, nearly all payload. The last packet may exceed it, so a larger observed value counts, or the
/// largest packet if nothing was observed.
pub(crate) fn send_buffer_bytes(flow: &FlowTally) -> Option<u64> {
    let observed = flow.tcp.iter().map(|one| u64::from(one.unacked) * u64::from(one.mss)).max();
    Some(flow.socket.sndbuf?.max(observed.unwrap_or(LARGEST_PACKET)))
}

/// The address of a flow's own end.
pub(crate) fn local(flow: &FlowTally) -> Option<IpAddr> {
    Some(flow.socket.local.as_ref()?.parse::<SocketAddr>().ok()?.ip().to_canonical())
}

/// The interface to which a socket is bound, else the one with its address.
pub(crate) fn owner<'a>(side: &Side<'a>, address: IpAddr, device: Option<&str>) -> Option<&'a Interface> {
    match device {
        Some(name) => side.host.interfaces.iter().find(|interface| interface.name == name),
        None => with_address(side.host, address),
    }
}

/// The interface of a host that has this address.
pub(crate) fn with_address(host: &Inventory, address: IpAddr) -> Option<&Interface> {
    let is = |own: &String| own.split('/').next().and_then(|ip| ip.parse().ok()) == Some(address);
    host.interfaces.iter().find(|interface| interface.addresses.iter().any(is))
}
