//! Errors of labs.

use std::io;
use std::path::PathBuf;
use text::Said;

/// Why a lab cannot be made, with the remedy.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum LabError {
    /// The process lacks a capability.
    #[error("a lab needs {missing} to make network namespaces: run as root, for example with sudo")]
    Privilege {
        /// The capability.
        missing: &'static str,
    },
    /// There is no `ip` command.
    #[error("a lab needs the ip command, which is not in PATH or {usual}: install iproute2")]
    NoIp {
        /// The directories that are searched in addition to PATH.
        usual: &'static str,
    },
    /// The labs of this machine belong to another user.
    #[error("only the user who made labs here, usually root, can read {path}: run as that user, for example with sudo")]
    Hidden {
        /// The journal.
        path: PathBuf,
    },
    /// The kernel or the container refuses namespaces or links between them.
    #[error(
        "network namespaces or veth links are not allowed here (`{command}`: {reason}): \
         run on the host itself, or in a container that is started with --privileged"
    )]
    NotAllowed {
        /// The command line that was refused.
        command: String,
        /// Its error message.
        reason: String,
    },
    /// The kernel gives no random numbers, of which names and addresses are made.
    #[error("cannot draw a random number: {source}")]
    Random {
        /// The kernel's answer.
        source: io::Error,
    },
    /// A command failed.
    #[error("`{command}` failed: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// What it wrote to its standard error, or its exit status.
        reason: String,
    },
    /// A command could not be started, or its output was not understood.
    #[error("cannot run `{command}`: {source}")]
    Run {
        /// The command line.
        command: String,
        /// The reason.
        source: io::Error,
    },
    /// The journal, which finds what a crashed owner left, cannot be written; without it no lab is made.
    #[error("cannot {operation} in the lab journal, {path}: {source}")]
    Journal {
        /// The operation.
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The path between the hosts cannot be emulated.
    #[error(
        "cannot make the TUN devices of an emulated path with /dev/net/tun: {source}; load the kernel's tun module, and start a \
         container with --device /dev/net/tun"
    )]
    Emulator {
        /// The reason.
        source: io::Error,
    },
    /// A property of a link has a wrong value, or there is no such property.
    #[error("{key}: {source}")]
    LinkValue {
        /// The key of the setting.
        key: String,
        /// Why the value is refused.
        source: serde_json::Error,
    },
    /// A link cannot change while the lab is up.
    #[error(
        "the kernel carries the link {link}, and only its MTU can change: run the plan with its own lab, or set \
         carrier = \"emulator\" in the topology"
    )]
    Fixed {
        /// The link.
        link: String,
    },
    /// An invalid lab.
    #[error("{what}: {remedy}")]
    Spec {
        /// The field and its value.
        what: String,
        /// What to use instead.
        remedy: &'static str,
    },
    /// Every tried subnet is in use on this machine.
    #[error(
        "no free subnet for a lab: this machine has routes to every part of 198.18.0.0/15 that was tried; give \
            the lab its own subnets, or remove the routes"
    )]
    NoSubnet,
    /// A lab of that name exists already.
    #[error("a lab named '{name}' exists already: choose another name, or remove it with `thru lab down {name}`")]
    Exists {
        /// The name.
        name: String,
    },
    /// There is no such lab.
    #[error("there is no lab {name}: {there}")]
    NoLab {
        /// The requested name.
        name: String,
        /// The existing labs, or how to create one.
        there: String,
    },
    /// The names of the lab's nodes cannot be written where `ip netns exec` looks for them.
    #[error(
        "cannot write the hosts files of a lab below {path}: {source}; root must be able to write there, see ip-netns(8)"
    )]
    Names {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The process that holds a lab does not answer.
    #[error("the process that holds lab {lab} does not answer: {source}; end process {pid}, then try again")]
    Silent {
        /// The lab.
        lab: String,
        /// The process.
        pid: u32,
        /// The reason.
        source: io::Error,
    },
    /// The lab has no such host.
    #[error("the lab has no host '{name}': its hosts are {hosts}")]
    NoHost {
        /// The requested name.
        name: String,
        /// The existing names.
        hosts: String,
    },
    /// A link did not come up, or an address did not become usable.
    #[error("{interface} in {namespace} was not ready within {seconds} s: check it with `ip -n {namespace} address`")]
    NotReady {
        /// The namespace.
        namespace: String,
        /// The interface in it.
        interface: String,
        /// How long the lab waited for it.
        seconds: u64,
    },
    /// Namespaces could not be removed.
    #[error(
        "could not remove {namespaces}: end the processes that `ip netns pids` lists for them; the next lab removes \
            them"
    )]
    LeftBehind {
        /// The lab's namespaces.
        namespaces: String,
    },
}
