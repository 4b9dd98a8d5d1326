//! Other tools' results, read into runs that can be shown, compared and drawn like our own.
//!
//! Each format is one file in `formats/` and one entry of [`FORMATS`]: it says how sure it is that a text is its own, and reads
//! the listings of its tool, wherever they stand in the text. Readers are pure: no file, no clock. A unit is converted once,
//! where the reader takes the number from the text; the text itself is kept in [`model::OriginRow`].

mod assemble;
mod formats;
mod listing;
mod text;

pub use assemble::{Source, assemble};
pub use formats::{FORMATS, Format, format};
pub use listing::{Confidence, Imported, Reading, Refused, Row};

/// The most listings that are taken from one text: each becomes a run.
const MOST_LISTINGS: usize = 1_000;

/// Reads `bytes` in the formats that know it: all that are sure of it (a page may hold listings of several tools), else the one
/// that thinks it may be its own. `only` names the format where the user knows it.
///
/// # Errors
/// [`Refused`] with line 0 where no format knows the text, with the formats that there are.
pub fn read(bytes: &[u8], only: Option<&Format>) -> Result<Reading, Refused> {
    let text = String::from_utf8_lossy(bytes);
    let chosen: Vec<&Format> = match only {
        Some(format) => vec![format],
        None => {
            let rated = || FORMATS.iter().map(|format| (format, (format.detect)(&text)));
            let sure: Vec<&Format> =
                rated().filter(|(_, how)| *how == Confidence::Sure).map(|(format, _)| format).collect();
            let perhaps = rated().find(|(_, how)| *how == Confidence::Perhaps).map(|(format, _)| format);
            if sure.is_empty() { perhaps.into_iter().collect() } else { sure }
        }
    };
    if chosen.is_empty() {
        let known = FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
        return Err(Refused { line: 0, reason: format!("no format knows this text; there are {known}") });
    }
    let mut whole = Reading::default();
    for format in chosen {
        let reading = (format.read)(&text);
        whole.imported.extend(reading.imported);
        whole.refused.extend(reading.refused);
    }
    if whole.imported.len() > MOST_LISTINGS {
        whole.imported.truncate(MOST_LISTINGS);
        whole
            .refused
            .push(Refused { line: 0, reason: format!("more than {MOST_LISTINGS} listings; the rest is left out") });
    }
    whole.refused.sort_by_key(|refused| refused.line);
    if whole.imported.is_empty() && whole.refused.is_empty() {
        return Err(Refused { line: 0, reason: "not one measurement in it".into() });
    }
    Ok(whole)
}
