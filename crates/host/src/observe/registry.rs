//! The observers of this program: those of this crate, and those that the program adds.

use std::io;
use std::sync::{PoisonError, RwLock};

use model::{Source, source};

use super::{
    ObservedValues, Observer, Own, cpu, dev, energy, memory, nic, perf, protocols, qdisc, sched, softnet, stat,
};
use crate::sys::Sys;

/// Creates an observer, or returns why its source cannot be read. Its argument is the list of thru's own processes.
pub type Start = fn(&dyn Sys, &[Own]) -> io::Result<Box<dyn Observer>>;

/// An entry of the registry.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name, the prefix of its values' names, and what else is known of it.
    pub source: Source,
    /// Whether it is cheap enough to be read many times a second, or must be read often to lose nothing.
    pub often: bool,
    /// Creates it.
    pub start: Start,
}

/// A source that is read by a function alone.
macro_rules! plain {
    ($read:path) => {
        |_, _| Ok(Box::new($read as fn(&dyn Sys, &mut ObservedValues) -> io::Result<()>))
    };
}

/// Every observer of this crate.
pub(super) const OBSERVERS: &[Entry] = &[
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

/// Why an observer cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ObserverError {
    /// There is a source of this name.
    #[error("a second source of counters called '{name}': give it another name")]
    Exists {
        /// The name.
        name: &'static str,
    },
}

/// Those that the program has added.
static ADDED: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

/// Adds an observer to this process, for a program that has one of its own. Agents are the same program, so its `main` adds it
/// before anything else.
///
/// # Errors
/// A source of this name exists.
pub fn add(entry: Entry) -> Result<(), ObserverError> {
    let name = entry.source.name;
    if Source::of(name).is_some() || entries().iter().any(|other| other.source.name == name) {
        return Err(ObserverError::Exists { name });
    }
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push(entry);
    Ok(())
}

/// Every observer: those of this crate, then the added ones.
pub(super) fn entries() -> Vec<Entry> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    OBSERVERS.iter().chain(added.iter()).copied().collect()
}
