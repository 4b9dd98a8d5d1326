//! A plan, in its lab and between real hosts.
#![no_main]

use std::collections::BTreeMap;

use throughline_fuzz::host::EmptyHost;
use throughline_fuzz::memory::bounded;

throughline_fuzz::structured!();
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for in_lab in [false, true] {
        let read = || plan::read("plan.toml", text.clone().into_owned(), &BTreeMap::new(), in_lab, &EmptyHost);
        // The cells of a plan are bounded, not its memory per byte: 100,000, each with a spec of its own of 3 kB.
        if let Ok(parsed) = bounded(bytes, 512 << 20, 256, read) {
            assert!(parsed.cells.len() <= 100_000);
        }
    }
});
