//! The report of rapid (2003), in the form of the published one: a section for each process, then totals.
//!
//! rapid has a stream for each process; here each connection has a section, with its own bytes and, where they were recorded, its own
//! times; otherwise those of the whole end. Start and stop are those of the receiver: the start of its pass and the set-up by the wall
//! clock, then from its first to its last arrival. Megabits are 10^6 bit. rapid's spelling is kept.

use std::fmt::Write as _;

use model::{EndTally, RunKind, Spec, TransportName, Trial};

use super::quantity::{rate, seconds};
use super::test::{Test, ends};
use super::{RAPID, each_test};
use crate::{NoForm, Piece, ReportError, View};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    each_test(view, &RAPID, "\n", text)
}

/// Accepts TCP in one direction.
pub(super) fn takes(kind: RunKind, spec: &Spec) -> Result<(), NoForm> {
    super::one_way(kind, spec)?;
    if spec.transport == TransportName::Udp { Err(NoForm::Transport(TransportName::Udp)) } else { Ok(()) }
}

fn text(test: &Test<'_>) -> Result<String, NoForm> {
    // Refuses rates without counts.
    test.directions()?;
    Ok(test.trials.iter().map(|trial| report(test, trial)).collect::<Vec<_>>().join("\n"))
}

fn report(test: &Test<'_>, trial: &Trial) -> String {
    let (_, receiver) = ends(trial, test.outbound_flags() == [true]);
    let began_unix_ns = test.started_unix_ns(trial);
    let processes = processes(receiver);
    // The totals are those of the processes: from the earliest start to the latest stop.
    let ns = processes.iter().map(|(_, [_, to])| *to).max().unwrap_or(receiver.receiving_ns);
    let (start, stop) = (seconds(began_unix_ns), seconds(began_unix_ns + ns));
    let megabits = |bytes: u64, ns: u64| rate(bytes, ns) / 1e6;
    let mut text = String::new();
    for (process, (bytes, [from, to])) in processes.into_iter().enumerate() {
        let (start, stop, ns) = (seconds(began_unix_ns + from), seconds(began_unix_ns + to), to - from);
        let _ = write!(
            text,
            "statistics for process: {process}\n-------------------------\namount transferred: {bytes}.0 bytes\n\
             start time: {start:.3}\nstop time: {stop:.3}\ntotal time: {:.3} secounds\n\
             throughput: {:.3} megabits/sec\n\n",
            seconds(ns),
            megabits(bytes, ns),
        );
    }
    let bytes = receiver.bytes_received;
    let _ = write!(
        text,
        "totals:\n=======\ntotal amount transferred: {bytes}.0 bytes\n\
         the earliest start time of any child: {start:.3}\nthe latest stop time of any child: {stop:.3}\n\
         total elapsed time: {:.3} seconds\ntotal throughput: {:.3} megabits/sec\n\nDone!\n",
        seconds(ns),
        megabits(bytes, ns),
    );
    text
}

/// The bytes of each connection, and its first and last arrival after the first one of the end, ns.
fn processes(receiver: &EndTally) -> Vec<(u64, [u64; 2])> {
    let whole = [0, receiver.receiving_ns];
    let flows: Vec<_> = receiver.flows.iter().filter(|flow| flow.bytes_received > 0).collect();
    if flows.iter().map(|flow| flow.bytes_received).sum::<u64>() != receiver.bytes_received {
        return vec![(receiver.bytes_received, whole)];
    }
    let first = flows.iter().filter_map(|flow| flow.receiving_ns).map(|[from, _]| from).min().unwrap_or(0);
    let own = |times: Option<[u64; 2]>| times.map_or(whole, |times| times.map(|ns| ns - first));
    flows.iter().map(|flow| (flow.bytes_received, own(flow.receiving_ns))).collect()
}

#[cfg(test)]
mod tests {
    use model::{Pattern, RunKind};

    use crate::formats::peers::round_trip::rendered;
    use crate::sample;

    /// The published report without the blank lines of its page.
    const PUBLISHED: &str = "statistics for process: 0
-------------------------
amount transferred: 16388608000.0 bytes
start time: 1046671178.446
stop time: 1046671238.437
total time: 59.991 secounds
throughput: 2185.476 megabits/sec

totals:
=======
total amount transferred: 16388608000.0 bytes
the earliest start time of any child: 1046671178.446
the latest stop time of any child: 1046671238.437
total elapsed time: 59.991 seconds
total throughput: 2185.476 megabits/sec

Done!
";

    #[test]
    fn the_published_transfer_gives_the_published_report() {
        let mut run = sample::stream();
        run.header.kind = RunKind::Transfer;
        run.outcomes[0].trials.truncate(1);
        run.outcomes[0].spec.pattern = Pattern::Transfer;
        run.passes.clear();
        run.header.started_unix_ns = 1_046_671_178_446_000_000;
        let far = &mut run.outcomes[0].trials[0].far;
        (far.bytes_received, far.receiving_ns) = (16_388_608_000, 59_991_000_000);
        assert_eq!(rendered("rapid", &run), PUBLISHED);
        // One section per connection, with the same start and stop.
        far_flows(&mut run, &[16_000_000_000, 388_608_000]);
        let text = rendered("rapid", &run);
        assert!(
            text.contains("statistics for process: 1\n") && text.contains("amount transferred: 388608000.0 bytes\n")
        );
        assert!(text.ends_with(PUBLISHED.split_once("\n\n").unwrap().1), "{text}");
        // With times of their own each has them, and its own rate.
        let flows = &mut run.outcomes[0].trials[0].far.flows;
        flows[0].receiving_ns = Some([500_000_000, 60_491_000_000]);
        flows[1].receiving_ns = Some([1_500_000_000, 11_500_000_000]);
        let text = rendered("rapid", &run);
        let second = text.split("process: 1\n").nth(1).unwrap();
        assert!(second.contains("start time: 1046671179.446\nstop time: 1046671189.446\n"), "{text}");
        assert!(second.contains("total time: 10.000 secounds\nthroughput: 310.886 megabits/sec\n"), "{text}");
        assert!(text.contains("start time: 1046671178.446\nstop time: 1046671238.437\n"), "{text}");
        // The totals end with the last of them.
        run.outcomes[0].trials[0].far.flows[1].receiving_ns = Some([1_500_000_000, 62_500_000_000]);
        let text = rendered("rapid", &run);
        let totals = "the latest stop time of any child: 1046671240.446\ntotal elapsed time: 62.000 seconds\n\
                      total throughput: 2114.659 megabits/sec\n";
        assert!(text.contains(totals), "{text}");
    }

    fn far_flows(run: &mut model::Run, bytes: &[u64]) {
        let flows =
            bytes.iter().map(|bytes| model::FlowTally { bytes_received: *bytes, ..model::FlowTally::default() });
        run.outcomes[0].trials[0].far.flows = flows.collect();
    }
}
