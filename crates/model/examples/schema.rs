//! Writes the JSON Schemas into `docs/schema`, or into the folder that it is given: after a change of the types in them.

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema");
    let folder = std::env::args_os().nth(1).map_or_else(|| kept.into(), PathBuf::from);
    for (name, schema) in model::schema::all() {
        let text = serde_json::to_string_pretty(&schema)? + "\n";
        std::fs::write(folder.join(format!("{name}.schema.json")), text)?;
    }
    Ok(())
}
