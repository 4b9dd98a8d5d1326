//! The last self-test of this host, which inventories cite.

use std::path::PathBuf;

use control::agent::SelfTestLookup;
use model::{Inventory, SelfTestCitation};
use store::Store;

/// Cites from the store at `path`, or from the default one. The store is read each time, since an agent may run for longer than
/// the time between two self-tests. A missing store is not made, and a store that cannot be read cites nothing.
pub fn from_store(path: Option<PathBuf>) -> SelfTestLookup {
    let named = path.or_else(|| std::env::var_os("THRU_STORE").map(PathBuf::from));
    Box::new(move |here| last(named.clone(), here))
}

fn last(named: Option<PathBuf>, here: &Inventory) -> Option<SelfTestCitation> {
    let path = named.or_else(|| Store::default_path().ok()).filter(|path| path.is_file())?;
    let test = Store::open(&path).ok()?.last_selftest(here.hostname.as_deref()?).ok()??;
    Some(SelfTestCitation::of(&test, here, crate::VERSION))
}
