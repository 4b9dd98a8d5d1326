//! The NICs at both ends: what limits them, and their other traffic.

use std::collections::BTreeSet;

use model::Interface;
use model::units::count;
use text::{Rate, Text, say};

use super::End;

/// Offloads that change a host's CPU time and packet sizes.
const OFFLOADS: [&str; 9] = [
    "rx-checksum",
    "rx-gro",
    "rx-gro-hw",
    "rx-lro",
    "tx-generic-segmentation",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-udp-segmentation",
];
/// Smallest traffic that is reported: packets per second, bit/s, and its share of the link's speed.
const PACKETS_PER_S: f64 = 1_000.0;
const BITS_PER_S: f64 = 1e6;
const SHARE: f64 = 0.001;

pub(super) fn unequal_offloads(near: &End<'_>, far: &End<'_>) -> Option<Text> {
    let (near, far) = (near.interface()?, far.interface()?);
    let on = |interface: &Interface, name: &str| Some(interface.device.as_ref()?.offloads.get(name)?.starts_with("on"));
    let only = |one: &Interface, other: &Interface| -> Vec<&str> {
        let apart = |name: &&str| on(one, name) == Some(true) && on(other, name) == Some(false);
        OFFLOADS.into_iter().filter(apart).collect()
    };
    let parts = [("near", only(near, far)), ("far", only(far, near))];
    let words: Vec<Text> = parts
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(side, names)| say!("{} at the {side} end only", names.join(", ")))
        .collect();
    (!words.is_empty())
        .then(|| say!("Offloads differ, so CPU time depends on the direction: {}.", Text::join(words, "; ")))
}

pub(super) fn half_duplex(end: &End<'_>) -> Vec<Text> {
    let half = |interface: &&Interface| interface.duplex.as_deref() == Some("half");
    let words = |interface: &Interface| {
        say!(
            "{} at the {} end runs half duplex: its two directions share the link and collide. Check the duplex mode on both sides of \
             the link.",
            interface.name,
            end.side
        )
    };
    end.devices().into_iter().filter(half).map(words).collect()
}

pub(super) fn narrow_slots(end: &End<'_>) -> Vec<Text> {
    let words = |interface: &Interface| {
        let pci = interface.device.as_ref()?.pci.as_ref()?;
        let (now, possible) = (rate(pci.speed_mts?, pci.width?), rate(pci.max_speed_mts?, pci.max_width?));
        (now < possible).then(|| {
            say!(
                "{} at the {} end is in a slot with {}, but the NIC supports {}: about {} of {}.",
                interface.name,
                end.side,
                lanes(pci.speed_mts, pci.width),
                lanes(pci.max_speed_mts, pci.max_width),
                Rate(now),
                Rate(possible)
            )
        })
    };
    end.devices().into_iter().filter_map(words).collect()
}

/// Bit/s of a PCI Express link before packet overhead: 8b/10b up to 5 GT/s, 128b/130b above (PCI Express Base Specification).
fn rate(mts: u32, lanes: u32) -> f64 {
    let efficiency = if mts <= 5_000 { 0.8 } else { 128.0 / 130.0 };
    f64::from(mts) * 1e6 * f64::from(lanes) * efficiency
}

fn lanes(mts: Option<u32>, width: Option<u32>) -> Text {
    say!("{} lanes of {} GT/s", width.unwrap_or_default(), f64::from(mts.unwrap_or_default()) / 1e3)
}

pub(super) fn far_interrupts(end: &End<'_>) -> Vec<Text> {
    let words = |interface: &Interface| {
        let node = interface.numa_node?;
        let cores = end.host.processor.as_ref()?.node_cores.get(&node.to_string())?;
        let own = numbers(cores);
        let irqs = &interface.device.as_ref()?.irqs;
        let served: Vec<BTreeSet<u32>> = irqs.iter().filter_map(|irq| Some(numbers(irq.cores.as_deref()?))).collect();
        let away = served.iter().filter(|cores| !cores.is_empty() && cores.is_disjoint(&own)).count();
        (away > 0).then(|| {
            say!(
                "{away} of {} interrupts of {} ({} end) are handled on another NUMA node. The NIC is on node {node}, whose cores \
                 are {cores}.",
                served.len(),
                interface.name,
                end.side
            )
        })
    };
    end.devices().into_iter().filter_map(words).collect()
}

/// The numbers of a kernel list such as `0-3,8`; parts that do not parse are skipped.
fn numbers(list: &str) -> BTreeSet<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// Traffic on the interface before the test. Loopback has no shared link.
pub(super) fn other_traffic(end: &End<'_>) -> Option<Text> {
    let interface = end.interface().filter(|interface| interface.name != "lo")?;
    let seen = interface.device.as_ref()?.traffic?;
    let bound = interface.speed_mbps.map_or(BITS_PER_S, |mbps| (f64::from(mbps) * 1e6 * SHARE).max(BITS_PER_S));
    let busy = |packets: f64, bits: f64| packets >= PACKETS_PER_S || bits >= bound;
    (busy(seen.rx_packets_per_s, seen.rx_bps) || busy(seen.tx_packets_per_s, seen.tx_bps)).then(|| {
        say!(
            "{} at the {} end was not idle before the test: it received {} packets/s ({}) and sent {} packets/s ({}).",
            interface.name,
            end.side,
            count(seen.rx_packets_per_s),
            Rate(seen.rx_bps),
            count(seen.tx_packets_per_s),
            Rate(seen.tx_bps)
        )
    })
}
