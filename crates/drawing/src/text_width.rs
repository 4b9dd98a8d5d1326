//! Widths of texts in Noto Sans. Other sans-serif fonts that a browser may use instead are up to 17 % wider; layouts have that margin.

use crate::widths;

/// Width of `text` in the regular face at `size`, in the unit of `size`.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// `text`, or its beginning with an ellipsis if it is wider than `room`.
#[must_use]
pub fn fit(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.to_owned();
    }
    let room = room - text_width("…", size);
    let mut width = 0.0;
    let kept: String = text
        .chars()
        .take_while(|c| {
            width += advance(*c) * size;
            width <= room
        })
        .collect();
    format!("{}…", kept.trim_end())
}

/// `text` broken at spaces into at most `lines` lines of `room`; what does not fit ends in an ellipsis.
#[must_use]
pub fn wrap(text: &str, size: f64, room: f64, lines: usize) -> Vec<String> {
    let mut done: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let open = done.len();
        let Some(line) = done.last_mut() else { break };
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if line.is_empty() || open >= lines || text_width(&longer, size) <= room {
            *line = longer;
        } else {
            done.push(word.to_owned());
        }
    }
    done.iter().map(|line| fit(line, size, room)).collect()
}

/// In parts of the size.
fn advance(c: char) -> f64 {
    if c.is_control() { 0.0 } else { widths::advance(c) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_ends_in_an_ellipsis_within_its_room() {
        let long = "a very long name ".repeat(20);
        let short = fit(&long, 12.0, 100.0);
        assert!(short.ends_with('…') && text_width(&short, 12.0) <= 100.0, "{short}");
        assert_eq!(fit("short", 12.0, 100.0), "short");
    }

    #[test]
    fn wrapping_keeps_to_its_lines() {
        let long = "words of several lengths and then more ".repeat(20);
        let lines = wrap(&long, 12.0, 200.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|line| text_width(line, 12.0) <= 200.0), "{lines:?}");
        assert_eq!(wrap("one two", 12.0, 200.0, 2), ["one two"]);
    }
}
