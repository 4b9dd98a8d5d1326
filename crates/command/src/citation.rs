//! The last self-test of this host, which inventories cite.

use std::path::PathBuf;

use control::agent::SelfTestLookup;
use host::{RealSys, Sys};
use model::{SelfTest, SelfTestCitation};
use store::Store;

/// Cites from the store at `path`, or from the default one. The store is read each time, since an agent may run for longer than
/// the time between two self-tests. A missing store is not made, and a store that cannot be read cites nothing.
pub fn from_store(path: Option<PathBuf>) -> SelfTestLookup {
    let path = path.or_else(named);
    Box::new(move |here| {
        let test = last(path.clone(), here.hostname.as_deref()?)?;
        Some(SelfTestCitation::of(&test, here, crate::VERSION))
    })
}

/// Cites the self-test that is the last one now, for a process that cannot read the store later.
pub fn of_last() -> SelfTestLookup {
    let host = RealSys.uname().ok().map(|uname| uname.hostname);
    let test = host.and_then(|host| last(named(), &host));
    Box::new(move |here| Some(SelfTestCitation::of(test.as_ref()?, here, crate::VERSION)))
}

/// The store that the user's environment names.
fn named() -> Option<PathBuf> {
    std::env::var_os("THRU_STORE").map(PathBuf::from)
}

/// The last self-test of a host in the store at `path`, or in the default one.
fn last(path: Option<PathBuf>, host: &str) -> Option<SelfTest> {
    let path = path.or_else(|| Store::default_path().ok()).filter(|path| path.is_file())?;
    Store::open(&path).ok()?.last_selftest(host).ok()?
}
