//! The interfaces of the data and their rates.

use model::{Framing, Interface, MixStep, Spec};

use super::frame::{self, Network};
use crate::direction::{Side, local, owner};

/// Drivers of virtual devices, whose reported speed is not that of a line. Without ethtool such devices have no driver at all.
const WITHOUT_LINE: [&str; 11] = [
    "virtio_net",
    "vmxnet3",
    "xen_netfront",
    "vif",
    "hv_netvsc",
    "tun",
    "veth",
    "bridge",
    "bonding",
    "802.1Q VLAN Support",
    "dummy",
];

/// One direction from interface to interface.
pub(super) struct Route {
    /// Rate of the slower interface among those with a known rate, bit/s.
    pub(super) line_bps: f64,
    /// Either interface is half duplex.
    pub(super) half_duplex: bool,
    network: Network,
    /// The socket's MSS.
    mss: Option<u64>,
    timestamps: bool,
}

/// The route of a direction's first flow; `None` if no interface's rate is known.
pub(super) fn of(sender: &Side<'_>, receiver: &Side<'_>) -> Option<Route> {
    let flow = sender.flows().next()?;
    let (from, to) = (local(flow)?, receiver.flows().next().and_then(local));
    // Between two addresses of one host data takes the loopback, whichever interfaces have the addresses.
    let one_host = sender.host.boot_id.is_some() && sender.host.boot_id == receiver.host.boot_id;
    if from.is_loopback() || (one_host && to.is_none_or(|to| owner(sender, to, None).is_some())) {
        return None;
    }
    let ends = [
        owner(sender, from, sender.options.device.as_deref()),
        to.and_then(|to| owner(receiver, to, receiver.options.device.as_deref())),
    ];
    let known = || ends.iter().flatten();
    let line_bps = known().filter_map(|interface| rate(interface)).reduce(f64::min)?;
    let mtus = known().filter_map(|interface| interface.mtu).chain(flow.socket.pmtu);
    Some(Route {
        line_bps,
        half_duplex: known().any(|interface| interface.duplex.as_deref() == Some("half")),
        network: Network { mtu: u64::from(mtus.min()?), ipv6: from.is_ipv6() },
        mss: flow.socket.mss.map(u64::from),
        timestamps: flow.socket.negotiated.iter().any(|name| name == "timestamps"),
    })
}

impl Route {
    /// The share of the line's rate that is left for a spec's payload; `None` for transports with unknown packets.
    pub(super) fn share(&self, spec: &Spec) -> Option<f64> {
        let tcp = || self.network.tcp_share(self.mss(), self.timestamps);
        Some(match spec.transport_facts()?.framing? {
            Framing::Tcp => tcp(),
            Framing::Tls => tcp() * frame::tls_share(spec.block),
            Framing::Udp if spec.mix.is_empty() => self.network.udp_share(spec.block),
            Framing::Udp => {
                // Each size takes its own time on the line.
                let bytes = |step: &MixStep| step.payload_bytes as f64 * f64::from(step.count);
                let on_line = |step: &MixStep| bytes(step) / self.network.udp_share(step.payload_bytes);
                spec.mix.iter().map(bytes).sum::<f64>() / spec.mix.iter().map(on_line).sum::<f64>()
            }
            Framing::Quic => self.network.quic_share(),
        })
    }

    fn mss(&self) -> u64 {
        let fits = self.network.mss(self.timestamps);
        self.mss.map_or(fits, |mss| mss.min(fits))
    }

    /// `MTU 1500`, with a small MSS and IPv6 if they apply.
    pub(super) fn words(&self) -> String {
        let small = self.mss.filter(|mss| *mss < self.network.mss(self.timestamps));
        let small = small.map_or(String::new(), |mss| format!("MSS {mss}, "));
        let ipv6 = if self.network.ipv6 { ", IPv6" } else { "" };
        format!("{small}MTU {}{ipv6}", self.network.mtu)
    }
}

/// Rate in bit/s, if the interface has a line.
fn rate(interface: &Interface) -> Option<f64> {
    let driver = interface.driver.as_deref()?;
    let mbps = interface.speed_mbps.filter(|mbps| *mbps > 0 && !WITHOUT_LINE.contains(&driver))?;
    Some(f64::from(mbps) * 1e6)
}
