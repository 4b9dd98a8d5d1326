//! sockperf's ping-pong.

use anyhow::{Context, Result};

use super::{Job, JobContext, Peer, Reading, command_line};
use crate::process::Ended;
use crate::work::{Over, Task};

/// `sockperf server` and `sockperf ping-pong`.
pub struct Sockperf;

/// Its header, the smallest message it can send.
const LEAST: u64 = 14;

impl Peer for Sockperf {
    fn name(&self) -> &'static str {
        "sockperf"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["sockperf"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let (bytes, flags) = match task {
            Task::RoundTrip { bytes } | Task::SpinningBesideBlocking { bytes } => (bytes, "--tcp"),
            Task::Spinning { bytes, over: Over::Tcp } => (bytes, "--tcp --nonblocked"),
            Task::Spinning { bytes, over: Over::Udp } => (bytes, "--nonblocked"),
            _ => return None,
        };
        let JobContext { port, seconds, .. } = context;
        let size = bytes.max(LEAST);
        Some(Job::new(
            context,
            command_line(&format!("sockperf server {flags} -i 127.0.0.1 -p {port}")),
            command_line(&format!(
                "sockperf ping-pong {flags} -i 127.0.0.1 -p {port} -m {size} -t {seconds} --full-rtt"
            )),
            read,
        ))
    }
}

/// The mean of `====> avg-rtt=18.350 (std-dev=...)`, in µs; it prints colours even to a pipe.
fn read(ended: &Ended, _: &str) -> Result<Reading> {
    let after = |text: &str, mark: &str| text.split_once(mark).map(|(_, rest)| rest.trim_start().to_owned());
    let number =
        |text: String| -> Option<f64> { text.split(|c: char| !(c.is_ascii_digit() || c == '.')).next()?.parse().ok() };
    let mean = after(&ended.stdout, "avg-rtt=").and_then(number).context("sockperf printed no avg-rtt")?;
    let mut reading = Reading::from(mean * 1e3);
    let median = after(&ended.stdout, "percentile 50.000 =").and_then(number);
    reading.also.extend(median.map(|us| ("rtt_p50_ns", us * 1e3)));
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_read_through_the_colours() {
        let text = "sockperf: \u{1b}[2;35m====> avg-rtt=79.912 (std-dev=57.236)\u{1b}[0m\n\
                    sockperf: ---> percentile 50.000 =   77.965\n";
        let reading = read(&Ended { stdout: text.into(), ..Ended::default() }, "").unwrap();
        assert_eq!((reading.value, reading.also["rtt_p50_ns"]), (79_912.0, 77_965.0));
        assert!(read(&Ended::default(), "").is_err());
    }
}
