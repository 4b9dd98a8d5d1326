//! Page faults of the host, from /proc/vmstat (proc_vmstat(5)).

use std::io;

use host::Sys;
use host::observe::{Entry, ObservedValues, ValueKind};
use model::{Source, source};

/// The observer.
pub(crate) const FAULTS: Entry = Entry {
    source: Source { name: "faults", losses: &["faults.all"], ..source::RECORDED },
    often: true,
    start: |_, _| Ok(Box::new(read as fn(&dyn Sys, &mut ObservedValues) -> io::Result<()>)),
};

fn read(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/vmstat")?;
    let fields = text.lines().filter_map(|line| line.split_once(' '));
    for (_, number) in fields.filter(|(name, _)| *name == "pgfault") {
        reading.traced(
            ValueKind::Counter,
            "1/s",
            format_args!("faults.all"),
            number.parse().map_err(io::Error::other)?,
        );
    }
    Ok(())
}
