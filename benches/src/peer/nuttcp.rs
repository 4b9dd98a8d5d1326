//! nuttcp's transmit test, TCP and UDP.

use anyhow::{Context, Result};

use super::{Job, JobContext, Peer, Reading, command_line};
use crate::process::Ended;
use crate::work::{Batch, Task, UDP_BUFFER};

/// `nuttcp -S` and `nuttcp -t`.
pub struct Nuttcp;

impl Peer for Nuttcp {
    fn name(&self) -> &'static str {
        "nuttcp"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["nuttcp"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("-V")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let JobContext { port, second_port, seconds, .. } = context;
        let flags = match task {
            Task::Stream { block } => format!("-l{block}"),
            // -R0: no rate limit. -w and -ws are in KiB: the client sends with the first and the server receives with the second.
            Task::Datagrams { block, by } if by != Batch::Segmented => {
                let buffer = UDP_BUFFER / 1024;
                format!("-u -R0 -l{block} -w{buffer} -ws{buffer}")
            }
            _ => return None,
        };
        Some(Job::new(
            context,
            command_line(&format!("nuttcp -S -P {port} --nofork")),
            command_line(&format!("nuttcp -t -P {port} -p {second_port} {flags} -T{seconds} -fparse 127.0.0.1")),
            read,
        ))
    }
}

/// Its rate is the receiver's, in decimal Mbit/s.
fn read(ended: &Ended, _: &str) -> Result<Reading> {
    let value = |key: &str| -> Option<f64> {
        ended.stdout.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
    };
    let mut reading = Reading::from(value("rate_Mbps").context("nuttcp printed no rate_Mbps")? * 1e6);
    reading.also.extend(value("data_loss").map(|percent| ("lost_percent", percent)));
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_rate_is_decimal() {
        let text = "megabytes=3520.1250 real_seconds=2.00 rate_Mbps=14764.0462 tx_cpu=87 rx_cpu=34 retrans=0\n";
        let rate = read(&Ended { stdout: text.into(), ..Ended::default() }, "").unwrap().value;
        assert!((rate - 14_764_046_200.0).abs() < 1.0);
        assert!(read(&Ended::default(), "").is_err());
    }

    #[test]
    fn loss_of_datagrams_comes_along() {
        let text = "megabytes=150.0334 real_seconds=1.00 rate_Mbps=1263.6339 tx_cpu=65 rx_cpu=21 drop=61075 pkt=167951 data_loss=36.36480\n";
        let reading = read(&Ended { stdout: text.into(), ..Ended::default() }, "").unwrap();
        assert_eq!(reading.also["lost_percent"], 36.364_80);
    }
}
