use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use model::{EndPass, Observe, Observed, Source, source};

use super::registry::OBSERVERS;
use super::*;
use crate::sys::{FakeSys, RealSys};

/// A host of files that a test writes and changes.
struct Host {
    root: tempfile::TempDir,
    sys: Arc<FakeSys>,
}

impl Host {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let sys = Arc::new(FakeSys::new(root.path()));
        sys.set_now_ns(1_000_000_000);
        Self { root, sys }
    }

    /// The recorded host with everything that is observed, at its start.
    fn recorded(moment: &str) -> Self {
        let host = Self::new();
        host.becomes(moment);
        host
    }

    /// Copies the recorded files of a moment over the existing ones.
    fn becomes(&self, moment: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/observed").join(moment);
        copy(&from, self.root.path());
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn start(&self) -> HostRecorder {
        HostRecorder::start(self.sys.clone(), &[("agent", 70), ("worker", 71)])
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// A recorder's result from one recorded moment to the other, 2 s later, with a reading in the middle.
fn seen() -> Observed {
    let host = Host::recorded("before");
    let mut recorder = host.start();
    host.sys.set_now_ns(2_000_000_000);
    host.write("proc/71/task/72/schedstat", "900000 300000 12\n");
    assert!(!recorder.tick());
    std::fs::remove_dir_all(host.root.path().join("proc/71/task/72")).unwrap();
    host.sys.set_now_ns(3_000_000_000);
    host.becomes("after");
    recorder.finish(500_000_000)
}

#[test]
fn every_source_of_a_recorded_host_is_read() {
    let seen = seen();
    assert_eq!(seen.missing, [""; 0]);
    let all: Vec<&str> = OBSERVERS.iter().map(|entry| entry.source.name).filter(|name| *name != cpu::SOURCE).collect();
    assert_eq!(seen.sources, all);
    assert_eq!(seen.window_ns, 2_000_000_000);
    // The fake's thread clock is its only clock, and readings take no time on it.
    assert_eq!(seen.cost_ns, 0);
}

#[test]
fn counters_are_differences_under_the_kernels_names() {
    let seen = seen();
    for (name, grown) in [
        ("stat.ctxt", 5_000),
        ("stat.intr", 700),
        ("stat.processes", 3),
        ("snmp.Tcp.RetransSegs", 17),
        ("snmp.Udp.RcvbufErrors", 5),
        ("netstat.TcpExt.TCPTimeouts", 2),
        ("snmp6.Udp6InErrors", 4),
        ("dev.ens1f0.rx_bytes", 1_000_000),
        ("dev.ens1f0.rx_dropped", 6),
        ("dev.ens1f0.tx_packets", 250),
        ("qdisc.ens1f0.drops", 9),
        ("qdisc.ens1f0.overlimits", 40),
        ("qdisc.ens1f0.ingress.packets", 30),
        ("ethtool.ens1f0.rx_queue_0_bytes", 900),
        ("ethtool.ens1f0.rx missed: no buffer", 3),
        ("irq.52.ens1f0-TxRx-0", 111),
        ("irq.60.virtio3-rx", 20),
        ("perf.cycles", 4_000_000_000),
        ("perf.instructions", 6_000_000_000),
    ] {
        assert_eq!(seen.grew(name), Some(grown), "{name}");
    }
    assert_eq!(seen.grew("snmp.Tcp.AttemptFails"), Some(0));
    assert!(!seen.counters.keys().any(|name| name.starts_with("cpu.") || name.contains("CurrEstab")), "{seen:?}");
    assert!(!seen.counters.keys().any(|name| name.starts_with("irq.9.")), "a disk's interrupts: {seen:?}");
    assert_eq!(seen.levels["snmp.Tcp.CurrEstab"], [12, 10]);
    assert_eq!(seen.levels["meminfo.MemAvailable"], [2048 << 10, 1024 << 10]);
    assert_eq!(seen.levels["sockstat.TCP.mem"], [3 * 4096, 9 * 4096]);
    assert_eq!(seen.levels["qdisc.ens1f0.backlog"], [0, 3_000]);
}

#[test]
fn counters_of_few_bits_are_followed_past_their_ends() {
    let seen = seen();
    // Core 0 went from fffffff0 to 10, core 2 (the second line) by 100.
    assert_eq!(seen.grew("softnet.0.processed"), Some(32));
    assert_eq!(seen.grew("softnet.2.processed"), Some(100));
    assert_eq!(seen.grew("softnet.processed"), Some(132));
    assert_eq!((seen.grew("softnet.dropped"), seen.grew("softnet.squeezed")), (Some(2), Some(1)));
    // 100 before the end of a range of 1,000,000, then 50.
    assert_eq!(seen.grew("rapl.package-0.energy_uj"), Some(151));
    assert_eq!(seen.grew("rapl.package-0:dram.energy_uj"), Some(70));
}

#[test]
fn threads_that_start_or_end_during_a_watch_count() {
    let seen = seen();
    // The agent's thread existed before; 72 started after the start and was last read in the middle; 73 started later.
    assert_eq!(seen.grew("sched.agent.run_ns"), Some(1_000));
    assert_eq!(seen.grew("sched.worker.flow-0.run_ns"), Some(900_000));
    assert_eq!(seen.grew("sched.worker.flow-0.wait_ns"), Some(300_000));
    assert_eq!(seen.grew("sched.worker.run_ns"), Some(900_000 + 500), "{:?}", seen.counters);
}

#[test]
fn the_series_has_shares_rates_and_levels() {
    let series = seen().series.unwrap();
    assert_eq!(series.at_ns, [1_000_000_000, 2_000_000_000]);
    let line = |name: &str| {
        let line = series.lines.iter().find(|line| line.name == name).unwrap_or_else(|| panic!("{name}"));
        (line.unit.as_str(), line.values.clone())
    };
    // Nothing but threads moved in the first second.
    assert_eq!(line("cpu.0.busy"), ("ratio", vec![Some(0.0), Some(0.6)]));
    assert_eq!(line("cpu.0.softirq"), ("ratio", vec![Some(0.0), Some(0.1)]));
    assert_eq!(line("stat.ctxt"), ("1/s", vec![Some(0.0), Some(5_000.0)]));
    assert_eq!(line("dev.ens1f0.rx_bytes"), ("B/s", vec![Some(0.0), Some(1e6)]));
    assert_eq!(line("qdisc.ens1f0.backlog"), ("B", vec![Some(0.0), Some(3_000.0)]));
    assert_eq!(line("softnet.dropped"), ("1/s", vec![Some(0.0), Some(2.0)]));
    assert!(!series.lines.iter().any(|line| line.name.starts_with("dev.lo.")), "it carried nothing");
}

#[test]
fn missing_sources_are_named_with_the_reason_and_stay_unknown() {
    let host = Host::new();
    host.write("proc/stat", "cpu0 1 0 0 9 0 0 0\nctxt 5\n");
    let watch = Watch::start(host.sys.clone(), &WatchOptions { observe: Observe::Counters, ..WatchOptions::default() });
    let mut pass = EndPass::default();
    watch.finish(&mut pass);
    let seen = pass.observed.unwrap();
    assert_eq!(seen.sources, ["stat"]);
    assert_eq!(seen.missing.len(), OBSERVERS.len() - 2, "{:?}", seen.missing);
    for (source, path) in
        [("softnet", "/proc/net/softnet_stat"), ("rapl", "/sys/class/powercap"), ("perf", "perf_event_open")]
    {
        assert!(seen.missing.iter().any(|gap| gap.starts_with(&format!("{source}: {path}: "))), "{:?}", seen.missing);
    }
    assert_eq!((seen.grew("stat.ctxt"), seen.grew("softnet.dropped"), seen.grew("cpu.0.busy")), (Some(0), None, None));
    assert!(seen.series.is_none() && pass.cpu.is_some());
}

#[test]
fn only_processor_time_is_read_on_request() {
    let host = Host::recorded("before");
    let watch = Watch::start(host.sys.clone(), &WatchOptions { observe: Observe::Off, ..WatchOptions::default() });
    let mut pass = EndPass::default();
    watch.finish(&mut pass);
    assert!(pass.observed.is_none() && pass.cpu.is_some());
}

#[test]
fn devices_that_appear_or_disappear_and_counters_that_decrease_are_unknown() {
    let device = |name: &str, rx: u64| format!("{name}: {rx} 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n");
    let host = Host::new();
    host.write("proc/net/dev", &format!("a | b\nc | d\n{}{}", device("eth0", 500), device("eth1", 5)));
    let recorder = host.start();
    host.write("proc/net/dev", &format!("a | b\nc | d\n{}{}", device("eth0", 200), device("eth2", 1 << 40)));
    let seen = recorder.finish(u64::MAX);
    assert_eq!(seen.counters, [].into());
    let unknown: Vec<&str> = seen.missing.iter().map(String::as_str).filter(|gap| gap.starts_with("dev")).collect();
    assert_eq!(
        unknown,
        ["dev.eth0.rx_bytes: decreased", "dev.eth2: missing at the start", "dev.eth1: removed before the end"]
    );
    assert_eq!((seen.grew("dev.eth0.rx_bytes"), seen.grew("dev.eth0.tx_bytes")), (None, Some(0)));
    assert_eq!((seen.grew("dev.eth1.tx_bytes"), seen.grew("dev.eth2.rx_bytes")), (None, None));
}

#[test]
fn a_source_that_disappears_is_unknown() {
    let host = Host::recorded("before");
    let recorder = host.start();
    host.becomes("after");
    host.write("proc/net/softnet_stat", "not a number\n");
    let seen = recorder.finish(u64::MAX);
    assert!(seen.missing.iter().any(|gap| gap.starts_with("softnet: /proc/net/softnet_stat: ")), "{:?}", seen.missing);
    assert_eq!((seen.grew("softnet.dropped"), seen.grew("stat.ctxt")), (None, Some(5_000)));
}

#[test]
fn a_live_view_has_rates_of_the_interval() {
    let host = Host::recorded("before");
    let mut live = HostReader::start(host.sys.clone());
    host.sys.set_now_ns(3_000_000_000);
    host.becomes("after");
    let seen = live.read();
    assert_eq!((seen.window_ns, seen.missing.as_slice()), (2_000_000_000, [].as_slice()));
    assert_eq!((seen.context_switches_per_s, seen.interrupts_per_s), (Some(2_500.0), Some(350.0)));
    assert_eq!((seen.tcp_retransmits_per_s, seen.udp_errors_per_s), (Some(8.5), Some(4.5)));
    assert_eq!((seen.tcp_established, seen.memory_available_bytes), (Some(10), Some(1024 << 10)));
    let device = seen.interfaces.iter().find(|one| one.name == "ens1f0").unwrap();
    assert_eq!((device.rx_bps, device.tx_packets_per_s, device.drops_per_s), (4e6, 125.0, 3.0));
    assert_eq!(seen.cpu.unwrap().cores[0].softirq_ns, 100_000_000);
}

#[test]
fn this_host_can_be_watched_over_time() {
    let options = WatchOptions {
        observe: Observe::Series,
        interval_ns: 20_000_000,
        processes: vec![("agent", std::process::id())],
        avoid: vec![0],
    };
    let watch = Watch::start(Arc::new(RealSys), &options);
    let until = RealSys.now_ns() + 300_000_000;
    let mut reads: i64 = 0;
    while RealSys.now_ns() < until {
        std::thread::sleep(std::time::Duration::from_millis(1));
        reads += 1;
    }
    let mut pass = EndPass::default();
    watch.finish(&mut pass);
    assert!(!pass.cpu.unwrap().cores.is_empty());
    let seen = pass.observed.unwrap();
    assert!(seen.window_ns >= 300_000_000 && seen.cost_ns > 0);
    for source in ["stat", "softnet", "snmp", "netstat", "sockstat", "meminfo", "dev", "sched"] {
        assert!(seen.sources.iter().any(|read| read == source), "{source}: {:?}", seen.missing);
    }
    // Each of this thread's sleeps is a context switch.
    assert!(seen.grew("stat.ctxt").unwrap() >= reads, "{} of {reads}", seen.grew("stat.ctxt").unwrap());
    assert!(seen.grew("sched.agent.run_ns").unwrap() > 0);
    let series = seen.series.unwrap();
    assert!(series.at_ns.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(series.lines.iter().all(|line| line.values.len() == series.at_ns.len()), "{series:?}");
    assert!(series.lines.iter().any(|line| line.name == "cpu.0.busy"));
}

/// The names of the values that the used sources of a host have now.
fn names_read(sys: &dyn Sys) -> BTreeSet<String> {
    let mut reading = ObservedValues::new(sys, true, reading::Files::default());
    for entry in OBSERVERS.iter().filter(|entry| entry.source.is_evidence || entry.source.is_watched) {
        if let Ok(mut observer) = (entry.start)(sys, &[]) {
            let _ = observer.read(sys, &mut reading);
        }
    }
    reading.values.into_keys().collect()
}

#[test]
fn the_model_has_the_facts_of_each_source_of_this_crate() {
    let sources: Vec<Source> = OBSERVERS.iter().map(|entry| entry.source).collect();
    assert_eq!(sources, source::SOURCES);
}

#[test]
fn the_counters_that_are_used_by_name_are_read() {
    // This machine has every counter of its kernel, but may lack IPv6 or rtnetlink; the recorded files are short.
    let names = &names_read(&RealSys) | &names_read(&*Host::recorded("before").sys);
    let columns: BTreeSet<&str> = names
        .iter()
        .filter_map(|name| Some(source::DEV.device(name).or_else(|| source::QDISC.device(name))?.1))
        .collect();
    let missing: Vec<&str> = source::counter::ALL.iter().copied().filter(|name| !names.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let missing: Vec<&str> = source::column::ALL.iter().copied().filter(|name| !columns.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
