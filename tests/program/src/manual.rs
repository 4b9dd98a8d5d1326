//! The commands that the README, the manual and the help texts print, and the files that pages show.

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::workspace;

/// Words that stand for a value, and one that is valid in every place where they are printed.
pub const PLACEHOLDERS: [(&str, &str); 8] = [
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
/// What stands before a block that has the content of a file.
const FILE: &str = "<!-- file: ";

/// A page or a help text.
#[derive(Debug, Clone)]
pub struct Page {
    /// Its path within the workspace.
    pub path: PathBuf,
    /// What it says.
    pub text: String,
}

/// A command that a page prints, as a shell gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The number of its first line.
    pub line: usize,
    /// Without prompt and explanation.
    pub command: String,
}

/// The README, the manual, its tasks and the help texts.
///
/// # Panics
/// One cannot be read.
#[must_use]
pub fn pages() -> Vec<Page> {
    let root = workspace();
    let mut found = vec![PathBuf::from("README.md")];
    for (folder, kind) in [("docs/manual", "md"), ("docs/manual/tasks", "md"), ("crates/throughline/src/help", "txt")] {
        let listed = fs::read_dir(root.join(folder)).expect("a folder");
        let names = listed.map(|entry| Path::new(folder).join(entry.expect("an entry").file_name()));
        let mut files: Vec<_> = names.filter(|path| path.extension().is_some_and(|own| own == kind)).collect();
        files.sort();
        found.extend(files);
    }
    let read = |path: PathBuf| Page { text: fs::read_to_string(root.join(&path)).expect("a text"), path };
    found.into_iter().map(read).collect()
}

impl Page {
    /// Its command lines: those of code blocks that begin with `thru`, perhaps after a prompt or `sudo`, and loops around it.
    #[must_use]
    pub fn commands(&self) -> Vec<Printed> {
        let mut found: Vec<Printed> = Vec::new();
        let (mut is_fenced, mut is_open) = (false, false);
        let mut lines = self.text.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            if line.trim_start().starts_with("```") {
                is_fenced = !is_fenced;
                continue;
            }
            // A mistake that the page shows has its message in the next line.
            let is_mistake = lines.peek().is_some_and(|(_, next)| next.trim_start().starts_with("thru: "));
            let part = match found.last_mut().filter(|_| is_open) {
                Some(before) => {
                    before.command = format!("{} {}", before.command.trim_end_matches(['\\', ' ']), typed(line.trim()));
                    true
                }
                None => match command(line, is_fenced).filter(|_| !is_mistake) {
                    Some(command) => {
                        found.push(Printed { line: index + 1, command: command.to_owned() });
                        true
                    }
                    None => false,
                },
            };
            is_open = part && found.last().is_some_and(|printed| printed.command.ends_with('\\'));
        }
        found
    }

    /// The names and contents of the files that it shows: blocks after `<!-- file: NAME -->`.
    #[must_use]
    pub fn files(&self) -> Vec<(String, String)> {
        let mut lines = self.text.lines();
        let mut found = Vec::new();
        while let Some(line) = lines.next() {
            let Some(name) = line.strip_prefix(FILE).and_then(|rest| rest.strip_suffix(" -->")) else { continue };
            let is_fence = |line: &str| line.starts_with("```");
            let block = lines.by_ref().skip_while(|line| !is_fence(line)).skip(1).take_while(|line| !is_fence(line));
            found.push((name.to_owned(), block.map(|line| format!("{line}\n")).collect()));
        }
        found
    }
}

impl Printed {
    /// The words that `thru` gets; none if the line begins with something else. `None` for a form with parts that can be left out.
    #[must_use]
    pub fn words(&self) -> Option<Vec<String>> {
        let line = self.command.strip_prefix("sudo ").unwrap_or(&self.command);
        let mut words = Vec::new();
        for word in shlex::split(line)? {
            if SHELL.contains(&word.as_str()) || word.starts_with("2>") {
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
        if words.first().is_none_or(|word| word != "thru") {
            words.clear();
        }
        Some(words.into_iter().map(|word| value(&word).to_owned()).collect())
    }
}

/// The value of a word that stands for one, or the word.
#[must_use]
pub fn value(word: &str) -> &str {
    PLACEHOLDERS.iter().find(|(name, _)| *name == word).map_or(word, |(_, value)| value)
}

/// The command that a line prints.
fn command(line: &str, is_fenced: bool) -> Option<&str> {
    let bare = match line.trim_start().strip_prefix("$ ") {
        Some(bare) => bare,
        None if line.starts_with("  ") && !is_fenced => line.trim_start(),
        None => return None,
    };
    let own = bare.strip_prefix("sudo ").unwrap_or(bare);
    let is_log = own.split(' ').nth(1).is_some_and(|word| word.ends_with(':'));
    let is_loop = own.starts_with("for ") && own.contains("; do thru ");
    (own.starts_with("thru ") && !is_log || is_loop).then(|| typed(bare))
}

/// A line without the explanation behind two spaces.
fn typed(line: &str) -> &str {
    line.find("  ").map_or(line, |end| &line[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page { path: PathBuf::from("a.md"), text: text.to_owned() }
    }

    #[test]
    fn commands_stand_in_code_without_their_explanations() {
        let text = "`thru x` in prose\n\n    sudo thru a HOST     # one\n    thru b \\\n        --c N\n\n```\n$ thru d\n  thru no\n$ thru e\n\
                    thru: wrong\n```\n    for i in 1 2; do thru f $i; done\n    thru serve: a log\n";
        let lines: Vec<_> = page(text).commands().into_iter().map(|found| (found.line, found.command)).collect();
        let expected =
            [(3, "sudo thru a HOST"), (4, "thru b --c N"), (8, "thru d"), (13, "for i in 1 2; do thru f $i; done")];
        assert_eq!(lines, expected.map(|(line, command)| (line, command.to_owned())));
    }

    #[test]
    fn words_have_values_and_end_with_the_command() {
        let words = |command: &str| Printed { line: 1, command: command.to_owned() }.words();
        assert_eq!(words("sudo thru a --b N | jq c").unwrap(), ["thru", "a", "--b", "3"]);
        assert_eq!(words("thru a; thru b").unwrap(), ["thru", "a"]);
        assert_eq!(words("thru a [HOST]"), None);
        assert_eq!(words("for i in 1; do thru a; done").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_file_is_the_block_below_its_name() {
        let files = page("<!-- file: a.toml -->\n```toml\nb = 1\n\nc = 2\n```\nd\n").files();
        assert_eq!(files, [("a.toml".to_owned(), "b = 1\n\nc = 2\n".to_owned())]);
    }
}
