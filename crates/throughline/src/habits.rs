//! The options of other programs: which of ours each is, in one table. Command lines are read with it, and the manual prints it.

mod iperf3;
mod netperf;
mod spelling;
mod translate;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub use self::iperf3::IPERF3;
#[cfg(test)]
pub use self::netperf::{NETPERF, NETPERF_OF_TEST};
#[cfg(test)]
pub use self::spelling::{Habit, Here, Of};
pub use self::translate::{long_names, of_no_command, of_side, translated};
