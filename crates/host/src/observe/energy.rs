//! Energy used by the processor's packages (Running Average Power Limit), from /sys/class/powercap.
//! Not verified on hardware: tested on a recorded tree.

use std::collections::BTreeMap;
use std::io;

use super::reading::{Wrapping, read};
use super::{ObservedValues, Observer};
use crate::sys::Sys;

const ZONES: &str = "/sys/class/powercap";

/// Follows the counters past `max_energy_range_uj`, where they wrap.
#[derive(Debug, Default)]
pub(super) struct Energy(BTreeMap<String, Wrapping>);

impl Observer for Energy {
    /// `rapl.ZONE.energy_uj`, with the zone's name (`package-0`) and its number if it is part of a package
    /// (`package-0:dram`).
    fn read(&mut self, sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
        let zones = sys.list(ZONES).map_err(|error| io::Error::new(error.kind(), format!("{ZONES}: {error}")))?;
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for zone in &zones {
            let text = |file: &str| read(sys, &format!("{ZONES}/{zone}/{file}"));
            // The directory also lists control types, which have a name but no counter.
            let Ok(name) = text("name") else { continue };
            // intel-rapl:0:1 lies within intel-rapl:0, which comes first in the list.
            let within = zone.rsplit_once(':').and_then(|(outer, _)| names.get(outer));
            let name = within.map_or(name.trim().to_owned(), |outer| format!("{outer}:{}", name.trim()));
            names.insert(zone.clone(), name.clone());
            let now = match text("energy_uj") {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    names.remove(zone);
                    continue;
                }
                now => number(&now?)?,
            };
            let most = number(&text("max_energy_range_uj")?)?;
            let total = self.0.entry(name.clone()).or_default().follow(now, most);
            reading.tally(format_args!("rapl.{name}.energy_uj"), total);
        }
        if names.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("{ZONES} has no zone")));
        }
        Ok(())
    }
}

fn number(text: &str) -> io::Result<u64> {
    text.trim().parse().map_err(io::Error::other)
}
