//! The integration tests of this crate in one binary, so that they are linked once. Each file beside this one is a module.

mod common;
mod fuzz;
mod iperf2;
mod iperf3_hostile;
mod iperf3_recorded;
mod netperf;
mod netpipe;
mod nttcp;
mod nuttcp;
mod stamp;
mod versions;
