//! Sentences as lines of a screen.

use text::Text;

use crate::Layout;

/// `start` and `entry`, wrapped at the width; further lines are indented by two.
pub(crate) fn wrapped(start: &str, entry: &Text, layout: Layout, text: &mut String) {
    hanging(start.trim_end(), entry, 2, layout, text);
}

/// `start` and `entry`, wrapped at the width; further lines are indented by `indent`, at least one.
pub(crate) fn hanging(start: &str, entry: &Text, indent: usize, layout: Layout, text: &mut String) {
    let entry = layout.shown(entry);
    let words: Vec<&str> = entry.split_whitespace().collect();
    let (first, further) = (if start.is_empty() { String::new() } else { format!("{start} ") }, " ".repeat(indent));
    let lines = textwrap::Options::new(layout.width())
        .initial_indent(&first)
        .subsequent_indent(&further)
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    text.push_str(&textwrap::fill(&words.join(" "), lines));
    text.push('\n');
}

/// The first lines of a row; a cut one ends with an ellipsis, if possible where a clause does.
pub(crate) fn cut(row: &str, lines: usize, columns: usize) -> String {
    if row.lines().count() <= lines {
        return row.to_owned();
    }
    let mut kept: Vec<String> = row.lines().take(lines).map(str::to_owned).collect();
    if let Some(last) = kept.last_mut() {
        while !last.is_empty() && last.chars().count() + 2 > columns {
            let end = last.trim_end().rfind(' ').unwrap_or(0);
            last.truncate(end);
        }
        if let Some(end) = last.rfind("; ") {
            last.truncate(end);
        }
        *last = format!("{} …", last.trim_end_matches([' ', ',', ';', ':']));
    }
    kept.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_row_ends_where_a_clause_does() {
        let row = "Limited by   link rate: a queue raised the\n             RTT to 13.0 ms; the rate varied by\n             less than 1 %\n";
        assert_eq!(cut(row, 2, 60), "Limited by   link rate: a queue raised the\n             RTT to 13.0 ms …\n");
        assert_eq!(cut(row, 3, 60), row);
        let words = "Next         one two three\n             four five\n";
        assert_eq!(cut(words, 1, 25), "Next         one two …\n");
    }
}
