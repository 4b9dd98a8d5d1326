//! sysstat's JSON: `mpstat -o JSON`, and what `sadf -j` makes of sar's files.
//!
//! The names of the figures are those of the columns without their sign or unit: `usr` is `%usr`, `rxpck` is `rxpck/s`.

use model::Inventory;
use serde_json::{Map, Value};

use super::{DAY_S, Listing, Of, ROUNDING_PERCENT, columns, series_name, timed};
use crate::error::{HostError, ImportError};
use crate::json::{Shape, documents, may_have_documents};
use crate::listing::TextReading;
use crate::text::MAX_NUMBER;

pub(super) fn is_json(text: &str) -> bool {
    may_have_documents(text) && text.contains("\"sysstat\"") && text.contains("\"statistics\"")
}

/// The documents of sadf and mpstat.
const SHAPE: Shape = Shape::of(|document| document["sysstat"]["hosts"].is_array());

/// Adds the hosts of all documents.
pub(super) fn read(text: &str, reading: &mut TextReading) {
    for (line, found) in documents(text, SHAPE) {
        match found {
            Ok(document) => {
                for host in document["sysstat"]["hosts"].as_array().into_iter().flatten() {
                    match listing(host) {
                        Ok(listing) => Listing { last_line: line, ..listing }.close(reading),
                        Err(reason) => reading.refuse(line, reason),
                    }
                }
            }
            Err(refused) => reading.refused.push(refused),
        }
    }
}

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| value.is_number().then(|| value.to_string()))
}

fn facts(host: &Value) -> Inventory {
    Inventory {
        kernel: word(&host["release"]),
        hostname: word(&host["nodename"]),
        arch: word(&host["machine"]),
        cores: word(&host["number-of-cpus"]).and_then(|count| count.parse().ok()),
        ..Inventory::default()
    }
}

/// The time of a reading: seconds of the day, and its interval if it is stated, as by sadf.
fn stamp(reading: &Value) -> Result<(u64, Option<u64>), HostError> {
    let stamp = &reading["timestamp"];
    let clock = stamp.as_str().or_else(|| stamp["time"].as_str()).and_then(timed);
    let (at, _) = clock.ok_or_else(|| HostError::Time(stamp.to_string()))?;
    Ok((at, stamp["interval"].as_u64()))
}

fn listing(host: &Value) -> Result<Listing, ImportError> {
    let readings = host["statistics"].as_array().map_or(&[][..], Vec::as_slice);
    let times = readings.iter().map(stamp).collect::<Result<Vec<_>, _>>()?;
    let first = times.first().ok_or(ImportError::Without { what: "a host", lacks: "statistics" })?;
    let since_first = |at: u64| (at + DAY_S - first.0) % DAY_S;
    // mpstat does not state the first interval: it is like the second.
    let interval = first.1.or_else(|| times.get(1).map(|(at, _)| since_first(*at))).unwrap_or(0);
    let mut listing = Listing { host: facts(host), averaged: true, ..Listing::default() };
    if interval == 0 {
        let means =
            "one reading of an unknown interval: mpstat without an interval prints means since the host started";
        listing.note = Some(means.to_owned());
    }
    let mut last = None;
    for (reading, (at, _)) in readings.iter().zip(&times) {
        let at = since_first(*at) + interval;
        if last.replace(at).is_some_and(|last| at <= last) {
            return Err(HostError::NotAfter(reading["timestamp"].to_string()).into());
        }
        for (name, value) in reading.as_object().into_iter().flatten() {
            listing.figures(at, name, value)?;
        }
    }
    Ok(listing)
}

impl Listing {
    /// Takes the figures `name` of a reading, which sadf may nest.
    fn figures(&mut self, at: u64, name: &str, value: &Value) -> Result<(), HostError> {
        let (of, key) = match name {
            "timestamp" => return Ok(()),
            "cpu-load" | "cpu-load-all" | "sum-interrupts" => (Of::Core, "cpu"),
            "net-dev" | "net-edev" => (Of::Device, "iface"),
            "net-tcp" | "net-etcp" | "net-udp" => (Of::Host, ""),
            "network" => {
                let mut parts = value.as_object().into_iter().flatten();
                return parts.try_for_each(|(name, value)| self.figures(at, name, value));
            }
            other => {
                self.unknown.insert(other.to_owned());
                return Ok(());
            }
        };
        let objects: Vec<&Map<String, Value>> = match value {
            Value::Array(all) => all.iter().filter_map(Value::as_object).collect(),
            Value::Object(one) => vec![one],
            _ => Vec::new(),
        };
        for object in objects {
            let which = object.get(key).and_then(word).unwrap_or_default();
            if of != Of::Host && which.is_empty() {
                return Err(HostError::NoName { figures: name.to_owned(), key });
            }
            self.object(at, of, &which, key, object)?;
        }
        Ok(())
    }

    fn object(
        &mut self,
        at: u64,
        of: Of,
        which: &str,
        key: &str,
        object: &Map<String, Value>,
    ) -> Result<(), HostError> {
        let (mut values, mut percent, mut idle) = (Vec::new(), 0.0, false);
        for (name, value) in object.iter().filter(|(name, _)| *name != key) {
            let heads = [format!("%{name}"), format!("{name}/s")];
            let column = columns(of).iter().find(|(head, ..)| heads.iter().any(|own| own == head));
            let Some((head, series, unit, factor)) = column else {
                self.unknown.insert(name.clone());
                continue;
            };
            let figure = value.as_f64().filter(|figure| (0.0..=MAX_NUMBER).contains(figure));
            let figure = figure.ok_or_else(|| HostError::Figure {
                name: name.clone(),
                which: which.to_owned(),
                value: value.to_string(),
            })?;
            (percent, idle) = (percent + figure, idle || *head == "%idle");
            values.push((series_name(of, which, series), *unit, figure * factor));
        }
        // A core that is offline has no shares.
        if of == Of::Core && idle && percent != 0.0 && (percent - 100.0).abs() > ROUNDING_PERCENT {
            return Err(HostError::Shares { core: Some(which.to_owned()), percent });
        }
        self.insert(at, values)
    }
}
