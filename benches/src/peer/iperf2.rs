//! iperf 2's TCP stream.

use anyhow::{Context, Result};

use super::{Job, JobContext, Peer, Reading, command_line};
use crate::process::Ended;
use crate::work::Task;

/// `iperf -s` and `iperf -c`.
pub struct Iperf2;

impl Peer for Iperf2 {
    fn name(&self) -> &'static str {
        "iperf2"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["iperf"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("-v")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let Task::Stream { block } = task else { return None };
        let JobContext { port, seconds, .. } = context;
        Some(Job::new(
            context,
            command_line(&format!("iperf -s -p {port} -l {block}")),
            command_line(&format!("iperf -c 127.0.0.1 -p {port} -l {block} -t {seconds} -y C")),
            read,
        ))
    }
}

/// The last column of its comma-separated line is the client's rate in bit/s.
fn read(ended: &Ended, _: &str) -> Result<Reading> {
    let line = ended.stdout.lines().rfind(|line| line.matches(',').count() >= 8);
    let rate: Option<f64> = line.and_then(|line| line.rsplit(',').next()).and_then(|text| text.trim().parse().ok());
    rate.map(Reading::from).context("iperf printed no line of results")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_is_the_rate() {
        let text = "19700101000000,127.0.0.1,47392,127.0.0.1,15995,1,0.0-2.0,5117837372,20450714716\n";
        assert_eq!(read(&Ended { stdout: text.into(), ..Ended::default() }, "").unwrap().value, 20_450_714_716.0);
        assert!(read(&Ended { stdout: "connect failed\n".into(), ..Ended::default() }, "").is_err());
    }
}
