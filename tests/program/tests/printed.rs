//! What the README and the tasks of the manual show is what the commands above it print today.
//!
//! A block with a line `<!-- output: CONTEXT -->` before it has one command and what it prints. The context is `lab` with the arguments
//! of `thru lab run`, for a command on the first host of that lab, or `here`; `, code N` follows if the command ends with that code. The
//! commands of a page share a store. `UPDATE_MANUAL=1 cargo nextest run --workspace -E 'test(printed::)'` runs them and writes what they
//! print in place of the old lines.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use program::{Sandbox, binary, skip};

const MARK: &str = "<!-- output: ";
/// Labels whose lines depend on what the machine does beside the test.
const SOMETIMES: [&str; 3] = ["Caveats", "Found", "Verdict"];
/// Lines of a running measurement that stay: the first ones, and the last one.
const FIRST: usize = 3;
/// The code of a result that is not to be used, because the machine was busy.
const UNUSABLE: i32 = 8;
/// How often a command is run for a page, until its result can be used.
const ATTEMPTS: usize = 4;

/// A command and what it prints.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    /// `lab ...` or `here`.
    context: String,
    code: i32,
    command: String,
    output: String,
}

/// The pages with outputs.
fn pages() -> Vec<PathBuf> {
    let root = binary::workspace();
    let manual = |folder: &str| {
        let listed = fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        listed.filter(|path| path.extension().is_some_and(|kind| kind == "md")).collect::<Vec<_>>()
    };
    let all = [vec![root.join("README.md")], manual("docs/manual"), manual("docs/manual/tasks")].concat();
    all.into_iter().filter(|path| fs::read_to_string(path).unwrap().contains(MARK)).collect()
}

/// The page with each of its outputs replaced.
fn rewritten(page: &str, mut print: impl FnMut(&Shown) -> String) -> String {
    let (mut lines, mut result) = (page.lines(), String::new());
    while let Some(line) = lines.next() {
        result += &format!("{line}\n");
        let Some(context) = line.strip_prefix(MARK).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let (fence, command) = (lines.next().unwrap(), lines.next().unwrap());
        assert!(fence.starts_with("```"), "a block follows '{line}': {fence}");
        let output: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let (context, code) = context.split_once(", code ").unwrap_or((context, "0"));
        let shown = Shown {
            context: context.to_owned(),
            code: code.parse().expect("a code"),
            command: command.strip_prefix("$ ").expect("a command at a prompt").to_owned(),
            output: output.join("\n"),
        };
        result += &format!("{fence}\n{command}\n{}\n```\n", print(&shown));
    }
    result
}

/// Runs a command, and returns its exit code and what it printed to standard output and error.
fn run(sandbox: &Sandbox, shown: &Shown) -> (Option<i32>, [String; 2]) {
    let programs = sandbox.path("programs");
    if !programs.exists() {
        fs::create_dir(&programs).unwrap();
        symlink(binary::thru(), programs.join("thru")).unwrap();
    }
    let bare = shown.command.trim_start_matches("sudo ");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = sandbox.path("output");
    let line = format!("{bare} >{}", output.display());
    let mut command = match shown.context.strip_prefix("lab ") {
        Some(lab) => {
            let flags: Vec<&str> = ["lab", "run"].into_iter().chain(lab.split(' ')).collect();
            sandbox.command(&[flags.as_slice(), &["--", "sh", "-c", &line]].concat())
        }
        None => sandbox.prepare(Command::new("sh"), &["-c", &line]),
    };
    // A store in its usual place is not mentioned.
    let command = command.env("PATH", path).env_remove("THRU_STORE").env("XDG_DATA_HOME", sandbox.path("data"));
    let ended = command.output().unwrap();
    let printed = fs::read_to_string(output).unwrap_or_default();
    (ended.status.code(), [printed, String::from_utf8_lossy(&ended.stderr).into_owned()])
}

/// A text without most of the lines of a running measurement.
fn shortened(text: &str) -> String {
    let is_live = |line: &&str| {
        let mut words = line.split_whitespace();
        let time = words.next().and_then(|word| word.parse::<f64>().ok());
        line.starts_with(' ') && time.is_some() && words.next() == Some("s")
    };
    let live = text.lines().filter(is_live).count();
    let mut at = 0;
    let mut kept = Vec::new();
    for line in text.lines() {
        if is_live(&line) {
            at += 1;
            if at == FIRST && live > FIRST + 1 {
                kept.push("    ...");
            }
            if at >= FIRST && at < live && live > FIRST + 1 {
                continue;
            }
        }
        kept.push(line.trim_end());
    }
    kept.join("\n").trim_end().to_owned()
}

/// The label of a line of an answer: its first words, before two spaces.
fn label(line: &str) -> Option<&str> {
    let (label, _) = line.split_once("  ")?;
    label.starts_with(|first: char| first.is_ascii_uppercase()).then_some(label)
}

/// The page as today's program makes it, and what it no longer prints. A result that cannot be used is measured again.
fn checked(path: &Path, attempts: usize) -> (String, Vec<String>) {
    let sandbox = Sandbox::new();
    let mut wrong = Vec::new();
    let page = rewritten(&fs::read_to_string(path).unwrap(), |shown| {
        let mut ended = run(&sandbox, shown);
        for _ in 1..attempts {
            if ended.0 == Some(shown.code) {
                break;
            }
            ended = run(&sandbox, shown);
        }
        let (code, [printed, errors]) = ended;
        let name = path.file_name().unwrap().display();
        if ![Some(shown.code), Some(UNUSABLE)].contains(&code) {
            wrong.push(format!("{name}: `{}` ended with {code:?}: {printed}{errors}", shown.command));
        }
        let labels = |text: &str| text.lines().filter_map(label).map(str::to_owned).collect::<Vec<_>>();
        let today = labels(&printed);
        for old in labels(&shown.output) {
            if !today.contains(&old) && !SOMETIMES.contains(&old.as_str()) {
                wrong.push(format!("{name}: `{}` prints no line '{old}': {printed}", shown.command));
            }
        }
        shortened(&printed)
    });
    (page, wrong)
}

#[test]
fn the_commands_print_what_the_pages_show() {
    if let Err(error) = lab::available() {
        return skip::skip("the_commands_print_what_the_pages_show", &error.to_string());
    }
    let wrong: Vec<String> = if std::env::var_os("UPDATE_MANUAL").is_some() {
        // One after another, so that the figures are those of a quiet machine.
        let update = |path: PathBuf| {
            let (page, wrong) = checked(&path, ATTEMPTS);
            fs::write(path, page).unwrap();
            wrong.into_iter().filter(|wrong| wrong.contains("ended with")).collect::<Vec<_>>()
        };
        pages().into_iter().flat_map(update).collect()
    } else {
        let checks: Vec<_> = pages().into_iter().map(|path| thread::spawn(move || checked(&path, 1).1)).collect();
        checks.into_iter().flat_map(|check| check.join().unwrap()).collect()
    };
    assert!(wrong.is_empty(), "run with UPDATE_MANUAL=1 and read what changed:\n{}", wrong.join("\n"));
}

#[test]
fn an_output_is_replaced_and_the_rest_stays() {
    let page = "# A\n\n<!-- output: lab dsl, code 3 -->\n```console\n$ thru x\nold  1\nold 2\n```\nMore.\n";
    let new = rewritten(page, |shown| {
        assert_eq!((shown.context.as_str(), shown.code, shown.command.as_str()), ("lab dsl", 3, "thru x"));
        assert_eq!(shown.output, "old  1\nold 2");
        "new".to_owned()
    });
    assert_eq!(new, "# A\n\n<!-- output: lab dsl, code 3 -->\n```console\n$ thru x\nnew\n```\nMore.\n");
    let live: String = (1..9).map(|second| format!("    {second}.0 s  1 Mbit/s\n")).collect();
    let short = shortened(&format!("     time  goodput\n{live}\nGoodput  1\n"));
    assert_eq!(
        short,
        "     time  goodput\n    1.0 s  1 Mbit/s\n    2.0 s  1 Mbit/s\n    ...\n    8.0 s  1 Mbit/s\n\nGoodput  1"
    );
    assert_eq!(label("RTT idle     27 ms"), Some("RTT idle"));
    assert_eq!(label("             more"), None);
}
