//! The manual's page about the protocol has the messages that there are.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use protocol::PROTOCOL;
use protocol::message::{FromAgent, ToAgent};
use protocol::worker_message::{FromWorker, ToWorker};
use serde::de::DeserializeOwned;

/// The names of all messages of a type, from the error about one that is none.
fn names<M: DeserializeOwned + std::fmt::Debug>() -> BTreeSet<String> {
    let error = serde_json::from_str::<M>("\"no message\"").unwrap_err().to_string();
    let (_, names) = error.split_once("expected one of ").expect("a list of names");
    quoted(names).skip_while(|name| name.contains(' ')).collect()
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// The messages in the rows of a side (`C` or `A`), with those that the text of a row calls an answer or what follows.
fn rows(page: &str, side: &str) -> BTreeSet<String> {
    let cells = page.lines().filter_map(|line| line.strip_prefix(&format!("| {side} | "))?.split_once(" | "));
    cells.flat_map(|(names, _)| quoted(names)).collect()
}

#[test]
fn the_manual_has_each_message_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual/protocol.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.starts_with(&format!("# The control and data protocol, version {PROTOCOL}\n")));
    // Both sides send pings, which a paragraph describes.
    let without_ping = |mut names: BTreeSet<String>| {
        assert!(names.remove("ping"));
        names
    };
    assert_eq!(rows(&page, "C"), without_ping(names::<ToAgent>()));
    assert_eq!(rows(&page, "A"), without_ping(names::<FromAgent>()));
    let (_, workers) = page.split_once("## Between an agent and its workers").expect("the section");
    let (_, list) = workers.split_once("frames: ").expect("the list of messages");
    let (to, from) = list.split_once("to the worker; ").expect("messages to the worker");
    let (from, _) = from.split_once(" from").expect("messages from the worker");
    assert_eq!(quoted(to).collect::<BTreeSet<_>>(), names::<ToWorker>());
    assert_eq!(quoted(from).collect::<BTreeSet<_>>(), names::<FromWorker>());
}
