//! Every command that the README, the manual and the help texts print runs for a reader who has done what they say.
//!
//! The commands of a page run in their order on a machine of its own, in namespaces, with far hosts that know its user. One that takes
//! longer is ended by Ctrl-C. `THRU_MANUAL=PART` takes the pages whose paths contain that.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test stops at the first surprise and says what it saw"
)]

mod machine;
mod readers;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use program::manual::{Page, Printed, pages, value};
use program::{Sandbox, binary, skip, stacks};

use machine::{Ended, Machine};
use readers::{BEFORE, CURVE, ELSEWHERE, Entry, LONGER, RUNS};

/// How many pages are read at once. Their machines mostly wait.
const READERS: usize = 8;
/// The longest time that what a reader does before a command takes.
const BEFORE_LIMIT: Duration = Duration::from_secs(60);

/// Programs that pages use, and their packages.
const NEEDED: [(&str, &str); 5] =
    [("jq", "jq"), ("iperf3", "iperf3"), ("nats-server", "nats-server"), ("clang", "clang"), ("openssl", "openssl")];

/// How long a command runs before Ctrl-C.
const TIME: Duration = Duration::from_secs(6);

/// The part of the paths of the pages to read.
fn part() -> Option<String> {
    std::env::var("THRU_MANUAL").ok()
}

/// Whether an entry is of a command of a page.
fn is_of<T>(entry: &Entry<T>, page: &Page, printed: &Printed) -> bool {
    page.path.to_str().unwrap().ends_with(entry.0) && printed.command.contains(entry.1)
}

/// What a line of a page is as a reader types it.
fn typed(printed: &Printed, machine: &Machine) -> String {
    let word = |word: &str| match word {
        "word-word-word" | "coil-dial-grunt" => machine.invitation(),
        "RUN" => "A".to_owned(),
        "FLEET" => "nodes.toml".to_owned(),
        // The number depends on the compiler.
        "bpf_mine_5d6f0" => "$(thru stacks list | grep -om1 'bpf_mine_[0-9a-f]*')".to_owned(),
        _ => value(word).to_owned(),
    };
    printed.command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Whether a command loads a TCP stack into the kernel, or uses one.
fn loads_stack(printed: &Printed) -> bool {
    let parts = ["stacks load", "stacks unload", "--cc scalable", "--cc fast", "--cc highspeed", "--cc bpf_"];
    parts.iter().any(|part| printed.command.contains(part))
}

/// The codes with which a command may end.
fn codes(words: &str, line: &str, is_interrupted: bool) -> Vec<i32> {
    let mut words = words.split(' ');
    // 8: the machine was busy.
    let mut codes = match words.next() {
        Some("serve" | "watch" | "top" | "web") => return vec![0],
        Some("ab" | "compare") => vec![0, 3, 4, 8],
        Some("check") => vec![0, 8, 10],
        Some("fleet") if words.next() == Some("watch") => vec![0, 10],
        _ => vec![0, 8],
    };
    if is_interrupted {
        codes.push(130);
        // Ctrl-C ends the reader behind a pipe, too.
        codes.extend(line.contains('|').then_some(6));
    }
    codes
}

/// Why a command that has ended is wrong.
fn wrong(printed: &Printed, ended: &Ended) -> Option<String> {
    let is_wrong =
        |(code, words): &&(i32, String)| !codes(words, &printed.command, ended.is_interrupted).contains(code);
    if ended.is_killed {
        Some("it did not end after Ctrl-C".to_owned())
    } else if ended.stderr.contains("panicked") {
        Some("it panicked".to_owned())
    } else if let Some((code, words)) = ended.thru.iter().find(is_wrong) {
        Some(format!("`thru {words}` ended with {code}"))
    } else {
        let is_lost = ended.thru.is_empty() && !printed.command.ends_with('&');
        is_lost.then(|| "thru did not run to its end".to_owned())
    }
}

/// The last lines of what a command printed.
fn last_lines(ended: &Ended) -> String {
    let last = |text: &str| {
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    };
    format!("{}\n{}", last(&ended.stdout), last(&ended.stderr))
}

/// Fills a new folder with what the user of all pages has: files, and runs with a few names; and makes the user known to the hosts.
fn prepare(folder: &Path) {
    let work = folder.join("work");
    let results = work.join("results");
    fs::create_dir_all(&results).unwrap();
    let files = [
        ("tests/program/tests/manual/files/.", &work),
        ("plans", &work),
        ("crates/import/tests/data/1998-netperf.txt", &work),
        ("crates/import/tests/data/2002-throughput.tsv", &work),
        ("crates/import/tests/data/2012-nttcp.txt", &results),
    ];
    for (source, target) in files {
        copy(&binary::workspace().join(source), target);
    }
    let machine = Machine::new(folder);
    let greeting = format!("thru rr HOST --code {} -t 50ms --trials 1", machine.invitation());
    for line in [greeting.as_str(), CURVE].iter().chain(&RUNS) {
        let ended = machine.run(line, BEFORE_LIMIT);
        let is_done = ended.thru.iter().all(|(code, _)| [0, 8].contains(code));
        assert!(is_done && !ended.is_interrupted, "{line}: {}", last_lines(&ended));
    }
}

fn copy(source: &Path, target: &Path) {
    assert!(Command::new("cp").arg("-a").args([source, target]).status().unwrap().success(), "{}", source.display());
}

/// Runs the commands of a page for a copy of the user, and returns what is wrong.
fn read(page: &Page, user: &Path) -> Vec<String> {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("page");
    copy(user, &folder);
    let machine = Machine::new(&folder);
    for (name, text) in page.files() {
        fs::write(machine.work().join(name), text).unwrap();
    }
    let mut found = Vec::new();
    let commands = page.commands();
    let turn = commands.iter().any(loads_stack).then(|| stacks::turn("every_printed_command_runs"));
    let has_no_stacks = turn.as_ref().is_some_and(Option::is_none);
    for printed in commands {
        let is_elsewhere = ELSEWHERE.iter().any(|entry| is_of(entry, page, &printed));
        if is_elsewhere || printed.words().is_none() || has_no_stacks && loads_stack(&printed) {
            continue;
        }
        for (_, _, line) in BEFORE.iter().filter(|entry| is_of(entry, page, &printed)) {
            let ended = machine.run(line, BEFORE_LIMIT);
            if ended.is_interrupted {
                found.push(format!("before {}: {line}\n{}", printed.command, last_lines(&ended)));
            }
        }
        let longer = LONGER.iter().find(|entry| is_of(entry, page, &printed));
        let limit = longer.map_or(TIME, |(_, _, seconds)| Duration::from_secs(*seconds));
        let begun = Instant::now();
        let ended = machine.run_printed(&typed(&printed, &machine), limit);
        let place = format!("{}:{}: {}", page.path.display(), printed.line, printed.command);
        let codes: Vec<i32> = ended.thru.iter().map(|(code, _)| *code).collect();
        println!("{:.1} s, {codes:?}: {place}", begun.elapsed().as_secs_f64());
        found.extend(wrong(&printed, &ended).map(|why| format!("{place}\n{why}\n{}", last_lines(&ended))));
    }
    found
}

#[test]
#[ignore = "minutes: scripts/test-long.sh manual"]
fn every_printed_command_runs() {
    if let Err(error) = lab::available() {
        return skip::skip("every_printed_command_runs", &error.to_string());
    }
    if !NEEDED.iter().all(|(name, package)| skip::program("every_printed_command_runs", name, package)) {
        return;
    }
    let sandbox = Sandbox::new();
    let user = sandbox.path("user");
    prepare(&user);
    let part = part();
    let is_read = |page: &Page| part.as_ref().is_none_or(|part| page.path.to_str().unwrap().contains(part));
    let queue = Mutex::new(pages().into_iter().filter(is_read).collect::<VecDeque<_>>());
    let next = || queue.lock().unwrap().pop_front();
    let reader = || std::iter::from_fn(next).flat_map(|page| read(&page, &user)).collect::<Vec<_>>();
    let wrong: Vec<String> = thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(reader)).collect();
        readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} commands\n\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn each_entry_of_the_readers_is_of_a_printed_command() {
    let all: Vec<_> = pages().into_iter().map(|page| (page.commands(), page)).collect();
    let is_printed = |path: &'static str, part: &'static str| {
        let of = |(commands, page): &(Vec<Printed>, Page)| {
            commands.iter().any(|printed| is_of(&(path, part, ()), page, printed))
        };
        all.iter().any(of)
    };
    let before = BEFORE.iter().map(|entry| (entry.0, entry.1));
    let entries = before
        .chain(LONGER.iter().map(|entry| (entry.0, entry.1)))
        .chain(ELSEWHERE.iter().map(|entry| (entry.0, entry.1)));
    let unused: Vec<_> = entries.filter(|(path, part)| !is_printed(path, part)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}
