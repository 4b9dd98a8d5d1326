//! Reports on a lab's links during a measurement on one of its hosts.

use model::{LabReport, Verdict};

use super::ActiveRun;

impl<E, R> ActiveRun<'_, E, R> {
    /// Starts the period that [`Self::read_links`] reports: warm-ups and probes before it are not included.
    pub(super) fn begin_links(&mut self) {
        self.links = None;
        // A holder that does not answer now has no report later, which is detected then.
        let _ = self.lab.as_mut().map(lab::Holder::begin);
    }

    /// The report on the lab's links since [`Self::begin_links`]. Trials that are recorded from now on get its verdict.
    pub(super) fn read_links(&mut self) -> Option<LabReport> {
        let report = self.lab.as_mut()?.report().ok();
        self.links = verdict(report.as_ref());
        report
    }
}

/// The verdict of a lab's report on its trials. A lab without a report is not assumed to have been on time.
fn verdict(report: Option<&LabReport>) -> Option<Verdict> {
    match report {
        None => Some(Verdict::EmulatorUnreported),
        Some(report) => analysis::emulator_late(report).then_some(Verdict::EmulatorLate),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use model::{
        Cell, EmulatedDirection, EndResult, EndTally, Event, EventSink, Pass, Pattern, RunHeader, SinkError, Spec,
    };
    use schedule::{RunState, ScheduleKind};

    use super::*;

    /// The verdicts of trials and the lab of their reports, in order.
    #[derive(Default)]
    struct Recorded {
        trials: Vec<Vec<Verdict>>,
        labs: Vec<Option<String>>,
    }

    impl EventSink for Recorded {
        fn event(&mut self, event: &Event) -> Result<(), SinkError> {
            match event {
                Event::Trial(trial) => self.trials.push(trial.verdicts.clone()),
                Event::Pass(pass) => self.labs.push(pass.lab.as_ref().map(|report| report.lab.clone())),
                _ => {}
            }
            Ok(())
        }
    }

    /// A run of two simultaneous cells with one lab report; the second cell has one end only if `single_ended`.
    fn record(socket: Option<&Path>, single_ended: bool) -> Recorded {
        let cells = vec![Cell::new(0, Spec::new("tcp", Pattern::Rr)), Cell::new(1, Spec::new("tcp", Pattern::Rr))];
        let header = RunHeader { cells, ..RunHeader::default() };
        let mut recorded = Recorded::default();
        let (_cancel, cancel) = tokio::sync::watch::channel(false);
        let mut pair = ();
        let state = RunState::new(&header, ScheduleKind::Plan);
        let mut run = ActiveRun::new(&mut pair, &header, state, &mut recorded, cancel);
        run.lab = socket.map(lab::Holder::at);
        run.begin_links();
        let lab = run.read_links();
        for (index, single_ended) in [(0, false), (1, single_ended)] {
            let pass = Pass { index, lab: lab.clone(), ..Pass::default() };
            let end = || EndResult { tallies: vec![EndTally::default()], ..EndResult::default() };
            let links = run.links;
            let far = (!single_ended).then(end);
            run.run.record(pass, end(), far, &[(Some(index), 0)], links);
        }
        run.send_events().unwrap();
        recorded
    }

    #[test]
    fn one_report_covers_all_simultaneous_tests() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let late =
            EmulatedDirection { late_packets: 500, late_p99_ns: Some(2_000_000), ..EmulatedDirection::default() };
        let recorded = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut connection = BufReader::new(listener.accept().unwrap().0);
                for (name, directions) in [("before", vec![]), ("during", vec![late])] {
                    connection.read_line(&mut String::new()).unwrap();
                    let report = LabReport { lab: name.into(), directions, ..LabReport::default() };
                    let line = serde_json::to_string(&report).unwrap() + "\n";
                    connection.get_ref().write_all(line.as_bytes()).unwrap();
                }
            });
            record(Some(&socket), false)
        });
        assert_eq!(recorded.labs, [Some("during".to_owned()), Some("during".to_owned())]);
        let is_late = |verdicts: &Vec<Verdict>| verdicts.contains(&Verdict::EmulatorLate);
        assert!(recorded.trials.iter().all(is_late), "{:?}", recorded.trials);
        assert_eq!(recorded.trials.len(), 2);
    }

    #[test]
    fn a_missing_report_is_a_verdict_in_a_lab_only_and_on_links_only() {
        let unreported = |recorded: &Recorded| -> Vec<bool> {
            recorded.trials.iter().map(|verdicts| verdicts.contains(&Verdict::EmulatorUnreported)).collect()
        };
        let directory = tempfile::tempdir().unwrap();
        let nobody = directory.path().join("sock");
        assert_eq!(unreported(&record(Some(&nobody), false)), [true, true]);
        assert_eq!(unreported(&record(Some(&nobody), true)), [true, false]);
        assert_eq!(unreported(&record(None, false)), [false, false]);
    }

    #[test]
    fn a_lab_without_a_report_is_not_assumed_on_time() {
        assert_eq!(verdict(None), Some(Verdict::EmulatorUnreported));
        let direction =
            EmulatedDirection { late_packets: 500, late_p99_ns: Some(20_000), ..EmulatedDirection::default() };
        let mut report = LabReport { directions: vec![direction], ..LabReport::default() };
        assert_eq!(verdict(Some(&report)), None);
        report.directions[0].late_p99_ns = Some(2_000_000);
        assert_eq!(verdict(Some(&report)), Some(Verdict::EmulatorLate));
    }
}
