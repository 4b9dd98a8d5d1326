//! The facts about a host, from files, netlink answers and LLDP frames of any content.
#![no_main]

use throughline_fuzz::memory::bounded;
use throughline_fuzz::said::said;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let host = said(bytes);
    bounded(bytes, 1 << 20, 1_024, || {
        let _ = host::inventory(&host);
        let _ = host::conditions(&host);
    });
});
