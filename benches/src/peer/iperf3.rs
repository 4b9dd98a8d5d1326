//! iperf3, without options that change what it measures.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Job, Peer, Place, Reading, words};
use crate::process::Ended;
use crate::work::Task;

/// `iperf3 -s` and `iperf3 -c`.
pub struct Iperf3;

/// Bytes that it sends at a time over TCP when it is not told otherwise.
const OWN_BLOCK: u64 = 128 << 10;

impl Peer for Iperf3 {
    fn name(&self) -> &'static str {
        "iperf3"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["iperf3"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, place: &Place) -> Option<Job> {
        let Task::Stream { block } = task else { return None };
        let Place { port, seconds, .. } = place;
        let length = if block == OWN_BLOCK { String::new() } else { format!(" -l {block}") };
        Some(Job {
            server: words(&format!("iperf3 -s -p {port}")),
            client: words(&format!("iperf3 -c 127.0.0.1 -p {port} -t {seconds} -J{length}")),
            also_code: None,
            read,
        })
    }
}

fn read(ended: &Ended, _: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(&ended.stdout).context("iperf3 printed no document")?;
    let rate = document.pointer("/end/sum_received/bits_per_second").and_then(Value::as_f64);
    rate.map(Reading::from).context("no received rate in iperf3's document")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_received_rate_counts() {
        let said = |text: &str| Ended { stdout: text.into(), ..Ended::default() };
        let text = r#"{"end":{"sum_sent":{"bits_per_second":2e9},"sum_received":{"bits_per_second":1e9}}}"#;
        assert_eq!(read(&said(text), "").unwrap().value, 1e9);
        assert!(read(&said(r#"{"error":"unable to connect"}"#), "").is_err());
    }
}
