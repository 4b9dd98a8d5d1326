//! Full disks, files that cannot be written, damaged and foreign files.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it skips"
)]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use model::{Event, EventSink, Outcome, RttTally};
use store::{RunSearch, Store, StoreError};

use crate::common::{child, ending, expected, header, in_child, record, trial};

const FILE: &str = "runs.sqlite";

/// The words of an error on opening, reading or writing, after a check that they lead the user on.
fn words<T>(result: Result<T, StoreError>, path: &Path) -> String {
    let Err(error) = result else { panic!("must fail") };
    let message = error.to_string();
    assert!(message.contains(&path.display().to_string()), "names no file: {message}");
    assert!(message.contains("`--store FILE`"), "names no way out: {message}");
    message
}

/// Runs the test `name` again in a mount namespace of its own with a tmpfs of 512 KiB; says so and returns where the
/// machine does not allow that.
fn on_a_small_filesystem(name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_str().unwrap();
    let mount = format!("mount -t tmpfs -o size=512k tmpfs {at}");
    for user in [&["--mount"][..], &["--mount", "--map-root-user"]] {
        let tried = Command::new("unshare").args(user).args(["sh", "-c", &mount]).output();
        if !tried.is_ok_and(|output| output.status.success()) {
            continue;
        }
        let script = format!("{mount} && exec \"$@\"");
        let wrapper = [&["unshare"], user, &["sh", "-c", script.as_str(), "sh"]].concat();
        let output = child(&wrapper, module_path!(), name, dir.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    println!("SKIPPED: {name}: mounting a small filesystem needs root or user namespaces");
}

#[test]
fn a_full_disk_is_named_and_costs_nothing_that_was_stored() {
    let Some(dir) = in_child() else {
        return on_a_small_filesystem("a_full_disk_is_named_and_costs_nothing_that_was_stored");
    };
    let path = dir.join(FILE);
    fs::write(dir.join("ballast"), vec![1; 128 << 10]).unwrap();
    let store = Store::open(&path).unwrap();
    let mut recorder = store.recorder().unwrap();
    let mut events = vec![Event::Run(header("full"))];
    recorder.record(&events[0]).unwrap();
    let failure = loop {
        let event = Event::Trial(trial(0, 0, events.len() as u32));
        if let Err(failure) = recorder.record(&event) {
            break failure;
        }
        events.push(event);
        assert!(events.len() < 10_000, "a filesystem of 512 KiB must fill up");
    };
    assert!(matches!(failure, StoreError::Full { .. }), "{failure}");
    assert!(words::<()>(Err(failure), &path).contains("no space left"));
    assert!(events.len() > 20, "only {} events fitted", events.len());
    assert_eq!(store.load("full").unwrap(), expected(&events));

    fs::remove_file(dir.join("ballast")).unwrap();
    for event in [Event::Trial(trial(0, 1, 0)), Event::End(ending("failed"))] {
        recorder.event(&event).unwrap();
        events.push(event);
    }
    assert_eq!(store.load("full").unwrap(), expected(&events));
}

#[test]
fn a_read_only_filesystem_is_named_and_says_what_helps() {
    let Some(dir) = in_child() else {
        return on_a_small_filesystem("a_read_only_filesystem_is_named_and_says_what_helps");
    };
    let path = dir.join(FILE);
    let events = [Event::Run(header("kept")), Event::Trial(trial(0, 0, 0))];
    let store = Store::open(&path).unwrap();
    record(&store, &events);
    drop(store);
    let read_only = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(&dir).status().unwrap();
    assert!(read_only.success());

    // SQLite needs its -shm file for a log, so not even reading works here; the message has to say what does.
    assert!(words(Store::open(&path), &path).contains("permissions"));
    assert!(words(Store::open(&dir.join("new.sqlite")), &dir.join("new.sqlite")).contains("permissions"));
    let below = dir.join("below/runs.sqlite");
    assert!(words(Store::open(&below), &dir.join("below")).contains("cannot create the directory"));
}

#[test]
fn a_file_that_cannot_be_written_can_still_be_read() {
    let name = "a_file_that_cannot_be_written_can_still_be_read";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let events = [Event::Run(header("kept")), Event::Trial(trial(0, 0, 0))];
    record(&Store::open(&path).unwrap(), &events);
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    if fs::OpenOptions::new().write(true).open(&path).is_ok() {
        // Root writes any file; root without this capability does not.
        assert!(in_child().is_none(), "the capability was not dropped");
        let wrapper = ["setpriv", "--bounding-set=-dac_override"];
        match child(&wrapper, module_path!(), name, dir.path()).output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout)),
            Err(error) => println!("SKIPPED: {name}: root may write any file, and setpriv: {error}"),
        }
        return;
    }
    let store = Store::open(&path).unwrap();
    assert_eq!(store.load("kept").unwrap(), expected(&events));
    assert!(words(store.recorder(), &path).contains("cannot be written"));
    assert!(words(store.delete("kept"), &path).contains("cannot be written"));
    assert_eq!(store.list(1).unwrap().len(), 1);
}

#[test]
fn garbage_is_refused_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let garbage: Vec<u8> = (0..20_000u32).map(|n| (n * 7 % 251) as u8).collect();
    fs::write(&path, &garbage).unwrap();
    assert!(words(Store::open(&path), &path).contains("damaged or is not a store"));
    assert_eq!(fs::read(&path).unwrap(), garbage);
    assert!(words(Store::open(dir.path()), dir.path()).contains("cannot open"));
}

#[test]
fn another_programs_database_is_refused_and_left_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE bookmarks (url)").unwrap();
    let before = fs::read(&path).unwrap();
    assert!(words(Store::open(&path), &path).contains("another program"));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn damaged_pages_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let mut events = vec![Event::Run(header("a"))];
    events.extend((0..200).map(|place| Event::Trial(trial(0, 0, place))));
    record(&Store::open(&path).unwrap(), &events);
    // The first page, with the schema, stays whole.
    let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let length = file.metadata().unwrap().len();
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(4096)).unwrap();
    file.write_all(&vec![0xa5; length as usize - 4096]).unwrap();
    drop(file);
    let store = Store::open(&path).unwrap();
    assert!(words(store.load("a"), &path).contains("damaged or is not a store"));
    assert!(words(store.list(5), &path).contains("damaged or is not a store"));
}

#[test]
fn a_row_that_cannot_be_read_costs_only_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let store = Store::open(&path).unwrap();
    let mut events = vec![Event::Run(header("a"))];
    events.extend((0..3).map(|place| Event::Trial(trial(0, 0, place))));
    record(&store, &events);
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    // After the row of its cells and the first trial.
    by_hand.execute("UPDATE entry SET body = '{' WHERE number = 3", []).unwrap();
    by_hand.execute("INSERT INTO entry (run, kind, body) VALUES (1, 'hologram', '{}')", []).unwrap();
    let loaded = store.load("a").unwrap();
    assert_eq!(loaded.orphans, [trial(0, 0, 0), trial(0, 0, 2)]);
    assert_eq!(loaded.damaged.len(), 2);
    assert!(loaded.damaged[0].starts_with("a trial that cannot be read"), "{:?}", loaded.damaged);
    assert!(loaded.damaged[1].contains("hologram"), "{:?}", loaded.damaged);

    by_hand.execute("UPDATE run SET header = '{}'", []).unwrap();
    assert!(matches!(store.load("a"), Err(StoreError::Header { .. })));
}

#[test]
fn a_damaged_run_hides_no_other_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let store = Store::open(&path).unwrap();
    for id in ["a", "b", "c"] {
        record(&store, &[Event::Run(header(id)), Event::End(ending("finished"))]);
    }
    let by_hand = rusqlite::Connection::open(&path).unwrap();
    let whole = store.list(9).unwrap();
    for damage in ["header = '{'", "spec = '{'", "ending = ''", "header = CAST(x'ff7b' AS TEXT), spec = NULL"] {
        by_hand.execute(&format!("UPDATE run SET {damage} WHERE id = 'b'"), []).unwrap();
        let rows = store.list(9).unwrap();
        assert_eq!((&rows[0], &rows[2]), (&whole[0], &whole[2]), "{damage}");
        assert_eq!((rows[1].id.as_str(), rows[1].cells), ("b", 1), "{damage}");
        assert_eq!(
            store.search(&RunSearch { words: vec!["b".into()], ..RunSearch::default() }, 9).unwrap().len(),
            1,
            "{damage}"
        );
    }
    assert!(matches!(store.load("b"), Err(StoreError::Header { .. } | StoreError::Sqlite { .. })));
    assert_eq!(store.load("c").unwrap(), expected(&[Event::Run(header("c")), Event::End(ending("finished"))]));
    // Bytes that are no text, wherever they are.
    by_hand
        .execute("UPDATE run SET name = CAST(x'ff41' AS TEXT), summary = CAST(x'ff' AS TEXT) WHERE id = 'b'", [])
        .unwrap();
    assert_eq!(store.list(9).unwrap()[1].name.as_deref(), Some("\u{fffd}A"));
}

#[test]
fn a_number_that_json_cannot_hold_costs_only_its_row_and_frees_its_trials() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join(FILE)).unwrap();
    let rtt =
        RttTally { count: 1, min_ns: 1, p50_ns: 1, mean_ns: 1.0, p99_ns: None, max_ns: 1, batch: 1, histogram: None };
    let mut good = trial(0, 0, 0);
    good.near.rtt = Some(rtt);
    let mut outcome: Outcome = crate::common::outcome(0, vec![good.clone()]);
    outcome.estimate.as_mut().unwrap().value = f64::NAN;
    record(&store, &[Event::Run(header("a")), Event::Trial(good.clone()), Event::Outcome(outcome)]);
    let loaded = store.load("a").unwrap();
    assert_eq!(loaded.orphans, [good], "its outcome can be computed again");
    assert!(loaded.run.outcomes.is_empty());
    assert_eq!(loaded.damaged.len(), 1);
}

#[test]
fn a_locked_store_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    let store = Store::open(&path).unwrap();
    let mut recorder = store.recorder().unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let holder = std::thread::spawn(move || {
        // How long the lock is held; that the recorder waits for it cannot be seen from outside.
        std::thread::sleep(std::time::Duration::from_millis(200));
        other.execute_batch("COMMIT").unwrap();
    });
    recorder.event(&Event::Run(header("a"))).unwrap();
    holder.join().unwrap();
    assert_eq!(store.list(1).unwrap().len(), 1);
}

#[test]
fn a_file_that_is_deleted_or_replaced_in_mid_run_ends_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    for replaced in [false, true] {
        let store = Store::open(&path).unwrap();
        let mut recorder = store.recorder().unwrap();
        recorder.event(&Event::Run(header("20261121-203758-0001"))).unwrap();
        for name in [FILE, "runs.sqlite-wal", "runs.sqlite-shm"] {
            fs::remove_file(dir.path().join(name)).unwrap();
        }
        if replaced {
            drop(Store::open(&path).unwrap().recorder().unwrap());
        }
        let message = words(recorder.record(&Event::Trial(trial(0, 0, 0))), &path);
        assert!(message.contains("deleted, moved or replaced"), "{message}");
    }
}
