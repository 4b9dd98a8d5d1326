//! The cores' queues of received packets, from /proc/net/softnet_stat.
//!
//! A line for each core that is online, of 32-bit hexadecimal numbers (net/core/net-procfs.c): packets processed,
//! packets dropped because the queue was full, and how often processing stopped with work left (time_squeeze). The
//! 13th number, since Linux 5.10, is the core's number; before, the lines number the cores.

use std::collections::BTreeMap;
use std::io;

use super::Observer;
use super::reading::{ObservedValues, ValueKind, Wrapping};
use crate::sys::Sys;

const PATH: &str = "/proc/net/softnet_stat";
const NAMES: [&str; 3] = ["processed", "dropped", "squeezed"];

/// Follows each core's counters past their ends.
#[derive(Debug, Default)]
pub(super) struct Softnet(BTreeMap<u64, [Wrapping; 3]>);

impl Observer for Softnet {
    fn read(&mut self, sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
        let text = reading.file(sys, PATH)?;
        for (row, line) in text.lines().enumerate() {
            let fields: Vec<u64> = line
                .split_ascii_whitespace()
                .map(|field| u64::from_str_radix(field, 16))
                .collect::<Result<_, _>>()
                .map_err(|error| io::Error::other(format!("{PATH}: {error}")))?;
            let core = fields.get(12).copied().unwrap_or(row as u64);
            let followed = self.0.entry(core).or_default();
            for (counter, now) in followed.iter_mut().zip(&fields) {
                counter.follow(*now, u64::from(u32::MAX));
            }
        }
        for (column, name) in NAMES.iter().enumerate() {
            let mut sum = 0;
            for (core, counters) in &self.0 {
                let own = counters[column].total();
                sum += own;
                reading.tally(format_args!("softnet.{core}.{name}"), own);
            }
            if *name == "processed" {
                reading.tally(format_args!("softnet.{name}"), sum);
            } else {
                reading.traced(ValueKind::Tally, "1/s", format_args!("softnet.{name}"), sum);
            }
        }
        Ok(())
    }
}
