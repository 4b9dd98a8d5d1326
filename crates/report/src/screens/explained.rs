//! The explanation of a word.

use text::{Text, say};

use crate::Layout;
use crate::lines::hanging;

/// A word, what it means, and where the manual says more, if that is not empty.
#[must_use]
pub fn explained(title: &Text, meaning: &[Text], see: &str, layout: Layout) -> String {
    let mut text = format!("{}\n", layout.shown(title));
    meaning.iter().for_each(|sentence| hanging(" ", sentence, 2, layout, &mut text));
    if !see.is_empty() {
        hanging(" ", &say!("See {see}"), 2, layout, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_indented_below_the_word() {
        let text =
            explained(&"low (trust)".into(), &["Wide.".into(), "Or none.".into()], "statistics.md", Layout::default());
        assert_eq!(text, "low (trust)\n  Wide.\n  Or none.\n  See statistics.md\n");
    }
}
