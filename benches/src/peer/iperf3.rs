//! iperf3, without options that change what it measures.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Job, Peer, Place, Read, Reading, words};
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
        let Place { port, seconds, .. } = place;
        let length = |block| if block == OWN_BLOCK { String::new() } else { format!(" -l {block}") };
        let (flags, read): (String, Read) = match task {
            Task::Stream { block } => (length(block), received),
            Task::Uncopied { block } => (format!(" -Z{}", length(block)), received),
            Task::Datagrams { block } => (format!(" -u -b 0 -l {block}"), arrived),
            _ => return None,
        };
        Some(Job {
            server: words(&format!("iperf3 -s -p {port}")),
            client: words(&format!("iperf3 -c 127.0.0.1 -p {port} -t {seconds} -J{flags}")),
            also_code: None,
            read,
        })
    }
}

/// Over UDP it prints what was sent and the share that was lost.
fn arrived(ended: &Ended, _: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(&ended.stdout).context("iperf3 printed no document")?;
    let figure = |name: &str| document.pointer(&format!("/end/sum/{name}")).and_then(Value::as_f64);
    let (rate, lost) = figure("bits_per_second").zip(figure("lost_percent")).context("no sum in iperf3's document")?;
    let mut reading = Reading::from(rate * (1.0 - lost / 100.0));
    reading.also.insert("lost_percent", lost);
    Ok(reading)
}

fn received(ended: &Ended, _: &str) -> Result<Reading> {
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
        assert_eq!(received(&said(text), "").unwrap().value, 1e9);
        assert!(received(&said(r#"{"error":"unable to connect"}"#), "").is_err());
    }

    #[test]
    fn of_datagrams_the_lost_ones_do_not_count() {
        let text = r#"{"end":{"sum":{"bits_per_second":2e9,"lost_percent":25.0}}}"#;
        let reading = arrived(&Ended { stdout: text.into(), ..Ended::default() }, "").unwrap();
        assert_eq!((reading.value, reading.also["lost_percent"]), (1.5e9, 25.0));
    }
}
