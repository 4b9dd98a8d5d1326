//! A topology of a lab.
#![no_main]

use std::collections::BTreeMap;

use throughline_fuzz::memory::bounded;

throughline_fuzz::structured!();
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let _ = bounded(bytes, 16 << 20, 512, || plan::topology::read("topology.toml", text, &BTreeMap::new()));
});
