//! The kernel's answers over netlink.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 64 << 10, 64, || host::fuzzing::netlink(bytes)));
