//! Packs the fonts of pictures, which are 0.4 MB.

#![allow(clippy::disallowed_methods, reason = "the rule is for the library")]

use std::io::Write;
use std::path::Path;
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    for (name, font) in [("regular", notosans::REGULAR_TTF), ("bold", notosans::BOLD_TTF)] {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(font)?;
        fs::write(Path::new(&env::var("OUT_DIR")?).join(format!("{name}.zlib")), packed.finish()?)?;
    }
    Ok(())
}
