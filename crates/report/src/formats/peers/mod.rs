//! Results in the output formats of other programs, for the scripts that read them.
//!
//! These programs measure once; an outcome has several trials. [`Test`] joins the trials end to end, without the time between them.
//! What was not measured is printed as the program prints a missing value.

mod iperf3;
mod iperf3_json;
mod netperf;
mod netperf_keys;
mod nttcp;
mod quantity;
mod rapid;
mod series;
mod test;

use model::{Direction, Outcome, Run, RunKind, Spec, TransportName};

use super::Format;
use crate::view::{Piece, stem};
use crate::{NoForm, ReportError, View};
use test::Test;

pub(super) const IPERF3: Format = Format {
    name: "iperf3",
    extensions: &["iperf3"],
    is_page: false,
    options: &[],
    help: "iperf3's text output (streams and transfers of tcp and udp)",
    program: Some("iperf3"),
    takes: bulk,
    render: iperf3::render,
};
pub(super) const IPERF3_JSON: Format = Format {
    name: "iperf3-json",
    extensions: &["iperf3-json"],
    is_page: false,
    options: &[],
    help: "iperf3's JSON, a document for each outcome",
    program: Some("iperf3"),
    takes: bulk,
    render: iperf3_json::render,
};
pub(super) const NETPERF: Format = Format {
    name: "netperf",
    extensions: &["netperf"],
    is_page: false,
    options: &[],
    help: "netperf's tables: TCP_STREAM, TCP_MAERTS, UDP_STREAM, TCP_RR, TCP_CRR, UDP_RR",
    program: Some("netperf"),
    takes: netperf::takes,
    render: netperf::render,
};
pub(super) const NETPERF_KEYS: Format = Format {
    name: "netperf-k",
    extensions: &["netperf-k"],
    is_page: false,
    options: &[],
    help: "netperf's KEY=VALUE lines (its test option -k), with interim results",
    program: Some("netperf"),
    takes: netperf::takes,
    render: netperf_keys::render,
};
pub(super) const NTTCP: Format = Format {
    name: "nttcp",
    extensions: &["nttcp"],
    is_page: false,
    options: &[],
    help: "nttcp 1.47's lines of both ends, a table for each trial",
    program: Some("nttcp"),
    takes: one_way,
    render: nttcp::render,
};
pub(super) const RAPID: Format = Format {
    name: "rapid",
    extensions: &["rapid"],
    is_page: false,
    options: &[],
    help: "rapid's report of a transfer, for each trial",
    program: Some("rapid"),
    takes: rapid::takes,
    render: rapid::render,
};

/// Accepts streams and transfers in one or both directions, over tcp or udp.
fn bulk(_: RunKind, spec: &Spec) -> Result<(), NoForm> {
    match spec.pattern {
        pattern if !pattern.is_bulk() => Err(NoForm::Pattern(pattern)),
        _ if is_tcp_or_udp(spec) => Ok(()),
        _ => Err(NoForm::Transport(spec.transport.clone())),
    }
}

/// Whether other programs know a spec's transport.
fn is_tcp_or_udp(spec: &Spec) -> bool {
    matches!(spec.transport, TransportName::Tcp | TransportName::Mptcp | TransportName::Udp)
}

/// The same in one direction at a time.
fn one_way(kind: RunKind, spec: &Spec) -> Result<(), NoForm> {
    bulk(kind, spec)?;
    if spec.direction == Direction::Both { Err(NoForm::BothDirections) } else { Ok(()) }
}

/// The outcomes of a run without a curve's memory ceiling.
fn outcomes(run: &Run) -> impl Iterator<Item = &Outcome> {
    let measured = run.outcomes.iter().any(|outcome| outcome.spec.transport != Spec::CEILING);
    run.outcomes.iter().filter(move |outcome| !(measured && outcome.spec.transport == Spec::CEILING))
}

/// One piece with a text for each outcome of each run; refuses a run that the format cannot express.
fn each_test(
    view: &View<'_>,
    format: &Format,
    between: &str,
    mut text: impl FnMut(&Test<'_>) -> Result<String, NoForm>,
) -> Result<Vec<Piece>, ReportError> {
    view.some_run(format.name)?;
    let mut texts = Vec::new();
    for run in view.runs {
        let refuse = |what| ReportError::NoForm { format: format.name, run: run.header.id.clone(), what };
        for outcome in outcomes(run) {
            (format.takes)(run.header.kind, &outcome.spec).map_err(refuse)?;
            if let Some(test) = Test::of(run, outcome) {
                texts.push(text(&test).map_err(refuse)?);
            }
        }
    }
    if texts.is_empty() {
        return Err(ReportError::NothingToDraw { format: format.name });
    }
    Ok(vec![Piece::new(stem(view.runs), format.extensions[0], texts.join(between).into_bytes())])
}

#[cfg(test)]
mod printed;
#[cfg(test)]
mod round_trip;
