//! The importers compared with other programs' readers of the same outputs: jc, the iperf3 library, and flent itself. `independent/record.py`
//! has the command that wrote what they read.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use model::{Pattern, TransportName};
use std::path::Path;

use import::{Imported, Row, read};
use serde_json::Value;

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
}

/// What `reader` found in each of its outputs, with our reading of it.
fn compared(reader: &str) -> Vec<(String, Value, Imported)> {
    let expected: Value =
        serde_json::from_str(&std::fs::read_to_string(folder().join("independent/expected.json")).unwrap()).unwrap();
    let files = expected[reader].as_object().unwrap().clone();
    assert!(!files.is_empty(), "{reader}");
    let ours = |(name, theirs): (String, Value)| {
        let imported = read(&std::fs::read(folder().join("data").join(&name)).unwrap(), None).unwrap().imported;
        (name, theirs, imported.into_iter().next().unwrap())
    };
    files.into_iter().map(ours).collect()
}

#[track_caller]
fn same(what: &str, ours: Option<f64>, theirs: &Value) {
    let theirs = theirs.as_f64();
    let near = |(a, b): (f64, f64)| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    assert!(ours.zip(theirs).map_or(ours == theirs, near), "{what}: {ours:?} here, {theirs:?} there");
}

fn median(times: &[Value]) -> Value {
    model::median(&times.iter().filter_map(Value::as_f64).collect::<Vec<_>>()).into()
}

#[test]
fn pings_are_as_jc_reads_them() {
    for (name, theirs, ours) in compared("ping") {
        let ping = ours.path.as_ref().unwrap().ping.as_ref().unwrap();
        same(&name, Some(f64::from(ping.sent)), &theirs["sent"]);
        same(&name, Some(f64::from(ping.received)), &theirs["received"]);
        same(&name, ping.median_ns.map(|ns| ns as f64 / 1e6), &median(theirs["times_ms"].as_array().unwrap()));
        let figures = &ours.rows[0].figures;
        for (part, at) in [("min", 0), ("mean", 1), ("max", 2)] {
            let own = figures.get(&format!("summary_{part}_ns")).map(|ns| ns / 1e6);
            same(&format!("{name}: {part}"), own, &theirs["summary_ms"][at]);
        }
    }
}

#[test]
fn paths_are_as_jc_reads_them() {
    for (name, theirs, ours) in compared("traceroute") {
        let hops = ours.path.unwrap().hops.unwrap();
        let theirs = theirs.as_array().unwrap();
        assert_eq!(hops.len(), theirs.len(), "{name}");
        for (own, other) in hops.iter().zip(theirs) {
            same(&name, Some(f64::from(own.hop)), &other["hop"]);
            let addresses: Vec<&str> = own.address.iter().chain(&own.others).map(String::as_str).collect();
            let expected: Vec<&str> = other["addresses"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            assert_eq!(addresses, expected, "{name}: hop {}", own.hop);
            let times = other["times_ms"].as_array().unwrap();
            assert_eq!(own.rtts_ns.len(), times.len(), "{name}: hop {}", own.hop);
            for (ns, ms) in own.rtts_ns.iter().zip(times) {
                same(&format!("{name}: hop {}", own.hop), Some(*ns as f64 / 1e6), ms);
            }
        }
    }
}

/// A series of the near host by its name.
fn series<'a>(imported: &'a Imported, name: &str) -> &'a [Option<f64>] {
    let observed = imported.passes[0].near.observed.as_ref().unwrap();
    let line = observed.series.as_ref().unwrap().lines.iter().find(|line| line.name == name);
    line.map_or(&[][..], |line| &line.values)
}

#[test]
fn vmstats_lines_are_as_jc_reads_them() {
    let columns = [
        ("runnable_procs", "procs.running", 1.0),
        ("uninterruptible_sleeping_procs", "procs.blocked", 1.0),
        ("virtual_mem_used", "memory.swapped", 1024.0),
        ("free_mem", "memory.free", 1024.0),
        ("buffer_mem", "memory.buffers", 1024.0),
        ("cache_mem", "memory.cached", 1024.0),
        ("inactive_mem", "memory.inactive", 1024.0),
        ("active_mem", "memory.active", 1024.0),
        ("swap_in", "swap.in", 1024.0),
        ("swap_out", "swap.out", 1024.0),
        ("blocks_in", "io.in", 1024.0),
        ("blocks_out", "io.out", 1024.0),
        ("interrupts", "stat.intr", 1.0),
        ("context_switches", "stat.ctxt", 1.0),
        ("user_time", "cpu.all.user", 0.01),
        ("system_time", "cpu.all.system", 0.01),
        ("idle_time", "cpu.all.idle", 0.01),
        ("io_wait_time", "cpu.all.iowait", 0.01),
        ("stolen_time", "cpu.all.steal", 0.01),
    ];
    for (name, theirs, ours) in compared("vmstat") {
        // The first line is the mean since the host started.
        for (at, row) in theirs.as_array().unwrap().iter().skip(1).enumerate() {
            for (key, own, factor) in columns {
                let value = series(&ours, own).get(at).copied().flatten();
                same(&format!("{name}: {own} of line {at}"), value.map(|value| value / factor), &row[key]);
            }
        }
    }
}

#[test]
fn shares_of_mpstat_are_as_jc_reads_them() {
    let columns = [
        ("usr", "user"),
        ("nice", "nice"),
        ("sys", "system"),
        ("iowait", "iowait"),
        ("irq", "irq"),
        ("soft", "softirq"),
        ("steal", "steal"),
        ("guest", "guest"),
        ("gnice", "guest_nice"),
        ("idle", "idle"),
    ];
    for (name, theirs, ours) in compared("mpstat") {
        let rows = theirs.as_array().unwrap();
        let mut times: Vec<&Value> = rows.iter().map(|row| &row["time"]).collect();
        times.dedup();
        for row in rows {
            let (at, core) =
                (times.iter().position(|time| **time == row["time"]).unwrap(), row["cpu"].as_str().unwrap());
            for (key, own) in columns {
                let own = format!("cpu.{core}.{own}");
                let value = series(&ours, &own)[at].map(|share| share * 100.0);
                same(&format!("{name}: {own}"), value, &row[format!("percent_{key}")]);
            }
        }
    }
}

#[test]
fn interfaces_of_ifconfig_are_as_jc_reads_them() {
    let counters =
        ["rx_packets", "rx_errors", "rx_dropped", "rx_bytes", "tx_packets", "tx_errors", "tx_dropped", "tx_bytes"];
    for (name, theirs, ours) in compared("ifconfig") {
        let theirs = theirs.as_array().unwrap();
        assert_eq!(ours.near.interfaces.len(), theirs.len(), "{name}");
        for (own, other) in ours.near.interfaces.iter().zip(theirs) {
            let device = own.device.as_ref().unwrap();
            assert_eq!(Some(own.name.as_str()), other["name"].as_str());
            assert_eq!(device.mac, other["mac_addr"].as_str().map(str::to_lowercase));
            assert!(own.addresses[0].starts_with(other["ipv4_addr"].as_str().unwrap()), "{:?}", own.addresses);
            same(&name, own.mtu.map(f64::from), &other["mtu"]);
            for counter in counters {
                same(
                    &format!("{name}: {counter}"),
                    device.totals.get(counter).map(|count| *count as f64),
                    &other[counter],
                );
            }
        }
    }
}

#[test]
fn documents_of_iperf3_are_as_its_library_reads_them() {
    let figure = |row: &Row, name: &str| row.figures.get(name).copied();
    for (name, theirs, ours) in compared("iperf3") {
        let row = &ours.rows[0];
        assert_eq!(Some(row.spec.transport.as_str().to_uppercase().as_str()), theirs["protocol"].as_str(), "{name}");
        same(&name, Some(row.spec.block as f64), &theirs["blksize"]);
        same(&name, ours.measured_unix_ns.map(|ns| ns as f64 / 1e9), &theirs["timesecs"]);
        same(&name, figure(row, "local_cpu_total_percent"), &theirs["local_cpu_total"]);
        same(&name, figure(row, "remote_cpu_total_percent"), &theirs["remote_cpu_total"]);
        if row.spec.transport == TransportName::Udp {
            same(&name, figure(row, "lost_packets"), &theirs["lost_packets"]);
            same(&name, figure(row, "jitter_ns").map(|ns| ns / 1e6), &theirs["jitter_ms"]);
            same(&name, row.trial.near.datagrams.map(|tally| tally.sent as f64), &theirs["packets"]);
            continue;
        }
        same(&name, row.trial.value, &theirs["received_bps"]);
        same(&name, figure(row, "sum_sent_bps"), &theirs["sent_bps"]);
        same(&name, figure(row, "sum_sent_bytes"), &theirs["sent_bytes"]);
        same(&name, figure(row, "sum_received_bytes"), &theirs["received_bytes"]);
        same(&name, figure(row, "retransmits"), &theirs["retransmits"]);
    }
}

#[test]
fn series_of_flent_are_as_flent_reads_them() {
    for (name, theirs, ours) in compared("flent") {
        for row in &ours.rows {
            let series = &row.levels["series"];
            let ping = row.spec.pattern == Pattern::Pingpong;
            let (statistic, scale) = if ping { ("median", 1e6) } else { ("mean", 1e6) };
            same(&format!("{name}: {series}"), row.trial.value.map(|value| value / scale), &theirs[series][statistic]);
        }
        // All but the series whose unit is neither a rate nor a time.
        assert_eq!(ours.rows.len() + 1, theirs.as_object().unwrap().len(), "{name}");
    }
}
