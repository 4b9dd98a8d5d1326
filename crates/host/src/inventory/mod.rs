//! The facts about a host that shape a measurement.

mod build;
mod device;
mod ethtool;
mod interrupts;
mod kernel;
mod limits;
mod links;
mod lldp;
mod lldpd;
pub(crate) mod machine;
mod module;
mod network;
mod pci;
mod processor;
mod settings;
mod traffic;
mod virtualisation;

pub use traffic::{TRAFFIC_SAMPLE_NS, TrafficSample, note_traffic};

use std::io;

use model::Inventory;

use crate::sys::Sys;

/// All facts about this host that help to interpret a measurement.
///
/// What cannot be read stays null or absent and is named in [`Inventory::missing`] with the reason; zero never
/// replaces a missing value.
#[must_use]
pub fn inventory(sys: &dyn Sys) -> Inventory {
    let mut source = Source { sys, missing: Vec::new() };
    let mut facts = Inventory::default();
    machine::describe(&mut source, &mut facts);
    facts.virtualisation = virtualisation::detect(&mut source);
    facts.processor = processor::describe(&mut source);
    facts.kernel_setup = kernel::setup(&mut source, facts.kernel.as_deref(), facts.kernel_version.as_deref());
    facts.hugepages = kernel::hugepages(&source);
    facts.limits = limits::describe(&mut source);
    kernel::services(&mut source, &mut facts);
    settings::describe(&mut source, &mut facts);
    facts.interfaces = network::interfaces(&mut source);
    facts.missing = source.missing;
    facts
}

/// The host, and the list of missing facts.
struct Source<'a> {
    sys: &'a dyn Sys,
    missing: Vec<String>,
}

impl Source<'_> {
    /// The trimmed text of a file; if it cannot be read, the fact, the path and the reason go to `missing`.
    fn text(&mut self, fact: &str, path: &str) -> Option<String> {
        match self.sys.read(path) {
            Ok(text) => Some(text.trim().to_owned()),
            Err(error) => {
                self.miss(fact, path, &error);
                None
            }
        }
    }

    /// A value that `parse` finds in the text of a file.
    fn value<T>(&mut self, fact: &str, path: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let value = parse(&self.text(fact, path)?);
        if value.is_none() {
            self.missing.push(format!("{fact}: {path} does not contain it"));
        }
        value
    }

    /// The trimmed text of a file that many hosts do not have, so that its absence is not reported.
    fn hint(&self, path: &str) -> Option<String> {
        Some(self.sys.read(path).ok()?.trim().to_owned())
    }

    fn miss(&mut self, fact: &str, path: &str, error: &io::Error) {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "does not exist here".to_owned(),
            io::ErrorKind::PermissionDenied => "is not readable by this user".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        self.missing.push(format!("{fact}: {path} {reason}"));
    }
}

#[cfg(test)]
mod tests;
