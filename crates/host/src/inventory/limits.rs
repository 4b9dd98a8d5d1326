//! The limits of control groups and affinity on this process (Documentation/admin-guide/cgroup-v1 and -v2).

use model::ResourceLimits;

use super::Source;
use super::machine::field;

const ROOT: &str = "/sys/fs/cgroup";

/// A v1 memory limit above this means none: the kernel's "unlimited" is the largest multiple of a page.
const UNLIMITED: u64 = 1 << 60;

/// The tightest limit of all groups above this process; `None`, reported, if its groups cannot be read.
pub(super) fn describe(source: &mut Source<'_>) -> Option<ResourceLimits> {
    let groups = source.text("control groups", "/proc/self/cgroup")?;
    let mut limits = ResourceLimits::default();
    let (mut first, mut second) = (false, false);
    for line in groups.lines() {
        // hierarchy-ID:controllers:path (cgroups(7)); version 2 has neither number nor controllers.
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else { continue };
        for controller in controllers.split(',') {
            match controller {
                "" => {
                    for folder in folders(ROOT, path).chain(folders(&format!("{ROOT}/unified"), path)) {
                        second |= version_2(source, &folder, &mut limits);
                    }
                }
                "cpu" | "memory" => {
                    for folder in folders(&format!("{ROOT}/{controller}"), path) {
                        first |= version_1(source, &folder, &mut limits);
                    }
                }
                _ => {}
            }
        }
    }
    limits.version = match (first, second) {
        (true, true) => "1 and 2",
        (true, false) => "1",
        _ => "2",
    }
    .into();
    let online = source.hint("/sys/devices/system/cpu/online");
    let status = source.hint("/proc/self/status");
    let allowed = status.as_deref().and_then(|text| field(text, "Cpus_allowed_list")).map(str::to_owned);
    limits.cores = allowed.filter(|cores| Some(cores) != online.as_ref());
    Some(limits)
}

/// The group's directory and all above it. In a container the path may be the host's and not exist: the root does.
fn folders(root: &str, path: &str) -> impl Iterator<Item = String> {
    let full = format!("{root}{}", path.trim_end_matches('/'));
    let root = root.to_owned();
    std::iter::successors(Some(full), move |folder| {
        let up = folder.rsplit_once('/')?.0;
        (up.len() >= root.len()).then(|| up.to_owned())
    })
}

/// Whether the group limits processor time or memory at all.
fn version_2(source: &Source<'_>, folder: &str, limits: &mut ResourceLimits) -> bool {
    let cpu = source.hint(&format!("{folder}/cpu.max"));
    let memory = source.hint(&format!("{folder}/memory.max"));
    if let Some((quota, period)) = cpu.as_deref().and_then(|text| text.split_once(' ')) {
        tighten_cpus(limits, quota, period);
    }
    // `max` is no number.
    tighten_memory(limits, memory.as_deref());
    cpu.is_some() || memory.is_some()
}

fn version_1(source: &Source<'_>, folder: &str, limits: &mut ResourceLimits) -> bool {
    let part = |file: &str| source.hint(&format!("{folder}/{file}"));
    let (quota, memory) = (part("cpu.cfs_quota_us"), part("memory.limit_in_bytes"));
    // A quota of -1 is none.
    if let (Some(quota), Some(period)) = (&quota, part("cpu.cfs_period_us")) {
        tighten_cpus(limits, quota, &period);
    }
    tighten_memory(limits, memory.as_deref());
    quota.is_some() || memory.is_some()
}

fn tighten_cpus(limits: &mut ResourceLimits, quota: &str, period: &str) {
    if let (Ok(quota), Ok(period)) = (quota.parse::<u64>(), period.parse::<u64>())
        && period > 0
    {
        let cores = quota as f64 / period as f64;
        limits.cpus = Some(limits.cpus.map_or(cores, |so_far| so_far.min(cores)));
    }
}

fn tighten_memory(limits: &mut ResourceLimits, bytes: Option<&str>) {
    let bytes = bytes.and_then(|text| text.parse::<u64>().ok()).filter(|bytes| *bytes < UNLIMITED);
    limits.memory_bytes = [limits.memory_bytes, bytes].into_iter().flatten().min();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::FakeSys;

    /// Limits of a host that consists of `files`.
    fn of(files: &[(&str, &str)]) -> Option<ResourceLimits> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        describe(&mut Source { sys: &FakeSys::new(root.path()), missing: Vec::new() })
    }

    #[test]
    fn the_tightest_group_above_a_process_counts() {
        let limits = of(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("proc/self/status", "Name:\tthru\nCpus_allowed_list:\t0-1\n"),
            ("sys/devices/system/cpu/online", "0-7\n"),
            ("sys/fs/cgroup/a/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/a/memory.max", "2147483648\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
        ])
        .unwrap();
        assert_eq!((limits.version.as_str(), limits.cpus, limits.memory_bytes), ("2", Some(1.5), Some(1 << 31)));
        assert_eq!(limits.cores.as_deref(), Some("0-1"));
    }

    #[test]
    fn version_1_and_a_path_of_the_host_that_a_container_cannot_see() {
        let limits = of(&[
            ("proc/self/cgroup", "5:memory:/docker/1234\n2:cpu,cpuacct:/docker/1234\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
        ])
        .unwrap();
        assert_eq!((limits.version.as_str(), limits.cpus, limits.memory_bytes), ("1", Some(0.5), Some(1 << 29)));
    }

    #[test]
    fn no_limit_is_null_and_no_group_is_unknown() {
        let limits = of(&[
            ("proc/self/cgroup", "1:memory:/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ])
        .unwrap();
        assert_eq!((limits.cpus, limits.memory_bytes, limits.cores), (None, None, None));
        assert_eq!(of(&[]), None);
    }
}
