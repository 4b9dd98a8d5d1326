//! iperf3's login, as a client and as a server. The names of the flags are those of iperf3.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use command::Failure;
use model::Program;
use options::values::whole;
use peers::{Login, Padding, SKEW_S};
use serving::UserFiles;

/// Headings of the flags.
pub const LOGIN: &str = "Login to an iperf3 server";
const CLIENTS: &str = "Login of iperf3 clients";

/// Flags of a client that logs in.
#[derive(Debug, Args)]
pub struct LoginFlags {
    /// With --speak iperf3: log in as this user. The password comes from IPERF3_PASSWORD or is read from the terminal.
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path", help_heading = LOGIN)]
    username: Option<String>,

    /// The server's public RSA key, a PEM file.
    #[arg(long, value_name = "FILE", requires = "username", help_heading = LOGIN)]
    rsa_public_key_path: Option<PathBuf>,

    /// Encrypt the login as iperf3 before 3.17 does: PKCS #1 v1.5 padding instead of OAEP.
    #[arg(long, requires = "username", help_heading = LOGIN)]
    use_pkcs1_padding: bool,
}

impl LoginFlags {
    /// The user, with the password.
    pub fn read(&self, speak: Option<Program>) -> Result<Option<Arc<Login>>, Failure> {
        let (Some(name), Some(key)) = (&self.username, &self.rsa_public_key_path) else { return Ok(None) };
        match speak.map(peers::protocol) {
            Some(program) => program.check_login()?,
            None => {
                return Err(Failure::usage("--username is a login to an iperf3 server: add --speak iperf3"));
            }
        }
        let login = Login::read(name.clone(), command::password::of(name)?, key, padding(self.use_pkcs1_padding))?;
        Ok(Some(Arc::new(login)))
    }
}

/// Flags of a server whose clients log in.
#[derive(Debug, Args)]
pub struct UsersFlags {
    /// With --speak iperf3: serve only clients that log in. This RSA private key, a PEM file without passphrase, decrypts their
    /// logins.
    #[arg(long, value_name = "FILE", requires = "authorized_users_path", help_heading = CLIENTS)]
    rsa_private_key_path: Option<PathBuf>,

    /// The users, one per line: NAME,HASH. HASH is the SHA-256 of {NAME}PASSWORD.
    #[arg(long, value_name = "FILE", requires = "rsa_private_key_path", help_heading = CLIENTS)]
    authorized_users_path: Option<PathBuf>,

    /// Largest difference between a client's clock and this host's, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = SKEW_S, value_parser = whole(0..=u64::MAX), requires = "rsa_private_key_path", help_heading = CLIENTS)]
    time_skew_threshold: u64,

    /// Accept logins of iperf3 before 3.17: PKCS #1 v1.5 padding instead of OAEP.
    #[arg(long, requires = "rsa_private_key_path", help_heading = CLIENTS)]
    use_pkcs1_padding: bool,
}

impl UsersFlags {
    /// Where the users are, if clients log in.
    pub fn files(&self) -> Option<UserFiles> {
        Some(UserFiles {
            key: self.rsa_private_key_path.clone()?,
            users: self.authorized_users_path.clone()?,
            skew_s: self.time_skew_threshold,
            padding: padding(self.use_pkcs1_padding),
        })
    }
}

fn padding(pkcs1: bool) -> Padding {
    if pkcs1 { Padding::Pkcs1 } else { Padding::Oaep }
}
