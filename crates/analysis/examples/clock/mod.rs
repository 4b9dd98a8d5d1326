//! What a part of an example costs.

use std::time::{Duration, Instant};

/// The wall clock, and the time that this process has had a processor: on a busy machine only the latter says what something costs.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant, Duration);

impl Clock {
    pub(crate) fn now() -> Self {
        let had = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        let ns = had.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or_default();
        Self(Instant::now(), Duration::from_nanos(ns))
    }

    pub(crate) fn report(self, what: &str) {
        let (wall, own) = (self.0.elapsed().as_secs_f64(), (Self::now().1 - self.1).as_secs_f64());
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("unknown").trim();
        println!("{what}: {wall:.2} s, {own:.2} s of a processor; memory at most {peak} so far");
    }
}
