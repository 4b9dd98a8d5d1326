//! The tool against known truths: links of known rate and delay between namespaces, the kernel's counters, ping, and its own
//! clock and loop.
//!
//! Everything is measured by this program's own commands in processes of their own, as a user would.

mod claims;
mod delay;
mod link;
mod local;
mod rate;

use std::path::PathBuf;
use std::process::Command;

use model::{Check, SelfTest};

use crate::ControlError;

/// How to test.
pub struct Options {
    /// The program file of `thru`.
    pub program: PathBuf,
    /// Its version, with the commit that it was built from.
    pub version: String,
    /// One rate and shorter, for continuous integration; allows 1 % where the whole test allows 0.2 %.
    pub quick: bool,
    /// Leave out what needs root, although it could be done.
    pub loopback: bool,
}

/// Something in the course of a self-test.
pub enum SelfTestEvent<'a> {
    /// What is being done now.
    Doing(&'a str),
    /// A check was made.
    Check(&'a Check),
}

/// A self-test under way.
struct CheckRunner<'a> {
    options: &'a Options,
    on_event: &'a mut dyn FnMut(SelfTestEvent<'_>),
    found: SelfTest,
}

/// Tests the tool on this host. A check that fails is no error: it stands in the result.
///
/// # Errors
/// When something that a check needs cannot be started or read.
pub fn run(
    options: &Options,
    started_unix_ns: u64,
    on_event: &mut dyn FnMut(SelfTestEvent<'_>),
) -> Result<SelfTest, ControlError> {
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
    let mut bench = CheckRunner { options, on_event, found };
    bench.local()?;
    let refused = match options.loopback {
        true => Some("--loopback was asked for".to_owned()),
        false => lab::available().err().map(|error| error.to_string()),
    };
    match refused {
        None => {
            bench.rates()?;
            bench.delays()?;
        }
        Some(why) => bench.found.missing.extend([
            format!("bytes against the kernel's counters, and rates of 100 Mbit/s to 2.5 Gbit/s on links between network namespaces: {why}"),
            format!("round-trip times against ping over a path of known delay: {why}"),
        ]),
    }
    Ok(bench.found)
}

impl CheckRunner<'_> {
    fn thru(&self) -> Command {
        Command::new(&self.options.program)
    }

    fn say(&mut self, doing: &str) {
        (self.on_event)(SelfTestEvent::Doing(doing));
    }

    fn keep(&mut self, check: Check) {
        (self.on_event)(SelfTestEvent::Check(&check));
        self.found.checks.push(check);
    }

    /// Makes checks (`make` is told which attempt it is); where one fails, all of them are made once more, and only the second
    /// ones count. A host that is busy with something else for a moment is no fault of the tool; one that always is shows
    /// here all the same.
    fn attempt(&mut self, make: &mut dyn FnMut(u32) -> Result<Vec<Check>, ControlError>) -> Result<(), ControlError> {
        let mut checks = make(1)?;
        if !checks.iter().all(|check| check.passed) {
            checks = make(2)?;
            checks.iter_mut().for_each(|check| check.attempts = 2);
        }
        checks.into_iter().for_each(|check| self.keep(check));
        Ok(())
    }
}
