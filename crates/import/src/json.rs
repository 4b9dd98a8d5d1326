//! JSON documents in a text that may have other lines before, between and after them.

use serde_json::Value;

/// The line where a document begins, and the document, or the line and the reason why it is none.
pub(crate) type Found = (u32, Result<Value, (u32, String)>);

/// The documents of a text, each of which begins a line with a brace. Other lines are passed over. After a broken document the next one
/// is the next line with a brace in its first column, since programs indent what is within one.
pub(crate) struct Documents<'a> {
    rest: &'a str,
    line: u32,
    /// Whether the text before is a broken document.
    broken: bool,
}

/// The documents of `text`.
pub(crate) fn documents(text: &str) -> Documents<'_> {
    Documents { rest: text, line: 1, broken: false }
}

/// Whether a line of the text begins with a brace, as a document does.
pub(crate) fn may_have_documents(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with('{'))
}

impl Documents<'_> {
    fn advance(&mut self, bytes: usize) {
        let (before, rest) = self.rest.split_at(bytes);
        self.line = self.line.saturating_add(u32::try_from(before.matches('\n').count()).unwrap_or(u32::MAX));
        self.rest = rest;
    }

    fn skip_line(&mut self) {
        self.advance(self.rest.find('\n').map_or(self.rest.len(), |end| end + 1));
    }
}

impl Iterator for Documents<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let line = self.rest.lines().next()?;
            let indented = line.len() - line.trim_start().len();
            if line.trim_start().starts_with('{') && !(self.broken && indented > 0) {
                self.advance(indented);
                break;
            }
            self.skip_line();
        }
        let begun = self.line;
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<Value>();
        match stream.next()? {
            Ok(document) => {
                self.advance(stream.byte_offset());
                self.broken = false;
                Some((begun, Ok(document)))
            }
            Err(error) => {
                let at = begun.saturating_add(u32::try_from(error.line().saturating_sub(1)).unwrap_or(0));
                self.skip_line();
                self.broken = true;
                Some((begun, Err((at, format!("not valid JSON: {error}")))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u32, Option<Value>)> {
        documents(text).map(|(line, document)| (line, document.ok())).collect()
    }

    #[test]
    fn documents_stand_among_other_lines() {
        let text = "$ run\n{\n\t\"a\": {\n\t}\n}\ndone\n  {\"b\":1}{\"c\":2} end\n";
        let expected = [serde_json::json!({"a": {}}), serde_json::json!({"b": 1}), serde_json::json!({"c": 2})];
        assert_eq!(found(text), (0..).zip(expected).map(|(at, one)| ([2, 7, 7][at], Some(one))).collect::<Vec<_>>());
        assert_eq!(found("no document\n"), []);
    }

    #[test]
    fn a_broken_document_does_not_hide_the_next() {
        let text = "{\n\t\"a\": [{\n\t\t\"b\": 1\n\t}, {\n\t\t\"b\":\n{\n\t\"c\": 2\n}\n";
        assert_eq!(found(text), [(1, None), (6, Some(serde_json::json!({"c": 2})))]);
        let Some((1, Err((at, reason)))) = documents("{\"a\": nan}\n").next() else { panic!("it is broken") };
        assert!(at == 1 && reason.starts_with("not valid JSON: "), "{at}: {reason}");
    }
}
