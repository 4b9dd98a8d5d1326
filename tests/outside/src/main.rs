//! `thru` with a transport and an observer of its own: one file and one line each.

mod faults;
mod sluice;

use std::process::ExitCode;

fn main() -> ExitCode {
    engine::transport::add(&sluice::Sluice).unwrap_or_else(|error| panic!("{error}"));
    host::observe::add(faults::FAULTS).unwrap_or_else(|error| panic!("{error}"));
    throughline::main()
}
