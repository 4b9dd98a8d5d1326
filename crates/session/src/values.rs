//! Values of options that this host decides about: addresses on its interfaces, and its files.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use model::Payload;
use options::values::{Address, address, data_address};

use crate::failure::Failure;

/// A host: a name or address, with or without a port.
pub fn host(text: &str) -> Result<String, String> {
    control::coordinator::check_host(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}

/// An IP address and its interface, without a port, as an address with port 0.
pub fn scoped_address(text: &str) -> Result<SocketAddr, String> {
    on_interface(&address(text)?)
}

/// An address with or without a port, and with its interface.
pub fn scoped_endpoint(text: &str) -> Result<SocketAddr, String> {
    on_interface(&data_address(text)?)
}

/// An address with the index of its interface.
///
/// # Errors
/// This host has no such interface.
pub fn on_interface(address: &Address) -> Result<SocketAddr, String> {
    let Address { ip, interface, port } = address;
    let Some(interface) = interface else { return Ok(SocketAddr::new(*ip, *port)) };
    let scoped = format!("{ip}%{interface}");
    let found = (scoped.as_str(), *port).to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| format!("'{scoped}' names no interface of this host: {}", engine::transport::scope_hint(*ip)))
}

/// The payload of a file.
///
/// # Errors
/// It cannot be read, or is too large.
pub fn payload_of_file(path: &Path) -> Result<Payload, String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(Payload::MAX_FILE as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("'{shown}' is neither random, zeros nor pattern, and as a file: {error}"))?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let payload = Payload::of_file(&name, &bytes);
    payload.fault().map_or(Ok(payload), |fault| Err(format!("'{shown}': {fault}")))
}

/// The values of variables by their names.
///
/// # Errors
/// A variable has two.
pub fn variables(given: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let mut variables = BTreeMap::new();
    for (name, value) in given {
        if variables.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::usage(format!("`var {name}` is given twice")));
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
            read("fe80::1%no-such-if").is_err_and(|what| what.contains("no-such-if") && what.contains("link-local"))
        );
    }
}
