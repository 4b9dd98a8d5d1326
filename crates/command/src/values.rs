//! Values of options that this host decides about: addresses on its interfaces, and its files.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use control::ControlError;
use model::Payload;
use options::ValueError;
use options::values::{Address, address, data_address};
use text::{Said, say};
use thiserror::Error;

use crate::failure::Failure;
use crate::host_aliases;

/// Why an address cannot be used.
#[derive(Debug, Clone, PartialEq, Error, Said)]
pub enum AddressError {
    /// It is none.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// This host does not have its interface.
    #[error("'{scoped}' is not on an interface of this host: {hint}")]
    NoInterface {
        /// The address with its interface.
        scoped: String,
        /// The interfaces that this host has.
        hint: String,
    },
}

/// Why a file cannot be a payload.
#[derive(Debug, Error, Said)]
pub enum PayloadError {
    /// It cannot be read.
    #[error("'{path}' is not random, zeros or pattern, and cannot be read as a file: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        error: io::Error,
    },
    /// It is too long, or empty.
    #[error("'{path}': {fault}")]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: &'static str,
    },
}

/// A host: a name or address, with or without a port. The name of a host in the user's file becomes its address.
pub fn host(text: &str) -> Result<String, ControlError> {
    let host = host_aliases::address(text);
    control::coordinator::check_host(&host).map(|()| host)
}

/// An IP address and its interface, without a port, as an address with port 0.
pub fn scoped_address(text: &str) -> Result<SocketAddr, AddressError> {
    on_interface(&address(text)?)
}

/// An address with or without a port, and with its interface.
pub fn scoped_endpoint(text: &str) -> Result<SocketAddr, AddressError> {
    on_interface(&data_address(text)?)
}

/// An address with the index of its interface.
///
/// # Errors
/// This host has no such interface.
pub fn on_interface(address: &Address) -> Result<SocketAddr, AddressError> {
    let Address { ip, interface, port } = address;
    let Some(interface) = interface else { return Ok(SocketAddr::new(*ip, *port)) };
    let scoped = format!("{ip}%{interface}");
    let found = (scoped.as_str(), *port).to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or(AddressError::NoInterface { scoped, hint: engine::transport::scope_hint(*ip) })
}

/// The payload of a file.
///
/// # Errors
/// It cannot be read, or is too large.
pub fn payload_of_file(path: &Path) -> Result<Payload, PayloadError> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(Payload::MAX_FILE as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| PayloadError::Unreadable { path: path.to_owned(), error })?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let payload = Payload::of_file(&name, &bytes);
    match payload.fault() {
        Some(fault) => Err(PayloadError::Unusable { path: path.to_owned(), fault }),
        None => Ok(payload),
    }
}

/// The values of variables by their names.
///
/// # Errors
/// A variable has two.
pub fn variables(given: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let mut variables = BTreeMap::new();
    for (name, value) in given {
        if variables.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::usage(say!("`--var {name}` is given twice")));
        }
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_one_of_this_host() {
        let read = |text: &str| scoped_endpoint(text).map(|address| address.to_string());
        assert_eq!(read("[fe80::1%lo]:7000"), Ok("[fe80::1%1]:7000".into()));
        assert_eq!(read("192.0.2.1"), Ok("192.0.2.1:0".into()));
        assert_eq!(scoped_address("fe80::1%lo").map(|address| address.to_string()), Ok("[fe80::1%1]:0".into()));
        assert!(
            read("fe80::1%no-such-if").is_err_and(
                |error| error.to_string().contains("no-such-if") && error.to_string().contains("link-local")
            )
        );
    }
}
