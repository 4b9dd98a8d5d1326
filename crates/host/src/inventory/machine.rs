//! Kernel, distribution, processors, memory and clock.

use model::Inventory;

use super::Source;

const CPUINFO: &str = "/proc/cpuinfo";
const MEMINFO: &str = "/proc/meminfo";

/// Sets all facts about the machine except network and virtualisation.
pub(super) fn describe(source: &mut Source<'_>, facts: &mut Inventory) {
    match source.sys.uname() {
        Ok(uname) => {
            facts.hostname = Some(uname.hostname);
            facts.kernel = Some(uname.release);
            facts.kernel_version = Some(uname.version);
            facts.arch = Some(uname.machine);
        }
        Err(error) => source.missing.push(format!("hostname, kernel and architecture: uname failed: {error}")),
    }
    facts.os = distribution(source);
    facts.cpu_model = source.value("processor model", CPUINFO, cpu_model);
    facts.cores = source.value("processors online", "/sys/devices/system/cpu/online", count_of_list);
    facts.numa_nodes = source.value("NUMA nodes", "/sys/devices/system/node/online", count_of_list);
    facts.memory_bytes = source.value("physical memory", MEMINFO, |text| bytes(text, "MemTotal"));
    facts.memory_available_bytes = source.value("available memory", MEMINFO, |text| bytes(text, "MemAvailable"));
    facts.load_average = source.value("load averages", "/proc/loadavg", load_average);
    facts.governor = source.text("frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    facts.clock_source =
        source.text("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    facts.boot_id = source.text("boot identifier", "/proc/sys/kernel/random/boot_id");
}

/// The distribution's display name. os-release(5) looks in /etc first.
fn distribution(source: &mut Source<'_>) -> Option<String> {
    let text = match source.hint("/etc/os-release") {
        Some(text) => text,
        None => source.text("distribution", "/usr/lib/os-release")?,
    };
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    if name.is_none() {
        source.missing.push("distribution: os-release has no PRETTY_NAME".into());
    }
    name.map(|name| name.trim_matches(['"', '\'']).to_owned())
}

/// The processor's name: x86 calls it `model name`, POWER `cpu`; ARM kernels give only two numbers.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let field = |key| field(cpuinfo, key).map(str::to_owned);
    field("model name")
        .or_else(|| field("cpu"))
        .or_else(|| Some(format!("ARM implementer {} part {}", field("CPU implementer")?, field("CPU part")?)))
}

/// The first value of `key` in lines of the form `key : value`.
pub(super) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
}

/// How many numbers a kernel list such as `0-3,8` names.
fn count_of_list(list: &str) -> Option<u32> {
    list.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            Some(last.checked_sub(first)? + 1)
        })
        .sum()
}

/// A value of /proc/meminfo in bytes; its `kB` are units of 1024.
pub(crate) fn bytes(meminfo: &str, key: &str) -> Option<u64> {
    field(meminfo, key)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

pub(crate) fn load_average(text: &str) -> Option<[f64; 3]> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some([next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists_are_counted() {
        for (list, count) in [("0", Some(1)), ("0-1", Some(2)), ("0-3,8,10-11", Some(7)), ("", None), ("3-1", None)] {
            assert_eq!(count_of_list(list), count, "{list}");
        }
    }

    #[test]
    fn processors_are_named_on_other_architectures_too() {
        let arm = "processor\t: 0\nBogoMIPS\t: 243.75\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(cpu_model(arm).unwrap(), "ARM implementer 0x41 part 0xd0c");
        assert_eq!(
            cpu_model("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n").unwrap(),
            "POWER9, altivec supported"
        );
        assert_eq!(cpu_model("processor\t: 0\n"), None);
    }
}
