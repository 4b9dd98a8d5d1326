//! Every command that the manual, the README and the help print is one that `thru` accepts.

use clap::Command;
use clap::error::ErrorKind;
use program::manual;

use super::command;
use crate::{front_door, habits};

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
    for page in manual::pages() {
        for printed in page.commands() {
            let Some(words) = printed.words().filter(|words| !words.is_empty()) else { continue };
            count += 1;
            if let Some(why) = refused(&words, &all) {
                wrong.push(format!("{}:{}: {}\n{why}", page.path.display(), printed.line, printed.command));
            }
        }
    }
    assert!(count > 250, "{count} commands were found");
    assert!(wrong.is_empty(), "{} of {count}\n\n{}", wrong.len(), wrong.join("\n"));
}
