//! Which settings an agent's clients, as opposed to this host's own user, may read and change.

use std::str::FromStr;

use super::error::TuneError;
use super::fits;
use super::kinds::KINDS;

/// Prefixes of keys that every client may use if an agent allows changing settings: the network's. Keys have their
/// canonical form here, in which no part is empty, `.` or `..`.
const NETWORK: [&str; 7] =
    ["sysctl.net.core.", "sysctl.net.ipv4.", "sysctl.net.ipv6.", "sysctl.net.mptcp.", "dev.", "qdisc.", "route."];

/// Prefixes of keys that no pattern adds: through them the kernel starts programs, as root.
const NEVER: [&str; 6] = [
    "sysctl.kernel.core_pattern",
    "sysctl.kernel.hotplug",
    "sysctl.kernel.modprobe",
    "sysctl.kernel.poweroff_cmd",
    "sysctl.kernel.usermodehelper.",
    "sysctl.fs.binfmt_misc.",
];

/// Beginnings of keys that a pattern must give in full: it would match too many others.
const IN_FULL: [&str; 3] = ["sysctl.kernel.", "sysctl.fs.", "module."];

/// What may be read and changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowance {
    /// Everything that the process may: its own user gave the command.
    All,
    /// The network's settings, and what these patterns add.
    Network(Vec<KeyPattern>),
}

/// Keys that the host's user adds to the network's. `*` matches any text within one part of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPattern(String);

/// Whether a key is of an interface's addresses: with them a client could take another host's place.
fn is_address(key: &str) -> bool {
    key.starts_with("dev.") && key.ends_with(".address")
}

impl Allowance {
    /// Whether a setting may be read and changed, by its key in canonical form.
    #[must_use]
    pub(crate) fn covers(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Network(more) => {
                (NETWORK.iter().any(|begin| key.starts_with(begin)) && !is_address(key))
                    || (never(key).is_none() && more.iter().any(|pattern| pattern.fits(key)))
            }
        }
    }

    /// Refuses what is not covered.
    pub(crate) fn check(&self, key: &str) -> Result<(), TuneError> {
        if self.covers(key) {
            return Ok(());
        }
        let remedy = match never(key) {
            Some(reason) => format!("{reason}, so no agent lets clients change it"),
            None => format!(
                "it is not a network setting; to allow it, start the agent with `thru serve --allow-tuning='{key}'`"
            ),
        };
        Err(TuneError::Forbidden { key: key.into(), remedy })
    }
}

/// Why a pattern of keys cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AllowanceError {
    /// A part of the key is empty, or has characters that no key has.
    #[error("separate the parts of a key with dots, such as vm.dirty_ratio, vm.dirty_* or cpu.governor")]
    Parts,
    /// The directory below /proc/sys is missing, or has a `*`.
    #[error("give the directory below /proc/sys in full: vm.*, net.netfilter.nf_conntrack_*")]
    Directory,
    /// A `*` in a tree where a pattern would match too many settings.
    #[error("give the full name of a setting that begins with {begin}, without *")]
    InFull {
        /// How the keys of the tree begin.
        begin: &'static str,
    },
    /// Too much follows from the setting.
    #[error("{reason}: no agent lets clients change it")]
    Never {
        /// What.
        reason: &'static str,
    },
}

/// Why no pattern adds a key, if none does.
fn never(key: &str) -> Option<&'static str> {
    if NEVER.iter().any(|begin| key.starts_with(begin)) {
        return Some("the kernel starts programs through it");
    }
    // A parameter has a dot more.
    let loads = key.strip_prefix("module.").is_some_and(|name| !name.contains('.'));
    (loads || key.starts_with("pci.")).then_some("it loads code into the kernel or sets a device's registers")
}

impl KeyPattern {
    fn fits(&self, key: &str) -> bool {
        let (ours, theirs) = (self.0.split('.'), key.split('.'));
        ours.clone().count() == theirs.clone().count() && ours.zip(theirs).all(|(pattern, part)| fits(pattern, part))
    }
}

impl FromStr for KeyPattern {
    type Err = AllowanceError;

    /// A key, or a sysctl's name without `sysctl.` before it.
    fn from_str(text: &str) -> Result<Self, AllowanceError> {
        let mut forms = KINDS.iter().flat_map(|kind| kind.forms()).filter_map(|(form, _)| form.split('.').next());
        let first = text.split('.').next().unwrap_or_default();
        let key = if forms.any(|kind| kind == first) { text.to_owned() } else { format!("sysctl.{text}") };
        let good = |letter: char| letter.is_ascii_alphanumeric() || "_-*".contains(letter);
        let parts: Vec<&str> = key.split('.').collect();
        if parts.iter().any(|part| part.is_empty() || !part.chars().all(good)) {
            return Err(AllowanceError::Parts);
        }
        let tree = parts.get(1).copied().unwrap_or_default();
        if parts[0] == "sysctl" && (parts.len() < 3 || tree.contains('*')) {
            return Err(AllowanceError::Directory);
        }
        if let Some(begin) = IN_FULL.into_iter().find(|begin| key.starts_with(begin) && key.contains('*')) {
            return Err(AllowanceError::InFull { begin });
        }
        if let Some(reason) = never(&key) {
            return Err(AllowanceError::Never { reason });
        }
        Ok(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(patterns: &[&str]) -> Allowance {
        Allowance::Network(patterns.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn clients_may_change_network_settings_and_added_ones_only() {
        let plain = with(&[]);
        for key in ["sysctl.net.core.rmem_max", "sysctl.net.ipv6.conf.eth0/5.mtu", "dev.eth0.ring.rx", "qdisc.lo"] {
            assert!(plain.covers(key), "{key}");
        }
        let beyond = [
            "sysctl.vm.dirty_ratio",
            "sysctl.kernel.hostname",
            "sysctl.fs.file-max",
            "sysctl.net.netfilter.nf_conntrack_max",
            "sysctl.net.unix.max_dgram_qlen",
            "sysctl.net.core_pattern",
            "cpu.governor",
            "irq.24.affinity",
            "cc.cubic.beta",
            "module.e1000.debug",
        ];
        for key in beyond {
            let refusal = plain.check(key).unwrap_err().to_string();
            assert!(refusal.contains(&format!("--allow-tuning='{key}'`")), "{refusal}");
            assert!(with(&[key]).covers(key), "{key}");
            assert!(Allowance::All.covers(key));
        }
    }

    #[test]
    fn a_star_stays_within_its_part() {
        let more = with(&["vm.dirty_*", "cc.cubic.*", "irq.*.affinity"]);
        for key in ["sysctl.vm.dirty_ratio", "sysctl.vm.dirty_bytes", "cc.cubic.beta", "irq.7.affinity"] {
            assert!(more.covers(key), "{key}");
        }
        for key in ["sysctl.vm.swappiness", "sysctl.vm.dirty_x.y", "cc.reno.x", "sysctl.kernel.dirty_ratio"] {
            assert!(!more.covers(key), "{key}");
        }
    }

    #[test]
    fn patterns_that_match_too_much_or_nothing_are_refused() {
        for text in [
            "",
            "*",
            "*.*",
            "vm",
            "vm.",
            ".vm.x",
            "vm..x",
            "vm/dirty_ratio",
            "../x.y",
            "vm.a b",
            "sysctl.*.x",
            "kernel.*",
            "fs.file-*",
            "kernel.core_pattern",
            "fs.binfmt_misc.register",
            "kernel.usermodehelper.bset",
            "module.*",
            "module.e1000.*",
            "module.e1000",
            "pci.0.LATENCY_TIMER",
        ] {
            assert!(text.parse::<KeyPattern>().is_err(), "{text}");
        }
        let named = with(&["kernel.numa_balancing"]);
        assert!(named.covers("sysctl.kernel.numa_balancing") && !named.covers("sysctl.kernel.core_pattern"));
        assert!(named.check("sysctl.kernel.modprobe").unwrap_err().to_string().contains("starts programs"));
        for key in ["module.e1000", "pci.0000:03:00.0.CAP_EXP+8.w"] {
            assert!(plain_refusal(key).contains("loads code into the kernel"), "{key}");
        }
    }

    fn plain_refusal(key: &str) -> String {
        with(&[]).check(key).unwrap_err().to_string()
    }
}
