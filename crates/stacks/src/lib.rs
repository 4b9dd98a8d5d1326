//! TCP congestion controls that are not part of the kernel, as BPF programs (struct_ops), and their loader.
//!
//! Each is one C file below `bpf/` with its compiled object below `objects/` and a line in [`STACKS`]. The object
//! contains its own name and parameters, so that a user's object is loaded in the same way. A registration holds for
//! the whole kernel, all network namespaces, and ends with its [`LoadedStack`], however the process ends.
//!
//! ```
//! let request = stacks::StackRequest::parse("fast:alpha=400").unwrap().unwrap();
//! assert!(request.kernel_name().starts_with("bpf_fast_"));
//! assert_eq!(stacks::StackRequest::parse("cubic").unwrap(), None); // the kernel's own business
//! ```

mod elf;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod kept;
mod kernel;
mod loader;
mod object;
mod present;
mod registrations;
mod registry;
mod request;
mod rules;

pub use error::{RulesError, SectionError, StackError};
pub use kept::{keep, release};
pub use kernel::{available, missing_rights, obstacle};
pub use loader::{BUILT, LoadedStack, load};
pub use object::Parameter;
pub use present::{PresentStacks, present, prevented};
pub use registrations::HeldRegistrations;
pub use registry::{HEADER, STACKS, Stack, stack, unknown};
pub use request::{StackRequest, takes_rules};
pub use rules::read_rules;
