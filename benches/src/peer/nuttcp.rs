//! nuttcp's TCP transmit test.

use anyhow::{Context, Result};

use super::{Job, JobContext, Peer, Reading, command_line};
use crate::process::Ended;
use crate::work::Task;

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
        let Task::Stream { block } = task else { return None };
        let JobContext { port, second_port, seconds, .. } = context;
        Some(Job::new(
            context,
            command_line(&format!("nuttcp -S -P {port} --nofork")),
            command_line(&format!("nuttcp -t -P {port} -p {second_port} -l{block} -T{seconds} -fparse 127.0.0.1")),
            read,
        ))
    }
}

fn read(ended: &Ended, _: &str) -> Result<Reading> {
    let rate = ended.stdout.split_ascii_whitespace().find_map(|word| word.strip_prefix("rate_Mbps="));
    let rate: f64 = rate.and_then(|text| text.parse().ok()).context("nuttcp printed no rate_Mbps")?;
    Ok((rate * 1e6).into())
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
}
