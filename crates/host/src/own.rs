//! Directories for files that this process, or a later one, acts on with its privileges.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Creates `directory` if needed, for this user only.
///
/// # Errors
/// It cannot be created, another user owns it, or others may write there and so may have written its content.
pub fn own_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let facts = fs::symlink_metadata(directory)?;
    if facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw() && facts.mode() & 0o022 == 0 {
        Ok(())
    } else {
        Err(io::Error::other("another user owns this directory or can write to it; remove it, then try again"))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_others_may_write_or_that_is_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("a/b");
        own_directory(&directory).unwrap();
        assert_eq!(fs::metadata(&directory).unwrap().mode() & 0o777, 0o700);
        own_directory(&directory).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        assert!(own_directory(&link).is_err());
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(own_directory(&directory).unwrap_err().to_string().contains("another user owns"));
    }
}
