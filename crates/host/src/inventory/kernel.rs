//! How the kernel was built and started, and the state of the services around it.

use std::collections::BTreeMap;
use std::io;

use model::{Inventory, KernelSetup};

use super::{Source, build};

/// Boot parameters that affect a measurement (Documentation/admin-guide/kernel-parameters.txt); those that end in `*`
/// are prefixes.
const PARAMETERS: &[&str] = &[
    "amd_*",
    "clocksource",
    "cpufreq*",
    "cpuidle*",
    "default_hugepagesz",
    "hugepages*",
    "idle",
    "intel_*",
    "iommu*",
    "irqaffinity",
    "isolcpus",
    "kpti",
    "maxcpus",
    "mem",
    "mitigations",
    "nohz*",
    "nopti",
    "nosmt",
    "nospec*",
    "nr_cpus",
    "pci",
    "pcie_aspm",
    "preempt",
    "processor.max_cstate",
    "rcu_nocb*",
    "skew_tick",
    "spec*",
    "swiotlb",
    "threadirqs",
    "transparent_hugepage",
    "tsc",
];
const PREEMPT: &str = "/sys/kernel/debug/sched/preempt";
const CLOCK_SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Boot parameters, preemption, ticks, CPU accounting and clock sources.
pub(super) fn setup(source: &mut Source<'_>, release: Option<&str>, version: Option<&str>) -> Option<KernelSetup> {
    let line = source.text("boot parameters", "/proc/cmdline")?;
    let clocks = source.hint(CLOCK_SOURCES).unwrap_or_default();
    let mut setup = KernelSetup {
        parameters: line.split_ascii_whitespace().filter(|word| matters(word)).map(str::to_owned).collect(),
        preemption: preemption(source, version),
        clock_sources: clocks.split_ascii_whitespace().map(str::to_owned).collect(),
        ..KernelSetup::default()
    };
    build::describe(source, release, &mut setup);
    Some(setup)
}

fn matters(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or_default();
    PARAMETERS.iter().any(|known| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *known,
    })
}

/// The model in force is in debugfs, in brackets and readable by root only; the build line has the compiled-in one.
fn preemption(source: &mut Source<'_>, version: Option<&str>) -> Option<String> {
    if let Some(chosen) = source.hint(PREEMPT).and_then(|text| bracketed(&text, '(', ')')) {
        return Some(chosen);
    }
    let built = version?.split_ascii_whitespace().rfind(|word| word.starts_with("PREEMPT"));
    if built == Some("PREEMPT_DYNAMIC") {
        source.missing.push(format!("preemption in force: cannot read {PREEMPT} (needs root and a mounted debugfs)"));
    }
    Some(built.unwrap_or("none").to_owned())
}

/// The word between two brackets, as in `always [madvise] never`.
fn bracketed(text: &str, open: char, close: char) -> Option<String> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(word, _)| word.to_owned())
}

/// Huge pages: the mode of transparent ones, and the reserved number of each size.
pub(super) fn hugepages(source: &Source<'_>) -> BTreeMap<String, String> {
    let transparent = source.hint("/sys/kernel/mm/transparent_hugepage/enabled");
    let mode = transparent.and_then(|text| bracketed(&text, '[', ']'));
    let mut pages: BTreeMap<String, String> = mode.map(|mode| ("transparent".to_owned(), mode)).into_iter().collect();
    for folder in source.sys.list("/sys/kernel/mm/hugepages").unwrap_or_default() {
        let count = source.hint(&format!("/sys/kernel/mm/hugepages/{folder}/nr_hugepages"));
        if let (Some(size), Some(count)) = (folder.strip_prefix("hugepages-"), count) {
            pages.insert(size.to_owned(), count);
        }
    }
    pages
}

/// irqbalance and tuned, by the files that they keep in /run while they run. A container sees only its own /run.
pub(super) fn services(source: &mut Source<'_>, facts: &mut Inventory) {
    if facts.virtualisation.as_deref().is_none_or(|kind| kind.contains("container")) {
        source.missing.push("irqbalance and tuned: a container does not see the host's services".into());
        return;
    }
    let sockets = match source.sys.list("/run/irqbalance") {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            source.miss("irqbalance and tuned", "/run/irqbalance", &error);
            return;
        }
        sockets => sockets.unwrap_or_default(),
    };
    let alive = |pid: &str| source.hint(&format!("/proc/{pid}/comm")).is_some();
    let by_socket = sockets.iter().filter_map(|name| name.strip_prefix("irqbalance")?.strip_suffix(".sock")).any(alive);
    let by_file = source.hint("/run/irqbalance.pid").is_some_and(|pid| alive(&pid));
    facts.irqbalance = Some(by_socket || by_file);
    let tuned = source.hint("/run/tuned/tuned.pid").is_some_and(|pid| alive(&pid));
    facts.tuned_profile = source.hint("/etc/tuned/active_profile").filter(|profile| tuned && !profile.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_parameters_that_matter_are_distinguished_from_the_others() {
        let matter = ["mitigations=off", "isolcpus=1-7", "nohz_full=1-7", "pcie_aspm=off", "nosmt", "iommu.strict=0"];
        let others = ["quiet", "console=ttyS0", "root=/dev/sda1", "BOOT_IMAGE=/vmlinuz", "memtest=4", "ro"];
        assert!(matter.iter().all(|parameter| matters(parameter)), "{matter:?}");
        assert!(!others.iter().any(|parameter| matters(parameter)), "{others:?}");
    }
}
