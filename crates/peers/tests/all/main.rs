//! The integration tests of this crate in one binary, so that they are linked once. Each file beside this one is a module.

mod clients;
mod common;
mod hostile;
mod iperf3;
mod netperf;
mod netpipe;
mod older;
mod stamp;
