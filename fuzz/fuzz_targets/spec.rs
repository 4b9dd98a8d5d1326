//! A file with one spec, and the same as JSON.
#![no_main]

use throughline_fuzz::host::EmptyHost;
use throughline_fuzz::memory::bounded;

throughline_fuzz::structured!();
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    bounded(bytes, 2 << 20, 2_048, || {
        let _ = plan::read_spec("spec.toml", text.into_owned(), &EmptyHost);
        if let Ok(serde_json::Value::Object(object)) = serde_json::from_slice(bytes)
            && let Ok(options) = options::TestOptions::from_json(&object)
        {
            let _ = plan::specs::of(&options, &EmptyHost);
        }
    });
});
