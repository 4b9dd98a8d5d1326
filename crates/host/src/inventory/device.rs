//! The facts about the interfaces' devices, from the sources beside this file.

use std::collections::BTreeMap;

use model::{Device, Interface};

use super::{Source, ethtool, interrupts, links, lldp, lldpd, module, pci};
use crate::observe::interface_totals;

/// Where the kernel lists the interfaces.
pub(super) const NET: &str = "/sys/class/net";
/// What loopback has.
const NO_ADDRESS: &str = "00:00:00:00:00:00";

/// Sets `device` of each interface. `folders` are the PCI functions in /sys, by interface.
pub(super) fn describe(source: &mut Source<'_>, interfaces: &mut [Interface], folders: &BTreeMap<String, String>) {
    if interfaces.is_empty() {
        return;
    }
    let hardware: Vec<String> =
        interfaces.iter().filter(|one| folders.contains_key(&one.name)).map(|one| one.name.clone()).collect();
    let mut devices = links::devices(source);
    ethtool::describe(source, &mut devices, &hardware);
    let mut neighbours = lldpd::neighbours(source);
    let mut totals = source.text("counters of the interfaces", "/proc/net/dev").map(|text| interface_totals(&text));
    let (mut lines, mut log) = (String::new(), Vec::new());
    if !hardware.is_empty() {
        lines = source.text("interrupt lines", "/proc/interrupts").unwrap_or_default();
        log = source.sys.kernel_log().unwrap_or_else(|error| {
            source.miss("kernel's messages of the devices", "/dev/kmsg", &error);
            Vec::new()
        });
    }
    for interface in interfaces {
        let name = interface.name.clone();
        let mut device = devices.remove(&name).unwrap_or_default();
        below(source, &name, &mut device);
        device.mac = source.hint(&format!("{NET}/{name}/address")).filter(|mac| mac != NO_ADDRESS);
        device.flags = source.hint(&format!("{NET}/{name}/flags")).map(|flags| named_flags(&flags)).unwrap_or_default();
        device.totals = totals.as_mut().and_then(|totals| totals.remove(&name)).unwrap_or_default();
        if let Ok(driver) = source.sys.driver(&name) {
            (device.driver_version, device.firmware, device.bus) = (driver.version, driver.firmware, driver.bus);
            interface.driver = interface.driver.take().or(driver.driver.filter(|_| name != "lo"));
        }
        if let Some(folder) = folders.get(&name) {
            device.pci = Some(pci::describe(source, &name, folder));
            device.product = device.pci.as_ref().and_then(|pci| pci::product(source, pci.id.as_ref()?));
            device.driver_parameters =
                interface.driver.as_ref().map(|driver| parameters(source, driver)).unwrap_or_default();
            device.irqs = interrupts::lines(source, &lines, folder);
            device.module = module::describe(source, &name);
            device.kernel_message = last_message(&log, interface);
        }
        device.steering = interrupts::steering(source, &name);
        device.neighbour = neighbours.remove(&name).or_else(|| {
            let index = source.hint(&format!("{NET}/{name}/ifindex"))?;
            lldp::neighbour(source, &index)
        });
        interface.device = (device != Device::default()).then_some(device);
    }
}

/// The parameters of a driver's kernel module. One that only root may read is left out, as in modinfo's list of values.
fn parameters(source: &Source<'_>, driver: &str) -> BTreeMap<String, String> {
    // A module's name in /sys has no hyphen.
    let folder = format!("/sys/module/{}/parameters", driver.replace('-', "_"));
    let names = source.sys.list(&folder).unwrap_or_default();
    names.into_iter().filter_map(|name| Some((name.clone(), source.hint(&format!("{folder}/{name}"))?))).collect()
}

/// The names of the bits of linux/if.h, without `IFF_`, that users and drivers set.
fn named_flags(hexadecimal: &str) -> Vec<String> {
    const NAMES: [(u32, &str); 12] = [
        (1, "up"),
        (1 << 1, "broadcast"),
        (1 << 2, "debug"),
        (1 << 3, "loopback"),
        (1 << 4, "pointopoint"),
        (1 << 7, "noarp"),
        (1 << 8, "promisc"),
        (1 << 9, "allmulti"),
        (1 << 10, "master"),
        (1 << 11, "slave"),
        (1 << 12, "multicast"),
        (1 << 15, "dynamic"),
    ];
    let bits = u32::from_str_radix(hexadecimal.trim_start_matches("0x"), 16).unwrap_or(0);
    NAMES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_owned()).collect()
}

/// The lower devices of a device, as /sys links them.
fn below(source: &Source<'_>, name: &str, device: &mut Device) {
    let entries = source.sys.list(&format!("{NET}/{name}")).unwrap_or_default();
    let lower: Vec<String> =
        entries.iter().filter_map(|entry| entry.strip_prefix("lower_")).map(str::to_owned).collect();
    if !lower.is_empty() {
        device.lower = lower;
    }
}

/// The last line of the log that names the interface or its slot; preferably one that its driver wrote.
fn last_message(log: &[String], interface: &Interface) -> Option<String> {
    let name = format!("{}:", interface.name);
    let about = |line: &&String| {
        line.split_ascii_whitespace().any(|word| word == name)
            || interface.pci_slot.as_deref().is_some_and(|slot| line.contains(slot))
    };
    let is_routine = |line: &&String| ROUTINE.iter().any(|words| line.contains(words));
    let own = || log.iter().rev().filter(about);
    own().find(|line| !is_routine(line)).or_else(|| own().next()).cloned()
}

/// Messages of the kernel about every interface.
const ROUTINE: [&str; 3] = ["promiscuous mode", "allmulticast mode", "link becomes ready"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_is_what_the_driver_said_of_its_card() {
        let interface =
            Interface { name: "eth1".to_owned(), pci_slot: Some("0000:0d:00.0".to_owned()), ..Interface::default() };
        let card = "ixgbe 0000:0d:00.0: PCI Express bandwidth of 16GT/s available";
        let common = "eth1: entered promiscuous mode";
        let log = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        let last = |lines: &[&str]| last_message(&log(lines), &interface);
        assert_eq!(last(&[card, common, "eth0: a word"]).as_deref(), Some(card));
        assert_eq!(last(&[common]).as_deref(), Some(common));
        assert_eq!(last(&["eth0: a word"]), None);
    }
}
