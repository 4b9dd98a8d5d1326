//! JSON as all of the program reads and writes it.
//!
//! A type with named fields is an object. serde's derived code takes a list of the fields as well, which no document of ours has: reading
//! through [`read`] leaves that way out, for every type within.
//!
//! For people, `serde_json` would write every type a second time; here the compact text gets its lines.

use std::{fmt, io};

use serde::Serialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// The value that a text is.
///
/// # Errors
/// The text is no JSON, or not that value.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let mut from = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Objects(&mut from))?;
    from.end()?;
    Ok(value)
}

/// A value as JSON with a line for each member, as `serde_json::to_string_pretty` writes it.
///
/// # Errors
/// The value is no JSON, such as a map whose keys are no texts.
pub fn pretty<T: Serialize + ?Sized>(value: &T) -> Result<String, serde_json::Error> {
    let mut lines = Lines::default();
    serde_json::to_writer(&mut lines, value)?;
    String::from_utf8(lines.text).map_err(serde::ser::Error::custom)
}

/// Takes compact JSON and gives it its lines, indented by two spaces.
#[derive(Default)]
struct Lines {
    text: Vec<u8>,
    depth: usize,
    /// Within a string, and behind its backslash.
    within: bool,
    escaped: bool,
    /// Behind the mark that opens an object or a list.
    opened: bool,
}

impl Lines {
    fn end(&mut self) {
        self.text.push(b'\n');
        self.text.extend(std::iter::repeat_n(b' ', 2 * self.depth));
    }

    fn take(&mut self, byte: u8) {
        if self.within {
            self.within = self.escaped || byte != b'"';
            self.escaped = !self.escaped && byte == b'\\';
            return self.text.push(byte);
        }
        let closes = matches!(byte, b'}' | b']');
        if self.opened && !closes {
            self.depth += 1;
            self.end();
        } else if closes && !self.opened {
            self.depth -= 1;
            self.end();
        }
        self.text.push(byte);
        self.opened = matches!(byte, b'{' | b'[');
        self.within = byte == b'"';
        match byte {
            b',' => self.end(),
            b':' => self.text.push(b' '),
            _ => {}
        }
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        bytes.iter().for_each(|byte| self.take(*byte));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads types with named fields from objects only.
pub(crate) struct Objects<D>(pub(crate) D);

/// Forwards to the reader within what has no parts.
macro_rules! forwarded {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> { self.0.$method(visitor) })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    // What takes any value is a `serde_json::Value`.
    forwarded! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Part(visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        // So serde_json calls what it reads as text.
        if name.starts_with("$serde_json::private::") {
            return self.0.deserialize_newtype_struct(name, visitor);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_seq(List(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(length, List(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, length, List(visitor))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Object(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Object(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Part(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Takes an object.
struct Object<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Object<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Within(map))
    }
}

/// Takes a list.
struct List<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for List<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Within(list))
    }
}

/// Takes an option or an enum.
struct Part<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Part<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Objects(from))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Within(variant))
    }
}

/// Reads one part of a value.
struct Seed<S>(S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Seed<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Objects(from))
    }
}

/// The parts of a value.
struct Within<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Within<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Within<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Within<A> {
    type Error = A::Error;
    type Variant = Within<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        self.0.variant_seed(seed).map(|(kind, variant)| (kind, Within(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Within<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(Seed(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, List(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Object(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::Value;

    fn values() -> impl Strategy<Value = Value> {
        let text = prop_oneof![".*", r#"[\\\\"{},:\[\] \n]*"#];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.clone().prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect()))
            ]
        })
    }

    proptest! {
        #[test]
        fn it_is_what_serde_json_writes(value in values()) {
            prop_assert_eq!(pretty(&value).unwrap(), serde_json::to_string_pretty(&value).unwrap());
        }
    }

    #[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
    enum Kind {
        #[default]
        Plain,
        One(Inner),
        Two(u8, Inner),
        Named {
            inner: Option<Inner>,
        },
    }

    #[derive(Debug, PartialEq, Clone, Default, Serialize, Deserialize)]
    struct Inner {
        size: u8,
    }

    #[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
    struct Wrapped(Inner);

    /// Every shape that a document has.
    #[derive(Debug, PartialEq, Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Whole {
        option: Option<Inner>,
        list: Vec<Inner>,
        pair: (u8, Inner),
        map: BTreeMap<String, Inner>,
        kinds: Vec<Kind>,
        wrapped: Wrapped,
        any: serde_json::Value,
        boxed: Box<Option<f64>>,
    }

    #[test]
    fn all_shapes_are_read_as_serde_reads_them() {
        let inner = Inner { size: 7 };
        let whole = Whole {
            option: Some(inner.clone()),
            list: vec![inner.clone(); 2],
            pair: (1, inner.clone()),
            map: BTreeMap::from([("a".to_owned(), inner.clone())]),
            kinds: vec![
                Kind::Plain,
                Kind::One(inner.clone()),
                Kind::Two(2, inner.clone()),
                Kind::Named { inner: Some(inner.clone()) },
            ],
            wrapped: Wrapped(inner),
            any: serde_json::json!({"a": [1, null, {"b": "c"}]}),
            boxed: Box::new(Some(0.5)),
        };
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(read::<Whole>(&text).unwrap(), whole);
        assert_eq!(read::<Whole>(r#"{"option": null, "later": [[]]}"#).unwrap(), Whole::default());
    }

    #[test]
    fn a_list_is_no_object_wherever_it_stands() {
        for text in [
            "[[7]]",
            r#"{"option": [7]}"#,
            r#"{"list": [[7]]}"#,
            r#"{"pair": [1, [7]]}"#,
            r#"{"map": {"a": [7]}}"#,
            r#"{"kinds": [{"One": [7]}]}"#,
            r#"{"kinds": [{"Two": [2, [7]]}]}"#,
            r#"{"kinds": [{"Named": [null]}]}"#,
            r#"{"wrapped": [7]}"#,
        ] {
            assert!(serde_json::from_str::<Whole>(text).is_ok(), "{text}");
            let error = read::<Whole>(text).unwrap_err().to_string();
            assert!(error.contains("invalid type: sequence"), "{text}: {error}");
        }
    }

    #[test]
    fn what_follows_a_value_is_refused() {
        assert!(read::<Inner>(r#"{"size": 7} x"#).unwrap_err().to_string().contains("trailing characters"));
        assert!(read::<Inner>("").is_err() && read::<Inner>(r#"{"size": }"#).is_err());
    }
}
