//! One direction of a trial: who sends, who receives, and what is known of their hosts.

use core::net::{IpAddr, SocketAddr};

use model::{Direction, EndOptions, EndPass, EndTally, FlowTally, Interface, Inventory, Pass, Spec, Trial};

/// One direction that carries payload, in one trial.
pub(crate) struct DirectionView<'a> {
    pub(crate) sender: Side<'a>,
    pub(crate) receiver: Side<'a>,
}

/// One end of a way, in one trial.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) tally: &'a EndTally,
    pub(crate) options: &'a EndOptions,
    pub(crate) host: &'a Inventory,
    /// Its host around the trial's pass, where that was kept.
    pub(crate) pass: Option<&'a EndPass>,
}

impl<'a> Side<'a> {
    /// Its flows that moved something.
    pub(crate) fn flows(&self) -> impl Iterator<Item = &'a FlowTally> + use<'a> {
        self.tally.flows.iter().filter(|flow| flow.bytes_sent + flow.bytes_received > 0)
    }

    /// The interface that its first flow's data takes; `None` where the inventory does not name it.
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
    let (forth, back) = (DirectionView { sender: near, receiver: far }, DirectionView { sender: far, receiver: near });
    match spec.direction {
        Direction::Send => vec![forth],
        Direction::Reverse => vec![back],
        Direction::Both => vec![forth, back],
    }
}

/// The largest packet that the kernel's TCP makes by default, bytes.
const LARGEST_PACKET: u64 = 65_536;

/// Payload that a flow's send buffer lets be under way, bytes: SO_SNDBUF as the kernel has it. That is twice what was asked for
/// (socket(7)), and large packets fill it with little else than payload. The last one may go over it, so that more counts where more
/// was seen, or may be where nobody looked.
pub(crate) fn send_buffer_bytes(flow: &FlowTally) -> Option<u64> {
    let seen = flow.tcp.iter().map(|one| u64::from(one.unacked) * u64::from(one.mss)).max();
    Some(flow.socket.sndbuf?.max(seen.unwrap_or(LARGEST_PACKET)))
}

/// The address of a flow's own end.
pub(crate) fn local(flow: &FlowTally) -> Option<IpAddr> {
    Some(flow.socket.local.as_ref()?.parse::<SocketAddr>().ok()?.ip().to_canonical())
}

/// The interface that a socket was bound to, else the one that has its address.
pub(crate) fn owner<'a>(side: &Side<'a>, address: IpAddr, device: Option<&str>) -> Option<&'a Interface> {
    let has = |interface: &&Interface| {
        interface.addresses.iter().any(|own| own.split('/').next().and_then(|ip| ip.parse().ok()) == Some(address))
    };
    let mut all = side.host.interfaces.iter();
    match device {
        Some(name) => all.find(|interface| interface.name == name),
        None => all.find(has),
    }
}
