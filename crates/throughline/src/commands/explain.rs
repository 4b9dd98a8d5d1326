//! `thru explain`: the meaning of a word on a screen.

use clap::Args;
use command::Failure;
use model::{Answer, Grade, LimiterKind, Trust, Verdict};
use options::closest;
use report::explained;
use text::{Text, User, say};

use crate::{console, output};

/// Flags of `thru explain`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/explain.txt").trim_end())]
pub struct ExplainArgs {
    /// A word or words of a screen: a verdict, a grade of trust, a cause, a title, a term [default: list them].
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// Terms, with their meanings, in tables.
const GLOSSARY: &str = include_str!("../../../../docs/GLOSSARY.md");

/// Where the manual says more.
const STATISTICS: &str = "docs/manual/statistics.md, \"Ledger, verdicts and trust\"";
const WHY: &str = "docs/manual/why.md, \"Evidence\"";
const COMPARE: &str = "docs/manual/compare.md";
const TERMS: &str = "docs/GLOSSARY.md";

/// Words that are explained together.
struct Entry {
    /// What people may type, the usual name first.
    names: Vec<String>,
    /// Its kind, such as `verdict`.
    kind: &'static str,
    meaning: Vec<Text>,
    see: &'static str,
}

/// Runs it.
pub fn run(args: &ExplainArgs) -> Result<u8, Failure> {
    let all = entries();
    let wanted = plain(&args.words.join(" "));
    if wanted.is_empty() {
        list(&all);
        return Ok(0);
    }
    let is = |entry: &&Entry, word: &str| entry.names.iter().any(|name| plain(name) == word);
    let short = wanted.strip_prefix("trust ").unwrap_or(&wanted);
    let mut found: Vec<&Entry> = all.iter().filter(|entry| is(entry, &wanted)).collect();
    if found.is_empty() {
        found = all.iter().filter(|entry| is(entry, short)).collect();
    }
    if found.is_empty() {
        return Err(unknown(&args.words.join(" "), &wanted, &all));
    }
    for (at, entry) in found.iter().enumerate() {
        if at > 0 {
            out!("\n");
        }
        let title = say!("{} ({})", entry.names[0], entry.kind);
        console::screen(&explained(&title, &entry.meaning, entry.see, output::layout()));
    }
    Ok(0)
}

/// The words by kind.
fn list(all: &[Entry]) {
    let mut kinds: Vec<&str> = all.iter().map(|entry| entry.kind).collect();
    kinds.dedup();
    for kind in kinds {
        let names = all.iter().filter(|entry| entry.kind == kind).map(|entry| entry.names[0].as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        console::screen(&explained(&say!("{kind}"), &[names.into()], "", output::layout()));
    }
}

/// The refusal of a word, with those that resemble it.
fn unknown(typed: &str, wanted: &str, all: &[Entry]) -> Failure {
    let names: Vec<String> = all.iter().flat_map(|entry| &entry.names).map(|name| plain(name)).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let parts =
        known.iter().copied().filter(|name| wanted.len() > 2 && (name.contains(wanted) || wanted.contains(name)));
    let near: Vec<&str> =
        closest(wanted, &known).into_iter().chain(parts.filter(|name| name.len() > 2)).take(NEAR).collect();
    let near = if near.is_empty() { Text::default() } else { say!("; did you mean {}?", near.join(", ")) };
    Failure::usage(say!("no screen has the word '{}'{near}; `thru explain` lists the words", User(typed)))
}

/// Words that a refusal offers.
const NEAR: usize = 5;

/// A word as it is compared: small letters, without the marks around it.
fn plain(word: &str) -> String {
    let spaced = word.to_lowercase().replace(['-', '_'], " ");
    spaced.trim_matches(|mark: char| mark.is_whitespace() || ":,;`\"'".contains(mark)).to_owned()
}

fn entries() -> Vec<Entry> {
    let verdicts = Verdict::ALL.iter().map(|verdict| Entry {
        names: vec![verdict.name()],
        kind: "verdict",
        meaning: vec![
            analysis::outcome::explain(*verdict).capitalised() + ".",
            say!("It leaves at most trust {}.", trust_name(analysis::outcome::at_most(*verdict))),
        ],
        see: STATISTICS,
    });
    let grades = Trust::ALL.iter().map(|trust| Entry {
        names: vec![trust_name(*trust).to_owned()],
        kind: "trust",
        meaning: vec![trust.about().into()],
        see: STATISTICS,
    });
    let limiters = LimiterKind::ALL.iter().map(|kind| Entry {
        names: limiter_names(*kind),
        kind: "limiter",
        meaning: std::iter::once(kind.about().into()).chain(evidence(*kind)).collect(),
        see: WHY,
    });
    let evidence = Grade::ALL.iter().map(|grade| Entry {
        names: vec![grade.words().to_owned()],
        kind: "evidence",
        meaning: vec![grade.about().into(), "It is a judgement, not a probability.".into()],
        see: WHY,
    });
    let answers = Answer::ALL.iter().map(|answer| Entry {
        names: vec![answer_name(*answer).to_owned()],
        kind: "answer",
        meaning: vec![
            answer.about().into(),
            say!("The exit code of `thru ab` and `thru compare` is {}.", command::failure::of_answer(*answer)),
        ],
        see: COMPARE,
    });
    verdicts.chain(grades).chain(limiters).chain(evidence).chain(answers).chain(terms(GLOSSARY)).collect()
}

fn trust_name(trust: Trust) -> &'static str {
    match trust {
        Trust::High => "high",
        Trust::Fair => "fair",
        Trust::Low => "low",
        Trust::None => "none",
    }
}

fn answer_name(answer: Answer) -> &'static str {
    match answer {
        Answer::Better => "better",
        Answer::NotWorse => "not worse",
        Answer::CannotTell => "cannot tell",
        Answer::Worse => "worse",
    }
}

/// Its words, and those without what stands in parentheses.
fn limiter_names(kind: LimiterKind) -> Vec<String> {
    let words = kind.words();
    let inner = words.split_once(" (").map(|(_, inner)| inner.trim_end_matches(')').to_owned());
    let more = match kind {
        LimiterKind::Unexplained => Some("not identified".to_owned()),
        LimiterKind::Network => Some("network".to_owned()),
        _ => inner,
    };
    std::iter::once(words.to_owned()).chain(more).collect()
}

/// What the rules look for that find a limiter.
fn evidence(kind: LimiterKind) -> impl Iterator<Item = Text> {
    let rules = analysis::limiter::RULES.iter().filter(move |rule| rule.speaks_for.contains(&kind));
    rules.take(2).map(|rule| say!("Evidence ({}): {}", rule.name, rule.about))
}

/// The rows of the tables of a glossary.
fn terms(glossary: &str) -> Vec<Entry> {
    let cells = |line: &str| {
        let (term, meaning) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        (!["term", "---"].contains(&term)).then(|| (term.to_owned(), meaning.to_owned()))
    };
    let entry = |(term, meaning): (String, String)| Entry {
        names: term.split(", ").map(str::to_owned).collect(),
        kind: "term",
        meaning: vec![text::capitalised(&meaning).into()],
        see: TERMS,
    };
    glossary.lines().filter_map(cells).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(word: &str) -> bool {
        entries().iter().any(|entry| entry.names.iter().any(|name| plain(name) == plain(word)))
    }

    #[test]
    fn every_word_that_a_screen_may_have_is_explained() {
        let verdicts = Verdict::ALL.iter().map(|verdict| verdict.name());
        let limiters = LimiterKind::ALL.iter().map(|kind| kind.words().to_owned());
        let trust = Trust::ALL.iter().map(|trust| trust_name(*trust).to_owned());
        let missing: Vec<String> = verdicts.chain(limiters).chain(trust).filter(|word| !has(word)).collect();
        assert_eq!(missing, Vec::<String>::new());
        for word in
            ["Limited by", "Remedy", "Caveats", "Seconds", "Offered", "Together", "RPM", "goodput", "Jain's index"]
        {
            assert!(has(word), "{word}");
        }
        for entry in entries() {
            let whole = entry.meaning.iter().map(Text::plain).collect::<Vec<_>>().join(" ");
            assert!(!whole.contains("unknown to this version") && whole.len() > 10, "{:?}: {whole}", entry.names);
        }
    }

    #[test]
    fn a_word_that_no_screen_has_is_answered_with_those_that_resemble_it() {
        let message = |word: &str| unknown(word, &plain(word), &entries()).text().plain();
        assert!(message("few-trails").contains("did you mean few trials"), "{}", message("few-trails"));
        assert!(message("window").contains("receive window"), "{}", message("window"));
        assert_eq!(message("xyzzy"), "no screen has the word 'xyzzy'; `thru explain` lists the words");
    }

    #[test]
    fn marks_and_capital_letters_do_not_matter() {
        assert_eq!(["few trials", "limited by"], ["few-trials:", " Limited by "].map(plain));
    }
}
