//! Machines over datagrams, at both ends: payload, credit, the probe, legs.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 1 << 20, 4, || engine::fuzzing::datagrams(bytes)));
