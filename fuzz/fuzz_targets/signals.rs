//! The hello of data connections, and the handshake of datagrams.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 64 << 10, 4, || engine::fuzzing::signals(bytes)));
