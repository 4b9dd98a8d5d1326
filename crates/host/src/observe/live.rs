//! A host's rates over time, without a measurement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use model::{CpuUse, Watched, WatchedInterface};

use super::{CpuObserver, Reading, Recorder};
use crate::sys::Sys;

/// The sources that a live view shows.
const SOURCES: [&str; 7] = ["stat", "softnet", "snmp", "snmp6", "sockstat", "meminfo", "dev"];

/// Reads a host repeatedly.
pub struct Live {
    sys: Arc<dyn Sys>,
    recorder: Recorder,
    cpu: Option<CpuObserver>,
    before: Reading,
}

impl Live {
    /// Takes the first reading.
    #[must_use]
    pub fn start(sys: Arc<dyn Sys>) -> Self {
        let mut recorder = Recorder::start(sys.clone(), &[]);
        let before = recorder.read_only(&SOURCES);
        let cpu = CpuObserver::start(&*sys).ok();
        Self { sys, recorder, cpu, before }
    }

    /// The host's activity since the last call, or since the start.
    pub fn read(&mut self) -> Watched {
        let now = self.recorder.read_only(&SOURCES);
        let cpu = self.cpu.as_ref().and_then(|cpu| cpu.finish(&*self.sys));
        self.cpu = CpuObserver::start(&*self.sys).ok();
        let before = std::mem::replace(&mut self.before, now);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let missing = self.recorder.missing().iter().filter(|gap| SOURCES.iter().any(|source| names(gap, source)));
        let seen = watched(&before, &self.before, cpu);
        Watched { at_unix_ns: clock.as_nanos() as u64, missing: missing.cloned().collect(), ..seen }
    }
}

/// Whether an entry of the missing ones belongs to a source.
fn names(gap: &str, source: &str) -> bool {
    gap.split(':').next() == Some(source)
}

/// The rates between two readings.
fn watched(before: &Reading, now: &Reading, cpu: Option<CpuUse>) -> Watched {
    let window_ns = now.at_ns.saturating_sub(before.at_ns);
    let level = |name: &str| now.values.get(name).map(|value| value.number);
    let rate = |name: &str| {
        let grown = now.values.get(name)?.number.checked_sub(before.values.get(name)?.number)?;
        Some(grown as f64 * 1e9 / window_ns.max(1) as f64)
    };
    let mut interfaces: BTreeMap<&str, WatchedInterface> = BTreeMap::new();
    for name in now.values.keys() {
        let Some((device, "rx_bytes")) = name.strip_prefix("dev.").and_then(|rest| rest.rsplit_once('.')) else {
            continue;
        };
        let of = |column: &str| rate(&format!("dev.{device}.{column}"));
        let figures = || {
            Some(WatchedInterface {
                name: device.to_owned(),
                rx_bps: of("rx_bytes")? * 8.0,
                rx_packets_per_s: of("rx_packets")?,
                tx_bps: of("tx_bytes")? * 8.0,
                tx_packets_per_s: of("tx_packets")?,
                drops_per_s: of("rx_dropped")? + of("tx_dropped")?,
            })
        };
        interfaces.extend(figures().map(|figures| (device, figures)));
    }
    let udp4 = rate("snmp.Udp.InErrors");
    Watched {
        at_unix_ns: 0,
        window_ns,
        cpu,
        running: level("stat.procs_running"),
        blocked: level("stat.procs_blocked"),
        memory_free_bytes: level("meminfo.MemFree"),
        memory_available_bytes: level("meminfo.MemAvailable"),
        interrupts_per_s: rate("stat.intr"),
        context_switches_per_s: rate("stat.ctxt"),
        softnet_dropped_per_s: rate("softnet.dropped"),
        softnet_squeezed_per_s: rate("softnet.squeezed"),
        interfaces: interfaces.into_values().collect(),
        tcp_established: level("snmp.Tcp.CurrEstab"),
        tcp_in_per_s: rate("snmp.Tcp.InSegs"),
        tcp_out_per_s: rate("snmp.Tcp.OutSegs"),
        tcp_retransmits_per_s: rate("snmp.Tcp.RetransSegs"),
        // A host without IPv6 has no such datagrams.
        udp_errors_per_s: udp4.map(|rate4| rate4 + rate("snmp6.Udp6InErrors").unwrap_or(0.0)),
        missing: Vec::new(),
    }
}
