//! Processor events of all cores.

use std::io;

use perf::{Counter, PerfEvent};

use super::{ProcessorEvents, Sys};

const EVENTS: [(&str, PerfEvent); 2] = [("cycles", PerfEvent::Cycles), ("instructions", PerfEvent::Instructions)];

/// A counter of each event on each core.
pub(super) struct Counting(Vec<(&'static str, Counter)>);

impl Counting {
    /// Opens them on the cores that are online.
    pub(super) fn start(sys: &dyn Sys) -> io::Result<Self> {
        let online = sys.read("/sys/devices/system/cpu/online")?;
        let mut counters = Vec::new();
        for core in cores(&online) {
            for (name, event) in EVENTS {
                counters.push((name, Counter::of_core(event, core)?));
            }
        }
        Ok(Self(counters))
    }
}

impl ProcessorEvents for Counting {
    fn read(&self) -> io::Result<Vec<(&'static str, u64)>> {
        let mut sums = EVENTS.map(|(name, _)| (name, 0));
        for (name, counter) in &self.0 {
            let count = counter.read()?;
            let count =
                count.ok_or_else(|| io::Error::other("other programs used the processor's counters all the time"))?;
            sums.iter_mut().filter(|(sum, _)| sum == name).for_each(|(_, sum)| *sum += count);
        }
        Ok(sums.to_vec())
    }
}

/// The numbers in a list such as `0-3,6`.
fn cores(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::RealSys;

    #[test]
    fn lists_of_cores_have_gaps() {
        assert_eq!(cores("0-3,6\n"), [0, 1, 2, 3, 6]);
        assert_eq!(cores("0\n"), [0]);
    }

    #[test]
    fn events_are_counted_where_the_machine_can_or_refused_with_a_reason() {
        match Counting::start(&RealSys) {
            Ok(counting) => {
                let first = counting.read().unwrap();
                let later = counting.read().unwrap();
                assert!(first.iter().zip(&later).all(|(a, b)| a.0 == b.0 && a.1 < b.1), "{first:?} {later:?}");
            }
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
        }
    }
}
