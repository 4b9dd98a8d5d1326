//! Measurements within this host, by the one way of a run. They are neither shown nor stored.

use command::Failure;
use control::coordinator::{Schedule, Unfixed};
use model::{Event, EventSink, Run, SinkError, Stopping};
use options::TestOptions;
use plan::specs;
use protocol::coordinator::DialogueError;
use text::Text;

use crate::{Finished, Hosts, Request, Screen, ThisHost, Work};

/// One trial of `options` to the agent at `host`, or between two ends that need none.
///
/// # Errors
/// What keeps the run from beginning, or ended it before its time, which includes a signal.
pub(super) fn measure(options: &TestOptions, host: Option<&str>, exit: fn() -> !) -> Result<Run, Failure> {
    let request = request(options, host, exit)?;
    crate::check(&request)?;
    ended(crate::conduct(&request, &mut Silent)?)
}

fn request(options: &TestOptions, host: Option<&str>, exit: fn() -> !) -> Result<Request, Failure> {
    let kind = options.test.into();
    let work = Work::Measurement {
        specs: specs::of(options, &ThisHost)?,
        rule: Stopping { min_trials: 1, max_trials: 1, ..Stopping::default() },
        schedule: Schedule::Single(Unfixed::default()),
        login: None,
    };
    let hosts = Hosts { host: host.map(str::to_owned), no_path: true, ..Hosts::default() };
    Ok(Request { kind, name: None, hosts, expected: Vec::new(), unstored: true, store: None, exit, work })
}

/// The run, if it was not ended before its time.
fn ended(Finished { run, failure }: Finished) -> Result<Run, Failure> {
    match failure {
        Some(failure) => Err(failure),
        None if run.ending.as_ref().is_some_and(|ending| ending.how == "interrupted") => {
            Err(DialogueError::Interrupted.into())
        }
        None => Ok(run),
    }
}

/// Shows nothing.
struct Silent;

impl EventSink for Silent {
    fn event(&mut self, _: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}

impl Screen for Silent {
    fn status(&mut self, _: &Text) {}

    fn note(&mut self, _: &Text) {}
}

#[cfg(test)]
mod tests {
    use model::{ByteSize, Ending, Pattern, RunHeader};

    use super::*;
    use command::failure::INTERRUPTED;
    use options::TestKind;

    fn exit() -> ! {
        panic!("no signal came")
    }

    #[test]
    fn a_request_is_one_trial_that_is_not_stored() {
        let options = TestOptions { request: Some(ByteSize(7)), ..TestOptions::new(TestKind::Rr) };
        let request = request(&options, Some("127.0.0.1:9"), exit).unwrap_or_else(|failure| panic!("{failure}"));
        let Work::Measurement { specs, rule, .. } = &request.work else { panic!("a measurement") };
        assert_eq!((specs.len(), specs[0].pattern, specs[0].block), (1, Pattern::Rr, 7));
        assert_eq!((rule.min_trials, rule.max_trials, request.unstored), (1, 1, true));
        assert!(crate::check(&request).is_ok());
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let options = TestOptions { transport: Some("pigeon".into()), ..TestOptions::new(TestKind::Rr) };
        assert!(measure(&options, None, exit).is_err_and(|failure| failure.to_string().contains("pigeon")));
    }

    #[test]
    fn an_interrupted_run_is_a_failure() {
        let run = |how: &str| {
            let ending = Some(Ending { how: how.into(), ..Ending::default() });
            ended(Finished { run: Run { ending, ..Run::new(RunHeader::default()) }, failure: None })
        };
        assert!(run("complete").is_ok());
        assert_eq!(run("interrupted").map_err(|failure| failure.code()).err(), Some(INTERRUPTED));
    }
}
