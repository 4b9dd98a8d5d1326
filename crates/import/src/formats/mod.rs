//! The registry of formats: one file and one line each.

mod ethtool;
mod flent;
mod fping;
mod ifconfig;
mod interface_list;
mod ip_link;
mod iperf;
mod iperf2;
mod iperf2_csv;
mod iperf3_json;
mod iperf3_text;
mod lshw;
mod matrix;
mod mtr;
mod netperf;
mod netpipe;
mod netstat;
mod nstat;
mod nttcp;
mod nuttcp;
mod ping;
mod qperf;
mod rapid;
mod repetitions;
mod sar;
mod sockperf;
mod ss;
mod sysctl;
mod throughline;
mod traceroute;
mod typeperf;
mod vmstat;

use crate::listing::{Certainty, TextReading};

/// A format of results.
#[derive(Debug, Clone, Copy)]
pub struct ImportFormat {
    /// Its name, as `--format` takes it.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// How certain it is that a text is in this format.
    pub detect: fn(&str) -> Certainty,
    /// Reads the listings in a text and skips the rest.
    pub read: fn(&str) -> TextReading,
}

/// All formats, in the order of detection.
pub const FORMATS: &[ImportFormat] = &[
    throughline::FORMAT,
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
    fping::FORMAT,
    traceroute::FORMAT,
    mtr::FORMAT,
    sysctl::FORMAT,
    vmstat::FORMAT,
    sar::FORMAT,
    typeperf::FORMAT,
    nstat::FORMAT,
    ss::FORMAT,
    lshw::FORMAT,
    ifconfig::FORMAT,
    netstat::FORMAT,
    ethtool::FORMAT,
    ip_link::FORMAT,
    matrix::FORMAT,
];

/// A format by its name.
#[must_use]
pub fn format(name: &str) -> Option<&'static ImportFormat> {
    FORMATS.iter().find(|format| format.name == name)
}
