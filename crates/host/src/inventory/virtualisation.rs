//! Whether the host is a virtual machine or a container, as far as it can be detected.

use super::Source;
use super::machine::field;

/// What a vendor or product name in the firmware's tables indicates, most specific first.
const FIRMWARE: &[(&str, &str)] = &[
    ("VMware", "VMware"),
    ("VirtualBox", "VirtualBox"),
    ("innotek", "VirtualBox"),
    ("Parallels", "Parallels"),
    ("Xen", "Xen"),
    ("Virtual Machine", "Hyper-V"),
    ("Google Compute Engine", "KVM (Google Compute Engine)"),
    ("Amazon EC2", "KVM (Amazon EC2)"),
    ("OpenStack", "KVM (OpenStack)"),
    ("KVM", "KVM"),
    ("QEMU", "QEMU"),
    ("Bochs", "QEMU"),
    ("Apple Virtualization", "Apple Virtualization"),
];
const DMI: [&str; 3] = ["sys_vendor", "product_name", "bios_vendor"];

/// Clock sources that only exist under one hypervisor.
const CLOCKS: &[(&str, &str)] = &[("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];

/// Words in the control groups of process 1 that only occur in a container.
const CGROUPS: &[(&str, &str)] = &[
    ("kubepods", "Kubernetes"),
    ("docker", "Docker"),
    ("libpod", "Podman"),
    ("lxc", "LXC"),
    ("containerd", "containerd"),
];

/// For example `KVM virtual machine, Docker container`; `none` if nothing is detected; `None` if nothing can be read.
pub(super) fn detect(source: &mut Source<'_>) -> Option<String> {
    let cpuinfo = source.text("virtualisation", "/proc/cpuinfo")?;
    let machine = hypervisor(source, &cpuinfo).map(|kind| format!("{kind} virtual machine"));
    let container = container(source).map(|kind| format!("{kind} container"));
    let parts: Vec<String> = [machine, container].into_iter().flatten().collect();
    Some(if parts.is_empty() { "none".into() } else { parts.join(", ") })
}

/// The hypervisor. On x86 the firmware's tables do not count without the processor's flag for a hypervisor; they only
/// name it. Other processors have no such flag.
fn hypervisor(source: &Source<'_>, cpuinfo: &str) -> Option<String> {
    if source.hint("/proc/sys/kernel/osrelease").is_some_and(|release| release.to_lowercase().contains("microsoft")) {
        return Some("WSL".into());
    }
    if let Some(kind) = source.hint("/sys/hypervisor/type") {
        return Some(if kind == "xen" { "Xen".into() } else { kind });
    }
    let flags = field(cpuinfo, "flags");
    let flagged = flags.is_some_and(|flags| flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"));
    if flags.is_some() && !flagged {
        return None;
    }
    let firmware: Vec<String> =
        DMI.iter().filter_map(|name| source.hint(&format!("/sys/class/dmi/id/{name}"))).collect();
    if !flagged && firmware.iter().any(|text| text.ends_with(".metal")) {
        return None; // A cloud's hardware without its hypervisor; the vendor's name is the same.
    }
    let clocks = source.hint("/sys/devices/system/clocksource/clocksource0/available_clocksource");
    let named = look_up(FIRMWARE, &firmware.join("\n")).or_else(|| look_up(CLOCKS, &clocks?));
    named.or(flagged.then_some("unnamed")).map(str::to_owned)
}

/// The container runtime: its own marker, then the files it creates, then the control groups.
fn container(source: &Source<'_>) -> Option<String> {
    if let Some(name) = source.hint("/run/systemd/container").filter(|name| !name.is_empty()) {
        return Some(name);
    }
    // A confined agent may not read the markers, but it sees that they are there.
    let exists = |path| source.hint(path).is_some() || source.sys.resolve(path).is_ok();
    if exists("/.dockerenv") {
        return Some("Docker".into());
    }
    if exists("/run/.containerenv") {
        return Some("Podman".into());
    }
    look_up(CGROUPS, &source.hint("/proc/1/cgroup")?).map(str::to_owned)
}

/// The result of the first entry whose word is in `text`.
fn look_up<'a>(table: &[(&str, &'a str)], text: &str) -> Option<&'a str> {
    table.iter().find(|(word, _)| text.contains(word)).map(|(_, meaning)| *meaning)
}
