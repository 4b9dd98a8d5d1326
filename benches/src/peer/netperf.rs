//! netperf's classic tests: streams, request/response with and without a connection each.

use anyhow::{Context, Result};

use super::{Job, JobContext, Peer, Read, Reading, command_line};
use crate::process::Ended;
use crate::work::{Batch, Task, UDP_BUFFER};

/// What it prints of datagrams. Its default output has the sender's and the receiver's counts on separate lines; keyed values
/// identify them. The sizes are those of the sender's and the receiver's buffer.
const KEYS: &str = "REMOTE_RECV_THROUGHPUT,LSS_SIZE_END,RSR_SIZE_END";

/// `netserver` and `netperf`.
pub struct Netperf;

impl Peer for Netperf {
    fn name(&self) -> &'static str {
        "netperf"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["netperf", "netserver"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("-V")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let JobContext { port, seconds, .. } = context;
        let (test, read): (String, Read) = match task {
            Task::Stream { block } => (format!("-t TCP_STREAM -f m -- -m {block}"), rate),
            Task::RoundTrip { bytes } | Task::SpinningBesideBlocking { bytes } => {
                (format!("-t TCP_RR -- -r {bytes},{bytes}"), round_trip)
            }
            Task::Connects { .. } => ("-t TCP_CRR -- -r 1,1".to_owned(), exchanges),
            // Its default output has the sender's and the receiver's counts on separate lines; keyed values
            // identify them.
            Task::Datagrams { block, by } if by != Batch::Segmented => {
                let buffers = format!("-s {UDP_BUFFER} -S {UDP_BUFFER}");
                (format!("-t UDP_STREAM -f m -- -m {block} -R 1 {buffers} -k {KEYS}"), arrived)
            }
            _ => return None,
        };
        Some(Job::new(
            context,
            command_line(&format!("netserver -D -4 -p {port}")),
            // -P 0 -v 0: nothing but the number.
            command_line(&format!("netperf -H 127.0.0.1 -4 -p {port} -l {seconds} -P 0 -v 0 {test}")),
            read,
        ))
    }
}

fn number(ended: &Ended) -> Result<f64> {
    let last = ended.stdout.split_ascii_whitespace().next_back();
    last.and_then(|word| word.parse().ok()).filter(|value| *value > 0.0).context("netperf printed no number")
}

/// -f m is decimal Mbit/s.
fn rate(ended: &Ended, _: &str) -> Result<Reading> {
    Ok((number(ended)? * 1e6).into())
}

/// For datagrams, the receiver's rate.
fn arrived(ended: &Ended, _: &str) -> Result<Reading> {
    let find = |line: &str| line.trim().strip_prefix("REMOTE_RECV_THROUGHPUT=")?.parse::<f64>().ok();
    let rate = ended.stdout.lines().find_map(find).context("netperf printed no REMOTE_RECV_THROUGHPUT")?;
    Ok((rate * 1e6).into())
}

fn exchanges(ended: &Ended, _: &str) -> Result<Reading> {
    Ok(number(ended)?.into())
}

/// It prints transactions per second.
fn round_trip(ended: &Ended, _: &str) -> Result<Reading> {
    Ok((1e9 / number(ended)?).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lone_number_is_read() {
        let said = |text: &str| Ended { stdout: text.into(), ..Ended::default() };
        assert_eq!(rate(&said("46123.5\n"), "").unwrap().value, 46_123.5e6);
        assert_eq!(round_trip(&said("50000.00\n"), "").unwrap().value, 20_000.0);
        assert_eq!(exchanges(&said("12000.00\n"), "").unwrap().value, 12_000.0);
        assert_eq!(arrived(&said("REMOTE_RECV_THROUGHPUT=120.50\n"), "").unwrap().value, 120.5e6);
        assert!(rate(&said("establish control: are you sure\n"), "").is_err());
    }
}
