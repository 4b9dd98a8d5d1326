//! The numbers of datagrams.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 64 << 10, 0, || engine::fuzzing::sequence(bytes)));
