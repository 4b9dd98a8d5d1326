//! Connections at an agent's port over time: a session of many clients without one.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 2 << 20, 256, || control::fuzzing::gate(bytes)));
