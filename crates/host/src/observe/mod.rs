//! The changes of a host's counters during a measurement.
//!
//! An observer reads one source into [`ObservedValues`]; the [`HostRecorder`] reads all sources when a pass starts and when it
//! ends, and the cheap ones several times a second in between. To add one: a file beside `stat.rs` and a line in
//! `OBSERVERS`, or [`add`] in a program that has an observer of its own.

mod cpu;
mod dev;
mod energy;
mod live;
mod memory;
mod nic;
mod perf;
mod protocols;
mod qdisc;
mod reading;
mod recorder;
mod registry;
mod sched;
mod series;
mod softnet;
mod stat;
mod watch;

pub use cpu::CpuObserver;
pub use dev::interface_totals;
pub use live::HostReader;
pub use reading::{ObservedValues, ValueKind};
pub use recorder::HostRecorder;
pub use registry::{Entry, ObserverError, Start, add};
pub use sched::Own;
pub use watch::{Watch, WatchOptions};

use std::io;

use crate::sys::Sys;

/// Something that reads one source of counters repeatedly.
pub trait Observer: Send {
    /// Adds the current values of the source.
    ///
    /// # Errors
    /// When the source cannot be read: what the kernel says, with the path.
    fn read(&mut self, sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()>;
}

/// An observer without state.
impl Observer for fn(&dyn Sys, &mut ObservedValues) -> io::Result<()> {
    fn read(&mut self, sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
        self(sys, reading)
    }
}

#[cfg(test)]
mod tests;
