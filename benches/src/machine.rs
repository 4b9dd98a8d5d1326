//! Description of the machine.

use std::time::{SystemTime, UNIX_EPOCH};

use host::{RealSys, Sys};
use model::Inventory;
use serde::{Deserialize, Serialize};

/// Kernel, processor and cores, without a host name for privacy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel version without the distribution's suffix.
    pub kernel: String,
    /// Processor model.
    pub cpu: String,
    /// Processors online.
    pub cores: u32,
    /// Hypervisor or container, if detected.
    pub virtualisation: Option<String>,
    /// Default congestion control, which all tools here use.
    pub congestion_control: Option<String>,
}

impl Machine {
    /// The machine of this inventory.
    pub fn of(facts: &Inventory) -> Self {
        let unknown = || "unknown".to_owned();
        Self {
            kernel: facts.kernel.as_deref().map_or_else(unknown, |release| numeric(release).to_owned()),
            cpu: facts.cpu_model.clone().unwrap_or_else(unknown),
            cores: facts.cores.unwrap_or(0),
            virtualisation: facts.virtualisation.clone(),
            congestion_control: facts.sysctl.get("net.ipv4.tcp_congestion_control").cloned(),
        }
    }

    /// A part of a file name, such as `linux-6.18.44-amd-epyc-2-cores`.
    pub fn slug(&self) -> String {
        let text = format!("linux {} {} {} cores", self.kernel, self.cpu, self.cores).to_ascii_lowercase();
        let mut slug = String::new();
        for c in text.chars() {
            if c.is_ascii_alphanumeric() || c == '.' {
                slug.push(c);
            } else if !slug.ends_with('-') {
                slug.push('-');
            }
        }
        slug.trim_matches('-').to_owned()
    }
}

/// `6.18.44` of `6.18.44-flavour-1`.
fn numeric(release: &str) -> &str {
    let end = release.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(release.len());
    release[..end].trim_end_matches('.')
}

/// The inventory of this host as `thru host` takes it, without the host's name.
pub fn inventory() -> Inventory {
    Inventory { hostname: None, ..host::inventory(&RealSys) }
}

/// Load average over the last minute; `None` if unknown.
pub fn load() -> Option<f64> {
    RealSys.read("/proc/loadavg").ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// A seed that differs from run to run.
pub fn clock_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_a_file_name() {
        let machine = Machine {
            kernel: numeric("6.1.0-18-amd64").into(),
            cpu: "Example(R) CPU @ 2.00GHz".into(),
            cores: 4,
            virtualisation: None,
            congestion_control: None,
        };
        assert_eq!(machine.slug(), "linux-6.1.0-example-r-cpu-2.00ghz-4-cores");
        assert_eq!(numeric("6.18"), "6.18");
    }
}
