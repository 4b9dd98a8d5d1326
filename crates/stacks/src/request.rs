//! A requested stack: `fast:alpha=400,gamma=0.3`.

use std::path::Path;

use model::StackRule;
use text::say;

use crate::object::Object;
use crate::{StackError, stack, unknown};

/// A stack with its parameters. Each combination has its own name in the kernel, so that two measurements at once
/// cannot change each other's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackRequest {
    /// As requested.
    requested: String,
    /// Its short name, or the file.
    name_or_path: String,
    /// Whether it is in a user's file instead of this program.
    from_file: bool,
    pub(crate) object: Object,
    /// The value of each of the object's parameters.
    pub(crate) values: Vec<u32>,
    pub(crate) rules: Vec<StackRule>,
}

impl StackRequest {
    /// Parses the argument of `--cc`: `NAME` or `NAME:PARAMETER=VALUE,...`. `None` for a name that is not a stack's,
    /// which the kernel resolves.
    ///
    /// # Errors
    /// [`StackError::Parameter`], and [`StackError::Unknown`] for parameters of a name that is not a stack's.
    pub fn parse(text: &str) -> Result<Option<Self>, StackError> {
        let (name, parameters) = split(text);
        match (stack(name), parameters) {
            (Some(known), _) => {
                let object = Object::read(known.name, known.object)?;
                Self::new(text, known.name, object, parameters, false).map(Some)
            }
            (None, Some(_)) => Err(unknown(name)),
            (None, None) => Ok(None),
        }
    }

    /// As [`parse`](Self::parse), but leaves a bare short name to a kernel that has its own congestion control of that
    /// name (for example tcp_htcp). `bpf_htcp`, or a parameter, selects the stack of this program.
    ///
    /// # Errors
    /// As with [`parse`](Self::parse).
    pub fn unless_the_kernel_has_it(text: &str) -> Result<Option<Self>, StackError> {
        if crate::available().iter().any(|name| name == text) && !text.starts_with("bpf_") {
            return Ok(None);
        }
        Self::parse(text)
    }

    /// As [`parse`](Self::parse), for `thru stacks load`: a name that ends in `.o` is a file that a user has compiled.
    ///
    /// # Errors
    /// Also [`StackError::Object`] and [`StackError::Io`] for the file.
    pub fn open(text: &str) -> Result<Self, StackError> {
        let (name, parameters) = split(text);
        if !name.ends_with(".o") {
            return Self::parse(text)?.ok_or_else(|| unknown(name));
        }
        let bytes = std::fs::read(Path::new(name)).map_err(|source| StackError::io(format!("read {name}"), source))?;
        Self::new(text, name, Object::read(name, bytes)?, parameters, true)
    }

    fn new(
        requested: &str,
        name_or_path: &str,
        object: Object,
        parameters: Option<&str>,
        from_file: bool,
    ) -> Result<Self, StackError> {
        let mut values: Vec<u32> = object.parameters.iter().map(|parameter| parameter.value).collect();
        for pair in parameters.into_iter().flat_map(|list| list.split(',')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let found = object.parameters.iter().position(|parameter| parameter.name == name.trim());
            let index = found.ok_or_else(|| StackError::Parameter {
                stack: name_or_path.into(),
                what: format!("there is no parameter '{}'", name.trim()),
                remedy: match object.parameters.as_slice() {
                    [] => "it has no parameters".into(),
                    some => {
                        let names: Vec<&str> = some.iter().map(|parameter| parameter.name.as_str()).collect();
                        say!("its parameters are {}", names.join(", "))
                    }
                },
            })?;
            values[index] = object.parameters[index].read(name_or_path, value.trim())?;
        }
        Ok(Self {
            requested: requested.into(),
            name_or_path: name_or_path.into(),
            from_file,
            object,
            values,
            rules: Vec::new(),
        })
    }

    /// Adds rules for destinations.
    ///
    /// # Errors
    /// [`StackError::Parameter`] if the stack takes none.
    pub fn with_rules(mut self, rules: &[StackRule]) -> Result<Self, StackError> {
        if !rules.is_empty() && !self.object.takes_rules {
            return Err(StackError::Parameter {
                stack: self.name_or_path,
                what: "it has no rules for destinations".into(),
                remedy: say!("use `--cc-rules` with `--cc highspeed`"),
            });
        }
        self.rules = rules.to_vec();
        Ok(self)
    }

    /// The text of the request.
    #[must_use]
    pub fn requested(&self) -> &str {
        &self.requested
    }

    /// Its name in the kernel, at most 15 characters. If something differs from the defaults, it ends in a number that
    /// identifies the difference, including the contents of a user's file. A user's file with the same name as one of
    /// [`STACKS`](crate::STACKS), for example an unrenamed template, also gets a number: the plain name is this
    /// program's.
    #[must_use]
    pub fn kernel_name(&self) -> String {
        let name = &self.object.name;
        let plain = self.object.parameters.iter().map(|parameter| parameter.value).eq(self.values.iter().copied());
        let taken = self.from_file && stack(name).is_some();
        if plain && self.rules.is_empty() && !taken {
            return name.clone();
        }
        let mut hash = fnv1a(FNV_BASIS, format!("{:?} {:?}", self.values, self.rules).as_bytes());
        if self.from_file {
            hash = fnv1a(hash, &self.object.bytes);
        }
        format!("{}_{:05x}", name.get(..9).unwrap_or(name), hash & 0xf_ffff)
    }
}

/// Whether the argument of `--cc` can have rules for destinations.
#[must_use]
pub fn takes_rules(cc: &str) -> bool {
    matches!(StackRequest::parse(cc), Ok(Some(request)) if request.object.takes_rules)
}

fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once(':').map_or((text, None), |(name, parameters)| (name, Some(parameters)))
}

/// The hash of no input.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues the 64-bit FNV-1a hash (Fowler, Noll, Vo): the same on all hosts and in all versions.
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(text: &str) -> StackRequest {
        StackRequest::parse(text).unwrap().unwrap()
    }

    #[test]
    fn names_distinguish_parameters() {
        assert_eq!(ours("fast").kernel_name(), "bpf_fast");
        assert_eq!(ours("bpf_fast").kernel_name(), "bpf_fast");
        assert_eq!(ours("fast:alpha=200").kernel_name(), "bpf_fast", "that is its default");
        let names =
            ["fast:alpha=201", "fast:alpha=201,gamma=0.3", "highspeed:floyd=0"].map(|text| ours(text).kernel_name());
        assert!(names.iter().all(|name| name.len() <= 15), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert!(names[2].starts_with("bpf_highs_"));
    }

    #[test]
    fn others_are_the_kernel_s_and_mistakes_are_named() {
        assert_eq!(StackRequest::parse("cubic").unwrap(), None);
        for (text, word) in [
            ("cubic:beta=1", "scalable"),
            ("fast:beta=1", "alpha, gamma"),
            ("fast:alpha=0", "use 1 to 1000000"),
            ("fast:alpha", "alpha="),
        ] {
            let error = StackRequest::parse(text).unwrap_err();
            assert!(error.is_usage() && error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn files_are_read_and_others_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (good, bad) = (folder.path().join("mine.bpf.o"), folder.path().join("bad.o"));
        std::fs::write(&good, stack("aimd").unwrap().object).unwrap();
        std::fs::write(&bad, "no object").unwrap();
        let request = StackRequest::open(&format!("{}:b=0.3", good.display())).unwrap();
        assert!(request.kernel_name().starts_with("bpf_aimd_"));
        let plain = StackRequest::open(good.to_str().unwrap()).unwrap().kernel_name();
        assert!(plain.starts_with("bpf_aimd_"), "{plain}: bpf_aimd is the program's own");
        assert!(StackRequest::open(bad.to_str().unwrap()).unwrap_err().to_string().contains("bad.o is not a stack"));
        assert!(StackRequest::open("/nowhere/x.o").unwrap_err().to_string().contains("/nowhere/x.o"));
    }

    #[test]
    fn a_file_s_contents_go_into_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let named = |object: &[u8], parameters: &str| {
            let file = folder.path().join("mine.bpf.o");
            std::fs::write(&file, object).unwrap();
            StackRequest::open(&format!("{}{parameters}", file.display())).unwrap().kernel_name()
        };
        let mut object = stack("aimd").unwrap().object.to_vec();
        let at = object.windows(8).position(|bytes| bytes == b"bpf_aimd").unwrap();
        let copies = ["", ":a=3"].map(|parameters| named(&object, parameters));
        assert_ne!(copies[1], ours("aimd:a=3").kernel_name());
        *object.last_mut().unwrap() ^= 1;
        assert_ne!(copies, ["", ":a=3"].map(|parameters| named(&object, parameters)));
        object[at..at + 8].copy_from_slice(b"bpf_mine");
        assert_eq!(named(&object, ""), "bpf_mine", "a name of one's own stays as it is");
        assert_eq!(named(&object, ":a=3"), named(&object, ":a=3"));
    }
}
