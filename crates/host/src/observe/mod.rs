//! What a host's counters did while something ran.
//!
//! An observer reads its counters when it starts and again when it finishes, and writes the difference where it belongs in
//! [`EndPass`]. To add one: a file beside `cpu.rs` and a line in `OBSERVERS`.

mod cpu;

pub use cpu::CpuObserver;

use std::io;

use model::EndPass;

use crate::sys::Sys;

/// Something that watches counters of a host from its start to its finish.
pub trait Observer: Send {
    /// Reads the counters again and writes what they did since the start into `pass`; leaves its part of `pass` null when
    /// the counters cannot be read any more.
    fn finish(self: Box<Self>, sys: &dyn Sys, pass: &mut EndPass);
}

/// Starts an observer, or says why its source cannot be read.
type Start = fn(&dyn Sys) -> io::Result<Box<dyn Observer>>;

/// Every observer there is: its name, and how it starts.
const OBSERVERS: &[(&str, Start)] = &[("cpu", |sys| Ok(Box::new(CpuObserver::start(sys)?)))];

/// All observers together, watching one host.
///
/// ```
/// use host::{RealSys, Watch};
///
/// let watch = Watch::start(&RealSys);
/// let mut pass = model::EndPass::default();
/// watch.finish(&RealSys, &mut pass);
/// assert!(pass.cpu.is_some());
/// ```
pub struct Watch {
    observers: Vec<Box<dyn Observer>>,
    missing: Vec<String>,
}

impl Watch {
    /// Starts every observer whose source exists on this host.
    #[must_use]
    pub fn start(sys: &dyn Sys) -> Self {
        let mut watch = Self { observers: Vec::new(), missing: Vec::new() };
        for (name, start) in OBSERVERS {
            match start(sys) {
                Ok(observer) => watch.observers.push(observer),
                Err(error) => watch.missing.push(format!("{name}: {error}")),
            }
        }
        watch
    }

    /// The observers that could not start, each with the reason.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// Ends the watch and writes what was seen into `pass`. What could not be observed stays null there.
    pub fn finish(self, sys: &dyn Sys, pass: &mut EndPass) {
        for observer in self.observers {
            observer.finish(sys, pass);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{FakeSys, RealSys};

    #[test]
    fn a_source_that_is_not_there_is_named_and_leaves_null() {
        let empty = tempfile::tempdir().unwrap();
        let sys = FakeSys::new(empty.path());
        let watch = Watch::start(&sys);
        assert_eq!(watch.missing().len(), 1);
        assert!(watch.missing()[0].starts_with("cpu: /proc/stat"), "{:?}", watch.missing());
        let mut pass = EndPass::default();
        watch.finish(&sys, &mut pass);
        assert_eq!(pass, EndPass::default());
    }

    #[test]
    fn this_host_can_be_watched() {
        let watch = Watch::start(&RealSys);
        assert_eq!(watch.missing(), [""; 0]);
        let mut pass = EndPass::default();
        watch.finish(&RealSys, &mut pass);
        assert!(!pass.cpu.unwrap().cores.is_empty());
    }
}
