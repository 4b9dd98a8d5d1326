//! The build options of the kernel that affect CPU time: its tick, and its accounting.

use std::io::Read;

use flate2::read::GzDecoder;
use model::{CpuAccounting, KernelSetup};

use super::Source;

/// The kernel's own copy (CONFIG_IKCONFIG_PROC).
const OWN: &str = "/proc/config.gz";
/// Maximum bytes of it, packed and unpacked: several times a real configuration.
const MAX_BYTES: u64 = 4 << 20;
const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";

/// Sets the tick and the accounting of the kernel of that release.
pub(super) fn describe(source: &mut Source<'_>, release: Option<&str>, setup: &mut KernelSetup) {
    let config = configuration(source, release);
    if let Some((path, text)) = &config {
        setup.hz = option(text, "HZ").and_then(|hz| hz.parse().ok());
        setup.hz_source = setup.hz.map(|_| path.clone());
        setup.cpu_accounting = accounting(source, text);
    } else {
        source.missing.push(format!("how CPU time is accounted: no kernel configuration ({OWN}, /boot)"));
    }
    if setup.hz.is_some() {
        return;
    }
    match source.sys.coarse_clock_ns() {
        // A tick is not always a whole number of ns: 300 of them are 999,999,900.
        Ok(tick) if tick > 0 => {
            setup.hz = u32::try_from((1_000_000_000 + tick / 2) / tick).ok();
            setup.hz_source = Some("deduced from the coarse clock".into());
        }
        _ => source.missing.push(format!("kernel ticks per second: unknown from {OWN}, /boot and the coarse clock")),
    }
}

/// The configuration that the running kernel was built with, and its source.
fn configuration(source: &Source<'_>, release: Option<&str>) -> Option<(String, String)> {
    if let Ok(packed) = source.sys.read_bytes(OWN, MAX_BYTES as usize) {
        let mut text = String::new();
        if GzDecoder::new(packed.as_slice()).take(MAX_BYTES).read_to_string(&mut text).is_ok() {
            return Some((OWN.to_owned(), text));
        }
    }
    let release = release?;
    let paths = [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")];
    paths.into_iter().find_map(|path| source.hint(&path).map(|text| (path, text)))
}

/// The value of an option.
fn option<'a>(config: &'a str, name: &str) -> Option<&'a str> {
    config.lines().find_map(|line| line.strip_prefix("CONFIG_")?.strip_prefix(name)?.strip_prefix('='))
}

/// Which of the three methods was built in (kernel/sched/cputime.c, Kconfig of init).
fn accounting(source: &Source<'_>, config: &str) -> Option<CpuAccounting> {
    let is_on = |name: &str| option(config, name) == Some("y");
    let choices = ["TICK_CPU_ACCOUNTING", "VIRT_CPU_ACCOUNTING_GEN", "VIRT_CPU_ACCOUNTING_NATIVE"];
    let chosen = choices.into_iter().find(|option_name| is_on(option_name))?;
    let exact_cores = match chosen {
        "VIRT_CPU_ACCOUNTING_NATIVE" => Some("all".to_owned()),
        // Without nohz_full cores it behaves like TICK_CPU_ACCOUNTING; the file then is empty or `(null)`.
        "VIRT_CPU_ACCOUNTING_GEN" if is_on("CONTEXT_TRACKING_USER_FORCE") => Some("all".to_owned()),
        "VIRT_CPU_ACCOUNTING_GEN" => source.hint(NOHZ_FULL).filter(|cores| !cores.is_empty() && cores != "(null)"),
        _ => None,
    };
    Some(CpuAccounting { option: chosen.to_owned(), exact_cores, interrupts_timed: is_on("IRQ_TIME_ACCOUNTING") })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;
    use crate::sys::FakeSys;

    /// The result on a host with these files.
    fn found(files: &[(&str, &[u8])]) -> (KernelSetup, Vec<String>) {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let sys = FakeSys::new(root.path());
        let mut source = Source { sys: &sys, missing: Vec::new() };
        let mut setup = KernelSetup::default();
        describe(&mut source, Some("6.1.0"), &mut setup);
        (setup, source.missing)
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn the_running_kernels_own_configuration_comes_first() {
        let own = packed(
            "CONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_TICK_CPU_ACCOUNTING=y\n# CONFIG_IRQ_TIME_ACCOUNTING is not set\n",
        );
        let (setup, missing) = found(&[("proc/config.gz", &own), ("boot/config-6.1.0", b"CONFIG_HZ=1000\n")]);
        assert_eq!((setup.hz, setup.hz_source.as_deref()), (Some(250), Some("/proc/config.gz")));
        let option = "TICK_CPU_ACCOUNTING".to_owned();
        assert_eq!(setup.cpu_accounting, Some(CpuAccounting { option, exact_cores: None, interrupts_timed: false }));
        assert_eq!((setup.tick_ns(), missing), (Some(4_000_000), vec![]));
    }

    #[test]
    fn a_kernel_that_could_be_exact_is_so_on_its_full_cores_alone() {
        let config: &[u8] = b"CONFIG_HZ=1000\nCONFIG_VIRT_CPU_ACCOUNTING_GEN=y\nCONFIG_IRQ_TIME_ACCOUNTING=y\n";
        let exact = |cores: &[u8]| {
            let nohz = NOHZ_FULL.trim_start_matches('/');
            let accounting = found(&[("boot/config-6.1.0", config), (nohz, cores)]).0.cpu_accounting.unwrap();
            assert!(accounting.interrupts_timed && accounting.option == "VIRT_CPU_ACCOUNTING_GEN");
            accounting.exact_cores
        };
        assert_eq!(exact(b"1-7\n").as_deref(), Some("1-7"));
        assert_eq!((exact(b"\n"), exact(b"  (null)\n")), (None, None));
        let forced = [config, b"CONFIG_CONTEXT_TRACKING_USER_FORCE=y\n"].concat();
        let accounting = found(&[("lib/modules/6.1.0/config", &forced)]).0.cpu_accounting.unwrap();
        assert_eq!(accounting.exact_cores.as_deref(), Some("all"));
    }

    #[test]
    fn without_a_configuration_the_tick_is_that_of_the_coarse_clock() {
        for (tick, hz) in [("4000000", 250), ("3333333", 300), ("1000000", 1000), ("10000000", 100)] {
            let (setup, missing) = found(&[("coarse_clock", tick.as_bytes())]);
            assert_eq!((setup.hz, setup.hz_source.as_deref()), (Some(hz), Some("deduced from the coarse clock")));
            assert!(setup.cpu_accounting.is_none() && missing[0].starts_with("how CPU time is accounted"));
        }
        let (setup, missing) = found(&[("proc/config.gz", b"no gzip")]);
        assert_eq!((setup.hz, missing.len()), (None, 2));
    }
}
