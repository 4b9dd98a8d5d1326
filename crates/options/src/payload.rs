//! The payload bytes.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a payload's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PayloadKind {
    /// Random bytes: nothing on the path can compress them.
    #[default]
    Random,
    /// Zeros.
    Zeros,
    /// The bytes 0 to 255, repeated.
    Pattern,
    /// The bytes of a file, repeated.
    File,
}

/// The requested payload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Payload {
    /// What kind of bytes.
    pub kind: PayloadKind,
    /// The file's name, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file's bytes as hexadecimal digits, if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

impl Payload {
    /// The kinds that have no content of their own, with their names.
    pub const KINDS: [(&'static str, PayloadKind); 3] =
        [("random", PayloadKind::Random), ("zeros", PayloadKind::Zeros), ("pattern", PayloadKind::Pattern)];
    /// Most bytes of a file: they go to the far host with each trial.
    pub const MAX_FILE: usize = 64 << 10;

    /// The payload of a file's bytes.
    #[must_use]
    pub fn of_file(name: &str, bytes: &[u8]) -> Self {
        Self { kind: PayloadKind::File, name: Some(name.to_owned()), content: Some(hex::encode(bytes)) }
    }

    /// The bytes of its file; empty if it has none, or what it has are not hexadecimal digits.
    #[must_use]
    pub fn content(&self) -> Vec<u8> {
        let digits = self.content.as_deref().unwrap_or_default();
        let bytes = digits.as_bytes().chunks(2);
        let read = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        bytes.map(read).collect::<Option<Vec<u8>>>().unwrap_or_default()
    }

    /// Why it cannot be sent; `None` if it can.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        match (self.kind, self.content().len()) {
            (PayloadKind::File, 0) => Some("the payload file is empty"),
            (PayloadKind::File, bytes) if bytes > Self::MAX_FILE => Some("the payload file has more than 64 KiB"),
            _ => None,
        }
    }
}

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::KINDS.iter().find(|(_, kind)| *kind == self.kind) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "file {}", self.name.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_bytes_survive_their_document() {
        let bytes: Vec<u8> = (0..=255).collect();
        let payload = Payload::of_file("a.bin", &bytes);
        let again: Payload = serde_json::from_str(&serde_json::to_string(&payload).unwrap()).unwrap();
        assert_eq!((again.content(), again.to_string(), again.fault()), (bytes, "file a.bin".to_owned(), None));
        assert_eq!(serde_json::to_string(&Payload::default()).unwrap(), r#"{"kind":"random"}"#);
    }

    #[test]
    fn wrong_content_is_a_fault() {
        let of = |content: &str| Payload { content: Some(content.to_owned()), ..Payload::of_file("a", b"") };
        assert!(of("").fault().is_some() && of("zz").fault().is_some() && of("é").fault().is_some());
        assert!(of(&"00".repeat(Payload::MAX_FILE + 1)).fault().is_some());
        assert_eq!(of("00").fault(), None);
        assert_eq!(Payload::default().fault(), None);
    }
}
