//! JSON documents in a text that may have other lines before, between and after them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::error::DocumentError;
use crate::listing::Refused;

/// The line where a document begins, and the document, or why it is none.
pub(crate) type Found = (u32, Result<Value, Refused>);

/// What a format says of a document.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Whether a document is of the format; those of other programs are passed over.
    pub(crate) is_own: fn(&Value) -> bool,
    /// Whether a document of the format may have a key twice, with different values. The last value is kept.
    pub(crate) may_repeat: fn(&Value, &str) -> bool,
}

impl Shape {
    /// A format whose documents have each key once.
    pub(crate) const fn of(is_own: fn(&Value) -> bool) -> Self {
        Self { is_own, may_repeat: |_, _| false }
    }
}

/// The documents of a format in a text, each of which begins a line with a brace. Other lines are passed over. After a broken document
/// the next one is the next line with a brace in its first column, since programs indent what is within one.
pub(crate) struct Documents<'a> {
    rest: &'a str,
    line: u32,
    /// Whether the text before is a broken document.
    broken: bool,
    shape: Shape,
}

/// The documents of `text` that have this shape, and what is broken.
pub(crate) fn documents(text: &str, shape: Shape) -> Documents<'_> {
    Documents { rest: text, line: 1, broken: false, shape }
}

/// A text that is one value.
///
/// # Errors
/// Text that is not JSON, or a key with two values.
pub(crate) fn whole(text: &str) -> Result<Value, Refused> {
    let mut from = serde_json::Deserializer::from_str(text);
    let (value, repeated) = Keyed::read(&mut from)
        .and_then(|read| from.end().map(|()| read))
        .map_err(|error| Refused::new(line(&error), DocumentError::Json(error.to_string())))?;
    match repeated.into_iter().next() {
        Some(key) => Err(Refused::new(1, DocumentError::TwoValues(key))),
        None => Ok(value),
    }
}

fn line(error: &serde_json::Error) -> u32 {
    u32::try_from(error.line()).unwrap_or(u32::MAX)
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
            if !line.trim_start().starts_with('{') || (self.broken && indented > 0) {
                self.skip_line();
                continue;
            }
            self.advance(indented);
            let begun = self.line;
            if let Some(found) = self.document() {
                return Some((begun, found));
            }
        }
    }
}

impl Documents<'_> {
    /// The document that begins here; `None` for one of another program.
    fn document(&mut self) -> Option<Result<Value, Refused>> {
        let mut stream = serde_json::Deserializer::from_str(self.rest);
        let begun = self.line;
        match Keyed::read(&mut stream) {
            Ok((document, repeated)) => {
                let stream = stream.into_iter::<IgnoredAny>();
                self.advance(stream.byte_offset());
                self.broken = false;
                (self.shape.is_own)(&document).then_some(())?;
                match repeated.into_iter().find(|key| !(self.shape.may_repeat)(&document, key)) {
                    Some(key) => Some(Err(Refused::new(begun, DocumentError::TwoValues(key)))),
                    None => Some(Ok(document)),
                }
            }
            Err(error) => {
                let at = begun.saturating_add(line(&error).saturating_sub(1));
                self.skip_line();
                self.broken = true;
                Some(Err(Refused::new(at, DocumentError::Json(error.to_string()))))
            }
        }
    }
}

/// Reads any value, and notes the keys that an object has twice with different values: of those `serde_json` keeps the last one silently.
struct Keyed<'a> {
    /// Where the value is.
    place: Place<'a>,
    repeated: &'a RefCell<BTreeSet<String>>,
}

/// The key of a value and those of what it is in.
#[derive(Clone, Copy)]
struct Place<'a> {
    within: Option<&'a Place<'a>>,
    key: &'a str,
}

impl Place<'_> {
    /// Keys joined with points, `[]` for any item of a list.
    fn path(&self, key: &str) -> String {
        let mut path = key.to_owned();
        let mut at = Some(self);
        while let Some(place) = at.filter(|place| place.within.is_some()) {
            path = if path.starts_with('[') { place.key.to_owned() + &path } else { format!("{}.{path}", place.key) };
            at = place.within;
        }
        path
    }
}

impl<'a> Keyed<'a> {
    fn read(
        from: &mut serde_json::Deserializer<serde_json::de::StrRead<'_>>,
    ) -> serde_json::Result<(Value, BTreeSet<String>)> {
        let repeated = RefCell::default();
        let value = Keyed { place: Place { within: None, key: "" }, repeated: &repeated }.deserialize(from)?;
        Ok((value, repeated.into_inner()))
    }

    fn within<'b>(&'b self, key: &'b str) -> Keyed<'b> {
        Keyed { place: Place { within: Some(&self.place), key }, repeated: self.repeated }
    }
}

impl<'de> DeserializeSeed<'de> for Keyed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keyed<'_> {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = from.next_element_seed(self.within("[]"))? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            let value = from.next_value_seed(self.within(&key))?;
            if all.get(&key).is_some_and(|other| *other != value) {
                let path = self.place.path(&key);
                self.repeated.borrow_mut().insert(path);
            }
            all.insert(key, value);
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: Shape = Shape::of(|_| true);

    fn found(text: &str) -> Vec<(u32, Option<Value>)> {
        documents(text, ANY).map(|(line, document)| (line, document.ok())).collect()
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
        let Some((1, Err(refused))) = documents("{\"a\": nan}\n", ANY).next() else { panic!("it is broken") };
        assert!(refused.line == 1 && refused.to_string().starts_with("not valid JSON: "), "{refused:?}");
    }

    #[test]
    fn a_key_with_two_values_refuses_its_document() {
        let refused = |text: &str, shape: Shape| documents(text, shape).filter_map(|(_, found)| found.err()).collect();
        let text = "{\"a\":1,\"a\":1}\n{\"b\":[{\"c\":{\"d\":1,\"d\":2}}]}\n{\"e\":1}\n";
        let all: Vec<Refused> = refused(text, ANY);
        assert_eq!(all, [Refused::new(2, DocumentError::TwoValues("b[].c.d".into()))]);
        assert_eq!(all[0].to_string(), "b[].c.d appears twice with different values");
        let other = Shape::of(|document| document["b"].is_null());
        assert_eq!((refused(text, other), documents(text, other).count()), (Vec::new(), 2), "it is of another program");
        let allowed = Shape { may_repeat: |_, key| key == "b[].c.d", ..ANY };
        assert_eq!(found(text).len(), 3);
        let Some((2, Ok(last))) = documents(text, allowed).nth(1) else { panic!("it may repeat") };
        assert_eq!(last, serde_json::json!({"b": [{"c": {"d": 2}}]}));
        assert_eq!(
            whole("{\"x\":{\"y\":null,\"y\":[]}}"),
            Err(Refused::new(1, DocumentError::TwoValues("x.y".into())))
        );
        assert!(whole("[1]").is_ok() && whole("[1] 2").is_err());
    }

    #[test]
    fn numbers_and_texts_are_those_of_the_document() {
        let text =
            "[null, true, -9223372036854775808, 18446744073709551615, 0.1, 1e300, \"a\\u00e9\\n\", {\"\": [[]]}]";
        assert_eq!(whole(text), Ok(serde_json::from_str(text).unwrap_or_default()));
    }
}
