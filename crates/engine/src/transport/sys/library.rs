//! Shared libraries that are opened at run time, so that the program also starts on hosts without them.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;

use crate::core::EngineError;

/// An open library. It is never closed: its functions are kept for the life of the process.
#[derive(Debug)]
pub(crate) struct Library {
    handle: NonNull<c_void>,
    name: &'static str,
}

impl Library {
    /// Opens the first of `names` (file names, as the loader looks them up) that exists. Its symbols are made global,
    /// because OpenMPI's plug-ins look for them. `remedy` tells the user what to install if none exists.
    pub(crate) fn open(names: &[&'static str], remedy: &str) -> Result<Self, EngineError> {
        if cfg!(target_feature = "crt-static") {
            let library = names.first().copied().unwrap_or_default();
            return Err(EngineError::Library {
                library: library.into(),
                what: "cannot be loaded by a static build".into(),
                remedy: "run the thru that is not static".into(),
            });
        }
        let mut reason = String::new();
        for name in names {
            let path = CString::new(*name).unwrap_or_default();
            // SAFETY: a NUL-terminated name; the libraries opened here run no code at load time that has conditions.
            let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
            if let Some(handle) = NonNull::new(handle) {
                return Ok(Self { handle, name });
            }
            if reason.is_empty() {
                reason = last_error();
            }
        }
        let first = names.first().copied().unwrap_or_default();
        // This is glibc's message; a missing dependency of the library has another name in it.
        let missing = reason.starts_with(&format!("{first}: cannot open shared object file"));
        let what = if missing { "not found".into() } else { format!("cannot be used ({reason})") };
        Err(EngineError::Library { library: first.into(), what, remedy: remedy.into() })
    }

    /// The name that was found.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The address of a symbol, data or function.
    pub(crate) fn symbol(&self, name: &CStr) -> Result<NonNull<c_void>, EngineError> {
        // SAFETY: an open handle and a NUL-terminated name.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        NonNull::new(address).ok_or_else(|| EngineError::Library {
            library: self.name.into(),
            what: format!("has no {}", name.to_string_lossy()),
            remedy: "thru does not support this version".into(),
        })
    }
}

fn last_error() -> String {
    // SAFETY: dlerror returns NULL or a string that lives until the next call of this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: not NULL, so a NUL-terminated string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A function of a library, as the type of the field that it is assigned to.
macro_rules! function {
    ($library:expr, $name:literal) => {{
        let address = $library.symbol($name)?;
        #[allow(clippy::missing_transmute_annotations, reason = "the field that it goes to has the type")]
        // SAFETY: the symbol is the C function of that name, whose signature the field's type repeats from the library's
        // header; a function's address and a function pointer have the same size.
        let function = unsafe { std::mem::transmute(address.as_ptr()) };
        function
    }};
}
pub(crate) use function;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_named_with_its_remedy() {
        let error = Library::open(&["libthru-none.so.1"], "apt-get install it").expect_err("there is none");
        assert_eq!(error.to_string(), "libthru-none.so.1 not found: apt-get install it");
    }

    #[test]
    fn a_library_without_a_symbol_is_another_version() {
        let library = Library::open(&["libthru-none.so.1", "libc.so.6"], "").expect("the C library");
        assert_eq!(library.name(), "libc.so.6");
        assert!(library.symbol(c"getpid").is_ok());
        let error = library.symbol(c"thru_none").expect_err("no such function");
        assert!(error.to_string().starts_with("libc.so.6 has no thru_none: "), "{error}");
    }
}
