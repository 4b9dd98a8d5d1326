//! The JSON Schemas of the documents and of the event stream. `docs/schema` keeps them, and the program has those: what makes them is a
//! megabyte of code.

use schemars::{Schema, schema_for};

use crate::{Event, RunComparison, RunDocument, SelfTest, WhyDocument};

/// All of them, by the names of their files.
#[must_use]
pub fn all() -> [(&'static str, Schema); 5] {
    [("run", run()), ("event", event()), ("comparison", comparison()), ("selftest", selftest()), ("why", why())]
}

/// JSON Schema of the document that `--json` and `thru export --format json` write.
#[must_use]
pub fn run() -> Schema {
    schema_for!(RunDocument<'static>)
}

/// JSON Schema of the document that `thru compare --json` writes.
#[must_use]
pub fn comparison() -> Schema {
    schema_for!(RunComparison)
}

/// JSON Schema of one line of `--live` and of `thru export --format ndjson`.
#[must_use]
pub fn event() -> Schema {
    schema_for!(Event)
}

/// JSON Schema of the document that `thru why --json` writes.
#[must_use]
pub fn why() -> Schema {
    schema_for!(WhyDocument)
}

/// JSON Schema of what `thru selftest --json` writes.
#[must_use]
pub fn selftest() -> Schema {
    schema_for!(SelfTest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_schemas_are_of_these_types() {
        let kept = [
            include_str!("../../../docs/schema/run.schema.json"),
            include_str!("../../../docs/schema/event.schema.json"),
            include_str!("../../../docs/schema/comparison.schema.json"),
            include_str!("../../../docs/schema/selftest.schema.json"),
            include_str!("../../../docs/schema/why.schema.json"),
        ];
        for ((name, schema), kept) in all().into_iter().zip(kept) {
            let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
            assert!(
                text == kept,
                "docs/schema/{name}.schema.json is out of date: run `cargo run -p throughline-model --features schema --example schema`"
            );
        }
    }
}
