//! Checks of the tool against known values: links of known rate and delay between namespaces, the kernel's counters, ping, and
//! its own clock and loop.
//!
//! Over loopback it measures as every command does ([`within`]). On hosts of a lab it runs this program's commands as processes: only a
//! process has a namespace's /sys and /proc/net, and so the right inventory and counters.

mod anatomy;
mod beside;
mod claims;
mod course;
mod delay;
mod link;
mod local;
mod loss;
mod one_way;
mod pacing;
mod rate;
mod samples;
mod unshaped;
mod within;

use std::path::PathBuf;

use command::Failure;
use command::setup::runtime;
use command::signals::CaughtSignals;
use model::{Check, SelfTest};

/// The options of a self-test.
pub struct SelfTestOptions {
    /// The program file of `thru`.
    pub program: PathBuf,
    /// Its version, with the commit that it was built from.
    pub version: String,
    /// One rate and shorter trials, for continuous integration; allows 1 % instead of 0.2 %.
    pub quick: bool,
    /// Leaves out the checks that need root.
    pub loopback: bool,
    /// Ends the process at once, at a signal that requests the end.
    pub exit: fn() -> !,
}

/// An event of a self-test.
pub enum SelfTestEvent<'a> {
    /// The current activity.
    Activity(&'a str),
    /// A check was made.
    Check(&'a Check),
}

/// A running self-test.
struct CheckRunner<'a> {
    options: &'a SelfTestOptions,
    on_event: &'a mut dyn FnMut(SelfTestEvent<'_>),
    found: SelfTest,
}

/// Tests the tool on this host. A failed check is not an error; it is in the result.
///
/// # Errors
/// If something that a check needs cannot be started or read.
pub fn run(
    options: &SelfTestOptions,
    started_unix_ns: u64,
    on_event: &mut dyn FnMut(SelfTestEvent<'_>),
) -> Result<SelfTest, Failure> {
    let here = host::inventory(&host::RealSys);
    let found = SelfTest {
        schema: SelfTest::SCHEMA.into(),
        started_unix_ns,
        version: options.version.clone(),
        hostname: here.hostname,
        boot_id: here.boot_id,
        kernel: here.kernel,
        quick: options.quick,
        realtime: None,
        checks: Vec::new(),
        missing: Vec::new(),
    };
    let mut runner = CheckRunner { options, on_event, found };
    runner.local()?;
    let refused = match options.loopback {
        true => Some("--loopback was given".to_owned()),
        false => lab::available().err().map(|error| error.to_string()),
    };
    match refused {
        None => {
            end_at_signal(options.exit)?;
            runner.rates()?;
            runner.unshaped()?;
            runner.pacing()?;
            runner.losses()?;
            runner.one_way()?;
            runner.delays()?;
        }
        Some(why) => runner.found.missing.extend([
            format!("bytes against the kernel's counters, rates from 10 Mbit/s up, and pacing on links between network namespaces: {why}"),
            format!("losses, one-way delays, and round trips against ping over paths of known loss and delay: {why}"),
        ]),
    }
    Ok(runner.found)
}

/// From now on the first signal ends this process. Its processes end with it, and the reaper removes the lab. Without this it would end
/// nothing, because the runs over loopback have caught signals.
fn end_at_signal(exit: fn() -> !) -> Result<(), Failure> {
    let mut signals = CaughtSignals::catch()?;
    let runtime = runtime()?;
    std::thread::spawn(move || {
        runtime.block_on(signals.next());
        exit()
    });
    Ok(())
}

impl CheckRunner<'_> {
    fn report(&mut self, activity: &str) {
        (self.on_event)(SelfTestEvent::Activity(activity));
    }

    fn keep(&mut self, check: Check) {
        (self.on_event)(SelfTestEvent::Check(&check));
        self.found.checks.push(check);
    }

    /// Makes checks (`make` gets the number of the attempt). If one fails, all are made once more and the second ones count: a short
    /// disturbance of the host is not an error of the tool, and a lasting one still shows. They keep the figures of the first ones.
    fn attempt(&mut self, make: &mut dyn FnMut(u32) -> Result<Vec<Check>, Failure>) -> Result<(), Failure> {
        let first = make(1)?;
        let checks = if first.iter().all(|check| check.passed) {
            first
        } else {
            let mut first = first.into_iter();
            make(2)?.into_iter().map(|second| second.after(first.next())).collect()
        };
        checks.into_iter().for_each(|check| self.keep(check));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use model::Claim;

    use super::*;

    fn exit() -> ! {
        panic!("no signal came")
    }

    fn check(measured: f64) -> Check {
        Check::judge(Claim::Bytes, "p", [measured, 10.0, 1.0], "B", String::new())
    }

    /// The checks that are kept of a first and a second attempt.
    fn kept(first: &[f64], second: &[f64]) -> Vec<Check> {
        let options =
            SelfTestOptions { program: PathBuf::new(), version: String::new(), quick: true, loopback: true, exit };
        let found = SelfTest { quick: true, ..SelfTest::default() };
        let mut runner = CheckRunner { options: &options, on_event: &mut |_| {}, found };
        let made = runner.attempt(&mut |number| {
            let values = if number == 1 { first } else { second };
            Ok(values.iter().copied().map(check).collect())
        });
        assert!(made.is_ok());
        runner.found.checks
    }

    #[test]
    fn a_second_attempt_counts_and_keeps_the_first() {
        let once = kept(&[10.0, 10.5], &[]);
        assert!(once.iter().all(|check| check.attempts == 1 && check.earlier.is_none()), "{once:?}");
        let twice = kept(&[10.0, 15.0], &[10.25, 10.5]);
        let errors: Vec<_> =
            twice.iter().map(|check| (check.error, check.earlier.as_ref().map(|first| first.error))).collect();
        assert_eq!(errors, [(0.25, Some(0.0)), (0.5, Some(5.0))]);
        assert!(twice.iter().all(|check| check.attempts == 2 && check.passed), "{twice:?}");
    }
}
