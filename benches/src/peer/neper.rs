//! neper: round trips, connections and streams of many flows. Its flags and keys are those of its README.

use anyhow::{Context, Result};

use super::{Job, JobContext, Peer, Read, Reading, command_line};
use crate::process::Ended;
use crate::work::Task;

/// `tcp_rr`, `tcp_crr` and `tcp_stream`, which are client and server.
pub struct Neper;

impl Peer for Neper {
    fn name(&self) -> &'static str {
        "neper"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["tcp_rr", "tcp_crr", "tcp_stream"]
    }

    fn version(&self) -> Option<&'static str> {
        None
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let (program, read): (String, Read) = match task {
            Task::RoundTrip { bytes } | Task::SpinningBesideBlocking { bytes } => {
                (format!("tcp_rr -Q {bytes} -R {bytes}"), round_trip)
            }
            Task::Connects { .. } => ("tcp_crr".to_owned(), exchanges),
            Task::Crowd { flows, stream: false } => (format!("tcp_rr -F {flows} -T 2"), exchanges),
            // -M: the server sends. Only a reader prints a rate, and only the client's output is parsed.
            Task::Crowd { flows, stream: true } => (format!("tcp_stream -M -B 16384 -F {flows} -T 2"), stream),
            _ => return None,
        };
        let JobContext { port, second_port, seconds, .. } = context;
        let both = format!("{program} -C {port} -P {second_port} -l {seconds}");
        Some(Job::new(context, command_line(&both), command_line(&format!("{both} -c -H 127.0.0.1")), read))
    }
}

/// The value of a line `key=value`.
fn value<'a>(ended: &'a Ended, key: &str) -> Option<&'a str> {
    ended.stdout.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))
}

fn throughput(ended: &Ended) -> Result<f64> {
    let number = value(ended, "throughput").and_then(|text| text.parse().ok());
    number.filter(|rate| *rate > 0.0).context("neper printed no throughput")
}

fn exchanges(ended: &Ended, _: &str) -> Result<Reading> {
    Ok(throughput(ended)?.into())
}

fn round_trip(ended: &Ended, _: &str) -> Result<Reading> {
    Ok((1e9 / throughput(ended)?).into())
}

/// In the unit that it names, of decimal bits.
fn stream(ended: &Ended, _: &str) -> Result<Reading> {
    let unit = match value(ended, "throughput_units") {
        Some("Gbit/s") => 1e9,
        Some("Mbit/s") | None => 1e6,
        Some("Kbit/s") => 1e3,
        Some(other) => anyhow::bail!("neper's unit {other} is not known here"),
    };
    Ok((throughput(ended)? * unit).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_throughput_counts_and_no_key_that_only_begins_like_it() {
        // From the README of neper.
        let said = |text: &str| Ended { stdout: text.into(), ..Ended::default() };
        let text =
            "num_flows=1\nnum_transactions=329605\nnum_samples=10\nthroughput=33009.84\ncorrelation_coefficient=1.00\n";
        assert_eq!(exchanges(&said(text), "").unwrap().value, 33_009.84);
        assert!((round_trip(&said(text), "").unwrap().value - 30_294.0).abs() < 1.0);
        let text = "throughput_opt=\nthroughput_units=Mbit/s\nthroughput=20000.00\n";
        assert_eq!(stream(&said(text), "").unwrap().value, 20e9);
        assert!(exchanges(&said("throughput_Mbps=7\n"), "").is_err());
    }
}
