//! xfr, from crates.io. It sends over TCP as much at a time as it likes.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Job, JobContext, Peer, Reading, command_line};
use crate::process::Ended;
use crate::work::{Batch, Task, UDP_BUFFER};

/// `xfr serve` and `xfr`.
pub struct Xfr;

impl Peer for Xfr {
    fn name(&self) -> &'static str {
        "xfr"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["xfr"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, context: &JobContext) -> Option<Job> {
        let flags = match task {
            // Without options it sends by sendfile, and random bytes.
            Task::Stream { block: 131_072 } => "--no-zerocopy --zeros".to_owned(),
            Task::Uncopied { .. } => "-Z".to_owned(),
            Task::Datagrams { block, by } if by != Batch::Segmented => {
                format!("-u -b 0 -l {block} -w {UDP_BUFFER} --zeros")
            }
            Task::Paced { rate, segmented: false } => format!("-u -b {rate} -l 1472 -w {UDP_BUFFER} --zeros"),
            _ => return None,
        };
        let JobContext { port, seconds, .. } = context;
        Some(Job::new(
            context,
            command_line(&format!("xfr --no-update-check serve -p {port} -B 127.0.0.1")),
            command_line(&format!("xfr --no-update-check 127.0.0.1 -p {port} -t {seconds} {flags} --json")),
            read,
        ))
    }
}

/// Its rate is the server's count, in decimal Mbit/s.
fn read(ended: &Ended, _: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(&ended.stdout).context("xfr printed no document")?;
    let rate = document.pointer("/throughput_mbps").and_then(Value::as_f64).context("no rate in xfr's document")?;
    let mut reading = Reading::from(rate * 1e6);
    let lost = document.pointer("/udp_stats/lost_percent").and_then(Value::as_f64);
    reading.also.extend(lost.map(|lost| ("lost_percent", lost)));
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_the_document_counts() {
        // xfr 0.14.0 -t 1 --json, without its streams.
        let text =
            r#"{"id":"0","bytes_total":2651324045,"duration_ms":1000,"throughput_mbps":21210.59236,"streams":[]}"#;
        let said = Ended { stdout: text.into(), ..Ended::default() };
        assert!((read(&said, "").unwrap().value - 21_210_592_360.0).abs() < 1.0);
        assert!(read(&Ended { stdout: "Connection refused".into(), ..Ended::default() }, "").is_err());
    }
}
