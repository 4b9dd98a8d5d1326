//! Whether labs can be made here.

use rustix::thread::{CapabilitySet, capabilities};

use crate::LabError;
use crate::ip::Ip;
use crate::journal::{Journal, Record};
use crate::scope::Scope;
use crate::subnets::random;

/// The requirements of a lab, and their names for the user.
const NEEDED: [(CapabilitySet, &str); 2] =
    [(CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"), (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN")];

/// Checks whether this process can make a lab, by making a namespace and a link and removing them again.
///
/// # Errors
/// What is missing and the remedy: root's capabilities, the `ip` command, or a kernel or container that allows network
/// namespaces and veth links.
pub fn available() -> Result<(), LabError> {
    let ip = privileged_ip()?;
    let lab = format!("thru-probe-{:08x}", random()? as u32);
    let namespace = format!("{lab}-a");
    let record = Record { namespaces: vec![namespace.clone()], ..Record::of(lab) };
    let scope = Scope::open(ip, &Journal::open()?, record)?;
    let tried = scope.run(&["netns", "add", &namespace]).and_then(|_| {
        scope.run(&["-n", &namespace, "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"])
    });
    match tried {
        Ok(_) => scope.close(),
        Err(LabError::Command { command, reason }) => Err(LabError::NotAllowed { command, reason }),
        Err(error) => Err(error),
    }
}

/// The `ip` command, for a process that may use it to make namespaces.
pub(crate) fn privileged_ip() -> Result<Ip, LabError> {
    // If the kernel does not tell, the first command will.
    if let Ok(own) = capabilities(None) {
        let missing = NEEDED.iter().find(|(capability, _)| !own.effective.contains(*capability));
        if let Some((_, missing)) = missing {
            return Err(LabError::Privilege { missing });
        }
    }
    Ip::find()
}
