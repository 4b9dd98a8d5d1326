//! A recorded host some of whose files come from an input.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::LazyLock;

use host::sys::{FakeSys, Files};

/// Ends a file in an input. It is in no text, as UTF-8 does not have it.
const END: u8 = 0xff;
/// The most names in a directory of an input.
const NAMES: usize = 8;

/// The hosts in crates/host/testdata, and last one without files.
static HOSTS: LazyLock<Vec<Recorded>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/host/testdata");
    let named = ["server", "vm"].map(|name| Recorded::read(&folder.join(name)));
    named.into_iter().chain([Recorded::default()]).collect()
});

/// The files of a host.
#[derive(Default)]
struct Recorded {
    contents: BTreeMap<String, Vec<u8>>,
    names: BTreeMap<String, Vec<String>>,
    /// The paths without symbolic links.
    real: BTreeMap<String, String>,
}

impl Recorded {
    /// Those below a folder, which represents `/`.
    fn read(root: &Path) -> Self {
        let mut host = Self::default();
        host.add(root, root, "").unwrap_or_else(|error| panic!("{}: {error}", root.display()));
        host
    }

    fn add(&mut self, root: &Path, folder: &Path, path: &str) -> io::Result<()> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let (inner, path) = (folder.join(&name), format!("{path}/{name}"));
            let real = inner.canonicalize()?;
            let real = real.strip_prefix(root.canonicalize()?).map_err(io::Error::other)?;
            self.real.insert(path.clone(), format!("/{}", real.display()));
            if inner.is_dir() {
                self.add(root, &inner, &path)?;
            } else {
                self.contents.insert(path, fs::read(inner)?);
            }
            names.insert(name);
        }
        self.names.insert(path.to_owned(), names.into_iter().collect());
        Ok(())
    }
}

/// The files of a recorded host, with those of an input in place of some.
///
/// The first byte of an input is the host. The rest are files, each up to a byte 255: the end of its path, a new line, and its content. One
/// file thus is in place of all that end so. Without a new line there is no such file. A path that ends with `/` has the names in that
/// directory, and one that ends with `@` where a path leads.
#[derive(Clone)]
pub struct Said {
    host: &'static Recorded,
    files: Vec<(String, Option<Vec<u8>>)>,
}

/// The host that an input says.
#[must_use]
pub fn said(input: &[u8]) -> FakeSys<Said> {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let files = rest.split(|byte| *byte == END).map(|file| {
        let mut parts = file.splitn(2, |byte| *byte == b'\n');
        let path = parts.next().unwrap_or_default();
        (String::from_utf8_lossy(path).into_owned(), parts.next().map(<[u8]>::to_vec))
    });
    let host = &HOSTS[usize::from(*first) % HOSTS.len()];
    FakeSys::of(Said { host, files: files.filter(|(path, _)| !path.is_empty()).collect() })
}

impl Said {
    /// What the input has for a path.
    fn file(&self, path: &str) -> Option<io::Result<Vec<u8>>> {
        let is_meant = |end: &str| path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let (_, content) = self.files.iter().find(|(end, _)| is_meant(end))?;
        Some(content.clone().ok_or_else(missing))
    }

    fn words(&self, path: &str) -> Option<io::Result<Vec<String>>> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).split_whitespace().map(str::to_owned).collect();
        Some(self.file(path)?.map(text))
    }
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Files for Said {
    fn content(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.file(path) {
            // Recorded in hexadecimal.
            Some(said) if path.starts_with("/netlink/") => {
                said.map(|bytes| bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>().into_bytes())
            }
            Some(said) => said,
            None => self.host.contents.get(path).cloned().ok_or_else(missing),
        }
    }

    fn names(&self, directory: &str) -> io::Result<Vec<String>> {
        match self.words(&format!("{directory}/")) {
            Some(said) => said.map(|names| names.into_iter().take(NAMES).collect()),
            None => self.host.names.get(directory).cloned().ok_or_else(missing),
        }
    }

    fn real(&self, path: &str) -> io::Result<String> {
        match self.words(&format!("{path}@")) {
            Some(said) => said?.into_iter().next().ok_or_else(missing),
            None => self.host.real.get(path).cloned().ok_or_else(missing),
        }
    }
}
