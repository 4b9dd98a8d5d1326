//! A template, taken apart.

/// A part of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Words as they are.
    Words(String),
    /// A placeholder.
    Value(Value),
    /// What stands in backticks.
    Code(Vec<Piece>),
}

/// A placeholder: `{}`, `{name}`, `{name:format}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// The name, or the index of a positional argument; empty for the next one.
    pub(crate) name: String,
    /// What follows the colon.
    pub(crate) format: String,
}

/// Takes a template apart, or says what is wrong with it.
pub(crate) fn parse(template: &str) -> Result<Vec<Piece>, &'static str> {
    let (pieces, rest) = pieces(template, false)?;
    debug_assert!(rest.is_empty(), "only code ends before the template does");
    Ok(pieces)
}

/// The pieces up to the end, or within code up to its closing backtick; and what follows.
fn pieces(mut rest: &str, in_code: bool) -> Result<(Vec<Piece>, &str), &'static str> {
    let mut pieces = Vec::new();
    let mut words = String::new();
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        match next {
            '{' | '}' if after.starts_with(next) => {
                words.push(next);
                rest = &after[1..];
            }
            '}' => return Err("a '}' without its '{': write '}}' for the character"),
            '{' => {
                let Some((inside, after)) = after.split_once('}') else { return Err("a '{' without its '}'") };
                flush(&mut words, &mut pieces);
                pieces.push(Piece::Value(value(inside)));
                rest = after;
            }
            '`' if in_code => {
                flush(&mut words, &mut pieces);
                return if pieces.is_empty() {
                    Err("nothing stands between two backticks")
                } else {
                    Ok((pieces, after))
                };
            }
            '`' => {
                flush(&mut words, &mut pieces);
                let (code, after) = self::pieces(after, true)?;
                pieces.push(Piece::Code(code));
                rest = after;
            }
            other => {
                words.push(other);
                rest = after;
            }
        }
    }
    if in_code {
        return Err("a backtick without its second one");
    }
    flush(&mut words, &mut pieces);
    Ok((pieces, rest))
}

fn flush(words: &mut String, pieces: &mut Vec<Piece>) {
    if !words.is_empty() {
        pieces.push(Piece::Words(std::mem::take(words)));
    }
}

fn value(inside: &str) -> Value {
    let (name, format) = inside.split_once(':').unwrap_or((inside, ""));
    Value { name: name.trim().to_owned(), format: format.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Piece {
        Piece::Words(text.to_owned())
    }

    fn value(name: &str, format: &str) -> Piece {
        Piece::Value(Value { name: name.to_owned(), format: format.to_owned() })
    }

    #[test]
    fn a_template_has_words_values_and_code() {
        assert_eq!(
            parse("at {rate:?} use `--flows {n}`, {{not}} {}."),
            Ok(vec![
                words("at "),
                value("rate", "?"),
                words(" use "),
                Piece::Code(vec![words("--flows "), value("n", "")]),
                words(", {not} "),
                value("", ""),
                words("."),
            ])
        );
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn what_is_left_open_is_refused() {
        for template in ["a {b", "a }", "`--flows", "``", "`a {b`"] {
            assert!(parse(template).is_err(), "{template}");
        }
    }
}
