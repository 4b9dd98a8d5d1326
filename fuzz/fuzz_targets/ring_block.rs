//! A block of the ring of a packet socket.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 1 << 10, 0, || host::fuzzing::block(bytes)));
