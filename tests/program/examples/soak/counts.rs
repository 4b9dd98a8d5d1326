//! What was done how often.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Counts by name, of all threads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Counts {
    pub(crate) fn add(&self, what: &str) {
        *self.0.lock().unwrap().entry(what.to_owned()).or_default() += 1;
    }

    pub(crate) fn all(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap().clone()
    }
}
