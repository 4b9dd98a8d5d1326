//! An interface's counter over time, read by a thread in the host's namespace beside a measurement.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use command::Failure;
use lab::LabHost;

use super::claims::Count;
use super::course::Sample;
use crate::labs::own::failure_of;

/// The direction that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// What the interface received.
    Received,
    /// What it sent.
    Sent,
}

/// Time between two readings. Each takes about 20 µs.
const PERIOD: Duration = Duration::from_micros(500);
/// A reading that took longer does not say when its number was right, and is left out.
const LONGEST: Duration = Duration::from_micros(100);

/// What `work` returns, and the counter of the host's link during it. `header` is as in [`Count`].
pub(super) fn during<T>(
    host: &LabHost,
    direction: Direction,
    header: u64,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<(T, Vec<Sample>), Failure> {
    let stop = AtomicBool::new(false);
    let read = || host.within(|| read_until(&stop, &host.interface, direction, header));
    let (done, samples) = std::thread::scope(|scope| {
        let reading = scope.spawn(read);
        let done = work();
        stop.store(true, Relaxed);
        (done, reading.join())
    });
    let samples = samples.unwrap_or_else(|_| Err(io::Error::other("the thread panicked")));
    Ok((done?, samples.map_err(|error| failure_of("read the counters of an interface", error))?))
}

fn read_until(stop: &AtomicBool, interface: &str, direction: Direction, header: u64) -> io::Result<Vec<Sample>> {
    let origin = Instant::now();
    let mut samples = Vec::new();
    while !stop.load(Relaxed) {
        let begun = origin.elapsed();
        let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
        let took = origin.elapsed() - begun;
        let at = begun + took / 2;
        let (bytes, packets) = counted(&text, interface, direction)
            .ok_or_else(|| io::Error::other(format!("no counters of {interface} in /proc/net/dev")))?;
        if took <= LONGEST || samples.is_empty() {
            samples.push(Sample { at_ns: at.as_nanos() as u64, count: Count { bytes, packets, header } });
        }
        std::thread::sleep(PERIOD);
    }
    Ok(samples)
}

/// Bytes and packets in the text of /proc/net/dev: eight numbers of what was received, then those of what was sent.
fn counted(text: &str, interface: &str, direction: Direction) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    let first = if direction == Direction::Sent { 8 } else { 0 };
    let mut numbers = line.split_ascii_whitespace().skip(first).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEV: &str = "Inter-|   Receive                      |  Transmit\n face |bytes    packets ...\n    lo: 1 2 0 0 0 0 0 0 3 4 0 0 0 0 0 0\n\
                       \x20 eth0:  100 7 0 0 0 0 0 0 2000 9 0 0 0 0 0 0\n eth01: 5 5 0 0 0 0 0 0 5 5 0 0 0 0 0 0\n";

    #[test]
    fn an_interface_has_its_own_line_and_two_directions() {
        assert_eq!(counted(DEV, "eth0", Direction::Received), Some((100, 7)));
        assert_eq!(counted(DEV, "eth0", Direction::Sent), Some((2000, 9)));
        assert_eq!(counted(DEV, "eth", Direction::Sent), None);
    }
}
