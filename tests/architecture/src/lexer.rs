//! Rust sources as tokens, so that comments, strings and line breaks neither hide nor fake what a rule looks for.

use proc_macro2::{Delimiter, LexError, Spacing, TokenStream, TokenTree};

/// One identifier, or one character of punctuation or bracket. Literals and comments are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// A source taken apart.
#[derive(Debug, Default)]
pub(crate) struct Lexed {
    /// Its tokens without the items under `#[cfg(test)]`.
    pub(crate) code: Vec<Token>,
    /// All its tokens.
    pub(crate) all: Vec<Token>,
    /// Lines before the test module that ends the file; all lines where there is none.
    pub(crate) lines_before_tests: usize,
}

/// Takes `source` apart; fails where it is no Rust.
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
        // The file's documentation is an attribute to the lexer.
        assert!(texts(&lexed.code).ends_with("fn a ( ) { b ( ) ; }"), "{}", texts(&lexed.code));
        assert!(!texts(&lexed.code).contains("unsafe"));
        assert!(texts(&lexed.all).contains("unsafe fn d"));
        assert_eq!(lexed.all.iter().find(|token| token.text == "unsafe").unwrap().line, 9);
    }

    #[test]
    fn only_the_tests_that_end_a_file_shorten_it() {
        assert_eq!(lex(SOURCE).unwrap().lines_before_tests, 6);
        assert_eq!(lex(&format!("{SOURCE}\nfn e() {{}}\n")).unwrap().lines_before_tests, 12);
        assert_eq!(lex("").unwrap().lines_before_tests, 0);
        assert!(lex("fn a( {").is_err());
    }
}
