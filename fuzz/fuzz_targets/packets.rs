//! Packets of any host, which a capture sorts and follows as root.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 512 << 10, 64, || host::fuzzing::packets(bytes)));
