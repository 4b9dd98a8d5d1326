//! The loader's interface without the feature `load`.

use std::path::Path;

use super::LoadedStack;
use crate::{StackError, StackRequest};

/// Whether this build can load stacks.
pub const BUILT: bool = false;

/// Registers a stack with the kernel, if the program was built with the loader.
///
/// # Errors
/// [`StackError::NotBuilt`].
pub fn load(_: &StackRequest, _any_user: bool) -> Result<LoadedStack, StackError> {
    Err(StackError::NotBuilt)
}

pub(crate) fn load_pinned(_: &StackRequest, _any_user: bool, _at: &Path) -> Result<(), StackError> {
    Err(StackError::NotBuilt)
}
