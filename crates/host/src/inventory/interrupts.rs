//! Interrupt lines of a device and the cores that serve them, and the cores that its queues are spread over.

use std::collections::BTreeMap;

use model::Irq;

use super::Source;

/// The lines of a device at `folder` in /sys, from the text of /proc/interrupts. A line that no driver has requested
/// is left out.
pub(super) fn lines(source: &Source<'_>, interrupts: &str, folder: &str) -> Vec<Irq> {
    let mut numbers = source.sys.list(&format!("{folder}/msi_irqs")).unwrap_or_default();
    if numbers.is_empty() {
        numbers.extend(source.hint(&format!("{folder}/irq")));
    }
    let mut numbers: Vec<u32> = numbers.iter().filter_map(|number| number.parse().ok()).collect();
    numbers.sort_unstable();
    let named: BTreeMap<u32, &str> = interrupts.lines().filter_map(line).collect();
    let line = |irq: u32| {
        let line = named.get(&irq)?;
        let cores = source.hint(&format!("/proc/irq/{irq}/smp_affinity_list"));
        Some(Irq { irq, line: Some((*line).to_owned()), cores })
    };
    numbers.into_iter().filter_map(line).collect()
}

/// Number and name of a line of /proc/interrupts: `38: 0 23703 PCI-MSIX-0000:00:03.0 1-edge virtio2-input.0`.
fn line(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.split_once(':')?;
    Some((number.trim().parse().ok()?, rest.split_ascii_whitespace().next_back()?))
}

/// The configured masks of an interface's queues: RPS by receive queue, XPS by transmit queue.
pub(super) fn steering(source: &Source<'_>, interface: &str) -> BTreeMap<String, String> {
    let folder = format!("/sys/class/net/{interface}/queues");
    let mask = |queue: String| {
        let file = if queue.starts_with("rx-") { "rps_cpus" } else { "xps_cpus" };
        let mask = source.hint(&format!("{folder}/{queue}/{file}"))?;
        mask.chars().any(|digit| digit.is_ascii_hexdigit() && digit != '0').then_some((queue, mask))
    };
    source.sys.list(&folder).unwrap_or_default().into_iter().filter_map(mask).collect()
}
