//! The drivers' counters (ethtool -S), under their own names, and the interrupts of their lines (/proc/interrupts).

use std::collections::BTreeSet;
use std::io;

use super::ObservedValues;
use super::dev::devices;
use crate::sys::Sys;

pub(super) fn statistics(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/net/dev")?;
    for (device, _) in devices(&text) {
        for (name, number) in sys.driver_statistics(device)? {
            reading.counter(format_args!("ethtool.{device}.{name}"), number);
        }
    }
    Ok(())
}

/// `irq.NUMBER.NAME` for each line that belongs to a network device, all cores added up.
pub(super) fn interrupts(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/interrupts")?;
    let names = sys.list("/sys/class/net")?;
    let lines: BTreeSet<String> = names.iter().flat_map(|name| lines(sys, name)).collect();
    let cores = text.lines().next().unwrap_or_default().split_ascii_whitespace().count();
    for line in text.lines().skip(1) {
        let Some((number, rest)) = line.trim_start().split_once(':') else { continue };
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let name = fields.last().copied().unwrap_or_default();
        // If a driver does not publish its lines, they are recognised by the interface's name in them.
        let named = names.iter().any(|device| {
            name.strip_prefix(device.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        if named || lines.contains(number) {
            let sum: u64 = fields.iter().take(cores).filter_map(|field| field.parse::<u64>().ok()).sum();
            reading.counter(format_args!("irq.{number}.{name}"), sum);
        }
    }
    Ok(())
}

/// The interrupt lines of a device, or (virtio) of its parent device.
fn lines(sys: &dyn Sys, interface: &str) -> Vec<String> {
    let Ok(device) = sys.resolve(&format!("/sys/class/net/{interface}/device")) else { return Vec::new() };
    let above = device.rsplit_once('/').map_or("/", |(above, _)| above).to_owned();
    [device, above].iter().find_map(|folder| sys.list(&format!("{folder}/msi_irqs")).ok()).unwrap_or_default()
}
