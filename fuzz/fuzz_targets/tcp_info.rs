//! The kernel's answer to TCP_INFO.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 4 << 10, 0, || engine::fuzzing::tcp_info(bytes)));
