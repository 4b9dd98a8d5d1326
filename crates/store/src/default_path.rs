//! Where runs are kept when the user names no file.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use crate::StoreError;

/// `$XDG_DATA_HOME/throughline/runs.sqlite`, or `~/.local/share/throughline/runs.sqlite` where that is unset or relative
/// (as the XDG Base Directory Specification asks).
pub(crate) fn default_path() -> Result<PathBuf, StoreError> {
    place(env::var_os("XDG_DATA_HOME"), env::var_os("HOME"))
}

fn place(data_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, StoreError> {
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(data_home)
        .or_else(|| absolute(home).map(|home| home.join(".local/share")))
        .map(|data| data.join("throughline/runs.sqlite"))
        .ok_or(StoreError::NoHome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_home_comes_first_when_it_is_absolute() {
        let at = |data: &str, home: &str| place(Some(data.into()), Some(home.into())).unwrap();
        assert_eq!(at("/data", "/home/ann"), PathBuf::from("/data/throughline/runs.sqlite"));
        let in_home = PathBuf::from("/home/ann/.local/share/throughline/runs.sqlite");
        assert_eq!(at("", "/home/ann"), in_home);
        assert_eq!(at("data", "/home/ann"), in_home);
        assert_eq!(place(None, Some("/home/ann".into())).unwrap(), in_home);
    }

    #[test]
    fn without_any_home_the_option_is_named() {
        for home in [None, Some("".into()), Some("here".into())] {
            assert!(place(None, home).unwrap_err().to_string().contains("`--store FILE`"));
        }
    }
}
