//! Received text in messages.

/// The first `most` characters of a peer's text, escaped.
pub(crate) fn excerpt(text: &str, most: usize) -> String {
    text.escape_debug().take(most).collect()
}
