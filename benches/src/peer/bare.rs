//! Our own C program (`benches/bare/bare.c`): each loop with nothing around it.

use anyhow::{Context, Result};

use super::{Amount, Job, JobContext, Peer, Reading, command_line};
use crate::process::{Ended, Ready};
use crate::work::{Over, Task};

/// `bare server` and `bare client`; scripts/bench.sh compiles it.
pub struct Bare;

impl Peer for Bare {
    fn name(&self) -> &'static str {
        "bare"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["bare"]
    }

    fn version(&self) -> Option<&'static str> {
        None
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let (loops, block, flows) = match task {
            Task::Stream { block } => ("stream", block, 1),
            Task::Uncopied { block } => ("sendfile", block, 1),
            Task::RoundTrip { bytes } | Task::SpinningBesideBlocking { bytes } => ("rr", bytes, 1),
            Task::Spinning { bytes, .. } => ("rr-spin", bytes, 1),
            Task::Connects { .. } => ("crr", 1, 1),
            Task::Crowd { flows, stream: false } => ("crowd-rr", 1, flows),
            Task::Crowd { flows, stream: true } => ("crowd-stream", 16_384, flows),
            _ => return None,
        };
        let transport = match task {
            Task::Spinning { over: Over::Udp, .. } => "udp",
            Task::Spinning { over: Over::Unix, .. } => "unix",
            Task::Spinning { over: Over::Shm, .. } => "shm",
            _ => "tcp",
        };
        let meeting = context.folder.join("meeting");
        let (at, ready) = match transport {
            "unix" | "shm" => (meeting.to_string_lossy().into_owned(), Ready::File(meeting)),
            _ => (context.port.to_string(), Ready::Port(context.port)),
        };
        let both = |side: &str| command_line(&format!("bare {side} {loops} {transport} {at} {block} {flows}"));
        let mut client = both("client");
        client.push(context.seconds.to_string());
        let per_second = matches!(task, Task::Connects { .. } | Task::Crowd { stream: false, .. });
        Some(Job {
            ready,
            ..Job::new(context, both("server"), client, if per_second { exchanges } else { time_or_rate })
        })
    }
}

/// The number of a `key=value`.
fn value(ended: &Ended, key: &str) -> Option<f64> {
    ended.stdout.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

fn reading(ended: &Ended, value_of: impl Fn(f64, f64) -> f64) -> Result<Reading> {
    let amount = value(ended, "bytes").or_else(|| value(ended, "transactions"));
    let (amount, ns) = amount.zip(value(ended, "ns")).context("bare printed no counts")?;
    let mut reading = Reading::from(value_of(amount, ns));
    reading.amount = Amount::Known(amount);
    reading.also.extend(value(ended, "setup_ns").map(|ns| ("setup_ns", ns)));
    Ok(reading)
}

/// The rate of a stream, the mean time of a round trip.
fn time_or_rate(ended: &Ended, _: &str) -> Result<Reading> {
    let stream = value(ended, "bytes").is_some();
    reading(ended, |amount, ns| if stream { amount * 8e9 / ns } else { ns / amount })
}

fn exchanges(ended: &Ended, _: &str) -> Result<Reading> {
    reading(ended, |amount, ns| amount * 1e9 / ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_become_rates_and_times() {
        let said = |text: &str| Ended { stdout: text.into(), ..Ended::default() };
        let stream = time_or_rate(&said("bytes=2096889856 ns=999952271\n"), "").unwrap();
        assert!((stream.value - 16_775_919_546.0).abs() < 1e3 && stream.amount == Amount::Known(2_096_889_856.0));
        let crowd = said("transactions=68929 ns=1000029550 setup_ns=17912018\n");
        assert!((exchanges(&crowd, "").unwrap().value - 68_926.96).abs() < 0.01);
        assert_eq!(exchanges(&crowd, "").unwrap().also["setup_ns"], 17_912_018.0);
        let spin = time_or_rate(&said("transactions=19639 ns=1000022420\n"), "").unwrap();
        assert!((spin.value - 50_920.23).abs() < 0.01);
        assert!(time_or_rate(&said("bare: connect: refused\n"), "").is_err());
    }
}
