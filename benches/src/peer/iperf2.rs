//! iperf 2's TCP stream and UDP flow.

use anyhow::{Context, Result};

use super::{Job, JobContext, Peer, Reading, command_line};
use crate::process::Ended;
use crate::work::{Batch, Task, UDP_BUFFER};

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
        let JobContext { port, seconds, .. } = context;
        let block = match task {
            Task::Stream { block } => block,
            Task::Datagrams { block, by } if by != Batch::Segmented => return Some(datagrams(block, context)),
            _ => return None,
        };
        Some(Job::new(
            context,
            command_line(&format!("iperf -s -p {port} -l {block}")),
            command_line(&format!("iperf -c 127.0.0.1 -p {port} -l {block} -t {seconds} -y C")),
            read,
        ))
    }
}

/// It takes no 0 for "unlimited"; 1 Tbit/s has it wait for nothing. -f k: figures in kbit/s.
fn datagrams(block: u64, context: &JobContext) -> Job {
    let JobContext { port, seconds, .. } = context;
    let flags = format!("-u -p {port} -l {block} -w {UDP_BUFFER}");
    Job::new(
        context,
        command_line(&format!("iperf -s {flags}")),
        command_line(&format!("iperf -c 127.0.0.1 {flags} -b 1000g -t {seconds} -f k")),
        arrived,
    )
}

/// The receiver's rate and loss are in the line of numbers after `Server Report:`.
fn arrived(ended: &Ended, _: &str) -> Result<Reading> {
    let (_, report) = ended.stdout.split_once("Server Report:").context("iperf printed no server report")?;
    let line = report.lines().find(|line| line.contains("Kbits/sec")).context("iperf's server report has no rate")?;
    let before = |mark: &str| line.split_once(mark)?.0.split_ascii_whitespace().next_back()?.parse::<f64>().ok();
    let rate = before("Kbits/sec").context("iperf's server report has no rate")?;
    let lost = line.split_once("ms").and_then(|(_, rest)| {
        let (lost, rest) = rest.trim().split_once('/')?;
        let sent = rest.trim().split_ascii_whitespace().next()?;
        Some(100.0 * lost.trim().parse::<f64>().ok()? / sent.parse::<f64>().ok()?)
    });
    let mut reading = Reading::from(rate * 1e3);
    reading.also.extend(lost.map(|lost| ("lost_percent", lost)));
    Ok(reading)
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

    #[test]
    fn of_datagrams_the_servers_report_counts() {
        // iperf 2.1.8 -u -b 1000g -l 1472 -w 204800 -t 1 -f k, with another loss.
        let text = "[ ID] Interval       Transfer     Bandwidth\n\
                    [  1] 0.0000-1.0000 sec  343397 KBytes  2813079 Kbits/sec\n\
                    [  1] Sent 238886 datagrams\n[  1] Server Report:\n\
                    [ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n\
                    [  1] 0.0000-1.0000 sec  342132 KBytes  2802809 Kbits/sec   0.000 ms 50/200 (25%)\n";
        let reading = arrived(&Ended { stdout: text.into(), ..Ended::default() }, "").unwrap();
        assert_eq!((reading.value, reading.also["lost_percent"]), (2_802_809_000.0, 25.0));
        let unanswered = text.split("[  1] Server").next().unwrap();
        assert!(arrived(&Ended { stdout: unanswered.into(), ..Ended::default() }, "").is_err());
    }
}
