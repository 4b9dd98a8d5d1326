//! A store of schema version 1, as the last build before version 2 left it, opens with all that it held.
//!
//! `data/version-1.sqlite.gz` holds short runs of most commands, in labs and over loopback: a stream with a probe and a capture,
//! one with a changed MTU, delayed reads, datagrams with losses, round trips, STAMP, a curve, a comparison, a plan, a search and
//! an import. A router's MTU and two rare verdicts were written into it by hand, and folders of its machine were taken out.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::io::Read;

use model::{Advice, Cell, Finding, Outcome, Pass, RunHeader, Trial, Verdict};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use store::Store;

/// Writes the kept file into a folder and opens it, which migrates it.
fn migrated() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = Vec::new();
    let packed = include_bytes!("data/version-1.sqlite.gz");
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    let path = dir.path().join("runs.sqlite");
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(&path).unwrap();
    (dir, store)
}

/// The body read as `T` and written again.
fn again<T: DeserializeOwned + Serialize>(body: &str) -> Value {
    serde_json::to_value(serde_json::from_str::<T>(body).unwrap()).unwrap()
}

#[test]
fn every_run_of_version_1_is_read_whole() {
    let (_dir, store) = migrated();
    let rows = store.list(100).unwrap();
    assert_eq!(rows.len(), 11);
    for row in rows {
        let loaded = store.load(&row.id).unwrap();
        assert_eq!(loaded.damaged, [""; 0], "{:?}", row.name);
    }
    let probed = store.load("probed").unwrap().run;
    assert_eq!(probed.header.path_outbound.unwrap().mtu.unwrap().reported_by.as_deref(), Some("192.0.2.1"));
    let delayed = store.load("delayed").unwrap().run;
    let flows = delayed.outcomes[0].trials.iter().flat_map(|trial| &trial.far.flows);
    assert!(flows.filter_map(|flow| flow.socket.delayed_reads).sum::<u64>() > 0);
    let stamp = store.load("stamp").unwrap().run.outcomes[0].summary.one_way.clone().unwrap();
    assert!(stamp.outbound.count > 0 && stamp.return_trip.count > 0 && stamp.lost_return == Some(0));
    let udp = store.load("udp").unwrap().run;
    assert_eq!(udp.outcomes[0].trials[0].verdicts, [Verdict::ByteCountMismatch, Verdict::EmulatorUnreported]);
    assert!(udp.outcomes[0].summary.why.as_ref().unwrap().losses.as_ref().unwrap().packets > 0);
    let plan = store.load("kept-plan").unwrap().run;
    assert!(plan.header.plan.unwrap().factors[0].expensive);
    assert_eq!(plan.passes.iter().filter_map(|pass| pass.round).max(), Some(1));
}

/// No key of version 1 is left that version 2 would pass over.
#[test]
fn every_row_of_version_1_reads_back_to_what_it_was() {
    let (_dir, store) = migrated();
    let connection = rusqlite::Connection::open(store.path()).unwrap();
    let read = |sql: &str| -> Vec<(String, String)> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    };
    let mut rows = read("SELECT kind, body FROM entry");
    rows.extend(read("SELECT 'header', header FROM run"));
    assert!(rows.len() > 200);
    for (kind, body) in rows {
        let after = match kind.as_str() {
            "header" => again::<RunHeader>(&body),
            "cells" => again::<Vec<Cell>>(&body),
            "trial" => again::<Trial>(&body),
            "pass" => again::<Pass>(&body),
            "outcome" | "whole-outcome" => again::<Outcome>(&body),
            "finding" => again::<Finding>(&body),
            "advice" => again::<Advice>(&body),
            other => panic!("a row of the kind {other}"),
        };
        let before: Value = serde_json::from_str(&body).unwrap();
        if before != after {
            panic!("{kind}: {}", first_difference("", &before, &after));
        }
    }
}

fn first_difference(at: &str, before: &Value, after: &Value) -> String {
    match (before, after) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                match b.get(key) {
                    None => return format!("{at}.{key} is gone"),
                    Some(other) if other != value => return first_difference(&format!("{at}.{key}"), value, other),
                    Some(_) => {}
                }
            }
            let new = b.keys().find(|key| !a.contains_key(*key));
            format!("{at}.{} is new", new.map_or("", |key| key))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pair = a.iter().zip(b).find(|(a, b)| a != b);
            pair.map_or_else(String::new, |(a, b)| first_difference(&format!("{at}[]"), a, b))
        }
        _ => format!("{at}: {before} became {after}"),
    }
}
