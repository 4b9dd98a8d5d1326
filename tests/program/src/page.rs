//! Reads the HTML page of a report.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What the page shows, without the points of its figures.
#[must_use]
pub fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("id=\"data\">").expect("the element with the data");
    let (packed, _) = rest.split_once('<').expect("the end of the data");
    let packed = STANDARD.decode(packed).expect("base64");
    let mut bytes = Vec::new();
    flate2::read::ZlibDecoder::new(packed.as_slice()).read_to_end(&mut bytes).expect("zlib");
    let (length, rest) = bytes.split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    serde_json::from_slice(&rest[..length]).expect("JSON")
}

/// All of its texts, as JSON.
#[must_use]
pub fn texts(page: &str) -> String {
    data(page).to_string()
}
