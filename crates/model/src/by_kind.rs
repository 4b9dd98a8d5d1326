//! Objects that name what they are by one of their keys, such as `{"say": "start"}`.
//!
//! `#[serde(tag = ...)]` reads such an object into a tree, because the key may be its last one, and then what it is from that tree.
//! So each type within is read in two ways, and the second also takes lists in place of objects. With [`by_kind`](crate::by_kind) the
//! kind is read from the text, and then the text as what it is.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, IntoDeserializer, MapAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use crate::json::Objects;

/// Makes an enum an object with the key `tag`: written by serde's own derived code, read by [`ByKind`].
///
/// ```
/// #[macro_rules_attribute::apply(model::by_kind!)]
/// #[serde(tag = "say", rename_all = "kebab-case")]
/// #[derive(Debug, PartialEq)]
/// enum Said {
///     Start,
///     Wait { time_ns: u64 },
/// }
///
/// let said: Said = serde_json::from_str(r#"{"time_ns": 5, "say": "wait"}"#).unwrap();
/// assert_eq!(said, Said::Wait { time_ns: 5 });
/// assert_eq!(serde_json::to_string(&Said::Start).unwrap(), r#"{"say":"start"}"#);
/// ```
#[macro_export]
macro_rules! by_kind {
    (
        $(#[doc = $doc:literal])*
        #[serde(tag = $tag:literal, rename_all = $case:literal)]
        $(#[$meta:meta])*
        $vis:vis enum $name:ident { $($kinds:tt)* }
    ) => {
        $(#[doc = $doc])*
        #[derive(::serde::Serialize)]
        #[serde(tag = $tag, rename_all = $case)]
        $(#[$meta])*
        $vis enum $name { $($kinds)* }

        const _: () = {
            type Own = $name;

            #[derive(::serde::Deserialize)]
            #[serde(remote = "Own", rename_all = $case)]
            #[allow(dead_code, clippy::large_enum_variant, reason = "it is never made")]
            enum Kinds { $($kinds)* }

            impl<'de> ::serde::Deserialize<'de> for $name {
                fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> ::std::result::Result<Self, D::Error> {
                    Kinds::deserialize($crate::by_kind::ByKind::new($tag, from))
                }
            }
        };
    };
}

/// Reads an enum from an object of JSON text.
#[derive(Debug)]
pub struct ByKind<D> {
    tag: &'static str,
    from: D,
}

impl<D> ByKind<D> {
    /// The object that comes next in `from`, whose key `tag` has the name of a variant.
    pub fn new(tag: &'static str, from: D) -> Self {
        Self { tag, from }
    }
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ByKind<D> {
    type Error = D::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let text = <&RawValue>::deserialize(self.from)?.get();
        let object = Tag(self.tag).deserialize(&mut serde_json::Deserializer::from_str(text));
        object.and_then(|kind| visitor.visit_enum(Object { kind, text })).map_err(D::Error::custom)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, D::Error> {
        Err(D::Error::custom("only an enum has kinds"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// Finds the value of this key.
struct Tag(&'static str);

impl<'de> DeserializeSeed<'de> for Tag {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Tag {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with `{}`", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        let mut kind = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != self.0 {
                map.next_value::<IgnoredAny>()?;
            } else if kind.replace(map.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(self.0));
            }
        }
        kind.ok_or_else(|| A::Error::missing_field(self.0))
    }
}

/// An object, and what it is.
struct Object<'de> {
    kind: String,
    text: &'de str,
}

impl<'de> EnumAccess<'de> for Object<'de> {
    type Error = serde_json::Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Self::Error> {
        let variant = seed.deserialize(self.kind.as_str().into_deserializer())?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Object<'de> {
    type Error = serde_json::Error;

    fn unit_variant(self) -> Result<(), Self::Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Self::Error> {
        seed.deserialize(Objects(&mut serde_json::Deserializer::from_str(self.text)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(Self::Error::custom("an object has no list of values"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        Objects(&mut serde_json::Deserializer::from_str(self.text)).deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests {
    use macro_rules_attribute::apply;
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Part {
        size: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }

    /// With all that serde allows in an object with a tag.
    #[apply(crate::by_kind!)]
    #[serde(tag = "say", rename_all = "kebab-case")]
    #[derive(Debug, Clone, PartialEq)]
    enum Said {
        Start,
        OnePart(Box<Part>),
        Many {
            parts: Vec<Part>,
            #[serde(default)]
            more: bool,
        },
        Within(Inner),
    }

    #[apply(crate::by_kind!)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    #[derive(Debug, Clone, PartialEq)]
    enum Inner {
        Empty,
        Sized { size: u32 },
    }

    /// The same, read by serde's own code.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "say", rename_all = "kebab-case")]
    enum Reference {
        Start,
        OnePart(Box<Part>),
        Many {
            parts: Vec<Part>,
            #[serde(default)]
            more: bool,
        },
        Within(ReferenceInner),
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    enum ReferenceInner {
        Empty,
        Sized { size: u32 },
    }

    fn read(text: &str) -> Result<Said, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn the_tag_may_stand_anywhere_and_unknown_keys_are_ignored() {
        let part = Part { size: 3, name: None };
        assert_eq!(read(r#"{"say": "start", "later": [1, {}]}"#), Ok(Said::Start));
        assert_eq!(read(r#"{"size": 3, "say": "one-part"}"#), Ok(Said::OnePart(Box::new(part.clone()))));
        assert_eq!(
            read(r#"{"parts": [{"size": 3}], "say": "many"}"#),
            Ok(Said::Many { parts: vec![part], more: false })
        );
        assert_eq!(
            read(r#"{"kind": "sized", "say": "within", "size": 4}"#),
            Ok(Said::Within(Inner::Sized { size: 4 }))
        );
        // An escaped tag is the same tag.
        assert_eq!(read(r#"{"s\u0061y": "st\u0061rt"}"#), Ok(Said::Start));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, words) in [
            (r#"{"size": 3}"#, "missing field `say`"),
            (r#"{"say": "stop"}"#, "unknown variant `stop`, expected one of `start`, `one-part`, `many`, `within`"),
            (r#"{"say": "start", "say": "start"}"#, "duplicate field `say`"),
            (r#"{"say": "one-part"}"#, "missing field `size`"),
            (r#"{"say": 3}"#, "expected a string"),
            (r#"["start"]"#, "an object with `say`"),
            (r#"{"say": "start"} x"#, "trailing characters"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn it_reads_and_writes_what_serde_does(size in any::<u32>(), name in any::<Option<String>>(), many in 0_usize..4, more in any::<bool>()) {
            let part = Part { size, name };
            let parts = vec![part.clone(); many];
            for (own, reference) in [
                (Said::Start, Reference::Start),
                (Said::OnePart(Box::new(part.clone())), Reference::OnePart(Box::new(part.clone()))),
                (Said::Many { parts: parts.clone(), more }, Reference::Many { parts, more }),
                (Said::Within(Inner::Empty), Reference::Within(ReferenceInner::Empty)),
                (Said::Within(Inner::Sized { size }), Reference::Within(ReferenceInner::Sized { size })),
            ] {
                let text = serde_json::to_string(&own).unwrap();
                prop_assert_eq!(&text, &serde_json::to_string(&reference).unwrap());
                prop_assert_eq!(read(&text), Ok(own));
                prop_assert_eq!(serde_json::from_str::<Reference>(&text).unwrap(), reference);
            }
        }
    }
}
