//! The observers' values at one moment.

use std::collections::BTreeMap;
use std::fmt::{Arguments, Write};
use std::io;
use std::sync::Arc;

use crate::sys::{KeptFile, Sys};

/// The meaning of a value, and so of its difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A total that started before the watch.
    Counter,
    /// A total that the observer counts itself, from 0 at its first reading.
    Tally,
    /// Time spent, ns: a share of the elapsed time.
    Share,
    /// A current level.
    Level,
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) kind: ValueKind,
    pub(super) number: u64,
    /// Unit of its line in the series; `None` for a value that has no line.
    pub(super) unit: Option<&'static str>,
}

/// Files that several observers read, so that each is read once per reading. They stay open between readings: opening
/// a file of /proc/net delays packet reception on that core far more than reading it
/// (docs/notes/engine.md).
#[derive(Debug, Default)]
pub(super) struct Files(Vec<File>);

#[derive(Debug)]
struct File {
    path: &'static str,
    kept: KeptFile,
    /// Its text, if this reading has requested it.
    text: Option<Arc<str>>,
}

/// All values that the observers read at one moment, by name.
#[derive(Debug, Default)]
pub struct ObservedValues {
    pub(super) at_ns: u64,
    pub(super) values: BTreeMap<String, Value>,
    /// Whether everything is read, or only what has a line in the series.
    whole: bool,
    files: Files,
    name: String,
}

impl ObservedValues {
    /// An empty reading of now, with the files that the previous reading left open. One that is not `whole` takes only
    /// what has a line in the series.
    pub(super) fn new(sys: &dyn Sys, whole: bool, mut files: Files) -> Self {
        files.0.iter_mut().for_each(|file| file.text = None);
        Self { at_ns: sys.now_ns(), whole, files, ..Self::default() }
    }

    /// Returns its files, for the next reading.
    pub(super) fn leave_files(&mut self) -> Files {
        std::mem::take(&mut self.files)
    }

    /// Whether everything is read.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// A file's text at the first request in this reading.
    ///
    /// # Errors
    /// The kernel's error, with the path.
    pub fn file(&mut self, sys: &dyn Sys, path: &'static str) -> io::Result<Arc<str>> {
        let files = &mut self.files.0;
        let index = files.iter().position(|file| file.path == path).unwrap_or_else(|| {
            files.push(File { path, kept: KeptFile::default(), text: None });
            files.len() - 1
        });
        let file = &mut files[index];
        if let Some(text) = &file.text {
            return Ok(text.clone());
        }
        let text = sys.read_again(path, &mut file.kept).map_err(|error| named(path, &error))?;
        Ok(file.text.insert(text.into()).clone())
    }

    /// A total kept by the kernel.
    pub fn counter(&mut self, name: Arguments<'_>, number: u64) {
        self.put(name, Value { kind: ValueKind::Counter, number, unit: None });
    }

    /// A total kept by the observer.
    pub fn tally(&mut self, name: Arguments<'_>, number: u64) {
        self.put(name, Value { kind: ValueKind::Tally, number, unit: None });
    }

    /// A level.
    pub fn level(&mut self, name: Arguments<'_>, number: u64) {
        self.put(name, Value { kind: ValueKind::Level, number, unit: None });
    }

    /// The same with a line in the series, in `unit` (of a second for totals).
    pub fn traced(&mut self, kind: ValueKind, unit: &'static str, name: Arguments<'_>, number: u64) {
        self.put(name, Value { kind, number, unit: Some(unit) });
    }

    fn put(&mut self, name: Arguments<'_>, value: Value) {
        if self.whole || value.unit.is_some() {
            self.name.clear();
            // Writing to a string cannot fail.
            let _ = self.name.write_fmt(name);
            self.values.insert(self.name.clone(), value);
        }
    }

    /// Removes the values of a source that could not be read to its end.
    pub(super) fn forget(&mut self, source: &str) {
        self.values.retain(|name, _| !belongs(name, source));
    }
}

/// Whether a value's name begins with the name of this source.
pub(super) fn belongs(name: &str, source: &str) -> bool {
    name.strip_prefix(source).is_some_and(|rest| rest.starts_with('.'))
}

/// A file's text; the error names it.
///
/// # Errors
/// What the kernel says.
pub(super) fn read(sys: &dyn Sys, path: &str) -> io::Result<String> {
    sys.read(path).map_err(|error| named(path, &error))
}

fn named(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

/// A narrow counter that is followed past its wrap-around.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wrapping {
    last: Option<u64>,
    total: u64,
}

impl Wrapping {
    /// The increase since the first value, given the current one. It wraps to 0 after `most`; a decrease by less than
    /// half of that is a reset to 0, such as that of a replaced discipline.
    pub(super) fn follow(&mut self, now: u64, most: u64) -> u64 {
        if let Some(last) = self.last {
            let forward = if now >= last { now - last } else { now + most.saturating_sub(last) + 1 };
            self.total += if now < last && forward > most / 2 { now } else { forward };
        }
        self.last = Some(now);
        self.total
    }

    /// The increase as of the last call.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_wraps_goes_on() {
        let mut counter = Wrapping::default();
        let most = u64::from(u32::MAX);
        assert_eq!(counter.follow(most - 1, most), 0);
        assert_eq!(counter.follow(3, most), 5);
        assert_eq!(counter.follow(3, most), 5);
        assert_eq!(counter.follow(10, most), 12);
    }

    #[test]
    fn a_counter_that_was_reset_to_0_has_not_wrapped() {
        let mut counter = Wrapping::default();
        let most = u64::from(u32::MAX);
        assert_eq!([100, 250, 7, 9].map(|now| counter.follow(now, most)), [0, 150, 157, 159]);
    }

    #[test]
    fn names_belong_to_their_source_only() {
        assert!(belongs("snmp.Tcp.InSegs", "snmp") && !belongs("snmp6.Ip6InReceives", "snmp"));
    }
}
