//! The root queueing discipline of an interface, in tc's syntax.

use std::io;

use super::{Control, Kind, Knob, good_name, whole};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;

/// `qdisc.NAME`.
pub(crate) struct Qdisc;

/// The value for the kernel's default of a device.
const DEFAULT: &str = "default";

/// The root of one interface.
struct Root {
    device: String,
}

impl Kind for Qdisc {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[(
            "qdisc.eth0",
            "the root queueing discipline in tc's syntax, such as `tbf rate 1gbit burst 64k latency 20ms`, or default",
        )]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        let device = key.strip_prefix("qdisc.").filter(|device| good_name(device))?;
        Knob::new(key, Root { device: device.into() })
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        backend.devices().unwrap_or_default().iter().map(|device| format!("qdisc.{device}")).collect()
    }
}

/// The arguments of a configured root, or `default`. tc prints `qdisc KIND HANDLE root refcnt N ARGUMENTS`; a root
/// that was not configured has the handle `0:`.
fn words(shown: &str) -> Option<String> {
    let line = shown.lines().find(|line| line.contains(" root "))?;
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next()?;
    if words.next()? == "0:" {
        return Some(DEFAULT.into());
    }
    let mut rest: Vec<&str> = words.filter(|word| *word != "root").collect();
    if let Some(at) = rest.iter().position(|word| *word == "refcnt") {
        rest.drain(at..(at + 2).min(rest.len()));
    }
    Some([&[kind], rest.as_slice()].concat().join(" "))
}

/// Whether tc can take a word only as a name or a number, and not as a path: `50ms`, `1:10`, and `32kb/8`, a size with
/// its cells.
fn is_word(word: &str) -> bool {
    let (word, cells) = word.split_once('/').unwrap_or((word, "1"));
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_.:%@+-".contains(letter);
    !word.is_empty() && word.chars().all(plain) && !word.contains("..") && whole(cells).is_ok()
}

impl Root {
    /// Whether the root has classes of its own, which its arguments do not show.
    fn holds_classes(&self, backend: &dyn Backend) -> io::Result<bool> {
        Ok(!backend.run("tc", &["class", "show", "dev", &self.device])?.trim().is_empty())
    }
}

impl Control for Root {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        let shown = backend.run("tc", &["qdisc", "show", "dev", &self.device])?;
        // An interface without a root (down, or one that never queues).
        Ok(words(&shown).unwrap_or_else(|| DEFAULT.into()))
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let device = self.device.as_str();
        let now = self.read(backend)?;
        if value == DEFAULT {
            return if now == DEFAULT {
                Ok(())
            } else {
                backend.run("tc", &["qdisc", "del", "dev", device, "root"]).map(|_| ())
            };
        }
        let classful = |words: &str| {
            ["htb", "hfsc", "prio", "drr", "ets", "qfq", "cbq"].iter().any(|kind| words.starts_with(kind))
        };
        if now != DEFAULT && classful(&now) && self.holds_classes(backend)? {
            return Err(io::Error::other(format!(
                "{device} has a root qdisc with classes ({now}), which thru cannot restore: remove it first"
            )));
        }
        let words: Vec<&str> = value.split_whitespace().collect();
        let command: &[&str] = &["qdisc", "replace", "dev", device, "root"];
        backend.run("tc", &[command, &words].concat()).map(|_| ())
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        let first = value.split_whitespace().next().unwrap_or_default();
        let kind = !first.is_empty() && first.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !kind || !value.split_whitespace().all(is_word) {
            return Err(SettingValueError::Form {
                expected: "what follows `tc qdisc replace dev NAME root`, or default",
            });
        }
        Ok(())
    }

    /// tc prints other arguments than it reads: the kind must be the requested one.
    fn took(&self, requested: &str, now: &str) -> bool {
        requested.split_whitespace().next() == now.split_whitespace().next()
    }

    fn cuts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_of_a_root_qdisc_can_be_set_again() {
        // iproute2 6.1 on Linux 6.18.
        let tbf = "qdisc tbf 8006: root refcnt 3 rate 100Mbit burst 32Kb lat 50ms \n";
        assert_eq!(words(tbf).as_deref(), Some("tbf rate 100Mbit burst 32Kb lat 50ms"));
        assert_eq!(words("qdisc noqueue 0: root refcnt 2 \n").as_deref(), Some("default"));
        let mq = "qdisc mq 0: root \nqdisc fq_codel 0: parent :2 limit 10240p flows 1024\n";
        assert_eq!(words(mq).as_deref(), Some("default"));
        assert_eq!(words("qdisc ingress ffff: parent ffff:fff1 ---------------- \n"), None);
    }
}
