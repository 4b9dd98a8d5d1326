//! Everything about the interfaces' devices, from the sources beside this file.

use std::collections::BTreeMap;

use model::{Device, Interface};

use super::network::NET;
use super::{Source, ethtool, interrupts, links, lldp, module, pci};

/// Fills in `device` of each interface. `folders` are the PCI functions in /sys, by interface.
pub(super) fn describe(source: &mut Source<'_>, interfaces: &mut [Interface], folders: &BTreeMap<String, String>) {
    if interfaces.is_empty() {
        return;
    }
    let hardware: Vec<String> =
        interfaces.iter().filter(|one| folders.contains_key(&one.name)).map(|one| one.name.clone()).collect();
    let mut devices = links::devices(source);
    ethtool::describe(source, &mut devices, &hardware);
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
        if let Ok(driver) = source.sys.driver(&name) {
            (device.driver_version, device.firmware, device.bus) = (driver.version, driver.firmware, driver.bus);
            interface.driver = interface.driver.take().or(driver.driver.filter(|_| name != "lo"));
        }
        if let Some(folder) = folders.get(&name) {
            device.pci = Some(pci::describe(source, &name, folder));
            device.irqs = interrupts::lines(source, &lines, folder);
            device.module = module::describe(source, &name);
            device.kernel_message = last_message(&log, interface);
        }
        device.steering = interrupts::steering(source, &name);
        device.neighbour =
            source.hint(&format!("{NET}/{name}/ifindex")).and_then(|index| lldp::neighbour(source, &index));
        interface.device = (device != Device::default()).then_some(device);
    }
}

/// What lies below a device, as /sys links it.
fn below(source: &Source<'_>, name: &str, device: &mut Device) {
    let entries = source.sys.list(&format!("{NET}/{name}")).unwrap_or_default();
    let lower: Vec<String> =
        entries.iter().filter_map(|entry| entry.strip_prefix("lower_")).map(str::to_owned).collect();
    if !lower.is_empty() {
        device.lower = lower;
    }
}

/// The last line of the log that names the interface or its slot.
fn last_message(log: &[String], interface: &Interface) -> Option<String> {
    let name = format!("{}:", interface.name);
    let about = |line: &&String| {
        line.split_ascii_whitespace().any(|word| word == name)
            || interface.pci_slot.as_deref().is_some_and(|slot| line.contains(slot))
    };
    log.iter().rev().find(about).cloned()
}
