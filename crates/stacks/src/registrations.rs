//! The stacks of one owner, for example an agent's session.

use crate::loader::{LoadedStack, load};
use crate::{StackError, StackRequest, available};

/// Registrations that end with this value.
#[derive(Debug, Default)]
pub struct HeldRegistrations(Vec<LoadedStack>);

impl HeldRegistrations {
    /// Makes sure that the kernel has the requested stack: loads it unless it is loaded already. Returns its name in
    /// the kernel. `any_user` is that of [`load`]. A process that may not load stacks may not compare them either, and uses what has that name.
    ///
    /// # Errors
    /// As [`load`], if the kernel has none of that name, or another one.
    pub fn ensure(&mut self, request: &StackRequest, any_user: bool) -> Result<String, StackError> {
        let name = request.kernel_name();
        if self.0.iter().any(|loaded| loaded.name() == name) {
            return Ok(name);
        }
        match load(request, any_user) {
            Ok(loaded) => self.0.push(loaded),
            Err(StackError::Exists { .. }) => {}
            Err(StackError::NotBuilt | StackError::Rights { .. } | StackError::Kernel { .. })
                if available().contains(&name) => {}
            Err(error) => return Err(error),
        }
        Ok(name)
    }
}
