//! NetPIPE's TCP module. It decides by itself how often to repeat, and reports the best of three.

use anyhow::{Context, Result};

use super::{Job, Peer, Place, Read, Reading, words};
use crate::process::Ended;
use crate::work::Task;

/// `NPtcp` as receiver and as transmitter.
pub struct Netpipe;

impl Peer for Netpipe {
    fn name(&self) -> &'static str {
        "NPtcp"
    }

    fn programs(&self) -> &'static [&'static str] {
        &["NPtcp"]
    }

    fn version(&self) -> Option<&'static str> {
        None
    }

    fn job(&self, task: Task, place: &Place) -> Option<Job> {
        let (flags, read): (String, Read) = match task {
            Task::Stream { block } => (format!("-s -p 0 -l {block} -u {block}"), rate),
            Task::RoundTrip { bytes } => (format!("-p 0 -l {bytes} -u {bytes}"), round_trip),
            Task::Curve { last } => (format!("-u {last}"), duration),
            _ => return None,
        };
        let both = format!("NPtcp -P {} {flags}", place.port);
        let mut client = words(&format!("{both} -h 127.0.0.1 -o"));
        client.push(place.file.to_string_lossy().into_owned());
        Some(Job { server: words(&both), client, also_code: None, read })
    }
}

/// The columns of the first line of np.out: bytes, its "Mbps" and half the round trip in seconds.
fn line(result: &str) -> Result<[f64; 3]> {
    let columns: Vec<f64> = result
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    columns.try_into().ok().context("NPtcp wrote no line of three columns")
}

/// Its Mbps are 2^20 bit/s.
fn rate(_: &Ended, result: &str) -> Result<Reading> {
    let [_, mbps, _] = line(result)?;
    Ok((mbps * 1_048_576.0).into())
}

/// The best of three means, where other tools give one mean.
fn round_trip(_: &Ended, result: &str) -> Result<Reading> {
    let [_, _, half] = line(result)?;
    Ok((half * 2e9).into())
}

fn duration(ended: &Ended, result: &str) -> Result<Reading> {
    line(result)?;
    let mut reading = Reading::from(ended.elapsed_ns as f64);
    reading.also.insert("points", result.lines().count() as f64);
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUT: &str = "  131072 20000.000000   0.00005000\n  131075 19000.000000   0.00005300\n";

    #[test]
    fn its_own_units_become_ours() {
        let ended = Ended { elapsed_ns: 9, ..Ended::default() };
        assert!((rate(&ended, OUT).unwrap().value - 20_971_520_000.0).abs() < 1.0);
        assert!((round_trip(&ended, OUT).unwrap().value - 100_000.0).abs() < 1e-6);
        let curve = duration(&ended, OUT).unwrap();
        assert_eq!((curve.value, curve.also["points"]), (9.0, 2.0));
        assert!(rate(&ended, "").is_err() && duration(&ended, "").is_err());
    }
}
