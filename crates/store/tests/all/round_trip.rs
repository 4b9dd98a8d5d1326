//! What goes in comes out equal.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use model::{Estimate, Event, EventSink, Finding, FindingKind, Interval, Phase, RunHeader, RunSummary, Trust};
use proptest::prelude::*;
use proptest::sample::Index;
use store::{RunOrder, RunSearch, Store, StoreError};
use text::{Rate, say};

use crate::common::{any_run, cell, ending, estimate, expected, header, outcome, pass, record, trial};

fn new_store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("runs.sqlite")).unwrap();
    (dir, store)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_run_comes_out_as_it_went_in(events in any_run()) {
        let (_dir, store) = new_store();
        record(&store, &events);
        prop_assert_eq!(store.load("last").unwrap(), expected(&events));
    }

    #[test]
    fn a_run_that_was_cut_off_anywhere_keeps_all_that_came(events in any_run(), cut in any::<Index>()) {
        let (_dir, store) = new_store();
        let events = &events[..1 + cut.index(events.len())];
        record(&store, events);
        // A fresh connection, as the next command has.
        let store = Store::open(store.path()).unwrap();
        prop_assert_eq!(store.load("last").unwrap(), expected(events));
    }
}

#[test]
fn intervals_and_phases_are_not_kept() {
    let (_dir, store) = new_store();
    let interval = Event::Interval { pass: 0, end: "near".into(), interval: Interval::default() };
    record(&store, &[Event::Run(header("a")), interval, Event::Phase(Phase::default()), Event::Trial(trial(0, 0, 0))]);
    let loaded = store.load("a").unwrap();
    assert_eq!(loaded.orphans, [trial(0, 0, 0)]);
    assert_eq!((loaded.run.passes.len(), loaded.damaged.len()), (0, 0));
}

#[test]
fn cells_and_outcomes_with_equal_specs_have_one_in_memory() {
    let (_dir, store) = new_store();
    let cells = (0..3).map(|id| model::Cell::new(id, outcome(id, Vec::new()).spec)).collect();
    let mut events = vec![Event::Run(model::RunHeader { cells, ..header("a") })];
    events.extend((0..3).map(|cell| Event::Outcome(outcome(cell, Vec::new()))));
    record(&store, &events);
    let run = store.load("a").unwrap().run;
    let specs = run.header.cells.iter().map(|cell| &cell.spec).chain(run.outcomes.iter().map(|outcome| &outcome.spec));
    assert!(specs.clone().count() == 6 && specs.clone().all(|spec| spec.is_same(&run.outcomes[0].spec)));
}

#[test]
fn an_outcome_does_not_store_its_trials_twice() {
    let (dir, store) = new_store();
    let trials: Vec<_> = (0..200).map(|place| trial(0, 0, place)).collect();
    let mut events = vec![Event::Run(header("a"))];
    events.extend(trials.iter().cloned().map(Event::Trial));
    record(&store, &events);
    let size = |store: Store| {
        drop(store); // the last connection moves the log into the file
        std::fs::metadata(dir.path().join("runs.sqlite")).unwrap().len()
    };
    let before = size(store);
    let store = Store::open(&dir.path().join("runs.sqlite")).unwrap();
    events[0] = Event::Run(header("b"));
    events.push(Event::Outcome(outcome(0, trials)));
    record(&store, &events);
    assert_eq!(store.load("b").unwrap(), expected(&events));
    let grown = size(store) - before;
    assert!(grown < before * 3 / 2, "{grown} bytes for the same trials and one outcome, {before} without it");
}

#[test]
fn the_list_shows_the_latest_first_with_what_stands_for_each() {
    let (_dir, store) = new_store();
    let named = |id: &str, name: &str| RunHeader { name: Some(name.into()), ..header(id) };
    let peak = |value| {
        let estimate = Some(estimate(value));
        Event::Finding(Finding {
            kind: FindingKind::Peak,
            statement: "peak".into(),
            estimate,
            block: None,
            cells: vec![],
            comparison: None,
        })
    };
    let events = [Event::Run(named("a", "before")), Event::Outcome(outcome(0, vec![])), Event::End(ending("finished"))];
    let summary = RunSummary {
        headline: say!("{} ±1.00 %", Rate(9.5e8)),
        estimate: Some(estimate(9.5e8)),
        trust: Some(Trust::Fair),
        ..RunSummary::default()
    };
    let mut recorder = store.recorder().unwrap();
    events.iter().for_each(|event| recorder.record(event).unwrap());
    recorder.summarise(&summary).unwrap();
    record(
        &store,
        &[
            Event::Run(header("b")),
            Event::Cells { cells: vec![cell(1, "tcp"), cell(2, "udp")] },
            Event::Outcome(outcome(0, vec![])),
            Event::Outcome(outcome(1, vec![])),
            peak(4.0),
            Event::End(ending("interrupted")),
        ],
    );
    record(&store, &[Event::Run(header("c")), Event::Outcome(outcome(0, vec![])), peak(4.0)]);

    let rows = store.list(10).unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids, ["c", "b", "a"]);
    assert_eq!(rows[2].name.as_deref(), Some("before"));
    assert_eq!(rows[2].summary, Some(summary));
    assert_eq!(rows[2].started_unix_ns, header("a").started_unix_ns);
    assert_eq!((rows[1].transport.as_str(), rows[1].ending.as_deref()), ("tcp", Some("interrupted")));
    assert_eq!((&rows[0].ending, &rows[0].summary), (&None, &None), "it has not ended");
    assert_eq!(store.list(2).unwrap(), rows[..2]);
    assert_eq!(store.list(0).unwrap(), []);
}

#[test]
fn runs_are_found_by_words_stars_and_tags() {
    let (_dir, store) = new_store();
    for (id, name) in [("a", Some("100%_loss")), ("b", Some("Café DSL")), ("c", None)] {
        let header = RunHeader { name: name.map(str::to_owned), ..header(id) };
        record(&store, &[Event::Run(header), Event::End(ending("finished"))]);
    }
    store.star("b", true).unwrap();
    store.tag("c", &["site-2".into(), "kernel".into(), "site-2".into()]).unwrap();
    let found = |words: &[&str], starred| {
        let search =
            RunSearch { words: words.iter().map(|word| (*word).to_owned()).collect(), starred, ..RunSearch::default() };
        store.search(&search, 9).unwrap().into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(found(&[], false), ["c", "b", "a"]);
    assert_eq!(found(&["dsl"], false), ["b"]);
    assert_eq!(found(&["SITE-2", "kern"], false), ["c"]);
    assert_eq!(found(&["2026-11-21", "café"], false), ["b"]);
    // What matches anything in other languages is a character here.
    assert_eq!((found(&["%"], false), found(&["_"], false)), (vec!["a".to_owned()], vec!["a".to_owned()]));
    assert_eq!(found(&["dsl", "site-2"], false), Vec::<String>::new());
    assert_eq!((found(&[], true), found(&["site"], true)), (vec!["b".to_owned()], vec![]));
    assert_eq!(store.list(1).unwrap()[0].tags, ["kernel", "site-2"]);
    store.star("b", false).unwrap();
    store.tag("c", &[]).unwrap();
    assert_eq!((found(&[], true), found(&["site"], false)), (vec![], vec![]));
    assert!(matches!(store.star("nosuch", true), Err(StoreError::Unknown { .. })));
    store.tag("a", &["x".into()]).unwrap();
    store.delete("a").unwrap();
    assert_eq!(store.list(9).unwrap().len(), 2);
}

#[test]
fn runs_are_sorted_and_counted_and_their_hosts_listed() {
    let (_dir, store) = new_store();
    let estimate = |unit: &str, value| Estimate { unit: unit.to_owned(), ..estimate(value) };
    for (id, target, found, trust) in [
        ("a", "x", Some(("bit/s", 2.0)), Some(Trust::Low)),
        ("b", "y, z", Some(("bit/s", 9.0)), Some(Trust::High)),
        ("c", "x", None, None),
        ("d", "other", Some(("1/s", 5.0)), Some(Trust::None)),
    ] {
        let mut begun = RunHeader { target: Some(target.to_owned()), name: Some(format!("run {id}")), ..header(id) };
        // Another program's server is no agent.
        begun.origin = (id == "d").then(|| Box::new(model::Origin { tool: "iperf3".into(), ..Default::default() }));
        let mut recorder = store.recorder().unwrap();
        let events = [Event::Run(begun), Event::End(ending("finished"))];
        events.iter().for_each(|event| recorder.record(event).unwrap());
        let estimate = found.map(|(unit, value)| estimate(unit, value));
        recorder.summarise(&RunSummary { estimate, trust, ..RunSummary::default() }).unwrap();
    }
    let page = |order, rising, skipped, limit| {
        let search = RunSearch { order, rising, ..RunSearch::default() };
        let (rows, all) = store.page(&search, skipped, limit).unwrap();
        (rows.into_iter().map(|row| row.id).collect::<String>(), all)
    };
    for (order, falling, rising) in [
        (RunOrder::Arrival, "dcba", "abcd"),
        (RunOrder::Name, "dcba", "abcd"),
        (RunOrder::Target, "bcad", "dcab"),
        (RunOrder::Value, "dbac", "dabc"),
        (RunOrder::Trust, "badc", "dabc"),
    ] {
        assert_eq!(
            (page(order, false, 0, 9).0.as_str(), page(order, true, 0, 9).0.as_str()),
            (falling, rising),
            "{order:?}"
        );
    }
    assert_eq!(page(RunOrder::Arrival, false, 1, 2), ("cb".to_owned(), 4));
    assert_eq!(page(RunOrder::Arrival, false, 9, 2), (String::new(), 4));
    assert_eq!(store.hosts(9).unwrap().into_iter().collect::<Vec<_>>(), ["x", "y", "z"]);
}

#[test]
fn one_recorder_takes_one_run_after_another() {
    let (_dir, store) = new_store();
    let mut recorder = store.recorder().unwrap();
    let early = recorder.event(&Event::Trial(trial(0, 0, 0))).unwrap_err();
    assert!(early.to_string().contains("before the run"), "{early}");
    let mut both = Vec::new();
    for id in ["a", "b"] {
        let events = vec![Event::Run(header(id)), Event::Trial(trial(0, 0, 7)), Event::End(ending("finished"))];
        events.iter().for_each(|event| recorder.event(event).unwrap());
        both.push(events);
    }
    assert_eq!(store.load("a").unwrap(), expected(&both[0]));
    assert_eq!(store.load("b").unwrap(), expected(&both[1]));
    let taken = recorder.record(&Event::Run(header("a"))).unwrap_err();
    assert!(matches!(taken, StoreError::IdTaken { .. }), "{taken}");
}

#[test]
fn a_resumed_run_keeps_its_trials_and_takes_new_outcomes() {
    let (_dir, store) = new_store();
    let (first, second) = (trial(0, 0, 1), trial(0, 1, 2));
    record(
        &store,
        &[
            Event::Run(header("a")),
            Event::Trial(first.clone()),
            Event::Pass(pass(0)),
            Event::Outcome(outcome(0, vec![first.clone()])),
            Event::End(ending("interrupted")),
        ],
    );
    let mut recorder = store.recorder().unwrap();
    recorder.resume("a").unwrap();
    let half = store.load("a").unwrap();
    assert_eq!((half.run.ending, half.run.outcomes, half.orphans), (None, vec![], vec![first.clone()]));
    let both = vec![first, second.clone()];
    let more = [
        Event::Run(header("a")),
        Event::Trial(second),
        Event::Pass(pass(1)),
        Event::Outcome(outcome(0, both.clone())),
        Event::End(ending("finished")),
    ];
    more.iter().for_each(|event| recorder.event(event).unwrap());
    let whole = store.load("a").unwrap();
    assert_eq!((whole.run.outcomes[0].trials.clone(), whole.run.passes.len()), (both, 2));
    assert_eq!(whole.run.ending, Some(ending("finished")));
    assert_eq!(store.list(9).unwrap().len(), 1);
    assert!(matches!(recorder.resume("b"), Err(StoreError::Gone { .. })));
}

#[test]
fn a_deleted_run_is_gone_and_its_number_does_not_come_back() {
    let (dir, store) = new_store();
    let mut recorder = store.recorder().unwrap();
    recorder.event(&Event::Run(header("20261121-203758-4f1a"))).unwrap();
    for place in 0..500 {
        recorder.event(&Event::Trial(trial(0, 0, place))).unwrap();
    }
    let file = dir.path().join("runs.sqlite");
    assert_eq!(store.delete("20261121").unwrap(), "20261121-203758-4f1a");
    assert!(matches!(store.load("last"), Err(StoreError::Unknown { .. })));
    // Another run begins; the recorder of the first must not write into it.
    record(&store, &[Event::Run(header("b"))]);
    for event in [Event::Trial(trial(0, 0, 0)), Event::Pass(pass(0)), Event::End(ending("finished"))] {
        let error = recorder.record(&event).unwrap_err();
        assert!(matches!(error, StoreError::Gone { .. }), "{error}");
    }
    assert_eq!(store.load("b").unwrap(), expected(&[Event::Run(header("b"))]));
    drop((recorder, store));
    let left = std::fs::metadata(file).unwrap().len();
    assert!(left < 100_000, "{left} bytes after 500 trials were deleted");
}

#[test]
fn a_whole_run_is_stored_or_nothing_of_it() {
    let (_dir, store) = new_store();
    let mut recorder = store.recorder().unwrap();
    let whole = |id: &str| {
        record(&store, &[Event::Run(header(id)), Event::Pass(pass(0)), Event::End(ending("finished"))]);
        store.load(id).unwrap().run
    };
    let (mut first, second) = (whole("first"), whole("second"));
    // The id of another run, with more passes: nothing of them is kept.
    "second".clone_into(&mut first.header.id);
    first.passes.push(pass(1));
    assert!(matches!(recorder.record_run(&first), Err(StoreError::IdTaken { .. })));
    assert_eq!(store.load("second").unwrap().run, second);
    let late = recorder.record(&Event::Pass(pass(2))).unwrap_err();
    assert!(matches!(late, StoreError::NotStarted { .. }), "{late}");
    "third".clone_into(&mut first.header.id);
    recorder.record_run(&first).unwrap();
    assert_eq!(store.load("third").unwrap().run, first);
    // The same holds for the events of a part of a run.
    let part = |id: &str| [Event::Run(header(id)), Event::Pass(pass(0)), Event::Pass(pass(1))];
    recorder.record_all(&part("fourth")).unwrap();
    assert_eq!(store.load("fourth").unwrap().run.passes.len(), 2);
    let twice: Vec<Event> = part("fifth").into_iter().chain(part("second")).collect();
    assert!(matches!(recorder.record_all(&twice), Err(StoreError::IdTaken { .. })));
    assert!(store.load("fifth").is_err());
}
