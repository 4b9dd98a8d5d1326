//! Several processes at once, and one that is killed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise; its child process reports by printing"
)]

use std::io::Read;
use std::process::Stdio;

use model::{Event, EventSink};
use store::Store;

use crate::common::{child, ending, expected, header, in_child, pass, record, trial};

const TRIALS: u32 = 150;

/// A run of 15 passes of 10 trials.
fn events(id: &str) -> Vec<Event> {
    let mut events = vec![Event::Run(header(id))];
    for place in 0..TRIALS {
        events.push(Event::Trial(trial(0, place / 10, place)));
        if place % 10 == 9 {
            events.push(Event::Pass(pass(place / 10)));
        }
    }
    events
}

#[test]
fn a_killed_process_leaves_every_trial_that_had_ended() {
    let events = &events("killed")[..30]; // ends within the third pass
    if let Some(dir) = in_child() {
        let mut recorder = Store::open(&dir.join("runs.sqlite")).unwrap().recorder().unwrap();
        events.iter().for_each(|event| recorder.event(event).unwrap());
        println!("RECORDED");
        // Nothing is closed or flushed: the parent kills this process here.
        loop {
            std::thread::park();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let name = "a_killed_process_leaves_every_trial_that_had_ended";
    let mut victim =
        child(&[], module_path!(), name, dir.path()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    let mut output = victim.stdout.take().unwrap();
    let mut byte = [0];
    while !said.contains("RECORDED") && output.read(&mut byte).unwrap() == 1 {
        said.push(char::from(byte[0]));
    }
    victim.kill().unwrap(); // SIGKILL
    victim.wait().unwrap();
    assert!(said.contains("RECORDED"), "the child ended early: {said}");

    let store = Store::open(&dir.path().join("runs.sqlite")).unwrap();
    let loaded = store.load("killed").unwrap();
    assert_eq!(loaded, expected(events));
    assert_eq!((loaded.orphans.len(), loaded.run.passes.len(), loaded.run.ending.is_none()), (27, 2, true));
}

#[test]
fn processes_that_record_at_once_do_not_lose_a_trial() {
    if let Some(dir) = in_child() {
        let store = Store::open(&dir.join("runs.sqlite")).unwrap();
        let mut all = events(&format!("run-of-{}", std::process::id()));
        all.push(Event::End(ending("finished")));
        return record(&store, &all);
    }
    let dir = tempfile::tempdir().unwrap();
    // The file does not exist yet: they also race to make it.
    let name = "processes_that_record_at_once_do_not_lose_a_trial";
    let start =
        || child(&[], module_path!(), name, dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children: Vec<_> = (0..4).map(|_| start()).collect();
    let mut runs = Vec::new();
    for child in children {
        runs.push(format!("run-of-{}", child.id()));
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    }
    let store = Store::open(&dir.path().join("runs.sqlite")).unwrap();
    assert_eq!(store.list(10).unwrap().len(), 4);
    for id in runs {
        let mut all = events(&id);
        all.push(Event::End(ending("finished")));
        assert_eq!(store.load(&id).unwrap(), expected(&all));
    }
}

#[test]
fn many_threads_open_a_new_file_at_once() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("not/yet/there/runs.sqlite");
        std::thread::scope(|scope| {
            for id in ["a", "b", "c", "d", "e", "f"] {
                let path = &path;
                scope.spawn(move || record(&Store::open(path).unwrap(), &[Event::Run(header(id))]));
            }
        });
        assert_eq!(Store::open(&path).unwrap().list(10).unwrap().len(), 6);
    }
}

#[test]
fn a_reader_sees_a_run_while_it_is_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("runs.sqlite")).unwrap();
    let events = events("live");
    let mut recorder = store.recorder().unwrap();
    for (place, event) in events.iter().enumerate().take(25) {
        recorder.event(event).unwrap();
        assert_eq!(store.load("live").unwrap(), expected(&events[..=place]));
    }
}
