//! Rust sources as tokens, so that comments, strings and line breaks do not affect the rules.

use proc_macro2::{Delimiter, LexError, Spacing, TokenStream, TokenTree};

use crate::text::Passage;

/// One identifier, or one character of punctuation or bracket. Literals and comments are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A source as tokens.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    /// Its tokens without the items under `#[cfg(test)]`.
    pub(crate) code: Vec<Token>,
    /// All its tokens.
    pub(crate) all: Vec<Token>,
    /// Lines before the test module that ends the file; all lines where there is none.
    pub(crate) lines_before_tests: usize,
}

/// Splits `source` into tokens; fails if it is not Rust.
pub(crate) fn lex(source: &str) -> Result<Lexed, LexError> {
    let stream: TokenStream = source.parse()?;
    let mut lexed = Lexed { lines_before_tests: source.lines().count(), ..Lexed::default() };
    flatten(stream.clone(), false, &mut lexed.all);
    flatten(stream.clone(), true, &mut lexed.code);
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    if let Some(start) = (0..trees.len()).find(|start| test_item(&trees[*start..]) == Some(trees.len() - start)) {
        lexed.lines_before_tests = trees[start].span().start().line.saturating_sub(1);
    }
    Ok(lexed)
}

/// A string literal or a line of documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) line: usize,
    /// Whether it is documentation.
    pub(crate) doc: bool,
}

/// The string literals and the documentation of items of `source`, without that of modules (`//!`); fails if it is not Rust.
pub(crate) fn strings(source: &str) -> Result<Vec<Text>, LexError> {
    let mut texts = Vec::new();
    collect(source.parse()?, false, false, &mut texts);
    Ok(texts)
}

/// The string literals of `source` outside of the items under `#[cfg(test)]`, without documentation; fails if it is not Rust.
pub(crate) fn strings_of_code(source: &str) -> Result<Vec<Text>, LexError> {
    let mut texts = Vec::new();
    collect(source.parse()?, false, true, &mut texts);
    texts.retain(|text| !text.doc);
    Ok(texts)
}

/// The texts of `strings` to search for phrases: each literal, and with `docs` also each block of documentation.
pub(crate) fn passages(strings: &[Text], docs: bool) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let mut last_doc: Option<usize> = None;
    for text in strings.iter().filter(|text| docs || !text.doc) {
        let continues = text.doc && last_doc.is_some_and(|line| line + 1 == text.line);
        last_doc = text.doc.then_some(text.line);
        match passages.last_mut().filter(|_| continues) {
            Some(passage) => passage.push(text.line, &text.text),
            None => passages.push(Passage::of(text.line, &text.text)),
        }
    }
    passages
}

fn collect(stream: TokenStream, doc: bool, without_tests: bool, into: &mut Vec<Text>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut skipped = 0;
    for (at, tree) in trees.iter().enumerate() {
        if without_tests && let Some(length) = test_item(&trees[at..]) {
            skipped = at + length;
        }
        if at < skipped {
            continue;
        }
        match tree {
            TokenTree::Literal(literal) => {
                if let Some(text) = unquoted(&literal.to_string()) {
                    into.push(Text { text, line: literal.span().start().line, doc });
                }
            }
            TokenTree::Group(group) => {
                // `///` stands for `#[doc = "…"]`, `//!` for `#![doc = "…"]`.
                let before = at.checked_sub(1).map(|before| trees[before].to_string());
                let first = group.stream().into_iter().next().map(|tree| tree.to_string());
                let is_doc = group.delimiter() == Delimiter::Bracket && first.as_deref() == Some("doc");
                match before.as_deref().filter(|_| is_doc) {
                    Some("!") => {}
                    before => collect(group.stream(), before == Some("#"), without_tests, into),
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// The text of a string literal; `None` for other literals.
fn unquoted(literal: &str) -> Option<String> {
    let plain = literal.trim_start_matches(['b', 'c']);
    if let Some(raw) = plain.strip_prefix('r') {
        let raw = raw.trim_matches('#');
        return Some(raw.strip_prefix('"')?.strip_suffix('"')?.to_owned());
    }
    let mut characters = plain.strip_prefix('"')?.strip_suffix('"')?.chars().peekable();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('\n') => while characters.next_if(|next| next.is_whitespace()).is_some() {},
            Some('n' | 'r' | 't') => text.push(' '),
            // Which character it is does not matter for words.
            Some('u' | 'x' | '0') => text.push('\u{fffd}'),
            Some(other) => text.push(other),
            None => {}
        }
    }
    Some(text)
}

fn flatten(stream: TokenStream, without_tests: bool, into: &mut Vec<Token>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        if without_tests && let Some(length) = test_item(&trees[at..]) {
            at += length;
            continue;
        }
        let span = trees[at].span();
        let mut push = |text: String, line| into.push(Token { text, line });
        match &trees[at] {
            TokenTree::Ident(ident) => push(ident.to_string(), span.start().line),
            TokenTree::Punct(punct) => push(punct.as_char().to_string(), span.start().line),
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::None => ("", ""),
                };
                push(open.into(), span.start().line);
                flatten(group.stream(), without_tests, into);
                into.push(Token { text: close.into(), line: span.end().line });
            }
        }
        at += 1;
    }
}

/// The number of trees of the item that `trees` starts with, if that is one under `#[cfg(test)]`.
fn test_item(trees: &[TokenTree]) -> Option<usize> {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = trees else { return None };
    let is_test = attribute.stream().to_string().replace(' ', "") == "cfg(test)";
    if hash.as_char() != '#' || hash.spacing() != Spacing::Alone || !is_test {
        return None;
    }
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    trees.iter().position(ends).map(|last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "//! unsafe in a comment\nfn a() { b(\"unsafe\"); }\n\n#[cfg(test)]\nuse c;\n\n#[cfg(test)]\nmod tests {\n    unsafe fn d() {}\n}\n";

    fn texts(tokens: &[Token]) -> String {
        tokens.iter().map(|token| token.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tests_comments_and_strings_are_no_code() {
        let lexed = lex(SOURCE).unwrap();
        // The lexer turns the file's documentation into an attribute.
        assert!(texts(&lexed.code).ends_with("fn a ( ) { b ( ) ; }"), "{}", texts(&lexed.code));
        assert!(!texts(&lexed.code).contains("unsafe"));
        assert!(texts(&lexed.all).contains("unsafe fn d"));
        assert_eq!(lexed.all.iter().find(|token| token.text == "unsafe").unwrap().line, 9);
    }

    #[test]
    fn strings_are_read_as_the_program_has_them() {
        let source = "//! Zero.\n/// One.\n/// Two.\nfn a() { b(\"x \\\n   y\\n\", r#\"\"z\"\"#, b'c', 1); }\n";
        let texts: Vec<(String, usize, bool)> =
            strings(source).unwrap().into_iter().map(|text| (text.text, text.line, text.doc)).collect();
        let wanted = [(" One.", 2, true), (" Two.", 3, true), ("x y ", 4, false), ("\"z\"", 5, false)];
        assert_eq!(texts, wanted.map(|(text, line, doc)| (text.to_owned(), line, doc)));
        assert_eq!(passages(&strings(source).unwrap(), true).len(), 3, "documentation is one text");
        assert_eq!(passages(&strings(source).unwrap(), false).len(), 2);
    }

    #[test]
    fn only_the_tests_that_end_a_file_shorten_it() {
        assert_eq!(lex(SOURCE).unwrap().lines_before_tests, 6);
        assert_eq!(lex(&format!("{SOURCE}\nfn e() {{}}\n")).unwrap().lines_before_tests, 12);
        assert_eq!(lex("").unwrap().lines_before_tests, 0);
        assert!(lex("fn a( {").is_err());
    }
}
