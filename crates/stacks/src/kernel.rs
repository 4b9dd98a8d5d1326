//! The running kernel's features, and what it lacks.

use std::fs;

use rustix::system::uname;
use rustix::thread::{CapabilitySet, capabilities};

/// The capabilities needed for loading, and their names.
const NEEDED: [(CapabilitySet, &str); 3] = [
    (CapabilitySet::BPF, "CAP_BPF"),
    (CapabilitySet::PERFMON, "CAP_PERFMON"),
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
];
/// The initial user namespace (PROC_USER_INIT_INO, include/linux/proc_ns.h): only there do capabilities count for BPF.
const FIRST_USER_NAMESPACE: &str = "user:[4026531837]";
/// The first kernel with links of struct_ops, which hold a registration.
const OLDEST: (u32, u32) = (6, 4);

/// Congestion controls that sockets of this network namespace may request: the registrations are the kernel's, the
/// list is read from `net.ipv4.tcp_available_congestion_control`.
#[must_use]
pub fn available() -> Vec<String> {
    let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

/// Why this kernel cannot load stacks, as far as it can be seen from outside; `None` if nothing is missing.
#[must_use]
pub fn obstacle() -> Option<String> {
    let Ok(types) = fs::read("/sys/kernel/btf/vmlinux") else {
        return Some(
            "there is no /sys/kernel/btf/vmlinux: the kernel was built without CONFIG_DEBUG_INFO_BTF, or /sys is \
                hidden here"
                .into(),
        );
    };
    // The kernel's type information has this name if its TCP accepts programs (Linux 5.6, CONFIG_BPF_JIT).
    let wanted = b"bpf_struct_ops_tcp_congestion_ops\0";
    if !types.windows(wanted.len()).any(|name| name == wanted) {
        return Some(
            "it has no BPF struct_ops for TCP: that needs Linux 6.4 or newer with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT".into(),
        );
    }
    let name = uname();
    let release = name.release().to_string_lossy();
    let version = version(&release)?;
    (version < OLDEST).then(|| {
        format!(
            "it is Linux {release}; registrations that end with their owner need Linux \
        6.4 or newer"
        )
    })
}

/// Major and minor number of a release such as `6.18.44-fc`.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// The privilege that this process lacks for loading stacks, as text; `None` if it lacks none.
#[must_use]
pub fn missing_rights() -> Option<String> {
    if fs::read_link("/proc/self/ns/user").is_ok_and(|own| own.as_os_str() != FIRST_USER_NAMESPACE) {
        return Some("this process is in another namespace".into());
    }
    // If the kernel does not tell, loading will.
    let own = capabilities(None).ok()?.effective;
    if own.contains(CapabilitySet::SYS_ADMIN) {
        return None;
    }
    let missing = NEEDED.iter().find(|(capability, _)| !own.contains(*capability));
    missing.map(|(_, name)| format!("{name} is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_as_numbers() {
        for (release, old) in [("6.3.13-generic", true), ("5.15.0", true), ("6.4.0-rc1", false), ("6.18.44-fc", false)]
        {
            assert_eq!(version(release).map(|version| version < OLDEST), Some(old), "{release}");
        }
        assert_eq!(version("unknown"), None);
    }
}
