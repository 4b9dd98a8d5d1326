//! qperf's tcp_bw and tcp_lat.

use anyhow::{Context, Result};

use super::{Job, JobContext, Peer, Read, Reading, command_line};
use crate::process::Ended;
use crate::work::Task;

/// `qperf` as server and as client.
pub struct Qperf;

impl Peer for Qperf {
    fn name(&self) -> &'static str {
        "qperf"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["qperf"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let JobContext { port, second_port, seconds, .. } = context;
        let (test, read): (String, Read) = match task {
            Task::Stream { block } => (format!("-m {block} tcp_bw"), rate),
            Task::RoundTrip { bytes } => (format!("-m {bytes} tcp_lat"), round_trip),
            _ => return None,
        };
        Some(Job::new(
            context,
            command_line(&format!("qperf -lp {port}")),
            // -uu: plain units, no prefixes.
            command_line(&format!("qperf 127.0.0.1 -lp {port} -ip {second_port} -t {seconds} -uu {test}")),
            read,
        ))
    }
}

/// The value of a line such as `    bw  =  2210201600 bytes/sec`.
fn value(ended: &Ended, name: &str, unit: &str) -> Result<f64> {
    let find = |line: &str| {
        let (key, rest) = line.split_once('=')?;
        let number = rest.trim().strip_suffix(unit)?.trim();
        if key.trim() == name { number.replace(',', "").parse().ok() } else { None }
    };
    ended.stdout.lines().find_map(find).with_context(|| format!("qperf printed no {name} in {unit}"))
}

fn rate(ended: &Ended, _: &str) -> Result<Reading> {
    Ok((value(ended, "bw", "bytes/sec")? * 8.0).into())
}

/// Its latency is half a round trip.
fn round_trip(ended: &Ended, _: &str) -> Result<Reading> {
    Ok((value(ended, "latency", "ns")? * 2.0).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_bits_and_halves_whole_round_trips() {
        let said = |text: &str| Ended { stdout: text.into(), ..Ended::default() };
        assert_eq!(rate(&said("tcp_bw:\n    bw  =  2210201600 bytes/sec\n"), "").unwrap().value, 17_681_612_800.0);
        assert_eq!(round_trip(&said("tcp_lat:\n    latency  =  9250 ns\n"), "").unwrap().value, 18_500.0);
        assert!(round_trip(&said("tcp_lat:\n    latency  =  9.25 us\n"), "").is_err());
    }
}
