//! The inputs with which the coverage-guided tests begin (`fuzz/corpus`). The tests of each crate run them, too.

use std::fs::File;
use std::io::{self, Read};

use flate2::read::GzDecoder;
use tar::Archive;

/// The inputs of a target.
///
/// # Errors
/// Its archive cannot be read, or has no input.
pub fn inputs(target: &str) -> io::Result<Vec<Vec<u8>>> {
    let archive = File::open(format!("{}/../../fuzz/corpus/{target}.tar.gz", env!("CARGO_MANIFEST_DIR")))?;
    let mut inputs = Vec::new();
    for input in Archive::new(GzDecoder::new(archive)).entries()? {
        let mut input = input?;
        if input.header().entry_type().is_file() {
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes)?;
            inputs.push(bytes);
        }
    }
    if inputs.is_empty() { Err(io::Error::other("an empty archive")) } else { Ok(inputs) }
}
