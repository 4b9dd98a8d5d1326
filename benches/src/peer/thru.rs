//! Ours.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Job, Peer, Place, Read, Reading, words};
use crate::process::Ended;
use crate::work::Task;

pub(super) const NAME: &str = "thru";

/// Measured, but with too few trials to claim an interval: it is asked for one trial, as each peer makes one.
const UNTRUSTED: i32 = 8;

/// `thru serve` and the subcommand for the task.
pub struct Thru;

impl Peer for Thru {
    fn name(&self) -> &'static str {
        NAME
    }

    fn programs(&self) -> &'static [&'static str] {
        &["thru"]
    }

    fn version(&self) -> Option<&'static str> {
        Some("--version")
    }

    fn job(&self, task: Task, place: &Place) -> Option<Job> {
        let Place { port, seconds, .. } = place;
        let (subcommand, read): (String, Read) = match task {
            Task::Stream { block } => {
                (format!("stream 127.0.0.1:{port} --block {block} --time {seconds}s --trials 1"), goodput)
            }
            Task::RoundTrip { bytes } => {
                (format!("rr 127.0.0.1:{port} --block {bytes} --time {seconds}s --trials 1"), round_trip)
            }
            Task::Uncopied { block } => {
                let flags = format!("--block {block} --engine auto");
                (format!("stream 127.0.0.1:{port} {flags} --time {seconds}s --trials 1"), goodput)
            }
            Task::Datagrams { block } => {
                let flags = format!("--udp --block {block} --engine gso");
                (format!("stream 127.0.0.1:{port} {flags} --time {seconds}s --trials 1"), goodput)
            }
            Task::SpinningRoundTrip { bytes, udp } => {
                let flags = format!("--block {bytes} --spin --transport {}", if udp { "udp" } else { "tcp" });
                (format!("rr 127.0.0.1:{port} {flags} --time {seconds}s --trials 1"), round_trip)
            }
            // As it comes: with the memory ceiling, and up to its own budget.
            Task::Curve { last } => (format!("curve 127.0.0.1:{port} --to {last}"), curve),
        };
        let program = place.thru.to_string_lossy().into_owned();
        let mut server = vec![program.clone()];
        server.extend(words(&format!("serve --listen 127.0.0.1:{port}")));
        let mut client = vec![program];
        client.extend(words(&subcommand));
        client.extend(words("--no-store --quiet --json"));
        client.push(place.file.to_string_lossy().into_owned());
        Some(Job { server, client, also_code: Some(UNTRUSTED), read })
    }
}

fn goodput(_: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let rate = document.pointer("/outcomes/0/summary/goodput_bps").and_then(Value::as_f64);
    let mut reading = Reading::from(rate.context("no goodput in thru's document")?);
    let figure = |name: &str| document.pointer(&format!("/outcomes/0/summary/{name}")).and_then(Value::as_f64);
    if let (Some(lost), Some(rate)) = (figure("packets_lost"), figure("packets_per_s")) {
        let seconds = figure("duration_ns").unwrap_or(0.0) / 1e9;
        reading.also.insert("lost_percent", 100.0 * lost / (lost + rate * seconds).max(1.0));
    }
    Ok(reading)
}

/// The mean, as the peers give it; the median is kept beside it.
fn round_trip(_: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let figure = |name: &str| document.pointer(&format!("/outcomes/0/summary/{name}")).and_then(Value::as_f64);
    let rate = figure("transactions_per_s").filter(|rate| *rate > 0.0).context("no rate in thru's document")?;
    let mut reading = Reading::from(1e9 / rate);
    reading.also.extend(figure("rtt_p50_ns").map(|median| ("rtt_p50_ns", median)));
    Ok(reading)
}

/// How long it took, and how many sizes were sure to the target by then.
fn curve(ended: &Ended, result: &str) -> Result<Reading> {
    let document: Value = serde_json::from_str(result)?;
    let outcomes = document.pointer("/outcomes").and_then(Value::as_array).context("no outcomes in thru's document")?;
    let points: Vec<&Value> =
        outcomes.iter().filter(|outcome| outcome.pointer("/spec/transport") == Some(&Value::from("tcp"))).collect();
    let missed = |outcome: &&&Value| {
        let verdicts = outcome.pointer("/summary/verdicts").and_then(Value::as_array);
        verdicts.is_some_and(|list| list.iter().any(|verdict| verdict == "target-missed"))
    };
    let mut reading = Reading::from(ended.elapsed_ns as f64);
    reading.also.insert("points", points.len() as f64);
    reading.also.insert("points_at_target", (points.len() - points.iter().filter(missed).count()) as f64);
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_taken_from_the_first_outcome() {
        let text =
            r#"{"outcomes":[{"summary":{"goodput_bps":5e9,"transactions_per_s":20000.0,"rtt_p50_ns":49000.0}}]}"#;
        assert_eq!(goodput(&Ended::default(), text).unwrap().value, 5e9);
        let reading = round_trip(&Ended::default(), text).unwrap();
        assert_eq!((reading.value, reading.also["rtt_p50_ns"]), (50_000.0, 49_000.0));
        assert!(goodput(&Ended::default(), r#"{"outcomes":[]}"#).is_err());
    }

    #[test]
    fn a_curve_says_how_many_of_its_points_are_sure() {
        let text = r#"{"outcomes":[{"spec":{"transport":"tcp"},"summary":{"verdicts":["one-host"]}},
            {"spec":{"transport":"tcp"},"summary":{"verdicts":["target-missed"]}},
            {"spec":{"transport":"memcpy"},"summary":{"verdicts":[]}}]}"#;
        let ended = Ended { elapsed_ns: 17, ..Ended::default() };
        let reading = curve(&ended, text).unwrap();
        assert_eq!((reading.value, reading.also["points"], reading.also["points_at_target"]), (17.0, 2.0, 1.0));
    }
}
