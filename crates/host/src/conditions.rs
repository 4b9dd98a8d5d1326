//! The current load of a host, for a measurement that requires an idle one.

use model::HostReading;

use crate::Sys;
use crate::inventory::machine::{bytes, load_average};

/// Reads memory, load and the bytes of the interfaces; what cannot be read is `None`.
#[must_use]
pub fn conditions(sys: &dyn Sys) -> HostReading {
    let read = |path| sys.read(path).ok();
    HostReading {
        at_ns: sys.now_ns(),
        free_memory_bytes: read("/proc/meminfo").and_then(|text| bytes(&text, "MemAvailable")),
        load: read("/proc/loadavg").and_then(|text| load_average(&text)).map(|averages| averages[0]),
        passed_bytes: read("/proc/net/dev").and_then(|text| passed(&text)),
    }
}

/// Bytes received and sent by all interfaces but loopback (proc_pid_net(5): after the colon the first and the ninth number).
fn passed(text: &str) -> Option<u64> {
    let mut sum = 0u64;
    for line in text.lines() {
        let Some((name, counters)) = line.split_once(':') else { continue };
        if name.trim() == "lo" {
            continue;
        }
        let counters: Vec<&str> = counters.split_ascii_whitespace().collect();
        for at in [0, 8] {
            sum = sum.wrapping_add(counters.get(at)?.parse().ok()?);
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::FakeSys;

    #[test]
    fn loopback_traffic_does_not_count() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes\n    lo: 77 1 0 0 0 0 0 0 77 1 0 0 0 0 0 0\n  eth0: 100 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";
        assert_eq!(passed(text), Some(120));
        assert_eq!(passed("eth0: 1 2"), None);
    }

    #[test]
    fn a_host_that_reports_nothing_has_unknown_conditions() {
        let nowhere = tempfile::tempdir().unwrap();
        assert_eq!(conditions(&FakeSys::new(nowhere.path())), HostReading::default());
    }
}
