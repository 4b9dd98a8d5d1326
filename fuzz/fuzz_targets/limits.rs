//! Requests to prepare a trial, against an agent's limits.
#![no_main]

use throughline_fuzz::memory::bounded;

throughline_fuzz::structured!();
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 256 << 10, 64, || protocol::fuzzing::limits(bytes)));
