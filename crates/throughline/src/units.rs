//! The unit of rates in texts for people (`--units`).

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use text::RateUnit;

/// Whether rates are shown in bytes per second.
static BYTES: AtomicBool = AtomicBool::new(false);

/// From now on rates are shown in bytes per second.
pub fn use_bytes() {
    BYTES.store(true, Ordering::Relaxed);
}

/// The unit of rates.
pub fn rates() -> RateUnit {
    if BYTES.load(Ordering::Relaxed) { RateUnit::Bytes } else { RateUnit::Bits }
}

/// The text with its rates in the chosen unit.
pub fn chosen(text: Cow<'_, str>) -> Cow<'_, str> {
    match rates() {
        RateUnit::Bytes => Cow::Owned(report::rates_in_bytes(&text)),
        RateUnit::Bits => text,
    }
}
