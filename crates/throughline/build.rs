//! Packs the JSON Schemas of `docs/schema` for `thru generate schema`: their texts are nearly the same, half a megabyte in all.

use std::io::Write;
use std::path::Path;
use std::{env, fs};

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// In this order one after the other; `src/commands/generate.rs` has the same names.
const NAMES: [&str; 5] = ["run", "event", "comparison", "selftest", "why"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new("../../docs/schema");
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for name in NAMES {
        let file = folder.join(format!("{name}.schema.json"));
        println!("cargo::rerun-if-changed={}", file.display());
        let text = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        packed.write_all(&u32::try_from(text.len())?.to_le_bytes())?;
        packed.write_all(&text)?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("schemas.zlib"), packed.finish()?)?;
    Ok(())
}
