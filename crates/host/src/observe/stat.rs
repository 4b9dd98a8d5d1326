//! Context switches, interrupts and processes, from /proc/stat (proc_stat(5)).

use std::io;

use super::ObservedValues;
use super::reading::ValueKind;
use crate::sys::Sys;

pub(super) fn read(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/stat")?;
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(' ') else { continue };
        // The first number is the sum; what follows it is each interrupt's own.
        let Some(number) = rest.split_ascii_whitespace().next().and_then(|field| field.parse().ok()) else { continue };
        match name {
            "ctxt" | "intr" => reading.traced(ValueKind::Counter, "1/s", format_args!("stat.{name}"), number),
            "softirq" | "processes" => reading.counter(format_args!("stat.{name}"), number),
            "procs_running" | "procs_blocked" => reading.level(format_args!("stat.{name}"), number),
            _ => {}
        }
    }
    Ok(())
}
