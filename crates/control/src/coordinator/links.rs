//! What the links of a lab did while something was measured on one of its hosts.

use model::{LabReport, Pass, Verdict};

use super::Conduct;

impl<E> Conduct<'_, E> {
    /// Begins the time that [`Self::hear_links`] tells of: what is sent before, such as warm-ups and probes, is no part of it.
    pub(super) fn watch_links(&mut self) {
        self.links = None;
        // A holder that does not answer now has no report afterwards, which is noticed then.
        let _ = self.lab.as_mut().map(lab::Holder::begin);
    }

    /// What the lab's links did since [`Self::watch_links`]; the trials that are recorded from now on are judged by it.
    pub(super) fn hear_links(&mut self) -> Option<LabReport> {
        let report = self.lab.as_mut()?.report().ok();
        self.links = judged(report.as_ref());
        report
    }

    /// The next pass of the run, which began `begun_ns` after it and has just ended.
    pub(super) fn ended_pass(&mut self, begun_ns: u64) -> Pass {
        let (index, duration_ns) = (self.passes, self.elapsed_ns().saturating_sub(begun_ns));
        self.passes += 1;
        Pass { index, started_ns: begun_ns, duration_ns, lab: self.hear_links(), ..Pass::default() }
    }
}

/// What to hold against trials by what their lab told; a lab that told nothing is no lab that was on time.
fn judged(report: Option<&LabReport>) -> Option<Verdict> {
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

    use model::{Cell, EmulatedDirection, EndTally, Event, EventSink, RunHeader, SinkError, Spec};

    use super::*;
    use crate::coordinator::Taking;
    use crate::proto::message::Done;

    /// The verdicts of trials, and what their lab told, as they come.
    #[derive(Default)]
    struct Heard {
        trials: Vec<Vec<Verdict>>,
        labs: Vec<Option<String>>,
    }

    impl EventSink for Heard {
        fn event(&mut self, event: &Event) -> Result<(), SinkError> {
            match event {
                Event::Trial(trial) => self.trials.push(trial.verdicts.clone()),
                Event::Pass(pass) => self.labs.push(pass.lab.as_ref().map(|report| report.lab.clone())),
                _ => {}
            }
            Ok(())
        }
    }

    /// A run of two cells in one time that their lab is asked about, the second one's over one end only where `single_ended`.
    fn heard(socket: Option<&Path>, single_ended: bool) -> Heard {
        let cells = vec![Cell::new(0, Spec::new("tcp", "rr")), Cell::new(1, Spec::new("tcp", "rr"))];
        let header = RunHeader { cells, ..RunHeader::default() };
        let mut heard = Heard::default();
        let (_cancel, cancel) = tokio::sync::watch::channel(false);
        let mut pair = ();
        let mut bench = Conduct::new(&mut pair, &header, Taking::Plan, &mut heard, cancel);
        bench.lab = socket.map(lab::Holder::at);
        bench.watch_links();
        let pass = bench.ended_pass(0);
        let done = || Done { tallies: vec![EndTally::default()], ..Done::default() };
        bench.record(pass.clone(), done(), done(), &[(Some(0), 0)], false).unwrap();
        let second = Pass { index: 1, ..pass };
        bench.record(second, done(), done(), &[(Some(1), 0)], single_ended).unwrap();
        heard
    }

    #[test]
    fn one_report_judges_all_that_was_measured_at_the_same_time() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let late =
            EmulatedDirection { late_packets: 500, late_p99_ns: Some(2_000_000), ..EmulatedDirection::default() };
        let heard = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut connection = BufReader::new(listener.accept().unwrap().0);
                for (name, directions) in [("before", vec![]), ("meanwhile", vec![late])] {
                    connection.read_line(&mut String::new()).unwrap();
                    let report = LabReport { lab: name.into(), directions, ..LabReport::default() };
                    let line = serde_json::to_string(&report).unwrap() + "\n";
                    connection.get_ref().write_all(line.as_bytes()).unwrap();
                }
            });
            heard(Some(&socket), false)
        });
        assert_eq!(heard.labs, [Some("meanwhile".to_owned()), Some("meanwhile".to_owned())]);
        assert!(heard.trials.iter().all(|verdicts| verdicts.contains(&Verdict::EmulatorLate)), "{:?}", heard.trials);
        assert_eq!(heard.trials.len(), 2);
    }

    #[test]
    fn silence_is_a_verdict_in_a_lab_only_and_on_links_only() {
        let unreported = |heard: &Heard| -> Vec<bool> {
            heard.trials.iter().map(|verdicts| verdicts.contains(&Verdict::EmulatorUnreported)).collect()
        };
        let directory = tempfile::tempdir().unwrap();
        let nobody = directory.path().join("sock");
        assert_eq!(unreported(&heard(Some(&nobody), false)), [true, true]);
        assert_eq!(unreported(&heard(Some(&nobody), true)), [true, false]);
        assert_eq!(unreported(&heard(None, false)), [false, false]);
    }

    #[test]
    fn a_silent_lab_is_not_taken_for_one_on_time() {
        assert_eq!(judged(None), Some(Verdict::EmulatorUnreported));
        let direction =
            EmulatedDirection { late_packets: 500, late_p99_ns: Some(20_000), ..EmulatedDirection::default() };
        let mut report = LabReport { directions: vec![direction], ..LabReport::default() };
        assert_eq!(judged(Some(&report)), None);
        report.directions[0].late_p99_ns = Some(2_000_000);
        assert_eq!(judged(Some(&report)), Some(Verdict::EmulatorLate));
    }
}
