//! The changes of a host's counters during a measurement.
//!
//! An observer reads one source into a [`Reading`]; the [`Recorder`] reads all sources when a pass starts and when it
//! ends, and the cheap ones several times a second in between. To add one: a file beside `stat.rs` and a line in
//! `OBSERVERS`.

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
mod sched;
mod series;
mod softnet;
mod stat;
mod watch;

pub use cpu::CpuObserver;
pub use dev::interface_totals;
pub use live::Live;
pub use reading::Reading;
pub use recorder::Recorder;
pub use sched::Own;
pub use watch::{Options, Watch};

use std::io;

use model::{Source, source};

use crate::sys::Sys;

/// Something that reads one source of counters repeatedly.
pub trait Observer: Send {
    /// Adds the current values of the source.
    ///
    /// # Errors
    /// When the source cannot be read: what the kernel says, with the path.
    fn read(&mut self, sys: &dyn Sys, reading: &mut Reading) -> io::Result<()>;
}

/// An observer without state.
impl Observer for fn(&dyn Sys, &mut Reading) -> io::Result<()> {
    fn read(&mut self, sys: &dyn Sys, reading: &mut Reading) -> io::Result<()> {
        self(sys, reading)
    }
}

/// Creates an observer, or returns why its source cannot be read. Its argument is the list of thru's own processes.
type Start = fn(&dyn Sys, &[Own]) -> io::Result<Box<dyn Observer>>;

/// An entry of the registry.
struct Entry {
    /// Its name, the prefix of its values' names, and what else is known of it.
    source: Source,
    /// Whether it is cheap enough to be read many times a second, or must be read often to lose nothing.
    often: bool,
    start: Start,
}

/// A source that is read by a function alone.
macro_rules! plain {
    ($read:path) => {
        |_, _| Ok(Box::new($read as fn(&dyn Sys, &mut Reading) -> io::Result<()>))
    };
}

/// Every observer there is.
const OBSERVERS: &[Entry] = &[
    Entry { source: source::CPU, often: true, start: plain!(cpu::read) },
    Entry { source: source::STAT, often: true, start: plain!(stat::read) },
    Entry { source: source::SOFTNET, often: true, start: |_, _| Ok(Box::new(softnet::Softnet::default())) },
    Entry { source: source::SNMP, often: true, start: plain!(protocols::snmp) },
    Entry { source: source::NETSTAT, often: false, start: plain!(protocols::netstat) },
    Entry { source: source::SNMP6, often: false, start: plain!(protocols::snmp6) },
    Entry { source: source::SOCKSTAT, often: true, start: plain!(memory::sockstat) },
    Entry { source: source::MEMINFO, often: true, start: plain!(memory::meminfo) },
    Entry { source: source::DEV, often: true, start: plain!(dev::read) },
    Entry { source: source::QDISC, often: true, start: |_, _| Ok(Box::new(qdisc::Qdiscs::default())) },
    Entry { source: source::ETHTOOL, often: false, start: plain!(nic::statistics) },
    Entry { source: source::IRQ, often: false, start: plain!(nic::interrupts) },
    Entry { source: source::RAPL, often: true, start: |_, _| Ok(Box::new(energy::Energy::default())) },
    Entry { source: source::PERF, often: false, start: |sys, _| Ok(Box::new(perf::Perf::start(sys)?)) },
    Entry { source: source::SCHED, often: true, start: |_, own| Ok(Box::new(sched::Sched::new(own))) },
];

#[cfg(test)]
mod tests;
