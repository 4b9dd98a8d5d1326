//! The rules of a congestion control for destinations.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 256 << 10, 256, || stacks::fuzzing::rules(bytes)));
