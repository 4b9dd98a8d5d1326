//! What the running kernel has, and what it would need.

use std::fs;

/// Congestion controls that sockets of this network namespace may ask for: the registrations are the kernel's, the list is
/// read from `net.ipv4.tcp_available_congestion_control`.
#[must_use]
pub fn available() -> Vec<String> {
    let list = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

/// What keeps this kernel from taking stacks, as far as it can be seen from outside; `None` where nothing is.
#[must_use]
pub fn obstacle() -> Option<String> {
    let Ok(types) = fs::read("/sys/kernel/btf/vmlinux") else {
        return Some(
            "there is no /sys/kernel/btf/vmlinux: it was built without CONFIG_DEBUG_INFO_BTF, or /sys is hidden here"
                .into(),
        );
    };
    // The name stands in the kernel's own type information, where its TCP takes programs (Linux 5.6, CONFIG_BPF_JIT).
    let wanted = b"bpf_struct_ops_tcp_congestion_ops\0";
    if !types.windows(wanted.len()).any(|name| name == wanted) {
        return Some(
            "it has no BPF struct_ops for TCP: that needs Linux 6.4 or newer with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT".into(),
        );
    }
    None
}
