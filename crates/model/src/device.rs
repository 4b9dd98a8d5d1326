//! Properties of a network device from its driver and buses: what ethtool, lspci and tc print.
//!
//! All of them are optional. What a driver does not report is null or empty.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Properties of an interface beyond its name and addresses, from the driver, the bus and the kernel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Device {
    /// Kind of virtual device (`veth`, `bond`, `vlan`, `bridge`, `tun`, `vxlan`...); null for hardware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Vendor and product by the list of PCI ids, or as another program's listing names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// Hardware address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Flags that are set, by the names of linux/if.h: `up`, `broadcast`, `promisc`...
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<String>,
    /// Its counters since it was created, by the kernel's names (`netstat -i`): `rx_packets`, `tx_errors`, `collisions`...
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<String, u64>,
    /// The bond or bridge that it is a port of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// The devices below it: a bond's and a bridge's ports, the device below a VLAN or a tunnel.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lower: Vec<String>,
    /// VLAN number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// How a bond distributes packets to its ports, such as `802.3ad`.
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
    /// Parameters of the driver's kernel module (/sys/module/NAME/parameters).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub driver_parameters: BTreeMap<String, String>,
    /// Its location by the driver, such as a PCI slot.
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
    /// Its time-stamping capabilities (`ethtool -T`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamping: Option<Timestamping>,
    /// The PCI function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci: Option<Pci>,
    /// Interrupt lines, with the cores that may serve each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub irqs: Vec<Irq>,
    /// Cores that share the work of a receive queue (RPS) or use a transmit queue (XPS), as masks by queue, if set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub steering: BTreeMap<String, String>,
    /// The neighbour's LLDP announcement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
    /// The kernel's last message about the device (dmesg).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel_message: Option<String>,
    /// Traffic over it before the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// Link modes by the kernel's names, such as `100000baseCR4/Full`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct LinkModes {
    /// Whether speed and duplex are negotiated.
    pub autoneg: Option<bool>,
    /// Speed in Mbit/s; null if the driver does not know it.
    pub speed_mbps: Option<u32>,
    /// `full` or `half`; null if the driver does not know it.
    pub duplex: Option<String>,
    /// Modes that the device supports.
    pub supported: Vec<String>,
    /// Modes that it advertises.
    pub advertised: Vec<String>,
    /// Modes that the other side advertised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peer: Vec<String>,
}

/// A pluggable module, from its EEPROM (SFF-8472, SFF-8636, CMIS). Serial numbers are not kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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

/// The time-stamping capabilities of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Timestamping {
    /// Such as `software-receive` or `hardware-transmit`.
    pub capabilities: Vec<String>,
    /// Hardware modes for sent packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tx_types: Vec<String>,
    /// Hardware filters for received packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rx_filters: Vec<String>,
    /// Number of its hardware clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<u32>,
}

/// A PCI function: the link in use, and the link that the card supports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Pci {
    /// Vendor and device in hexadecimal, such as `15b3:1017`.
    pub id: Option<String>,
    /// Current speed of the link, in millions of transfers per second and lane.
    pub speed_mts: Option<u32>,
    /// Highest speed of the card, in the same unit.
    pub max_speed_mts: Option<u32>,
    /// Lanes in use.
    pub width: Option<u32>,
    /// Lanes that the card has.
    pub max_width: Option<u32>,
    /// Highest clock of a function without PCI Express, MHz: 33, 66 or (PCI-X) 133. The current one depends on the bus and is not
    /// reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_clock_mhz: Option<u32>,
    /// Width of a PCI-X function, bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus_bits: Option<u32>,
    /// Largest read request of the card, bytes (MaxReadReq).
    pub read_request_bytes: Option<u32>,
    /// Largest payload of its packets, bytes (MaxPayload).
    pub payload_bytes: Option<u32>,
}

/// An interrupt line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Irq {
    /// Number.
    pub irq: u32,
    /// Its name by the driver.
    pub line: Option<String>,
    /// Cores that may serve it, as the kernel lists them: `0-3,8`.
    pub cores: Option<String>,
}

/// A neighbour that sends LLDP (IEEE 802.1AB).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Neighbour {
    /// Its name.
    pub system: Option<String>,
    /// Its description of itself.
    pub description: Option<String>,
    /// Its port.
    pub port: Option<String>,
    /// Its description of that port.
    pub port_description: Option<String>,
    /// VLAN of untagged packets on that port.
    pub vlan: Option<u16>,
    /// The largest frame that it accepts, bytes.
    pub frame_bytes: Option<u16>,
}

/// Packets and bytes per second over a short time. The control connection is included.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Traffic {
    /// Length of that time, ns.
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
