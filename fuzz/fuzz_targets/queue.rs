//! Clients that wait for the machine, and leave.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 64 << 10, 256, || protocol::fuzzing::queue(bytes)));
