//! What can go wrong with a stack.

use std::io;
use std::path::PathBuf;

use crate::STACKS;

/// A failure, with what can be done about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// No stack has that name.
    #[error("there is no stack '{name}'; available: {}", names())]
    Unknown {
        /// As it was asked for.
        name: String,
    },
    /// A parameter that the stack has not, or a value that it cannot have.
    #[error("{stack}: {what}; {remedy}")]
    Parameter {
        /// The stack's short name.
        stack: String,
        /// What is wrong.
        what: String,
        /// What would do.
        remedy: String,
    },
    /// A file of rules for destinations that cannot be used.
    #[error("{}: {what}", path.display())]
    Rules {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what would do.
        what: String,
    },
    /// A file that holds no stack.
    #[error("{place} is not a stack of thru: {what}; `thru stacks info aimd --source` prints a template")]
    Object {
        /// The file, or the stack's name.
        place: String,
        /// What it lacks.
        what: String,
    },
    /// This program was built without the loader.
    #[error(
        "this thru was built without the loader of TCP stacks: build it with `--features stacks` (which needs libelf-dev and zlib1g-dev)"
    )]
    NotBuilt,
    /// The kernel cannot take stacks.
    #[error("this kernel cannot load TCP stacks: {what}")]
    Kernel {
        /// What it lacks.
        what: String,
    },
    /// This process may not load them.
    #[error(
        "loading a TCP stack needs root in the host's own user namespace ({missing}): run thru as root there, or \
            have root run `thru stacks load {requested} --any-user`"
    )]
    Rights {
        /// The stack as it was asked for.
        requested: String,
        /// What this process lacks.
        missing: String,
    },
    /// The kernel has it already, the same programs with the same constants.
    #[error("the kernel has a congestion control {name} already")]
    Exists {
        /// Its name in the kernel.
        name: String,
    },
    /// The kernel has another one of this name.
    #[error(
        "the kernel has a congestion control {name} already, {}: end it first, by `thru stacks unload {name}` or with the program that holds it",
        other(*found)
    )]
    Taken {
        /// Its name in the kernel.
        name: String,
        /// Whether it was found to be another one; else it cannot be told.
        found: bool,
    },
    /// The kernel refused the program.
    #[error("the kernel rejected {name}: {what}")]
    Refused {
        /// Its name in the kernel.
        name: String,
        /// The kernel's words, or those of libbpf.
        what: String,
    },
    /// `thru stacks load` has not loaded it.
    #[error("`thru stacks load` has not loaded {name}: `thru stacks list` shows what it has loaded")]
    NotKept {
        /// Its name in the kernel.
        name: String,
    },
    /// The operating system refused something.
    #[error("cannot {operation}: {source}")]
    Io {
        /// What was tried, with the path.
        operation: String,
        /// The cause.
        source: io::Error,
    },
}

impl StackError {
    /// Whether the request itself is wrong, so that no host could do it.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Parameter { .. } | Self::Rules { .. } | Self::Object { .. })
    }

    pub(crate) fn io(operation: impl Into<String>, source: io::Error) -> Self {
        Self::Io { operation: operation.into(), source }
    }
}

fn other(found: bool) -> &'static str {
    if found {
        "and it differs from the one that this thru loads under that name"
    } else {
        "and thru needs CAP_SYS_ADMIN to check whether it is the one that it loads under that name"
    }
}

fn names() -> String {
    STACKS.iter().map(|stack| stack.name).collect::<Vec<_>>().join(", ")
}
