//! Which parts of a screen stand out on a terminal that has colours. Screens are laid out without colours, so that their lines are the
//! same in a file.

use model::{Answer, Trust};

use crate::labels;

/// How a part of a screen looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As the rest.
    #[default]
    Plain,
    /// The answer.
    Strong,
    /// It can be relied on, or is as it should be.
    Good,
    /// To be read with care.
    Doubtful,
    /// Not to be relied on, or not as it should be.
    Bad,
    /// An aside.
    Faint,
}

/// The parts of a screen in order. Together they are the screen.
#[must_use]
pub fn toned(screen: &str) -> Vec<(Tone, &str)> {
    // Lines that say of what a screen is end with an empty line, and the answer is below. A table by itself has none.
    let mut above = screen.contains("\n\n") && is_title(screen);
    let is_table = screen.lines().nth(1).is_some_and(|line| line.starts_with('─'));
    let mut answer = if is_table { Place::Passed } else { Place::Ahead };
    let mut parts = Vec::new();
    for line in screen.split_inclusive('\n') {
        let is_empty = line.trim().is_empty();
        answer = match answer {
            // What was offered stands before the answer.
            Place::Ahead if !above && !is_empty && !is_head(line) && !line.starts_with(OFFERED) => Place::Here,
            // A sentence may have several lines, a row is indented.
            Place::Here if is_empty || is_other(line) => Place::Passed,
            place => place,
        };
        if above || is_empty {
            parts.push((Tone::Plain, line));
        } else {
            of_line(line, answer == Place::Here, &mut parts);
        }
        above &= !is_empty;
    }
    parts.retain(|(_, part)| !part.is_empty());
    parts
}

/// The title of the rate that a sender did not reach.
const OFFERED: &str = "Offered";

/// Where the answer is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Ahead,
    Here,
    Passed,
}

/// Whether a screen begins with what it is of: a run, or the two sides of a comparison.
fn is_title(screen: &str) -> bool {
    screen.starts_with("A: ") || screen.lines().next().is_some_and(|line| line.contains("(run "))
}

/// Whether a line does not continue a sentence.
fn is_other(line: &str) -> bool {
    value_at(line) > 0
        || ["- ", "    ", "More:"].into_iter().any(|start| line.starts_with(start))
        || line.contains(LIMIT)
}

/// Before what limited a measurement.
const LIMIT: &str = "limited by: ";

/// The heads of columns, which have no title before them, and a table without a sentence above.
fn is_head(line: &str) -> bool {
    line.starts_with(' ') || line.starts_with('─')
}

fn of_line<'a>(line: &'a str, is_answer: bool, parts: &mut Vec<(Tone, &'a str)>) {
    let (title, value) = line.split_at(value_at(line));
    let row = |title_tone, tone| [(title_tone, title), (tone, value)];
    match title.trim_end() {
        "More" => return parts.extend(row(Tone::Faint, Tone::Faint)),
        OFFERED => return parts.extend(row(Tone::Doubtful, Tone::Doubtful)),
        "Caveats" => return parts.extend(row(Tone::Doubtful, Tone::Plain)),
        "Verdict" => return parts.extend(row(Tone::Plain, of_verdict(value.trim_end()))),
        _ if line.starts_with('─') || line.starts_with("More:") => return parts.push((Tone::Faint, line)),
        _ if line.contains(LIMIT) => {
            let (before, limit) = line.split_at(line.find(LIMIT).unwrap_or(0) + LIMIT.len());
            let (cause, rest) = limit.split_at(limit.find([':', '(']).unwrap_or(limit.len()));
            return parts.extend([(Tone::Plain, before), (Tone::Strong, cause), (Tone::Plain, rest)]);
        }
        _ => parts.push((Tone::Plain, title)),
    }
    if !is_answer {
        return graded(value, Tone::Plain, parts);
    }
    if value.starts_with("no result: ") {
        return parts.push((Tone::Bad, value));
    }
    // What stands in parentheses is about the figure.
    let (figure, aside) = value.split_at(value.find(" (").unwrap_or(value.len()));
    let (figure, unsettled) = figure.split_at(figure.find(", not settled").unwrap_or(figure.len()));
    graded(figure, Tone::Strong, parts);
    parts.push((Tone::Doubtful, unsettled));
    graded(aside, Tone::Faint, parts);
}

/// Where the value of a row begins: after its title and two spaces; 0 of other lines.
fn value_at(line: &str) -> usize {
    const TITLES: std::ops::RangeInclusive<usize> = 3..=15;
    let is_title = |title: &str| title.starts_with(|first: char| first.is_ascii_uppercase()) && !title.contains(". ");
    let Some((title, rest)) = line.split_once("  ").filter(|(title, _)| is_title(title)) else {
        // A title as wide as its column.
        return 0;
    };
    let at = line.len() - rest.trim_start().len();
    if TITLES.contains(&at) && title.len() < at && !rest.trim().is_empty() { at } else { 0 }
}

/// The tone of a check's verdict.
fn of_verdict(verdict: &str) -> Tone {
    match verdict {
        "fine" | "as expected" => Tone::Good,
        _ if verdict.starts_with("not as expected") => Tone::Bad,
        _ => Tone::Doubtful,
    }
}

/// Text whose grades of trust have their own tones, and so have the grade and the answer that end a line of a table.
fn graded<'a>(text: &'a str, base: Tone, parts: &mut Vec<(Tone, &'a str)>) {
    const WORD: &str = "trust ";
    let mut rest = text;
    while let Some(at) = rest.find(WORD) {
        let (before, from) = rest.split_at(at);
        let grade = GRADES.into_iter().find(|grade| is_word(&from[WORD.len()..], labels::trust(*grade)));
        let end = grade.map_or(WORD.len(), |grade| WORD.len() + labels::trust(grade).len());
        parts.extend([(base, before), (grade.map_or(base, of_trust), &from[..end])]);
        rest = &from[end..];
    }
    let line = rest.trim_end();
    let words = GRADES.into_iter().map(|grade| (labels::trust(grade), of_trust(grade)));
    let mut words = words.chain(ANSWERS.into_iter().map(|answer| (labels::answer(answer), of_answer(answer))));
    let is_last = |word: &str| line.strip_suffix(word).is_some_and(|before| before.ends_with("  "));
    let Some((word, tone)) = words.find(|(word, _)| is_last(word)) else {
        return parts.push((base, rest));
    };
    let (before, from) = rest.split_at(line.len() - word.len());
    parts.extend([(base, before), (tone, from)]);
}

const GRADES: [Trust; 4] = [Trust::High, Trust::Fair, Trust::Low, Trust::None];
const ANSWERS: [Answer; 4] = [Answer::Better, Answer::NotWorse, Answer::CannotTell, Answer::Worse];

fn is_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn of_trust(trust: Trust) -> Tone {
    match trust {
        Trust::High => Tone::Good,
        Trust::Fair => Tone::Doubtful,
        Trust::Low | Trust::None => Tone::Bad,
    }
}

fn of_answer(answer: Answer) -> Tone {
    match answer {
        Answer::Better | Answer::NotWorse => Tone::Good,
        Answer::CannotTell => Tone::Doubtful,
        Answer::Worse => Tone::Bad,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ListedRun, View, sample};

    fn marked(screen: &str) -> String {
        let mark = |(tone, part): (Tone, &str)| match tone {
            Tone::Plain => part.to_owned(),
            tone => format!("<{tone:?} {part}>"),
        };
        toned(screen).into_iter().map(mark).collect()
    }

    #[test]
    fn the_answer_its_trust_and_the_asides_stand_out() {
        let screen = "stream to b: tcp stream (run 1)\nFinished after 4 s\n\n\
                      Goodput      278 Mbit/s ±7.5 % (95 % interval, 13 trials, trust fair)\n\
                      RTT          3.6 ms under this load\nCaveats      target-missed: more\n\
                      More         `thru show 1 -v`: hosts\n";
        let expected = "stream to b: tcp stream (run 1)\nFinished after 4 s\n\n\
                        Goodput      <Strong 278 Mbit/s ±7.5 %><Faint  (95 % interval, 13 trials, ><Doubtful trust fair><Faint )\n>\
                        RTT          3.6 ms under this load\n<Doubtful Caveats      >target-missed: more\n\
                        <Faint More         ><Faint `thru show 1 -v`: hosts\n>";
        assert_eq!(marked(screen), expected);
        let offered = marked("x (run 1)\n\nOffered      5 of 9 Mbit/s: CPU\nGoodput      5 Mbit/s (trust low)\n");
        assert!(offered.contains("<Doubtful 5 of 9") && offered.contains("<Strong 5 Mbit/s>"), "{offered}");
        let unsettled = "x (run 1)\n\nGoodput      5 Mbit/s, not settled: still growing (1 trial, trust low)\n";
        assert!(marked(unsettled).contains("<Doubtful , not settled: still growing>"), "{}", marked(unsettled));
        assert!(marked("x (run 1)\n\nGoodput      no result: it stalled\n").contains("<Bad no result: it stalled\n>"));
    }

    #[test]
    fn a_sentence_is_the_answer_to_its_end() {
        let screen = "A: x\nB: y\n\nB is worse than A\nby far.\n\n pattern  answer\n────\n stream   not worse\n rr       worse\n";
        let expected = "A: x\nB: y\n\n<Strong B is worse than A\n><Strong by far.\n>\n pattern  answer\n<Faint ────\n> stream   \
                        <Good not worse\n> rr       <Bad worse\n>";
        assert_eq!(marked(screen), expected);
    }

    #[test]
    fn what_limited_a_run_stands_out_and_a_table_has_no_answer() {
        let why = "tcp stream: goodput 1 Mbit/s (3 trials, trust low)\nlimited by: sender CPU (strong): it ran\n\nOther evidence\n";
        let marked_why = marked(why);
        assert!(
            marked_why.starts_with("<Strong tcp stream: goodput 1 Mbit/s><Faint  (3 trials, ><Bad trust low>"),
            "{marked_why}"
        );
        assert!(
            marked_why.contains("limited by: <Strong sender CPU >(strong): it ran\n\nOther evidence\n"),
            "{marked_why}"
        );
        assert_eq!(marked("run  trust\n──────\nx    high\n"), "run  trust\n<Faint ──────\n>x    <Good high\n>");
    }

    #[test]
    fn the_verdict_of_a_check_has_a_tone() {
        let of = |verdict: &str| marked(&format!("x (run 1)\n\nVerdict      {verdict}\n"));
        assert!(of("fine").contains("<Good fine"));
        assert!(of("2 findings").contains("<Doubtful 2"));
        assert!(of("not as expected (2 of 3)").contains("<Bad not"));
    }

    #[test]
    fn no_character_of_a_screen_is_changed() {
        let runs =
            [sample::stream(), sample::rr(), sample::curve(), sample::pair(), sample::planned(), sample::check()];
        for run in &runs {
            for whole in [None, Some("`thru show last -v`")] {
                let view = View { whole, ..View::new(std::slice::from_ref(run)) };
                let bytes = (crate::format("text").unwrap().render)(&view).unwrap().remove(0).bytes;
                let text = String::from_utf8(bytes).unwrap();
                let parts = toned(&text);
                assert_eq!(parts.iter().map(|(_, part)| *part).collect::<String>(), text);
                let plain = parts.iter().all(|(tone, _)| *tone == Tone::Plain);
                assert!(!plain, "something stands out of\n{text}");
            }
        }
        let rows: Vec<ListedRun> = runs.iter().map(ListedRun::from).collect();
        let list = crate::run_list(&rows, 3, "thru runs -n 9", crate::Layout::default());
        assert!(toned(&list).iter().any(|(tone, part)| *tone == Tone::Doubtful && part.trim() == "fair"), "{list}");
    }
}
