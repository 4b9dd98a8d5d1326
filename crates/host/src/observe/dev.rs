//! Counters of the interfaces, from /proc/net/dev: always of this network namespace, even if /sys shows another.

use std::collections::BTreeMap;
use std::io;

use super::reading::{ObservedValues, ValueKind};
use crate::sys::Sys;

/// The columns, under the kernel's names below /sys/class/net/INTERFACE/statistics; some columns are sums
/// (net/core/net-procfs.c: rx_dropped includes rx_missed_errors, rx_frame_errors four kinds of invalid frames,
/// tx_carrier_errors four kinds of failed sends).
const COLUMNS: [&str; 16] = [
    "rx_bytes",
    "rx_packets",
    "rx_errors",
    "rx_dropped",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_compressed",
    "multicast",
    "tx_bytes",
    "tx_packets",
    "tx_errors",
    "tx_dropped",
    "tx_fifo_errors",
    "collisions",
    "tx_carrier_errors",
    "tx_compressed",
];

pub(super) fn read(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/net/dev")?;
    for (device, numbers) in devices(&text) {
        for (column, number) in COLUMNS.iter().zip(numbers.split_ascii_whitespace()) {
            let Ok(number) = number.parse() else { continue };
            let name = format_args!("dev.{device}.{column}");
            match *column {
                "rx_bytes" | "tx_bytes" => reading.traced(ValueKind::Counter, "B/s", name, number),
                "rx_dropped" | "tx_dropped" => reading.traced(ValueKind::Counter, "1/s", name, number),
                _ => reading.counter(name, number),
            }
        }
    }
    Ok(())
}

/// Each interface with the text of its numbers; two lines of heads have no colon.
pub(super) fn devices(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.trim_start().split_once(':'))
}

/// The counters of each interface, by its name and those of the columns (`tx_dropped`), from the text of
/// /proc/net/dev.
#[must_use]
pub fn interface_totals(text: &str) -> BTreeMap<String, BTreeMap<String, u64>> {
    let numbers = |numbers: &str| {
        let named = COLUMNS.iter().zip(numbers.split_ascii_whitespace());
        named.filter_map(|(column, number)| Some(((*column).to_owned(), number.parse().ok()?))).collect()
    };
    devices(text).map(|(device, counted)| (device.to_owned(), numbers(counted))).collect()
}
