//! A host's rates over time, without a measurement.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use model::source::{DEV, column, counter};
use model::{CpuUse, Watched, WatchedInterface};

use super::{CpuObserver, HostRecorder, ObservedValues};
use crate::sys::Sys;

/// Reads a host repeatedly.
pub struct HostReader {
    sys: Arc<dyn Sys>,
    recorder: HostRecorder,
    cpu: Option<CpuObserver>,
    before: ObservedValues,
}

impl HostReader {
    /// Takes the first reading.
    #[must_use]
    pub fn start(sys: Arc<dyn Sys>) -> Self {
        let mut recorder = HostRecorder::start(sys.clone(), &[]);
        let before = recorder.read_watched();
        let cpu = CpuObserver::start(&*sys).ok();
        Self { sys, recorder, cpu, before }
    }

    /// The host's activity since the last call, or since the start.
    pub fn read(&mut self) -> Watched {
        let now = self.recorder.read_watched();
        let cpu = self.cpu.as_ref().and_then(|cpu| cpu.finish(&*self.sys));
        self.cpu = CpuObserver::start(&*self.sys).ok();
        let before = std::mem::replace(&mut self.before, now);
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seen = watched(&before, &self.before, cpu);
        Watched {
            at_unix_ns: clock.as_nanos() as u64,
            missing: self.recorder.missing_of_watched().cloned().collect(),
            ..seen
        }
    }
}

/// The rates between two readings.
fn watched(before: &ObservedValues, now: &ObservedValues, cpu: Option<CpuUse>) -> Watched {
    let window_ns = now.at_ns.saturating_sub(before.at_ns);
    let level = |name: &str| now.values.get(name).map(|value| value.number);
    let rate = |name: &str| {
        let grown = now.values.get(name)?.number.checked_sub(before.values.get(name)?.number)?;
        Some(grown as f64 * 1e9 / window_ns.max(1) as f64)
    };
    let mut interfaces: BTreeMap<&str, WatchedInterface> = BTreeMap::new();
    for name in now.values.keys() {
        let Some((device, column::RX_BYTES)) = DEV.device(name) else { continue };
        let of = |column: &str| rate(&format!("{}.{device}.{column}", DEV.name));
        let figures = || {
            Some(WatchedInterface {
                name: device.to_owned(),
                rx_bps: of(column::RX_BYTES)? * 8.0,
                rx_packets_per_s: of(column::RX_PACKETS)?,
                tx_bps: of(column::TX_BYTES)? * 8.0,
                tx_packets_per_s: of(column::TX_PACKETS)?,
                drops_per_s: of(column::RX_DROPPED)? + of(column::TX_DROPPED)?,
            })
        };
        interfaces.extend(figures().map(|figures| (device, figures)));
    }
    let udp4 = rate(counter::UDP_IN_ERRORS);
    Watched {
        at_unix_ns: 0,
        window_ns,
        cpu,
        running: level(counter::RUNNING),
        blocked: level(counter::BLOCKED),
        memory_free_bytes: level(counter::MEMORY_FREE),
        memory_available_bytes: level(counter::MEMORY_AVAILABLE),
        interrupts_per_s: rate(counter::INTERRUPTS),
        context_switches_per_s: rate(counter::CONTEXT_SWITCHES),
        softnet_dropped_per_s: rate(counter::SOFTNET_DROPPED),
        softnet_squeezed_per_s: rate(counter::SOFTNET_SQUEEZED),
        interfaces: interfaces.into_values().collect(),
        tcp_established: level(counter::TCP_ESTABLISHED),
        tcp_in_per_s: rate(counter::TCP_IN_SEGMENTS),
        tcp_out_per_s: rate(counter::TCP_OUT_SEGMENTS),
        tcp_retransmits_per_s: rate(counter::TCP_RETRANSMITTED),
        // A host without IPv6 has no such datagrams.
        udp_errors_per_s: udp4.map(|rate4| rate4 + rate(counter::UDP6_IN_ERRORS).unwrap_or(0.0)),
        missing: Vec::new(),
    }
}
