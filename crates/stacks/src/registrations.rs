//! The stacks of one owner, an agent's session say.

use crate::loader::{Loaded, load};
use crate::{Request, StackError, available};

/// Registrations that end with it.
#[derive(Debug, Default)]
pub struct HeldRegistrations(Vec<Loaded>);

impl HeldRegistrations {
    /// Makes sure that the kernel has what is asked for: loads it unless somebody already has. Returns its name in the kernel.
    /// Where this process may not load, it may not look either, and takes what has that name.
    ///
    /// # Errors
    /// As [`load`], where the kernel has none of that name, or another one.
    pub fn ensure(&mut self, request: &Request) -> Result<String, StackError> {
        let name = request.kernel_name();
        if self.0.iter().any(|loaded| loaded.name() == name) {
            return Ok(name);
        }
        match load(request, false) {
            Ok(loaded) => self.0.push(loaded),
            Err(StackError::Exists { .. }) => {}
            Err(StackError::NotBuilt | StackError::Rights { .. } | StackError::Kernel { .. })
                if available().contains(&name) => {}
            Err(error) => return Err(error),
        }
        Ok(name)
    }
}
