//! Runs of this program: the JSON documents that `thru show --json` and `thru export --format json` write, one or an array.

use std::collections::BTreeMap;

use model::Run;
use serde::Deserialize as _;
use serde_json::Value;

use super::ImportFormat;
use crate::error::DocumentError;
use crate::json::{Shape, documents, may_have_documents, whole};
use crate::listing::{Certainty, Imported, TextReading};

/// Runs of this program.
pub(super) const FORMAT: ImportFormat = ImportFormat {
    name: "throughline",
    help: "runs of this program as JSON documents, kept as they are",
    detect,
    read,
};

/// What the schemas of all documents of this program begin with.
const SCHEMAS: &str = "\"throughline-";

fn detect(text: &str) -> Certainty {
    // `"schema": "throughline-...`. Within a string of another document its quotes would be escaped.
    let names_schema = |after: &str| {
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        value.is_some_and(|value| value.starts_with(SCHEMAS))
    };
    let whole = text.trim_start().starts_with(['{', '[']);
    match (whole || may_have_documents(text)) && text.split("\"schema\"").skip(1).any(names_schema) {
        true if whole => Certainty::WholeText,
        true => Certainty::Certain,
        false => Certainty::No,
    }
}

/// The documents of this program.
const SHAPE: Shape = Shape::of(|document| document["schema"].is_string());

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut known = BTreeMap::new();
    match whole(text) {
        Ok(Value::Array(all)) => all.iter().for_each(|document| take(document, 1, &mut known, &mut reading)),
        Ok(document) => take(&document, 1, &mut known, &mut reading),
        // Several documents, or other lines around them.
        Err(broken) => {
            for (line, found) in documents(text, SHAPE) {
                match found {
                    Ok(document) => take(&document, line, &mut known, &mut reading),
                    Err(refused) => reading.refused.push(refused),
                }
            }
            if reading == TextReading::default() {
                reading.refused.push(broken);
            }
        }
    }
    reading
}

/// Takes a document that begins in `line`; `known` are the lines of the runs so far.
fn take(document: &Value, line: u32, known: &mut BTreeMap<String, u32>, reading: &mut TextReading) {
    match run(document) {
        Ok(run) => {
            if let Some(first) = known.get(&run.header.id) {
                return reading.refuse(line, DocumentError::SameRun { id: run.header.id, first: *first });
            }
            known.insert(run.header.id.clone(), line);
            reading.imported.push(Imported { tool: "thru".into(), run: Some(Box::new(run)), ..Imported::default() });
        }
        Err(reason) => reading.refuse(line, reason),
    }
}

fn run(document: &Value) -> Result<Run, DocumentError> {
    let schema = document["schema"].as_str().unwrap_or_default();
    if schema != Run::SCHEMA {
        return Err(refusal(schema));
    }
    Run::deserialize(document).map_err(|error| DocumentError::NotARun(error.to_string()))
}

/// Why a document of another schema is refused, and the remedy.
fn refusal(schema: &str) -> DocumentError {
    let (Some((own_kind, own)), Some((kind, version))) = (Run::SCHEMA.split_once('/'), schema.split_once('/')) else {
        return DocumentError::NoSchema;
    };
    if kind != own_kind {
        return DocumentError::OtherKind(schema.to_owned());
    }
    DocumentError::Version { version: version.to_owned(), own }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_schema_of_this_program_is_detected() {
        let whole = ["{\"schema\": \"throughline-run/1\"}", " [\n{\"a\":1,\"schema\"\n:\n\"throughline-run/1"];
        assert_eq!(whole.map(detect), [Certainty::WholeText; 2]);
        let other = ["\"schema\":\"throughline-run/1\"", "{\"a\":\"\\\"schema\\\":\\\"throughline-run/1\\\"\"}", "{}"];
        assert_eq!(other.map(detect), [Certainty::No; 3]);
    }

    #[test]
    fn other_versions_and_kinds_are_refused_with_the_remedy() {
        let newer = refusal("throughline-run/3").to_string();
        assert!(newer.ends_with("schema version 3; this version of thru reads 1: update thru"), "{newer}");
        assert!(refusal("throughline-why/1").to_string().contains("is not a run"));
        assert!(refusal("").to_string().contains("has no schema"));
    }
}
