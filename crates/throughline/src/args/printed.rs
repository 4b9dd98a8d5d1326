//! Every command that the manual, the README and the help print is one that `thru` accepts.

use std::path::{Path, PathBuf};

use clap::Command;
use clap::error::ErrorKind;

use super::command;
use crate::{front_door, habits};

/// Words that stand for a value, and one that is valid in every place where they are printed.
const PLACEHOLDERS: [(&str, &str); 8] = [
    ("N", "3"),
    ("TIME", "2s"),
    ("RATE", "10M"),
    ("SIZE", "64KiB"),
    ("TOKEN", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"),
    ("SHA256:...", "SHA256:doArXuB0H26TPmBZaOfN2IriJYtWy63GsmjnIwFEQkU"),
    ("word-word-word", "abandon-ability-zoo"),
    ("PORT", "5201"),
];
/// What ends a command within a line of a shell.
const SHELL: [&str; 9] = ["|", ">", ">>", "2>", "2>/dev/null", ";", "&&", "||", "&"];

/// The texts with commands: pages and help texts.
fn texts() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = vec![root.join("README.md")];
    for (folder, kind) in [("docs/manual", "md"), ("docs/manual/tasks", "md"), ("crates/throughline/src/help", "txt")] {
        let listed = std::fs::read_dir(root.join(folder)).expect("a folder");
        let files = listed.map(|entry| entry.expect("an entry").path());
        found.extend(files.filter(|path| path.extension().is_some_and(|own| own == kind)));
    }
    found.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).expect("a text"))).collect()
}

/// The command lines of a text: those of code blocks that begin with `thru`, after a prompt or `sudo`.
fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        if open {
            let last = found.last_mut().expect("a line before");
            *last = format!("{} {}", last.trim_end_matches('\\'), line.trim());
        } else {
            let bare = match line.trim_start().strip_prefix("$ ") {
                Some(bare) => bare,
                None if line.starts_with("  ") => line.trim_start(),
                None => continue,
            };
            let bare = bare.strip_prefix("sudo ").unwrap_or(bare);
            let is_log = bare.split(' ').nth(1).is_some_and(|word| word.ends_with(':'));
            // A mistake that the page shows has its message in the next line.
            let is_mistake = lines.peek().is_some_and(|next| next.trim_start().starts_with("thru: "));
            if !bare.starts_with("thru ") || is_log || is_mistake || fenced && !line.contains("$ ") {
                continue;
            }
            found.push(bare.to_owned());
        }
        open = found.last().is_some_and(|line| line.ends_with('\\'));
    }
    found
}

/// The words of a command line that `thru` gets. `None` for a form with parts that can be left out.
fn words(line: &str) -> Option<Vec<String>> {
    // An explanation stands behind two spaces, or a number sign.
    let line = line.find("  ").map_or(line, |end| &line[..end]);
    let mut words = Vec::new();
    for word in shlex::split(line)? {
        if SHELL.contains(&word.as_str()) {
            break;
        }
        let is_last = word.ends_with(';');
        words.push(word.trim_end_matches(';').to_owned());
        if is_last {
            break;
        }
    }
    let is_form = |word: &String| word.starts_with('[') || word.contains("...") && !word.starts_with("SHA256");
    if words.iter().any(is_form) {
        return None;
    }
    let value = |word: String| {
        let found = PLACEHOLDERS.iter().find(|(name, _)| *name == word);
        found.map_or(word, |(_, value)| (*value).to_owned())
    };
    Some(words.into_iter().map(value).collect())
}

/// Why a command is refused; the program within `thru lab run` is a command, too.
fn refused(words: &[String], all: &Command) -> Option<String> {
    let typed = words.iter().map(Into::into).collect();
    let ours = front_door::with_command(typed, all, &[]).and_then(|typed| habits::translated(typed, all));
    let typed = match ours {
        Ok(typed) => typed,
        Err(failure) => return Some(failure.text().plain()),
    };
    let own = match all.clone().try_get_matches_from(typed) {
        Err(error) if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Some(error.to_string())
        }
        _ => None,
    };
    own.or_else(|| {
        let inner = words.iter().skip(1).position(|word| word == "--")? + 2;
        let inner = words.get(inner..)?;
        inner.first().filter(|program| *program == "thru").and_then(|_| refused(inner, all))
    })
}

#[test]
fn every_printed_command_is_accepted() {
    let (all, mut wrong, mut count) = (command(), Vec::new(), 0);
    for (path, text) in texts() {
        for line in commands(&text) {
            let Some(words) = words(&line) else { continue };
            count += 1;
            if let Some(why) = refused(&words, &all) {
                let name = path.file_name().unwrap_or_default().display();
                wrong.push(format!("{name}: {line}\n{why}"));
            }
        }
    }
    assert!(count > 250, "{count} commands were found");
    assert!(wrong.is_empty(), "{} of {count}\n\n{}", wrong.len(), wrong.join("\n"));
}
