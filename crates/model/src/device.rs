//! What a network device is, as its driver and the buses below it say: what ethtool, lspci and tc print.
//!
//! All of it is optional: a driver answers what it can. What it does not have is null or empty here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the driver, the bus and the kernel say of an interface beyond its name and addresses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Device {
    /// What kind of virtual device it is (`veth`, `bond`, `vlan`, `bridge`, `tun`, `vxlan`...); null for hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The bond or bridge that it is a port of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// The devices that it lies on: a bond's and a bridge's ports, the device below a VLAN or a tunnel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lower: Vec<String>,
    /// VLAN number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// How a bond spreads packets over its ports, such as `802.3ad`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bond_mode: Option<String>,
    /// Queueing disciplines, the root's first, such as `root mq` and `fq_codel below it, 8 times`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub qdiscs: Vec<String>,
    /// Largest segment that the kernel hands to the device (GSO), bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gso_max_bytes: Option<u32>,
    /// Largest segment that GRO makes, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gro_max_bytes: Option<u32>,
    /// Version that the driver gives itself (`ethtool -i`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_version: Option<String>,
    /// Firmware of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Where the driver says it sits, such as a PCI slot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Descriptors of its rings (`ethtool -g`): `rx`, `rx-max`, `tx`...
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rings: BTreeMap<String, u64>,
    /// Interrupt coalescing by ethtool's names (`ethtool -c`): `rx-usecs`, `adaptive-rx` (0 or 1)...
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub coalescing: BTreeMap<String, u64>,
    /// Queues (`ethtool -l`): `combined`, `combined-max`, `rx`...
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, u64>,
    /// Pause frames (`ethtool -a`): `autoneg`, `rx`, `tx`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pause: BTreeMap<String, bool>,
    /// Every offload by the kernel's name (`ethtool -k`): `on`, `off`, `on [fixed]` or `off [fixed]`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub offloads: BTreeMap<String, String>,
    /// Link modes and what was negotiated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkModes>,
    /// The pluggable module (`ethtool -m`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<Module>,
    /// What it can time-stamp (`ethtool -T`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamping: Option<Timestamping>,
    /// The PCI function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci: Option<Pci>,
    /// Interrupt lines, with the cores that may serve each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub irqs: Vec<Irq>,
    /// Cores that share the work of a receive queue (RPS) or send by a transmit queue (XPS), as masks by queue, where set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub steering: BTreeMap<String, String>,
    /// What the neighbour says of itself by LLDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
    /// The kernel's last message of the device (dmesg).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_message: Option<String>,
    /// What others sent and received over it before the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// Link modes by the kernel's names, such as `100000baseCR4/Full`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkModes {
    /// Whether speed and duplex are negotiated.
    pub autoneg: Option<bool>,
    /// Speed in Mbit/s, null while the driver does not know it.
    pub speed_mbps: Option<u32>,
    /// `full` or `half`, null while the driver does not know it.
    pub duplex: Option<String>,
    /// What the device can do.
    pub supported: Vec<String>,
    /// What it offers.
    pub advertised: Vec<String>,
    /// What the other side offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peer: Vec<String>,
}

/// A pluggable module, from its EEPROM (SFF-8472, SFF-8636, CMIS). Serial numbers are not kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Module {
    /// Kind, such as `SFP/SFP+/SFP28` or `QSFP28`.
    pub kind: Option<String>,
    /// Vendor.
    pub vendor: Option<String>,
    /// Part number.
    pub part: Option<String>,
    /// Revision.
    pub revision: Option<String>,
}

/// What a device can time-stamp.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Timestamping {
    /// Such as `software-receive` or `hardware-transmit`.
    pub capabilities: Vec<String>,
    /// What hardware can do with sent packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tx_types: Vec<String>,
    /// What hardware can do with received packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rx_filters: Vec<String>,
    /// Number of its hardware clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<u32>,
}

/// A PCI function: what its slot gives and what the card could use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Pci {
    /// Vendor and device in hexadecimal, such as `15b3:1017`.
    pub id: Option<String>,
    /// Speed of the link now, in millions of transfers per second and lane.
    pub speed_mts: Option<u32>,
    /// Speed that the card could use.
    pub max_speed_mts: Option<u32>,
    /// Lanes in use.
    pub width: Option<u32>,
    /// Lanes that the card has.
    pub max_width: Option<u32>,
    /// Largest read that the card asks memory for, bytes (MaxReadReq).
    pub read_request_bytes: Option<u32>,
    /// Largest payload of its packets, bytes (MaxPayload).
    pub payload_bytes: Option<u32>,
}

/// An interrupt line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Irq {
    /// Number.
    pub irq: u32,
    /// What the driver calls it.
    pub line: Option<String>,
    /// Cores that may serve it, as the kernel lists them: `0-3,8`.
    pub cores: Option<String>,
}

/// A neighbour that speaks LLDP (IEEE 802.1AB).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Neighbour {
    /// Its name.
    pub system: Option<String>,
    /// What it says it is.
    pub description: Option<String>,
    /// Its port.
    pub port: Option<String>,
    /// What it calls that port.
    pub port_description: Option<String>,
    /// VLAN of untagged packets on that port.
    pub vlan: Option<u16>,
    /// The largest frame that it takes, bytes.
    pub frame_bytes: Option<u16>,
}

/// Packets and bytes per second over a short look. Our own control connection is in it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Traffic {
    /// Length of the look, ns.
    pub window_ns: u64,
    /// Packets received per second.
    pub rx_packets_per_s: f64,
    /// Packets sent per second.
    pub tx_packets_per_s: f64,
    /// Received, bit/s.
    pub rx_bps: f64,
    /// Sent, bit/s.
    pub tx_bps: f64,
}
