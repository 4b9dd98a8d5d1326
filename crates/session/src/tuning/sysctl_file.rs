//! The settings in a file of sysctl.conf(5), or of commands that write them into /proc/sys.

use command::Failure;
use model::Setting;

use super::place::TuningPlace;

/// What a file of sysctls asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SysctlFile {
    /// What it sets, the last of each name.
    pub settings: Vec<Setting>,
    /// What is not set, with the reason, as `this host has no such setting: FILE, vm.bdflush = 1`.
    pub left: Vec<String>,
}

/// Whether a setting is of the network; an agent's host changes no others of a file.
fn of_network(key: &str) -> bool {
    key.starts_with("sysctl.net.") || key.starts_with("sysctl.net/")
}

impl SysctlFile {
    /// The file `name` with only those settings that `place` takes and has: an agent's host takes those of the network; kernels
    /// differ, and a network namespace lacks some.
    ///
    /// # Errors
    /// The host is not reached, or nothing remains.
    pub fn of_host(mut self, name: &str, place: &TuningPlace<'_>) -> Result<Self, Failure> {
        if let Some(host) = place.host {
            self.keep(of_network, &format!("not a net.* setting, so it is not sent to {host}: {name}"));
        }
        let keys: Vec<String> = self.settings.iter().map(|setting| setting.key.clone()).collect();
        let mut known = place.has(&keys, "tune apply")?.into_iter();
        let host = place.host.unwrap_or("this host");
        self.keep(|_| known.next().unwrap_or(true), &format!("{host} has no such setting: {name}"));
        if self.settings.is_empty() {
            let kind = if place.host.is_some() { "net.* settings" } else { "settings" };
            return Err(Failure::usage(format!("{host} has none of the {kind} in {name}")));
        }
        Ok(self)
    }

    /// Moves the settings that are not `wanted` to those that are left, for this reason.
    fn keep(&mut self, mut wanted: impl FnMut(&str) -> bool, reason: &str) {
        let left = &mut self.left;
        self.settings.retain(|Setting { key, value }| {
            let keep = wanted(key);
            if !keep {
                left.push(format!("{reason}, {} = {value}", key.trim_start_matches("sysctl.")));
            }
            keep
        });
    }
}

/// The settings in `text`, the content of the file `name`: lines of sysctl.conf, or `echo VALUE > /proc/sys/NAME`. A name may have
/// slashes for dots; a line that begins with `-` may fail for sysctl(8), but not here.
///
/// # Errors
/// A line is neither a setting nor a comment, or there is no setting.
pub fn of_sysctl_file(name: &str, text: &str) -> Result<SysctlFile, Failure> {
    let mut file = SysctlFile::default();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let wrong = || Failure::usage(format!("{name}:{number}: '{line}' is not a setting: write NAME = VALUE"));
        let (key, value) = echoed(line).or_else(|| line.trim_start_matches('-').split_once('=')).ok_or_else(wrong)?;
        let (key, value) = (key.trim(), value.split_whitespace().collect::<Vec<_>>().join(" "));
        if key.is_empty() || value.is_empty() || key.contains(char::is_whitespace) {
            return Err(wrong());
        }
        let setting: Setting =
            format!("sysctl.{key}={value}").parse().map_err(|why| Failure::usage(format!("{name}:{number}: {why}")))?;
        file.settings.retain(|earlier| earlier.key != setting.key);
        file.settings.push(setting);
    }
    if file.settings.is_empty() {
        return Err(Failure::usage(format!("{name} has no settings: write NAME = VALUE")));
    }
    Ok(file)
}

/// The name, with slashes, and the value of `echo "VALUE" > /proc/sys/NAME`.
fn echoed(line: &str) -> Option<(&str, &str)> {
    let (value, path) = line.strip_prefix("echo ")?.split_once('>')?;
    Some((path.trim().strip_prefix("/proc/sys/")?, value.trim().trim_matches(['"', '\''])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_set_once() {
        let text = "# tuned\n; too\n\nnet.ipv4.tcp_rmem = 4096\t131072  33554432\nvm.swappiness=10\n\
                    net/ipv4/conf/eth0.5/rp_filter = 0\n-net.core.rmem_max=1\nnet.core.rmem_max = 2\n\
                    echo \"4096 87380 128388607\" > /proc/sys/net/ipv4/tcp_wmem\n";
        let file = of_sysctl_file("a.conf", text).unwrap();
        let of = |setting: &Setting| (setting.key.clone(), setting.value.clone());
        let strings = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            file.settings.iter().map(of).collect::<Vec<_>>(),
            [
                strings("sysctl.net.ipv4.tcp_rmem", "4096 131072 33554432"),
                strings("sysctl.vm.swappiness", "10"),
                strings("sysctl.net/ipv4/conf/eth0.5/rp_filter", "0"),
                strings("sysctl.net.core.rmem_max", "2"),
                strings("sysctl.net/ipv4/tcp_wmem", "4096 87380 128388607"),
            ]
        );
    }

    #[test]
    fn what_is_not_set_is_listed() {
        let mut file = of_sysctl_file("a.conf", "vm.swappiness=10\nnet/core/rmem_max=1\nnetwork.x=1\n").unwrap();
        file.keep(of_network, "not sent: a.conf");
        assert_eq!(file.settings, ["sysctl.net/core/rmem_max=1".parse().unwrap()]);
        assert_eq!(file.left, ["not sent: a.conf, vm.swappiness = 10", "not sent: a.conf, network.x = 1"]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = |text| of_sysctl_file("a.conf", text).unwrap_err().to_string();
        assert!(error("net.core.rmem_max\n").contains("a.conf:1: 'net.core.rmem_max' is not a setting"));
        assert!(error("net.core.rmem_max =\n").contains("a.conf:1: "));
        assert!(error("# nothing\n").contains("has no settings"));
    }
}
