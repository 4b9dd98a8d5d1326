//! The processors as lscpu shows them.

use std::collections::{BTreeMap, BTreeSet};

use model::Processor;

use super::Source;
use super::machine::field;

const CPUS: &str = "/sys/devices/system/cpu";

/// Flags that affect the cost of a clock read, a cipher, a copy or a context switch.
const FLAGS: &[&str] = &[
    "aes",
    "atomics",
    "avx2",
    "avx512f",
    "constant_tsc",
    "crc32",
    "erms",
    "fsrm",
    "hypervisor",
    "nonstop_tsc",
    "pcid",
    "pclmulqdq",
    "pmull",
    "rdtscp",
    "sha2",
    "sha_ni",
    "sve",
    "tsc_deadline_timer",
    "vaes",
];

/// The fields that identify a processor, on x86 and on ARM.
const IDENTITY: &[&str] = &[
    "vendor_id",
    "cpu family",
    "model",
    "stepping",
    "microcode",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
];

/// What /sys and /proc/cpuinfo report; `None` if neither exists.
pub(super) fn describe(source: &mut Source<'_>) -> Option<Processor> {
    let cpuinfo = source.hint("/proc/cpuinfo");
    let entries = source.sys.list(CPUS).unwrap_or_default();
    if cpuinfo.is_none() && entries.is_empty() {
        return None; // named already, with the processor's model
    }
    let mut facts = Processor { cache_bytes: caches(source), isolated: isolated(source), ..Processor::default() };
    topology(source, &entries, &mut facts);
    facts.online = source.hint(&format!("{CPUS}/online"));
    let named = |name: &&str| Some(((*name).to_owned(), field(cpuinfo.as_deref()?, name)?.to_owned()));
    facts.identity = IDENTITY.iter().filter_map(named).collect();
    let words = cpuinfo.as_deref().and_then(|text| field(text, "flags").or_else(|| field(text, "Features")));
    let has: BTreeSet<&str> = words.unwrap_or_default().split_ascii_whitespace().collect();
    facts.flags = FLAGS.iter().filter(|flag| has.contains(*flag)).map(|flag| (*flag).to_owned()).collect();
    facts.mitigations = named_files(source, &format!("{CPUS}/vulnerabilities"));
    frequencies(source, &mut facts);
    let nodes = source.sys.list("/sys/devices/system/node").unwrap_or_default();
    for node in nodes.iter().filter_map(|name| name.strip_prefix("node")) {
        if let Some(cores) = source.hint(&format!("/sys/devices/system/node/node{node}/cpulist")) {
            facts.node_cores.insert(node.to_owned(), cores);
        }
    }
    Some(facts)
}

/// Sockets, cores and threads, from each processor's topology.
fn topology(source: &mut Source<'_>, entries: &[String], facts: &mut Processor) {
    let (mut threads, mut cores, mut sockets) = (0_u32, BTreeSet::new(), BTreeSet::new());
    for cpu in entries.iter().filter(|name| is_cpu(name)) {
        let part = |file: &str| source.hint(&format!("{CPUS}/{cpu}/topology/{file}"));
        // A processor that is offline has no topology.
        let (Some(socket), Some(core)) = (part("physical_package_id"), part("core_id")) else { continue };
        threads += 1;
        sockets.insert(socket.clone());
        cores.insert((socket, core));
    }
    if threads == 0 {
        source.missing.push(format!("sockets, cores and threads: no {CPUS}/cpu*/topology"));
        return;
    }
    let count = |set: usize| u32::try_from(set).ok();
    facts.sockets = count(sockets.len());
    facts.cores_per_socket = count(cores.len() / sockets.len());
    facts.threads_per_core = Some(threads.div_ceil(cores.len() as u32));
}

/// Whether an entry of /sys/devices/system/cpu is a processor: `cpu` and a number.
fn is_cpu(name: &str) -> bool {
    name.strip_prefix("cpu").is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Sizes of core 0's caches by their usual names.
fn caches(source: &Source<'_>) -> BTreeMap<String, u64> {
    let folder = format!("{CPUS}/cpu0/cache");
    let indexes = source.sys.list(&folder).unwrap_or_default();
    let cache = |index: &String| {
        let part = |file: &str| source.hint(&format!("{folder}/{index}/{file}"));
        let kind = match part("type")?.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        let size = part("size")?;
        let (digits, unit) = size.split_at(size.find(|c: char| !c.is_ascii_digit()).unwrap_or(size.len()));
        let factor = match unit {
            "" => 1,
            "K" => 1 << 10,
            "M" => 1 << 20,
            _ => return None,
        };
        Some((format!("L{}{kind}", part("level")?), digits.parse::<u64>().ok()? * factor))
    };
    indexes.iter().filter(|name| name.starts_with("index")).filter_map(cache).collect()
}

/// Cores excluded from the scheduler; an empty file means none.
fn isolated(source: &Source<'_>) -> Option<String> {
    source.hint(&format!("{CPUS}/isolated"))
}

/// Range of frequencies and the governor of each policy. Their absence is reported with the governor of core 0.
fn frequencies(source: &Source<'_>, facts: &mut Processor) {
    let folder = format!("{CPUS}/cpufreq");
    let policies = source.sys.list(&folder).unwrap_or_default();
    for policy in policies.iter().filter(|name| name.starts_with("policy")) {
        let part = |file: &str| source.hint(&format!("{folder}/{policy}/{file}"));
        let hertz = |file: &str| part(file)?.parse::<u64>().ok()?.checked_mul(1_000);
        facts.min_hz = [facts.min_hz, hertz("cpuinfo_min_freq")].into_iter().flatten().min();
        facts.max_hz = facts.max_hz.max(hertz("cpuinfo_max_freq"));
        if let Some(governor) = part("scaling_governor") {
            let cores = part("affected_cpus").unwrap_or_else(|| policy.trim_start_matches("policy").to_owned());
            facts.governors.insert(cores, governor);
        }
    }
}

/// Each file of a folder and its text.
fn named_files(source: &Source<'_>, folder: &str) -> BTreeMap<String, String> {
    let names = source.sys.list(folder).unwrap_or_default();
    names.into_iter().filter_map(|name| Some((name.clone(), source.hint(&format!("{folder}/{name}"))?))).collect()
}
