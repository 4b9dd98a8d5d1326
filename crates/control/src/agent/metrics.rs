//! The agent's state as OpenMetrics text over HTTP, for Prometheus and others that scrape.
//!
//! Anyone who reaches the port may read it, so it names no client. A request costs the agent's process little: while a
//! measurement runs, the host's counters are not read and the text is made at most once a second.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use host::observe::{CpuObserver, interface_totals};
use host::{RealSys, Sys};
use model::CpuUse;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::{MetricType, info::Info};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::Shared;
use super::measured::Sums;
use crate::scrape;
use protocol::PROTOCOL;

/// How old an answer may be, on an idle host and during a measurement.
const FRESH: Duration = Duration::from_millis(100);
const FRESH_IN_USE: Duration = Duration::from_secs(1);

/// Answers requests until the agent ends.
pub(super) async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let source = Source::new(shared);
    scrape::serve(Arc::new(move || source.text()), listener).await;
}

/// Where the figures come from.
struct Source {
    shared: Arc<Shared>,
    started: Instant,
    cpu: Option<CpuObserver>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    host: Option<HostReading>,
    text: Option<(Instant, String)>,
}

/// The host's counters at one time.
#[derive(Debug, Clone)]
struct HostReading {
    at: Instant,
    /// Since the metrics endpoint started.
    cpu: Option<CpuUse>,
    /// Interface, column of /proc/net/dev, count since the interface exists.
    interfaces: Vec<(String, String, u64)>,
}

impl Source {
    fn new(shared: Arc<Shared>) -> Self {
        let cpu = CpuObserver::start(&RealSys).ok();
        Self { shared, started: Instant::now(), cpu, kept: Mutex::default() }
    }

    /// The text, made anew if the last one is not fresh.
    fn text(&self) -> String {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let [running, waiting] = self.shared.options.machine.lengths();
        let fresh = if running > 0 { FRESH_IN_USE } else { FRESH };
        if let Some((_, text)) = kept.text.as_ref().filter(|(at, _)| at.elapsed() < fresh) {
            return text.clone();
        }
        if running == 0 {
            kept.host = Some(self.read_host());
        }
        let snapshot = Snapshot {
            version: self.shared.options.version.clone(),
            uptime: self.started.elapsed(),
            running,
            waiting,
            clients: self.shared.options.machine.clients(),
            sums: self.shared.measured.now(),
            host: kept.host.clone(),
        };
        let text = snapshot.text();
        kept.text = Some((Instant::now(), text.clone()));
        text
    }

    fn read_host(&self) -> HostReading {
        let totals = RealSys.read("/proc/net/dev").map(|text| interface_totals(&text)).unwrap_or_default();
        let columns = totals.into_iter().flat_map(|(interface, columns)| {
            columns.into_iter().map(move |(column, count)| (interface.clone(), column, count))
        });
        HostReading {
            at: Instant::now(),
            cpu: self.cpu.as_ref().and_then(|cpu| cpu.finish(&RealSys)),
            interfaces: columns.collect(),
        }
    }
}

/// All figures at one time.
#[derive(Debug, Clone)]
struct Snapshot {
    version: String,
    uptime: Duration,
    running: usize,
    waiting: usize,
    clients: usize,
    sums: Sums,
    host: Option<HostReading>,
}

/// A direction of payload, or of an interface.
const DIRECTIONS: [&str; 2] = ["sent", "received"];
/// Metrics of interfaces: name, help, and the columns sent and received.
const INTERFACE: [(&str, &str, [&str; 2]); 3] = [
    ("throughline_host_interface_bytes", "Bytes that an interface carried", ["tx_bytes", "rx_bytes"]),
    ("throughline_host_interface_packets", "Packets that an interface carried", ["tx_packets", "rx_packets"]),
    ("throughline_host_interface_drops", "Packets that an interface dropped", ["tx_dropped", "rx_dropped"]),
];

impl Snapshot {
    fn text(self) -> String {
        let mut registry = Registry::default();
        let info = Info::new(vec![("version", self.version.clone()), ("protocol", PROTOCOL.to_string())]);
        registry.register("throughline_agent", "Version of the program and of its protocol", info);
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = text::encode(&mut text, &registry);
        text
    }

    fn agent(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        gauge(
            to,
            "throughline_agent_uptime_seconds",
            "Time since the metrics endpoint started",
            self.uptime.as_secs_f64(),
        )?;
        gauge(to, "throughline_agent_measuring", "Measurements running now", self.running as f64)?;
        gauge(to, "throughline_agent_waiting", "Clients waiting for their turn", self.waiting as f64)?;
        gauge(to, "throughline_agent_clients", "Connected authenticated clients", self.clients as f64)?;
        let Sums { trials, failed, bytes, last } = self.sums;
        counter(to, "throughline_agent_trials", "Trials that ended, including failed ones", trials)?;
        counter(to, "throughline_agent_trials_failed", "Trials that failed", failed)?;
        let name = "throughline_agent_payload_bytes";
        let mut of = to.encode_descriptor(name, "Payload of all trials at this end", None, MetricType::Counter)?;
        for (direction, bytes) in DIRECTIONS.into_iter().zip(bytes) {
            ConstCounter::new(bytes).encode(of.encode_family(&[("direction", direction)])?)?;
        }
        let Some(last) = last else { return Ok(()) };
        let ended = last.at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        gauge(to, "throughline_agent_last_trial_timestamp_seconds", "End of the last trial", ended)?;
        let name = "throughline_agent_last_trial_bytes";
        let mut of = to.encode_descriptor(name, "Payload of the last trial at this end", None, MetricType::Gauge)?;
        for (direction, bytes) in DIRECTIONS.into_iter().zip(last.bytes) {
            ConstGauge::new(bytes as f64).encode(of.encode_family(&[("direction", direction)])?)?;
        }
        let (name, help) = ("throughline_agent_last_trial_bits_per_second", "Rate of the last trial at this end");
        let mut of = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (direction, bps) in DIRECTIONS.into_iter().zip(last.bps) {
            if let Some(bps) = bps {
                ConstGauge::new(bps).encode(of.encode_family(&[("direction", direction)])?)?;
            }
        }
        Ok(())
    }

    fn host(&self, to: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Some(host) = &self.host else { return Ok(()) };
        let help = "Age of the host's counters, which are not read while a measurement runs";
        gauge(to, "throughline_host_reading_age_seconds", help, host.at.elapsed().as_secs_f64())?;
        if let Some(cpu) = &host.cpu {
            let help = "CPU time of each core since the agent started";
            let mut of = to.encode_descriptor("throughline_host_cpu_seconds", help, None, MetricType::Counter)?;
            for core in &cpu.cores {
                let number = core.core.to_string();
                for (mode, ns) in [
                    ("user", core.user_ns),
                    ("system", core.system_ns),
                    ("irq", core.irq_ns),
                    ("softirq", core.softirq_ns),
                    ("steal", core.steal_ns),
                    ("idle", core.idle_ns),
                ] {
                    let labels = [("core", number.as_str()), ("mode", mode)];
                    ConstCounter::new(ns as f64 / 1e9).encode(of.encode_family(&labels)?)?;
                }
            }
        }
        for (name, help, columns) in INTERFACE {
            let mut of = to.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (interface, column, count) in &host.interfaces {
                if let Some(direction) = columns.iter().position(|wanted| wanted == column) {
                    let labels = [("interface", interface.as_str()), ("direction", DIRECTIONS[direction])];
                    ConstCounter::new(*count).encode(of.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

impl Collector for Snapshot {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        self.agent(&mut to)?;
        self.host(&mut to)
    }
}

fn gauge(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    ConstGauge::new(value).encode(to.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counter(to: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(to.encode_descriptor(name, help, None, MetricType::Counter)?)
}

/// The line of the log that says where the metrics are.
pub(super) fn place(address: SocketAddr) -> String {
    format!("metrics at http://{address}/metrics")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_each_family_once_and_ends() {
        let host = HostReading {
            at: Instant::now(),
            cpu: Some(CpuUse { cores: vec![model::CoreUse::default()], ..CpuUse::default() }),
            interfaces: vec![("et\"h\\0".into(), "rx_bytes".into(), 7)],
        };
        let snapshot = Snapshot {
            version: "0.1.0".into(),
            uptime: Duration::from_secs(3),
            running: 1,
            waiting: 2,
            clients: 3,
            sums: Sums::default(),
            host: Some(host),
        };
        let text = snapshot.text();
        assert!(text.ends_with("# EOF\n") && text.contains("throughline_agent_waiting 2"), "{text}");
        let line = "throughline_host_interface_bytes_total{interface=\"et\\\"h\\\\0\",direction=\"received\"} 7\n";
        assert!(text.contains(line), "{text}");
        let mut types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), all, "{text}");
    }
}
