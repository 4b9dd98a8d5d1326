//! Machines over a stream, the agreement on a leg, and the hello within tls and quic.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 1 << 20, 4, || engine::fuzzing::stream(bytes)));
