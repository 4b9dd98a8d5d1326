//! The keys of a line give the specs of the table, and what cannot be combined is refused by name.

use model::{Pattern, Spec};
use serde_json::{Map, Value};

use options::{OptionError, TestKind, TestOptions};

use super::*;
use crate::testing::TestHost;
use vec1::Vec1;

/// Lines of flags with their specs: the blocks, and what differs from a stream over tcp.
const SPECS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/specs.json"));
/// Lines of flags that give no spec, the key that the error is about, and the error.
const REFUSED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/refused.json"));

/// The pattern and the keys of a line.
fn keys(line: &str) -> (TestKind, Vec<(&str, &str)>) {
    let (pattern, flags) = line.split_once(' ').unwrap_or((line, ""));
    let keys = flags.split_whitespace().map(|flag| {
        let flag = flag.trim_start_matches('-');
        flag.split_once('=').unwrap_or((flag, "true"))
    });
    (TestKind::read(pattern).unwrap(), keys.collect())
}

fn by_keys(line: &str) -> Result<Vec<Spec>, OptionError> {
    let (pattern, keys) = keys(line);
    let mut options = TestOptions::new(pattern);
    keys.iter().try_for_each(|(key, value)| options.set(key, value))?;
    of(&options, &TestHost).map(Vec1::into_vec)
}

fn by_json(line: &str) -> Result<Vec<Spec>, OptionError> {
    let (pattern, keys) = keys(line);
    let mut object: Map<String, Value> =
        keys.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect();
    object.insert(TestKind::KEY.to_owned(), pattern.name().into());
    of(&TestOptions::from_json(&object)?, &TestHost).map(Vec1::into_vec)
}

/// Each line of the table with its specs.
fn table() -> Vec<(String, Vec<Spec>)> {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(SPECS).unwrap();
    let base = serde_json::to_value(Spec::new("tcp", Pattern::Stream)).unwrap();
    let specs = |row: &Map<String, Value>| {
        let of = |block: &Value| {
            let mut spec = base.clone();
            let whole = spec.as_object_mut().unwrap();
            whole.extend(row["changes"].as_object().unwrap().clone());
            whole.insert("block".into(), block.clone());
            serde_json::from_value(spec).unwrap()
        };
        row["blocks"].as_array().unwrap().iter().map(of).collect()
    };
    rows.iter().map(|row| (row["line"].as_str().unwrap().to_owned(), specs(row))).collect()
}

#[test]
fn keys_give_the_specs_of_the_table() {
    for (line, specs) in table() {
        assert_eq!(by_keys(&line), Ok(specs), "{line}");
    }
}

#[test]
fn a_json_object_gives_the_specs_of_the_table() {
    // An object has each key once.
    for (line, specs) in table().into_iter().filter(|(line, _)| line.matches("--set=").count() < 2) {
        assert_eq!(by_json(&line), Ok(specs), "{line}");
    }
}

#[test]
fn what_cannot_be_combined_is_refused_by_its_key() {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(REFUSED).unwrap();
    assert!(rows.len() > 25, "{}", rows.len());
    for row in rows {
        let [line, key, what] = ["line", "key", "what"].map(|name| row[name].as_str().unwrap());
        for refused in [by_keys(line), by_json(line)] {
            let error = refused.unwrap_err();
            assert_eq!((error.key(), error.what().plain().as_str()), (key, what), "{line}");
        }
    }
}

#[test]
fn a_value_of_one_end_replaces_that_of_both() {
    let mut options = TestOptions::new(TestKind::Rr);
    for (key, value) in [("sndbuf", "64KiB"), ("far.sndbuf", "1MiB"), ("near.cc", "fast:alpha=200,gamma=0.3")] {
        options.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let spec = of(&options, &TestHost).unwrap().split_off_first().0;
    assert_eq!((spec.near.sndbuf, spec.far.sndbuf), (Some(64 << 10), Some(1 << 20)));
    assert_eq!((spec.near.cc.as_deref(), spec.far.cc), (Some("fast:alpha=200,gamma=0.3"), None));
}

#[test]
fn true_and_false_are_on_and_off() {
    let mut options = TestOptions::new(TestKind::Stream);
    for (key, value) in [("nodelay", "true,false"), ("far.cork", "true"), ("observe", "false"), ("spin", "on")] {
        options.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let spec = of(&options, &TestHost).unwrap().split_off_first().0;
    assert_eq!((spec.near.nodelay, spec.far.nodelay), (Some(true), Some(false)));
    assert_eq!((spec.near.cork, spec.far.cork), (None, Some(true)));
    assert_eq!((spec.observe, spec.strategy), (model::Observe::Off, model::Strategy::Spin));
}

#[test]
fn a_json_object_has_values_of_ends_and_scalars_only() {
    let specs = |json: &str| {
        let object: Map<String, Value> = serde_json::from_str(json).unwrap();
        TestOptions::from_json(&object).and_then(|options| of(&options, &TestHost))
    };
    let json =
        r#"{"pattern": "rr", "far.cc": "bbr", "block": 64, "near": {"sndbuf": "1MiB"}, "cc": "cubic", "spin": true}"#;
    let spec = specs(json).unwrap_or_else(|error| panic!("{error}")).split_off_first().0;
    assert_eq!((spec.pattern, spec.block, spec.near.sndbuf), (Pattern::Rr, 64, Some(1 << 20)));
    assert_eq!((spec.near.cc.as_deref(), spec.far.cc.as_deref()), (Some("cubic"), Some("bbr")));
    for (json, said) in [
        (r#"{"pattern": "curves"}"#, "pattern: unknown pattern 'curves': use one of stream, rr, transfer, curve"),
        (r#"{"block": [1]}"#, "block: write a string, a number, true or false"),
        (r#"{"near": {"block": 1}}"#, "'block' applies to both ends: omit the near. prefix"),
        (r#"{"flows": 0}"#, "flows: '0' is not a whole number from 1 to 16384"),
    ] {
        assert_eq!(specs(json).unwrap_err().to_string(), said);
    }
}
