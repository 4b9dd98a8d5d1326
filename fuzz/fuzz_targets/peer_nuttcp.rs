//! The codec of nuttcp, in every role.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| throughline_fuzz::peers::session("nuttcp", bytes));
