//! The codec of netperf, in every role.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| throughline_fuzz::peers::session("netperf", bytes));
