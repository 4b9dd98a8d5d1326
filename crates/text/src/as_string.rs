//! A text that a document has as a string alone: `#[serde(with = "text::as_string")]`.

use serde::{Deserialize, Deserializer, Serializer};

use crate::Text;

/// Writes the characters.
///
/// # Errors
/// Those of the document.
pub fn serialize<S: Serializer>(text: &Text, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text.plain())
}

/// Reads words.
///
/// # Errors
/// Anything but a string.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Text, D::Error> {
    Ok(String::deserialize(from)?.into())
}
