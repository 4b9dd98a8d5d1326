//! Numbers of sockets, and the memory of sockets and of everything else, from /proc/net/sockstat and /proc/meminfo.

use std::io;

use super::reading::{ObservedValues, ValueKind};
use crate::sys::Sys;

/// The values of /proc/meminfo that affect a transfer (proc_meminfo(5)).
const MEMORY: [&str; 6] = ["MemFree", "MemAvailable", "Buffers", "Cached", "Slab", "Dirty"];

/// `mem` counts pages there and bytes here; `memory` (of fragments) is bytes already.
pub(super) fn sockstat(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let page = sys.page_size();
    let mut text = reading.file(sys, "/proc/net/sockstat")?.to_string();
    // Without IPv6 there is no such file, and no such socket.
    if let Ok(more) = reading.file(sys, "/proc/net/sockstat6") {
        text.push_str(&more);
    }
    for line in text.lines() {
        let Some((protocol, rest)) = line.split_once(':') else { continue };
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        for pair in fields.chunks_exact(2) {
            let (key, Ok(number)) = (pair[0], pair[1].parse::<u64>()) else { continue };
            let name = format_args!("sockstat.{protocol}.{key}");
            if key == "mem" {
                reading.traced(ValueKind::Level, "B", name, number * page);
            } else {
                reading.level(name, number);
            }
        }
    }
    Ok(())
}

pub(super) fn meminfo(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/meminfo")?;
    for line in text.lines() {
        let Some((key, rest)) = line.split_once(':') else { continue };
        let kib = rest.trim().strip_suffix(" kB").and_then(|number| number.trim().parse::<u64>().ok());
        let Some(bytes) = kib.map(|kib| kib << 10).filter(|_| MEMORY.contains(&key)) else { continue };
        let name = format_args!("meminfo.{key}");
        if key == "MemAvailable" {
            reading.traced(ValueKind::Level, "B", name, bytes);
        } else {
            reading.level(name, bytes);
        }
    }
    Ok(())
}
