//! The network interfaces of this network namespace.

use std::collections::BTreeMap;
use std::str::FromStr;

use model::Interface;

use super::Source;
use super::device::{self, NET};

/// All interfaces, by name.
pub(super) fn interfaces(source: &mut Source<'_>) -> Vec<Interface> {
    let names = match source.sys.list(NET) {
        Ok(names) => names,
        Err(error) => {
            source.miss("network interfaces", NET, &error);
            return Vec::new();
        }
    };
    let addresses = source.sys.addresses().unwrap_or_else(|error| {
        source.missing.push(format!("addresses: {error}"));
        Vec::new()
    });
    let mut interfaces = Vec::new();
    let mut folders = BTreeMap::new();
    for name in names {
        // Files such as bonding_masters are listed among the interfaces.
        if source.hint(&format!("{NET}/{name}/ifindex")).is_none() {
            continue;
        }
        let (mut interface, folder) = describe(source, &name);
        folders.extend(folder.map(|folder| (name.clone(), folder)));
        interface.addresses = addresses
            .iter()
            .filter(|address| address.interface == name)
            .map(|address| format!("{}/{}", address.address, address.prefix))
            .collect();
        interfaces.push(interface);
    }
    device::describe(source, &mut interfaces, &folders);
    interfaces
}

/// One interface without its addresses, and its PCI function in /sys. A device without hardware (loopback, veth) has
/// no driver, slot or node in /sys, and loopback no speed either: these are not gaps.
/// loopback no speed either: that is not a gap.
fn describe(source: &mut Source<'_>, name: &str) -> (Interface, Option<String>) {
    let mut interface = Interface {
        name: name.to_owned(),
        mtu: number(source, name, "MTU", "mtu"),
        state: source.text(&format!("{name}: state"), &format!("{NET}/{name}/operstate")),
        txqueuelen: number(source, name, "transmit queue length", "tx_queue_len"),
        ..Interface::default()
    };
    (interface.rx_queues, interface.tx_queues) = queues(source, name);
    if name != "lo" {
        (interface.speed_mbps, interface.duplex) = link(source, name, interface.state.as_deref());
    }
    let mut folder = None;
    if let Ok(device) = source.sys.resolve(&format!("{NET}/{name}/device")) {
        interface.driver = driver(source, name, &device);
        (folder, interface.numa_node) = location(source, &device);
        interface.pci_slot = folder.as_deref().and_then(|folder| folder.rsplit('/').next()).map(str::to_owned);
    }
    (interface, folder)
}

fn number<T: FromStr>(source: &mut Source<'_>, name: &str, fact: &str, file: &str) -> Option<T> {
    source.value(&format!("{name}: {fact}"), &format!("{NET}/{name}/{file}"), |text| text.parse().ok())
}

/// The number of receive and transmit queues.
fn queues(source: &mut Source<'_>, name: &str) -> (Option<u32>, Option<u32>) {
    let path = format!("{NET}/{name}/queues");
    match source.sys.list(&path) {
        Ok(queues) => {
            let count = |prefix| u32::try_from(queues.iter().filter(|queue| queue.starts_with(prefix)).count()).ok();
            (count("rx-"), count("tx-"))
        }
        Err(error) => {
            source.miss(&format!("{name}: queues"), &path, &error);
            (None, None)
        }
    }
}

/// Speed in Mbit/s and duplex. The kernel refuses to give them for a link that is down, and returns -1 and `unknown`
/// if the driver does not know.
fn link(source: &mut Source<'_>, name: &str, state: Option<&str>) -> (Option<u32>, Option<String>) {
    let speed = source.hint(&format!("{NET}/{name}/speed")).and_then(|speed| speed.parse().ok());
    let duplex = source.hint(&format!("{NET}/{name}/duplex")).filter(|duplex| duplex != "unknown");
    if speed.is_none() || duplex.is_none() {
        let what = match (&speed, &duplex) {
            (None, None) => "speed and duplex",
            (None, _) => "speed",
            _ => "duplex",
        };
        let why = if state == Some("down") { "the link is down" } else { "the driver does not report it" };
        source.missing.push(format!("{name}: {what}: {why}"));
    }
    (speed, duplex)
}

/// The driver, from the device's record in /sys.
fn driver(source: &mut Source<'_>, name: &str, device: &str) -> Option<String> {
    source.value(&format!("{name}: driver"), &format!("{device}/uevent"), |text| {
        text.lines().find_map(|line| line.strip_prefix("DRIVER=")).map(str::to_owned)
    })
}

/// PCI function (its directory in /sys) and NUMA node of a device. A virtio device is below its PCI function, so the
/// whole path is searched. A node of -1 means that the firmware names none.
fn location(source: &Source<'_>, device: &str) -> (Option<String>, Option<i32>) {
    let ancestors: Vec<&str> =
        std::iter::successors(Some(device), |path| path.rsplit_once('/').map(|(up, _)| up)).collect();
    let last = |path: &str| path.rsplit('/').next().is_some_and(is_pci_slot);
    let folder = ancestors.iter().find(|path| last(path)).map(|path| (*path).to_owned());
    let node = ancestors
        .iter()
        .take_while(|path| path.len() > "/sys/devices".len())
        .find_map(|path| source.hint(&format!("{path}/numa_node"))?.parse().ok());
    (folder, node.filter(|node| *node >= 0))
}

/// Whether a name is a PCI address, `domain:bus:device.function` in hexadecimal.
fn is_pci_slot(name: &str) -> bool {
    let Some((address, function)) = name.rsplit_once('.') else { return false };
    let parts: Vec<&str> = address.split(':').collect();
    let hexadecimal = |part: &str| !part.is_empty() && part.chars().all(|digit| digit.is_ascii_hexdigit());
    parts.len() == 3 && parts.iter().all(|part| hexadecimal(part)) && hexadecimal(function)
}
