//! The unit of rates in texts for people (`--units`).

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether rates are shown in bytes per second.
static BYTES: AtomicBool = AtomicBool::new(false);

/// From now on rates are shown in bytes per second.
pub fn use_bytes() {
    BYTES.store(true, Ordering::Relaxed);
}

/// Whether rates are shown in bytes per second.
pub fn in_bytes() -> bool {
    BYTES.load(Ordering::Relaxed)
}

/// The text with its rates in the chosen unit.
pub fn chosen(text: Cow<'_, str>) -> Cow<'_, str> {
    if in_bytes() { Cow::Owned(report::rates_in_bytes(&text)) } else { text }
}
