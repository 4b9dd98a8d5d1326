//! A compiled stack: its ELF file and its description.
#![no_main]

use throughline_fuzz::memory::bounded;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bounded(bytes, 16 << 10, 8, || stacks::fuzzing::object(bytes)));
