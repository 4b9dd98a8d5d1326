//! The formats: a file each, and its line here.

mod flent;
mod iperf;
mod iperf2;
mod iperf2_csv;
mod iperf3_json;
mod iperf3_text;
mod matrix;
mod netperf;
mod netpipe;
mod nttcp;
mod nuttcp;
mod ping;
mod qperf;
mod rapid;
mod sockperf;
mod sysctl;
mod traceroute;
mod vmstat;

use crate::listing::{Confidence, Reading};

/// A format that results are read from.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Its name, as `--format` takes it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub help: &'static str,
    /// How sure it is that a text is its own.
    pub detect: fn(&str) -> Confidence,
    /// Reads what it knows in a text and passes over the rest.
    pub read: fn(&str) -> Reading,
}

/// All formats, in the order in which they are asked.
pub const FORMATS: &[Format] = &[
    iperf3_json::FORMAT,
    iperf3_text::FORMAT,
    iperf2::FORMAT,
    iperf2_csv::FORMAT,
    flent::FORMAT,
    netpipe::FORMAT,
    netperf::FORMAT,
    nttcp::FORMAT,
    nuttcp::FORMAT,
    qperf::FORMAT,
    sockperf::FORMAT,
    rapid::FORMAT,
    ping::FORMAT,
    traceroute::FORMAT,
    sysctl::FORMAT,
    vmstat::FORMAT,
    matrix::FORMAT,
];

/// A format by its name.
#[must_use]
pub fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
