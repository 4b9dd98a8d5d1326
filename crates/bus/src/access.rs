//! What a NATS server asks of its clients.

use std::path::Path;

use crate::{BusError, CredentialsProblem};

/// How this process proves itself to a server, and recognizes it. The files are read at once, so that a process can give up its rights
/// afterwards.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BusAccess {
    /// The text of a credentials file (a JWT with its nkey), an nkey's seed, or `USER:PASSWORD`.
    pub(crate) credentials: Option<String>,
    /// Certificates, PEM, by one of which the server's is signed; `None` for those of the system.
    pub(crate) authorities: Option<Vec<u8>>,
}

impl BusAccess {
    /// Reads the files that are given: credentials as `nsc` writes them, or the seed of an nkey, or
    /// `USER:PASSWORD`; and certificates of authorities (PEM).
    ///
    /// # Errors
    /// [`BusError::Credentials`] for a file that cannot be read, or has no credentials or no certificate.
    pub fn read(credentials: Option<&Path>, authorities: Option<&Path>) -> Result<Self, BusError> {
        let wrong = |path: &Path, what| BusError::Credentials { path: path.display().to_string(), what };
        let read = |path: &Path| std::fs::read(path).map_err(|error| wrong(path, error.into()));
        let credentials = match credentials {
            None => None,
            Some(path) => {
                let text = String::from_utf8(read(path)?).map_err(|_| wrong(path, CredentialsProblem::NotText))?;
                if seed(&text).is_none() && password(&text).is_none() {
                    return Err(wrong(path, CredentialsProblem::NoCredentials));
                }
                Some(text)
            }
        };
        let authorities = match authorities {
            None => None,
            Some(path) => {
                let pem = read(path)?;
                if !String::from_utf8_lossy(&pem).contains("BEGIN CERTIFICATE") {
                    return Err(wrong(path, CredentialsProblem::NoCertificate));
                }
                Some(pem)
            }
        };
        Ok(Self { credentials, authorities })
    }
}

impl std::fmt::Debug for BusAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BusAccess").field("credentials", &self.credentials.is_some()).finish_non_exhaustive()
    }
}

/// The JWT of a credentials file, which stands on a line of its own.
#[cfg(feature = "nats")]
pub(crate) fn token(text: &str) -> Option<&str> {
    let mut lines = text.lines().skip_while(|line| !line.contains("BEGIN NATS USER JWT")).skip(1);
    lines.next().map(str::trim).filter(|token| !token.is_empty())
}

/// The seed of a user's nkey, on a line of its own.
pub(crate) fn seed(text: &str) -> Option<&str> {
    text.lines().map(str::trim).find(|line| line.starts_with("SU") && line.len() >= 50 && !line.contains(' '))
}

/// User and password, on a line of their own.
pub(crate) fn password(text: &str) -> Option<(&str, &str)> {
    let line = text.trim();
    line.split_once(':').filter(|(user, password)| !user.is_empty() && !password.is_empty() && !line.contains('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_credentials_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("creds");
        for (text, words) in [("", "contains no"), ("SU", "contains no")] {
            std::fs::write(&file, text).unwrap();
            assert!(BusAccess::read(Some(&file), None).unwrap_err().to_string().contains(words), "{text}");
        }
        assert!(BusAccess::read(None, Some(&file)).unwrap_err().to_string().contains("no PEM certificate"));
        assert!(BusAccess::read(Some(&folder.path().join("none")), None).is_err());
        std::fs::write(&file, format!("# a seed\nSU{}\n", "A".repeat(56))).unwrap();
        assert!(BusAccess::read(Some(&file), None).unwrap().credentials.is_some());
        assert_eq!(BusAccess::read(None, None).unwrap(), BusAccess::default());
    }
}
