//! Retired words: identifiers, JSON keys, flags and phrases that must not return, with what to say instead. The terms that
//! replace them are in docs/GLOSSARY.md. Single common words are not checked.

use crate::lexer::{self, Token};
use crate::text::Passage;
use crate::{Rule, Violation};

/// Parts of identifiers and file names, and what to say instead. `told_by` matches `told_by`, `mtu_told_by` and `ToldBy`, but
/// not `told_bytes`.
const IDENTIFIERS: &[(&str, &str)] = &[
    ("again_kept", "retransmitted_kept"),
    ("both_ways", "both_directions"),
    ("calm", "quiet, or non_measuring (of tests)"),
    ("card", "nic"),
    ("crew", "worker_pool"),
    ("dear", "expensive"),
    ("desk", "acceptor"),
    ("door", "data_acceptor, listener or shared_port"),
    ("doors", "data_acceptors, listeners or shared_ports"),
    ("each_way", "each_direction"),
    ("ears", "observer"),
    ("emulator_untold", "emulator_unreported"),
    ("farewell", "close_handshake, or end_marks"),
    ("first_look", "pilot_trial, path_probe, or first_analysis"),
    ("ground", "backend"),
    ("guest", "session"),
    ("hears", "observer"),
    ("introduction", "hello"),
    ("judged_high", "adjusted_high"),
    ("judged_low", "adjusted_low"),
    ("lasting", "persistent"),
    ("least_effect", "min_effect"),
    ("leash", "session_deadline"),
    ("ledger_open", "byte_count_mismatch"),
    ("lost_back", "lost_return"),
    ("lost_there", "lost_outbound"),
    ("mapper", "zero_copy_receive"),
    ("meanwhile", "host_activity, or on_step"),
    ("mover", "send_method"),
    ("news", "log, or event"),
    ("path_back", "path_return"),
    ("path_out", "path_outbound"),
    ("quest", "search_state"),
    ("rests", "delayed_reads"),
    ("scene", "evidence"),
    ("second_look", "retry"),
    ("sent_again", "retransmitted"),
    ("sole", "exclusive"),
    ("storm", "fuzz"),
    ("story", "journal_record"),
    ("stranger", "unauthenticated"),
    ("strangers", "unauthenticated"),
    ("surely", "significantly"),
    ("told_by", "reported_by"),
    ("untold", "unreported"),
    ("vouch", "issue_reach_token"),
    ("vouched", "reach_token"),
    ("voucher", "reach_token"),
    ("way_back", "return"),
    ("way_there", "outbound"),
];

/// JSON keys, values and messages that no string literal, schema or document has any more, with those of version 2.
const KEYS: &[(&str, &str)] = &[
    ("again_kept", "retransmitted_kept"),
    ("dear", "expensive"),
    ("emulator-untold", "emulator-unreported"),
    ("first look", "pilot trials"),
    ("greatest", "max"),
    ("judged_high", "adjusted_high"),
    ("judged_low", "adjusted_low"),
    ("least_effect", "min_effect"),
    ("ledger-open", "byte-count-mismatch"),
    ("left_ns", "remaining_ns"),
    ("look-at", "probe-path"),
    ("looked", "path-probed"),
    ("lost_back", "lost_return"),
    ("lost_there", "lost_outbound"),
    ("path_back", "path_return"),
    ("path_out", "path_outbound"),
    ("rests", "delayed_reads"),
    ("told_by", "reported_by"),
    ("untold", "unreported"),
    ("vouch", "issue-reach-token"),
    ("vouched", "reach-token"),
];

/// Old keys that are common words: checked in the schemas only.
const SCHEMA_KEYS: &[(&str, &str)] = &[
    ("again", "retransmitted_at"),
    ("asked", "requested"),
    ("back", "return"),
    ("doing", "activity"),
    ("least", "min"),
    ("places", "locations"),
    ("stays", "kept"),
    ("there", "outbound"),
    ("ways", "directions"),
    ("whole", "complete"),
];

/// Flags.
const FLAGS: &[(&str, &str)] = &[("--wad", "--cc-rules")];

/// Phrases in texts for users, and what to say instead. They match without regard to case, also across lines.
const PHRASES: &[(&str, &str)] = &[
    ("1 cells", "1 cell"),
    ("1 measurements", "1 measurement"),
    ("a core that others had", "waited for CPU"),
    ("a queue before a link that empties", "standing queue at a … bottleneck"),
    ("another curve may differ by", "expect this much run-to-run variation"),
    ("are sure", "are significant, or converged"),
    ("as long as it likes", "without a limit"),
    ("both ways", "both directions"),
    ("chance alone may", "not significant"),
    ("cannot be told from", "does not differ significantly from"),
    ("dear to change", "expensive to change"),
    ("does more at", "interacts with"),
    ("each way", "each direction"),
    ("first look", "pilot trials, or path probe"),
    ("has no words for", "does not support"),
    ("held back by", "limited by"),
    ("hosts meanwhile", "host activity"),
    ("is sure", "is significant, or converged"),
    ("its figures are what it told", "figures as reported by it"),
    ("let anybody in", "accept any client"),
    ("make no claim", "no interval"),
    ("makes no claim", "no interval"),
    ("no pass tells of itself", "expect this much run-to-run variation"),
    ("nobody to wake up", "to save sender wake-ups"),
    ("nobody told", "unreported"),
    ("none is surely the best", "no significant winner"),
    ("of its own making", "self-inflicted"),
    ("say what this host is", "show host inventory"),
    ("second look", "retry"),
    ("segments sent again", "segments retransmitted"),
    ("speaks for more of it", "bottleneck not identified"),
    ("stretches of a tenth", "0.1 s samples"),
    ("sure among", "significant, corrected for"),
    ("surely", "significantly"),
    ("than a ninth", "than 11 %"),
    ("told apart", "distinguished, or compared"),
    ("was sent again", "was retransmitted"),
    ("way back", "return"),
    ("way there", "outbound"),
    ("were sent again", "were retransmitted"),
    ("what differs beside the figures", "configuration differences"),
    ("whatever becomes of it", "regardless of the outcome"),
    ("who asks for", "to request"),
    ("without a place here", "fields not imported"),
];

/// Texts that are retired as a whole: as a heading or a message of their own, not within a sentence.
const TITLES: &[(&str, &str)] = &[("To know", "Caveats")];

/// Where retired words may stay.
struct Exception {
    /// A file, or a folder with a `/` at the end.
    path: &'static str,
    /// In a Markdown file, the section with this heading only.
    section: Option<&'static str>,
    /// The retired words; empty for all.
    words: &'static [&'static str],
    #[allow(dead_code, reason = "for readers of this list")]
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        path: "tests/architecture/src/vocabulary.rs",
        section: None,
        words: &[],
        reason: "these lists and their tests",
    },
    Exception {
        path: "crates/host/src/tune/journal.rs",
        section: None,
        words: &["asked"],
        reason: "aliases: settings of a journal of an earlier build can still be restored",
    },
    Exception {
        path: "crates/throughline/src/usage.rs",
        section: None,
        words: &["--wad"],
        reason: "the message that names the flag's replacement",
    },
    Exception {
        path: "crates/throughline/src/args/tests.rs",
        section: None,
        words: &["--wad"],
        reason: "tests the message that names the flag's replacement",
    },
    Exception {
        path: "crates/session/src/plan/factors.rs",
        section: None,
        words: &["dear"],
        reason: "the message that names the plan key's replacement",
    },
    Exception {
        path: "docs/manual/json.md",
        section: Some("Version 2"),
        words: &[],
        reason: "the table of renamed keys",
    },
    Exception { path: "CHANGELOG.md", section: None, words: &[], reason: "lists what was renamed" },
    Exception { path: "docs/adr/", section: None, words: &[], reason: "records of decisions about the names" },
    Exception { path: "docs/notes/", section: None, words: &[], reason: "dated notes quote the output of their time" },
];

/// Whether a file or, in a Markdown file, the section `section` may have `word`.
fn excepted(path: &str, section: Option<&str>, word: &str) -> bool {
    EXCEPTIONS.iter().any(|exception| {
        let file = exception.path == path || (exception.path.ends_with('/') && path.starts_with(exception.path));
        let place = exception.section.is_none() || exception.section == section;
        file && place && (exception.words.is_empty() || exception.words.contains(&word))
    })
}

fn violation(path: &str, line: usize, kind: &str, word: &str, instead: &str) -> Violation {
    Violation::new(Rule::Vocabulary, format!("{path}:{line}"), format!("{kind} \"{word}\"; instead: {instead}"))
}

/// The retired words of a Rust source, at `path` from the root of the workspace: in its file name, in the names that it defines,
/// and in its string literals. Sources of `crates/*/src` are also checked for phrases, those of the program with their outer doc
/// comments, which are its help. A source that does not parse has none; another rule reports it.
#[must_use]
pub fn check_rust(path: &str, source: &str) -> Vec<Violation> {
    let Ok(lexed) = lexer::lex(source) else { return Vec::new() };
    let mut found = Vec::new();
    let mut report = |line, kind: &str, word: &str, instead: &str| {
        if !excepted(path, None, word) {
            found.push(violation(path, line, kind, word, instead));
        }
    };
    let names = path.split('/').map(|part| (part.strip_suffix(".rs").unwrap_or(part), 1));
    let defined = definitions(&lexed.all);
    for (kind, name, line) in names
        .map(|(name, line)| ("the file name has", name, line))
        .chain(defined.map(|(name, line)| ("defines", name, line)))
    {
        let parts = parts(name);
        for (word, instead) in IDENTIFIERS {
            let retired: Vec<&str> = word.split('_').collect();
            if parts.windows(retired.len()).any(|window| window.iter().eq(retired.iter())) {
                report(line, &format!("{kind} `{name}`:"), word, instead);
            }
        }
    }
    let Ok(strings) = lexer::strings(source) else { return found };
    for text in strings.iter().filter(|text| !text.doc) {
        for (key, instead) in KEYS {
            if text.text == *key || text.text.contains(&format!("\"{key}\"")) {
                report(text.line, "has the string", key, instead);
            }
        }
        for (title, instead) in TITLES {
            if text.text.trim() == *title {
                report(text.line, "has the string", title, instead);
            }
        }
    }
    let for_users = path.starts_with("crates/") && path.split('/').nth(2) == Some("src");
    let help = path.starts_with("crates/throughline/src/");
    for passage in lexer::passages(&strings, help) {
        for (flag, instead) in FLAGS {
            passage.find(flag).into_iter().for_each(|line| report(line, "has the flag", flag, instead));
        }
        for (phrase, instead) in PHRASES.iter().filter(|_| for_users) {
            passage.find(phrase).into_iter().for_each(|line| report(line, "says", phrase, instead));
        }
    }
    found
}

/// The retired words of a Markdown document: flags, phrases, keys in code spans and quotes, and headings.
#[must_use]
pub fn check_markdown(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut sections: Vec<(Option<&str>, Passage)> = vec![(None, Passage::default())];
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(heading) = line.strip_prefix("## ") {
            sections.push((Some(heading.trim()), Passage::default()));
        }
        if let Some((_, passage)) = sections.last_mut() {
            passage.push(number, line);
        }
        for (title, instead) in TITLES {
            if line.trim_start_matches('#').trim() == *title {
                found.push(violation(path, number, "has the title", title, instead));
            }
        }
    }
    for (section, passage) in &sections {
        let mut report = |line, kind: &str, word: &str, instead: &str| {
            if !excepted(path, *section, word) {
                found.push(violation(path, line, kind, word, instead));
            }
        };
        for (key, instead) in KEYS {
            for quoted in [format!("`{key}`"), format!("\"{key}\"")] {
                passage.find(&quoted).into_iter().for_each(|line| report(line, "has the key", key, instead));
            }
        }
        for (flag, instead) in FLAGS {
            passage.find(flag).into_iter().for_each(|line| report(line, "has the flag", flag, instead));
        }
        for (phrase, instead) in PHRASES {
            passage.find(phrase).into_iter().for_each(|line| report(line, "says", phrase, instead));
        }
    }
    found
}

/// The retired keys of a JSON schema.
#[must_use]
pub fn check_schema(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for (key, instead) in KEYS.iter().chain(SCHEMA_KEYS) {
            if line.contains(&format!("\"{key}\"")) && !excepted(path, None, key) {
                found.push(violation(path, number, "has the key", key, instead));
            }
        }
    }
    found
}

/// The names that a source defines, with their lines: items, struct fields, enum variants and their fields.
fn definitions(tokens: &[Token]) -> impl Iterator<Item = (&str, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let is_name = |at: usize| text(at).starts_with(|first: char| first.is_alphabetic() || first == '_');
    let mut names = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or("", text);
        let mut next = at + 1;
        match text(at) {
            // `*const T` and `fn name(type: …)` define nothing.
            "struct" | "enum" | "union" | "trait" | "type" | "fn" | "mod" | "const" | "static" if before != "*" => {
                if text(at) == "static" && text(next) == "mut" {
                    next += 1;
                }
                let name = next;
                if !is_name(name) || ["fn", "unsafe", "async", "extern"].contains(&text(name)) {
                    at += 1;
                    continue;
                }
                names.push((tokens[name].text.as_str(), tokens[name].line));
                if ["struct", "enum", "union"].contains(&text(at)) {
                    names.extend(members(tokens, name + 1, text(at) == "enum"));
                }
                at = name;
            }
            _ => {}
        }
        at += 1;
    }
    names.into_iter()
}

/// The fields and variants in the body of the type whose tokens after its name start at `from`.
fn members(tokens: &[Token], from: usize, is_enum: bool) -> Vec<(&str, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut found = Vec::new();
    // A `;` ends a type without a body; parentheses before it are those of a tuple.
    let Some(open) = (from..tokens.len()).find(|at| ["{", ";"].contains(&text(*at))).filter(|at| text(*at) == "{")
    else {
        return found;
    };
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            name if name.starts_with(|first: char| first.is_alphabetic() || first == '_') => {
                let before = text(at - 1);
                let starts = ["{", ",", "]", "pub", ")"].contains(&before);
                let field = text(at + 1) == ":" && text(at + 2) != ":" && before != ":";
                let variant = is_enum && depth == 1 && ["{", "(", ",", "}", "="].contains(&text(at + 1));
                if starts && (field || variant) {
                    found.push((token.text.as_str(), token.line));
                }
            }
            _ => {}
        }
    }
    found
}

/// The words of a name in snake or camel case, in lower case: `LedgerOpen` and `ledger_open` are `ledger`, `open`.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut lower = false;
    for character in name.chars() {
        if !character.is_alphanumeric() {
            parts.push(String::new());
            lower = false;
            continue;
        }
        if parts.is_empty() || (character.is_uppercase() && lower) {
            parts.push(String::new());
        }
        lower = !character.is_uppercase();
        if let Some(part) = parts.last_mut() {
            part.extend(character.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The locations and retired words of what was found.
    fn found(violations: &[Violation]) -> Vec<String> {
        violations
            .iter()
            .map(|violation| format!("{} {}", violation.place, violation.what.split('"').nth(1).unwrap()))
            .collect()
    }

    fn rust(path: &str, source: &str) -> Vec<String> {
        found(&check_rust(path, source))
    }

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(parts("LedgerOpen"), ["ledger", "open"]);
        assert_eq!(parts("lost_there_2"), ["lost", "there", "2"]);
        assert_eq!(parts("FIRST_LOOK_NS"), ["first", "look", "ns"]);
    }

    #[test]
    fn retired_definitions_are_found_with_their_line() {
        let source = "struct Desk {\n    pub(crate) told_by: u8,\n    #[serde(default)]\n    kept: Vec<u8>,\n}\n\nenum Verdict {\n    \
                      Fine,\n    LedgerOpen { lost_there: u8 },\n    EmulatorUntold(u8),\n}\nconst fn first_look() {}\nstatic \
                      mut STORM: u8 = 0;\ntype Guest = u8;\nmod farewell {}\n";
        assert_eq!(
            rust("crates/a/src/b.rs", source),
            [
                "crates/a/src/b.rs:1 desk",
                "crates/a/src/b.rs:2 told_by",
                "crates/a/src/b.rs:9 ledger_open",
                "crates/a/src/b.rs:9 lost_there",
                "crates/a/src/b.rs:10 emulator_untold",
                "crates/a/src/b.rs:10 untold",
                "crates/a/src/b.rs:12 first_look",
                "crates/a/src/b.rs:13 storm",
                "crates/a/src/b.rs:14 guest",
                "crates/a/src/b.rs:15 farewell",
            ]
        );
    }

    #[test]
    fn uses_longer_words_and_comments_are_not_definitions() {
        let source = "// the desk\nfn background(request: u8) { let untold = desk::voucher(told_by, quest { scene: 1 }); }\nstruct \
                      Tuple(u8);\nfn f(p: *const Desk) -> Guest { match 1 { Crew::Leash => story } }\nstruct Told { told: u8, by: \
                      u8, path_outbound: u8 }\n";
        assert_eq!(rust("crates/a/src/b.rs", source), Vec::<String>::new());
    }

    #[test]
    fn file_names_count_and_lists_of_exceptions_do_not() {
        assert_eq!(rust("crates/a/src/desk/b.rs", ""), ["crates/a/src/desk/b.rs:1 desk"]);
        assert_eq!(rust("crates/a/tests/data_doors.rs", ""), ["crates/a/tests/data_doors.rs:1 doors"]);
        assert_eq!(rust("tests/architecture/src/vocabulary.rs", "fn f() { g(\"told_by\"); }"), Vec::<String>::new());
        assert_eq!(rust("crates/throughline/src/usage.rs", "fn f() { g(\"--wad\"); }"), Vec::<String>::new());
        assert_eq!(rust("crates/throughline/src/usage.rs", "fn f() { g(\"untold\"); }").len(), 1);
    }

    #[test]
    fn keys_are_found_as_whole_strings_and_within_json() {
        let source = "fn f() {\n    g(\"ledger-open\");\n    g(\"{\\\"told_by\\\": 1}\");\n    g(r#\"{\"rests\": 1}\"#);\n    g(\"told_by \
                      x\", \"reported_by\");\n}\n";
        let path = "tests/program/tests/b.rs";
        assert_eq!(
            rust(path, source),
            [2, 3, 4].map(|line| format!("{path}:{line} {}", ["ledger-open", "told_by", "rests"][line - 2]))
        );
    }

    #[test]
    fn phrases_are_found_in_texts_for_users_also_across_lines() {
        let source = "fn f() {\n    say(\"It is held \\\n         back by the window\");\n    say(\"Surely {x}\", \"unsurely\");\n    \
                      say(\"--wad FILE\", \"--wad-rules\");\n    say(\"Hosts meanwhile\");\n    say(\"To know\", \"to know more\");\n}\n";
        let path = "crates/a/src/b.rs";
        assert_eq!(
            rust(path, source),
            [
                format!("{path}:7 To know"),
                format!("{path}:2 held back by"),
                format!("{path}:4 surely"),
                format!("{path}:5 --wad"),
                format!("{path}:6 hosts meanwhile"),
            ]
        );
        assert_eq!(rust("crates/a/tests/b.rs", "fn f() { say(\"held back by\"); }"), Vec::<String>::new());
    }

    #[test]
    fn help_is_checked_and_other_documentation_is_not() {
        let source = "/// What holds it: it is held\n/// back by the window.\nstruct A;\n";
        assert_eq!(rust("crates/throughline/src/flags.rs", source), ["crates/throughline/src/flags.rs:1 held back by"]);
        assert_eq!(rust("crates/a/src/b.rs", source), Vec::<String>::new());
    }

    #[test]
    fn documents_are_checked_but_for_the_table_of_renamed_keys() {
        let text = "# JSON\n\nThe key `told_by`, over both\nways. To know more\n\n## Version 2\n\n| `told_by` | `reported_by` |\n\n## To \
                    know\n\nUse `--wad`, not `--wad-rules`.\n";
        assert_eq!(
            found(&check_markdown("docs/manual/json.md", text)),
            [
                "docs/manual/json.md:10 To know",
                "docs/manual/json.md:3 told_by",
                "docs/manual/json.md:3 both ways",
                "docs/manual/json.md:12 --wad",
            ]
        );
        assert_eq!(found(&check_markdown("README.md", text)).len(), 5);
    }

    #[test]
    fn schemas_are_checked_for_common_words_too() {
        let text = "{\n  \"properties\": {\n    \"there\": {},\n    \"path_out\": {},\n    \"outbound\": {}\n  }\n}\n";
        let path = "docs/schema/run.schema.json";
        assert_eq!(found(&check_schema(path, text)), [format!("{path}:3 there"), format!("{path}:4 path_out")]);
    }

    #[test]
    fn the_message_says_what_to_use_instead() {
        let message = check_rust("a.rs", "struct Desk;")[0].to_string();
        assert!(message.contains("a.rs:1: defines `Desk`: \"desk\"; instead: acceptor"), "{message}");
    }

    #[test]
    fn each_list_is_sorted_and_has_no_word_twice() {
        for list in [IDENTIFIERS, KEYS, SCHEMA_KEYS, PHRASES] {
            assert!(list.iter().all(|(word, instead)| !word.is_empty() && !instead.is_empty()));
            let words: std::collections::BTreeSet<&str> = list.iter().map(|(word, _)| *word).collect();
            assert_eq!(words.len(), list.len());
        }
    }
}
