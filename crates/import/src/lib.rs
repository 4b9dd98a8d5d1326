//! Reads the results of other programs into runs, which can be shown, compared and drawn like measured ones.
//!
//! Each format is one file in `formats/` and one entry of [`FORMATS`]. It detects whether a text is in its format, and reads the
//! program's listings anywhere in the text. Readers use no file and no clock. A unit is converted once, where the reader takes the
//! number from the text; the text is kept in [`model::OriginRow`].

mod assemble;
mod error;
mod formats;
mod json;
mod listing;
mod loops;
mod repeats;
mod sketch;
mod text;

pub use assemble::{ListingSource, assemble};
pub use error::{
    Contradiction, DocumentError, HostError, ImportError, IperfError, NetperfResultError, NetpipeLineError, PathError,
    QperfError, QperfFault, StreamError,
};
pub use formats::{FORMATS, ImportFormat, format};
pub use listing::{Certainty, Imported, Refused, Row, TextReading};

/// The most listings of one text; each becomes a run.
const MAX_LISTINGS: usize = 1_000;

/// Reads `bytes` in the format `only`, otherwise in the detected formats: the one that the whole text is in; all that are certain (a
/// page may have listings of several programs); or the first possible one.
///
/// # Errors
/// [`Refused`] with line 0 if no format is detected, with the names of all formats.
pub fn read(bytes: &[u8], only: Option<&ImportFormat>) -> Result<TextReading, Refused> {
    let text = text::without_interrupts(text::decoded(bytes));
    let chosen: Vec<&ImportFormat> = match only {
        Some(format) => vec![format],
        None => {
            let sketch = sketch::sketch(&text);
            let detected: Vec<_> = FORMATS.iter().map(|format| (format, (format.detect)(&sketch))).collect();
            let with = |confidence| {
                let matching = detected.iter().filter(move |(_, own)| *own == confidence);
                matching.map(|(format, _)| *format).collect::<Vec<&ImportFormat>>()
            };
            let by_confidence = [
                with(Certainty::WholeText),
                with(Certainty::Certain),
                with(Certainty::Possible).into_iter().take(1).collect(),
            ];
            by_confidence.into_iter().find(|formats| !formats.is_empty()).unwrap_or_default()
        }
    };
    if chosen.is_empty() {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        if lines.clone().next().is_some() && lines.clone().all(|line| text::number(line).is_some()) {
            return Err(Refused::new(0, ImportError::NumbersAlone));
        }
        let names = FORMATS.iter().map(|format| format.name).collect();
        return Err(Refused::new(0, ImportError::UnknownFormat(names)));
    }
    let mut all = TextReading::default();
    for format in chosen {
        let reading = (format.read)(&text);
        all.imported.extend(reading.imported);
        all.refused.extend(reading.refused);
    }
    repeats::leave_out(&mut all.imported);
    all.imported = loops::joined(all.imported);
    if all.imported.len() > MAX_LISTINGS {
        all.imported.truncate(MAX_LISTINGS);
        all.refuse(0, ImportError::TooMany { most: MAX_LISTINGS, what: "listings" });
    }
    all.refused.sort_by_key(|refused| refused.line);
    // What is broken may be of each of the formats.
    all.refused.dedup();
    if all.imported.is_empty() && all.refused.is_empty() {
        return Err(Refused::new(0, ImportError::Nothing));
    }
    Ok(all)
}
