//! Results of other tools: the first byte chooses the format, or lets it be detected.
#![no_main]

use import::{FORMATS, ListingSource, assemble, read};
use throughline_fuzz::memory::bounded;

throughline_fuzz::structured!();
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((format, text)) = bytes.split_first() else { return };
    let only = FORMATS.get(usize::from(*format));
    bounded(text, 4 << 20, 2_048, || {
        let Ok(reading) = read(text, only) else { return };
        for imported in reading.imported {
            let rows = imported.run.is_none().then_some(imported.rows.len());
            let run = assemble(imported, &ListingSource::default(), &reading.refused);
            let trials: usize = run.outcomes.iter().map(|outcome| outcome.trials.len()).sum();
            assert!(rows.is_none_or(|rows| rows == trials), "every row is a trial");
        }
    });
});
