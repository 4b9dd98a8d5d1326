//! Kernel settings that affect a transfer.

use model::Inventory;

use super::Source;
use super::machine::field;

/// The settings whose absence is reported. In a network namespace some exist only for the first one.
const SYSCTLS: &[&str] = &[
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    ALLOWED,
    AVAILABLE,
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
];
const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

/// Directories of /proc/sys/net that are also recorded, and the prefixes of the names in them. The whole tree would
/// repeat some hundred values for each interface; `conf/all` has those that apply to all.
const TREES: &[(&str, &[&str])] = &[
    ("core", &[""]),
    ("ipv4", &["tcp_", "udp_", "ip_", "ipfrag_", "icmp_ratelimit", "icmp_msgs", "fib_", "raw_"]),
    ("ipv4/conf/all", &[""]),
    ("ipv4/route", &[""]),
    ("ipv6", &["ip6frag_", "flowlabel_", "fib_", "auto_flowlabels", "bindv6only", "max_"]),
    ("ipv6/conf/all", &["mtu", "hop_limit", "disable_ipv6", "forwarding", "accept_ra", "seg6_enabled"]),
    ("ipv6/route", &[""]),
    ("mptcp", &[""]),
    ("netfilter", &["nf_conntrack_"]),
    ("unix", &[""]),
];
/// Settings of memory, files and the kernel that affect a transfer or the programs that measure it. They are only read.
const OTHERS: &[&str] = &[
    "fs.file-max",
    "fs.nr_open",
    "fs.pipe-max-size",
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.sched_autogroup_enabled",
    "kernel.sched_rt_runtime_us",
    "kernel.shmmax",
    "kernel.threads-max",
    "kernel.timer_migration",
    "kernel.watchdog",
    "vm.dirty_background_ratio",
    "vm.dirty_ratio",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.nr_hugepages",
    "vm.overcommit_memory",
    "vm.stat_interval",
    "vm.swappiness",
    "vm.vfs_cache_pressure",
    "vm.zone_reclaim_mode",
];
/// Secrets, and a level that is not a setting.
const LEFT_OUT: &[&str] = &["key", "secret", "seed", "conntrack_count"];

/// Number of the capability that lets a socket use any congestion control (capabilities(7)).
const CAP_NET_ADMIN: u32 = 12;

/// Sets the settings, and the congestion controls that a socket of this process may request.
pub(super) fn describe(source: &mut Source<'_>, facts: &mut Inventory) {
    for name in SYSCTLS {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        if let Some(value) = source.text(name, &path) {
            // The kernel separates the parts of a value by tabs.
            let value = value.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
            facts.sysctl.insert((*name).to_owned(), value);
        }
    }
    for (folder, beginnings) in TREES {
        for file in source.sys.list(&format!("/proc/sys/net/{folder}")).unwrap_or_default() {
            let wanted = beginnings.iter().any(|beginning| file.starts_with(beginning))
                && !LEFT_OUT.iter().any(|word| file.contains(word));
            let name = format!("net.{}.{file}", folder.replace('/', "."));
            if !wanted || facts.sysctl.contains_key(&name) {
                continue;
            }
            if let Some(value) = source.hint(&format!("/proc/sys/net/{folder}/{file}")) {
                facts.sysctl.insert(name, value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
            }
        }
    }
    for name in OTHERS {
        if let Some(value) = source.hint(&format!("/proc/sys/{}", name.replace('.', "/"))) {
            facts.sysctl.insert((*name).to_owned(), value.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    let list = if privileged(source) { AVAILABLE } else { ALLOWED };
    let names = facts.sysctl.get(list).map(String::as_str).unwrap_or_default();
    facts.congestion_controls = names.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect();
}

/// Whether this process may use congestion controls that are not open to every user.
fn privileged(source: &mut Source<'_>) -> bool {
    let effective = source.value("capabilities of this process", "/proc/self/status", |status| {
        u64::from_str_radix(field(status, "CapEff")?, 16).ok()
    });
    effective.is_some_and(|set| set & (1 << CAP_NET_ADMIN) != 0)
}
