//! Rust sources as tokens, so that comments, strings and line breaks do not affect the rules.

use proc_macro2::{Delimiter, LexError, Spacing, TokenStream, TokenTree};

/// The names and the single characters of punctuation and brackets of `source`, without literals, comments and the items under
/// `#[cfg(test)]`; fails if it is not Rust.
pub(crate) fn lex(source: &str) -> Result<Vec<String>, LexError> {
    let mut tokens = Vec::new();
    flatten(source.parse()?, &mut tokens);
    Ok(tokens)
}

fn flatten(stream: TokenStream, into: &mut Vec<String>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < trees.len() {
        if let Some(length) = test_item(&trees[at..]) {
            at += length;
            continue;
        }
        match &trees[at] {
            TokenTree::Ident(ident) => into.push(ident.to_string()),
            TokenTree::Punct(punct) => into.push(punct.as_char().to_string()),
            TokenTree::Literal(_) => {}
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::None => ("", ""),
                };
                into.push(open.into());
                flatten(group.stream(), into);
                into.push(close.into());
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

    #[test]
    fn tests_comments_and_strings_are_no_code() {
        let source =
            "fn a() { b(\"c\"); } // d\n\n#[cfg(test)]\nuse e;\n\n#[cfg(test)]\nmod tests {\n    fn f() {}\n}\n";
        assert_eq!(lex(source).unwrap().join(" "), "fn a ( ) { b ( ) ; }");
        assert!(lex("fn a( {").is_err());
    }
}
