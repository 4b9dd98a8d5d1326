//! The keys of a line give the specs of the table, and what cannot be combined is refused by name.

use model::Spec;
use serde_json::{Map, Value};

use super::*;

/// Lines of flags with their specs: the blocks, and what differs from a stream over tcp.
const SPECS: &str = include_str!("../../testdata/specs.json");

/// The pattern and the keys of a line.
fn keys(line: &str) -> (Pattern, Vec<(&str, &str)>) {
    let (pattern, flags) = line.split_once(' ').unwrap_or((line, ""));
    let keys = flags.split_whitespace().map(|flag| {
        let flag = flag.trim_start_matches('-');
        flag.split_once('=').unwrap_or((flag, "true"))
    });
    (Pattern::read(pattern).unwrap(), keys.collect())
}

fn by_keys(line: &str) -> Result<Vec<Spec>, FieldError> {
    let (pattern, keys) = keys(line);
    let mut draft = SpecDraft::new(pattern);
    keys.iter().try_for_each(|(key, value)| draft.set(key, value))?;
    draft.finish()
}

fn by_json(line: &str) -> Result<Vec<Spec>, FieldError> {
    let (pattern, keys) = keys(line);
    let mut object: Map<String, Value> =
        keys.into_iter().map(|(key, value)| (key.to_owned(), Value::from(value))).collect();
    object.insert(Pattern::KEY.to_owned(), pattern.name().into());
    SpecDraft::from_json(&object)?.finish()
}

/// Each line of the table with its specs.
pub(crate) fn table() -> Vec<(String, Vec<Spec>)> {
    let rows: Vec<Map<String, Value>> = serde_json::from_str(SPECS).unwrap();
    let base = serde_json::to_value(Spec::new("tcp", "stream")).unwrap();
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

/// Lines that no draft can be finished with, the key that the error is about, and the error.
pub(crate) const REFUSED: [(&str, &str, &str); 28] = [
    ("stream --udp --transport=tcp", "udp", "`udp` and `transport` exclude each other: omit one of them"),
    ("stream --reverse --both", "reverse", "`reverse` and `both` exclude each other: omit one of them"),
    ("stream --spin --wait=auto", "spin", "`spin` and `wait` exclude each other: omit one of them"),
    ("rr --ipv4 --ipv6", "ipv4", "`ipv4` and `ipv6` exclude each other: omit one of them"),
    ("stream --bytes=1 --count=1", "bytes", "`bytes` and `count` exclude each other: omit one of them"),
    ("transfer --bytes=1 --count=1", "bytes", "`bytes` and `count` exclude each other: omit one of them"),
    (
        "stream --udp --find-no-loss --rate=1Mbit",
        "find-no-loss",
        "`find-no-loss` and `rate` exclude each other: omit one of them",
    ),
    (
        "stream --udp --find-no-loss --bytes=1",
        "find-no-loss",
        "`find-no-loss` and `bytes` exclude each other: omit one of them",
    ),
    (
        "stream --udp --find-no-loss --count=1",
        "find-no-loss",
        "`find-no-loss` and `count` exclude each other: omit one of them",
    ),
    ("rr --connect --rate=1000/s", "connect", "`connect` and `rate` exclude each other: omit one of them"),
    ("curve --block=1 --first=1", "block", "`block` and `first` exclude each other: omit one of them"),
    ("curve --block=1 --to=8", "block", "`block` and `to` exclude each other: omit one of them"),
    ("curve --block=1 --perturbation=3", "block", "`block` and `perturbation` exclude each other: omit one of them"),
    (
        "stream --cc-rules=testdata/cc-rules.toml",
        "cc-rules",
        "`cc-rules` has no effect without `cc`: add `cc`, or omit `cc-rules`",
    ),
    ("stream --snaplen=96", "snaplen", "`snaplen` has no effect without `capture`: add `capture`, or omit `snaplen`"),
    ("rr --fetch=64MiB", "fetch", "`fetch` has no effect without `capture`: add `capture`, or omit `fetch`"),
    ("transfer --count=1 --burst=1KiB", "burst", "`burst` has no effect without `rate`: add `rate`, or omit `burst`"),
    (
        "rr --overlap-close",
        "overlap-close",
        "`overlap-close` has no effect without `connect`: add `connect`, or omit `overlap-close`",
    ),
    (
        "curve --transport=udp --unpaced",
        "unpaced",
        "`unpaced` has no effect without `stream`: add `stream`, or omit `unpaced`",
    ),
    (
        "curve --delayed-reads",
        "delayed-reads",
        "`delayed-reads` has no effect without `stream`: add `stream`, or omit `delayed-reads`",
    ),
    ("rr --both", "both", "rr does not support `both`: a curve with `both` sends blocks in both directions at once"),
    (
        "curve --stream --both",
        "both",
        "`stream` and `both` exclude each other: without `stream`, `both` sends blocks in both directions at once",
    ),
    ("transfer", "count", "a transfer needs its amount: add `count` or `bytes`"),
    ("stream --udp --nodelay=on", "nodelay", "`nodelay` has no effect on udp: omit it, or use tcp, mptcp or tls"),
    (
        "transfer --bytes=1 --unpaced",
        "unpaced",
        "`unpaced` has no effect on tcp, which has flow control: omit it, or use udp",
    ),
    ("curve --first=64 --to=8", "to", "`to` is smaller than `first`: exchange them"),
    ("curve --transport=udp --to=70000", "to", "the largest block of udp is 65507 bytes: use a smaller `to`"),
    ("curve --transport=udp --both", "both", "a curve over udp does not support `both`: use tcp, unix or shm"),
];

#[test]
fn what_cannot_be_combined_is_refused_by_its_key() {
    for (line, key, what) in REFUSED {
        let wrong = FieldError::of_key(key, what);
        assert_eq!((by_keys(line), by_json(line)), (Err(wrong.clone()), Err(wrong)), "{line}");
    }
}

#[test]
fn a_value_of_one_end_replaces_that_of_both() {
    let mut draft = SpecDraft::new(Pattern::Rr);
    for (key, value) in [("sndbuf", "64KiB"), ("far.sndbuf", "1MiB"), ("near.cc", "fast:alpha=200,gamma=0.3")] {
        draft.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let spec = draft.finish().unwrap().remove(0);
    assert_eq!((spec.near.sndbuf, spec.far.sndbuf), (Some(64 << 10), Some(1 << 20)));
    assert_eq!((spec.near.cc.as_deref(), spec.far.cc), (Some("fast:alpha=200,gamma=0.3"), None));
}

#[test]
fn a_wrong_key_or_value_is_named() {
    let set = |key: &str, value: &str| SpecDraft::new(Pattern::Rr).set(key, value).unwrap_err().to_string();
    assert_eq!(set("sndbufs", "1"), "thru rr has no 'sndbufs'; did you mean 'sndbuf'?");
    assert!(set("probe", "1").starts_with("thru rr has no 'probe'; "), "{}", set("probe", "1"));
    assert_eq!(set("near.block", "1"), "'block' applies to both ends: omit the near. prefix");
    assert_eq!(set("far.mss", "5"), "far.mss: '5' is not a whole number from 88 to 32767");
    assert_eq!(set("far.mss", " "), "far.mss: '' has no value: write one, or omit the key");
    assert_eq!(set("reverse", "7"), "reverse: '7' is not true or false");
    assert_eq!(set("wait", "x"), "wait: 'x' is not one of auto, blocking, epoll, uring");
    let wrong = SpecDraft::new(Pattern::Stream).set("rate", "0").unwrap_err();
    assert_eq!(wrong, FieldError::of_value("rate", "0", "'0' must be more than 0".into()));
}

#[test]
fn true_and_false_are_on_and_off() {
    let mut draft = SpecDraft::new(Pattern::Stream);
    for (key, value) in [("nodelay", "true,false"), ("far.cork", "true"), ("observe", "false"), ("spin", "on")] {
        draft.set(key, value).unwrap_or_else(|error| panic!("{error}"));
    }
    let spec = draft.finish().unwrap().remove(0);
    assert_eq!((spec.near.nodelay, spec.far.nodelay), (Some(true), Some(false)));
    assert_eq!((spec.near.cork, spec.far.cork), (None, Some(true)));
    assert_eq!((spec.observe, spec.strategy), (model::Observe::Off, model::Strategy::Spin));
}

#[test]
fn a_json_object_has_values_of_ends_and_scalars_only() {
    let draft = |json: &str| {
        let object: Map<String, Value> = serde_json::from_str(json).unwrap();
        SpecDraft::from_json(&object).and_then(SpecDraft::finish)
    };
    let json =
        r#"{"pattern": "rr", "far.cc": "bbr", "block": 64, "near": {"sndbuf": "1MiB"}, "cc": "cubic", "spin": true}"#;
    let spec = draft(json).unwrap_or_else(|error| panic!("{error}")).remove(0);
    assert_eq!((spec.pattern.as_str(), spec.block, spec.near.sndbuf), ("rr", 64, Some(1 << 20)));
    assert_eq!((spec.near.cc.as_deref(), spec.far.cc.as_deref()), (Some("cubic"), Some("bbr")));
    for (json, said) in [
        (r#"{"pattern": "curves"}"#, "pattern: unknown pattern 'curves': use one of stream, rr, transfer, curve"),
        (r#"{"block": [1]}"#, "block: write a string, a number, true or false"),
        (r#"{"near": {"block": 1}}"#, "'block' applies to both ends: omit the near. prefix"),
        (r#"{"flows": 0}"#, "flows: '0' is not a whole number from 1 to 16384"),
    ] {
        assert_eq!(draft(json).unwrap_err().to_string(), said);
    }
}
