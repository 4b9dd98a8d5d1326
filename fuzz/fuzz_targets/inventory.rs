//! The facts about a host, from files, netlink answers and LLDP frames of any content.
#![no_main]

use throughline_fuzz::memory::bounded;
use throughline_fuzz::said::Said;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    bounded(bytes, 1 << 20, 1_024, || {
        let _ = host::inventory(&Said::new(bytes));
        let _ = host::conditions(&Said::new(bytes));
    });
});
