//! Checks of the tool against known values: links of known rate and delay between namespaces, the kernel's counters, ping, and
//! its own clock and loop.
//!
//! All measurements are made by this program's commands in separate processes, as a user would make them.

mod claims;
mod delay;
mod link;
mod local;
mod rate;

use std::path::PathBuf;
use std::process::Command;

use model::{Check, SelfTest};

use crate::Failure;

/// The options of a self-test.
pub struct Options {
    /// The program file of `thru`.
    pub program: PathBuf,
    /// Its version, with the commit that it was built from.
    pub version: String,
    /// One rate and shorter trials, for continuous integration; allows 1 % instead of 0.2 %.
    pub quick: bool,
    /// Leaves out the checks that need root.
    pub loopback: bool,
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
    options: &'a Options,
    on_event: &'a mut dyn FnMut(SelfTestEvent<'_>),
    found: SelfTest,
}

/// Tests the tool on this host. A failed check is not an error; it is in the result.
///
/// # Errors
/// If something that a check needs cannot be started or read.
pub fn run(
    options: &Options,
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
        true => Some("`loopback` was given".to_owned()),
        false => lab::available().err().map(|error| error.to_string()),
    };
    match refused {
        None => {
            runner.rates()?;
            runner.delays()?;
        }
        Some(why) => runner.found.missing.extend([
            format!("bytes against the kernel's counters, and rates of 100 Mbit/s to 2.5 Gbit/s on links between network namespaces: {why}"),
            format!("round trips against ping over a path of known delay: {why}"),
        ]),
    }
    Ok(runner.found)
}

impl CheckRunner<'_> {
    fn thru(&self) -> Command {
        Command::new(&self.options.program)
    }

    fn report(&mut self, activity: &str) {
        (self.on_event)(SelfTestEvent::Activity(activity));
    }

    fn keep(&mut self, check: Check) {
        (self.on_event)(SelfTestEvent::Check(&check));
        self.found.checks.push(check);
    }

    /// Makes checks (`make` gets the number of the attempt). If one fails, all are made once more and only the second ones count:
    /// a short disturbance of the host is not an error of the tool, and a lasting one still shows.
    fn attempt(&mut self, make: &mut dyn FnMut(u32) -> Result<Vec<Check>, Failure>) -> Result<(), Failure> {
        let mut checks = make(1)?;
        if !checks.iter().all(|check| check.passed) {
            checks = make(2)?;
            checks.iter_mut().for_each(|check| check.attempts = 2);
        }
        checks.into_iter().for_each(|check| self.keep(check));
        Ok(())
    }
}
