//! The codec of iperf3, in every role.
#![no_main]

throughline_fuzz::structured!();
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| throughline_fuzz::peers::session("iperf3", bytes));
