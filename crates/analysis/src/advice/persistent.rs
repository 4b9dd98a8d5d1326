//! Persistent settings: the command that measures with a combination, sysctl lines, commands, and changes of programs.

use model::{AdvicePersistent, ByteSize, Direction, EndOptions, Inventory, Pattern, Role, Setting, Spec, Strategy};

/// The command line that measures `spec` against `target`.
#[must_use]
pub(super) fn command(spec: &Spec, target: Option<&str>) -> String {
    let round_trips = spec.pattern == Pattern::Rr;
    let mut words = vec!["thru".to_owned(), if round_trips { "rr" } else { "stream" }.to_owned()];
    words.extend(target.map(str::to_owned));
    let mut flag = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.push(format!("--{name}"));
            words.push(value);
        }
    };
    let plain = Spec::new("tcp", Pattern::Stream);
    flag("transport", (spec.transport != plain.transport).then(|| spec.transport.to_string()));
    let block = if round_trips { 1 } else { plain.block };
    flag("block", (spec.block != block).then(|| size(spec.block)));
    flag("flows", (spec.flows != 1).then(|| spec.flows.to_string()));
    flag("threads", spec.threads.map(|threads| threads.to_string()));
    flag("processes", (spec.processes != 1).then(|| spec.processes.to_string()));
    flag("engine", (!spec.engine.is_plain()).then(|| spec.engine.to_string()));
    let (near, far) = (&spec.near, &spec.far);
    let each = |of: &dyn Fn(&EndOptions) -> Option<String>| ends(of(near), of(far));
    flag("sndbuf", each(&|end| end.sndbuf.map(size)));
    flag("rcvbuf", each(&|end| end.rcvbuf.map(size)));
    flag("cc", each(&|end| end.cc.clone()));
    flag("mss", each(&|end| end.mss.map(|bytes| bytes.to_string())));
    flag("busy-poll", each(&|end| end.busy_poll_us.map(|us| format!("{us}us"))));
    flag("pin", each(&|end| (!end.pin.is_empty()).then(|| cores(&end.pin))));
    flag(
        "data",
        far.data_at.filter(|at| at.port() > 0).map(|at| at.to_string()).or(far.data_addr.map(|ip| ip.to_string())),
    );
    flag("data-from", near.data_addr.map(|address| address.to_string()));
    let mut switch = |name: &str, wanted: bool| words.extend(wanted.then(|| format!("--{name}")));
    switch("reverse", spec.direction == Direction::Reverse);
    switch("both", spec.direction == Direction::Both);
    switch("spin", spec.strategy == Strategy::Spin);
    let on = |on: bool| if on { "on" } else { "off" }.to_owned();
    words.extend(each(&|end| end.nodelay.map(on)).map(|value| format!("--nodelay={value}")));
    let settings = [("near", &spec.settings.near), ("far", &spec.settings.far)];
    for (end, setting) in settings.into_iter().flat_map(|(end, list)| list.iter().map(move |setting| (end, setting))) {
        words.push("--set".into());
        words.push(quoted(&format!("{end}:{setting}")));
    }
    words.join(" ")
}

/// `V` for both ends, `LOCAL,REMOTE` where they differ.
fn ends(near: Option<String>, far: Option<String>) -> Option<String> {
    match (near, far) {
        (None, None) => None,
        (Some(near), Some(far)) if near == far => Some(near),
        (near, far) => Some(format!("{},{}", near.unwrap_or_default(), far.unwrap_or_default())),
    }
}

fn cores(list: &[u32]) -> String {
    list.iter().map(u32::to_string).collect::<Vec<_>>().join("+")
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).to_string().replace(' ', "")
}

fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

/// The persistent settings for the difference between `start` and `best` at the end of `role`.
pub(super) fn persistent(start: &Spec, best: &Spec, role: Role, host: &Inventory) -> AdvicePersistent {
    let mut persistent = AdvicePersistent::default();
    let (was, is) = (start.end(role), best.end(role));
    let settings = if role == Role::Active { &best.settings.near } else { &best.settings.far };
    settings.iter().for_each(|setting| persistent.setting(setting));
    if was.sndbuf != is.sndbuf {
        persistent.buffer(is.sndbuf, "SO_SNDBUF", "net.core.wmem_max", "net.ipv4.tcp_wmem", host);
    }
    if was.rcvbuf != is.rcvbuf {
        persistent.buffer(is.rcvbuf, "SO_RCVBUF", "net.core.rmem_max", "net.ipv4.tcp_rmem", host);
    }
    if let Some(cc) = is.cc.as_ref().filter(|_| was.cc != is.cc) {
        persistent.sysctl.push(format!("net.ipv4.tcp_congestion_control = {cc}"));
    }
    if let Some(us) = is.busy_poll_us.filter(|_| was.busy_poll_us != is.busy_poll_us) {
        persistent.sysctl.push(format!("net.core.busy_read = {us}"));
        persistent.program.push(format!("set SO_BUSY_POLL to {us}"));
    }
    if let Some(on) = is.nodelay.filter(|_| was.nodelay != is.nodelay) {
        persistent.program.push(format!("{} TCP_NODELAY", if on { "set" } else { "do not set" }));
    }
    if was.pin != is.pin {
        persistent.commands.push(format!("taskset -c {} PROGRAM", cores(&is.pin).replace('+', ",")));
    }
    persistent.program_changes(start, best);
    persistent
}

trait AddSettings {
    fn setting(&mut self, setting: &Setting);
    fn buffer(&mut self, bytes: Option<u64>, option: &str, limit: &str, sizing: &str, host: &Inventory);
    fn program_changes(&mut self, start: &Spec, best: &Spec);
}

impl AddSettings for AdvicePersistent {
    fn setting(&mut self, setting: &Setting) {
        let Setting { key, value } = setting;
        if let Some(name) = key.strip_prefix("sysctl.") {
            self.sysctl.push(format!("{name} = {value}"));
            return;
        }
        let command = match key.split_once('.') {
            Some(("dev", rest)) => device(rest, value),
            Some(("qdisc", name)) => Some(format!("tc qdisc replace dev {name} root {value}")),
            Some(("cpu", "governor")) => Some(format!("cpupower frequency-set -g {value}")),
            _ => None,
        };
        self.commands.push(command.unwrap_or_else(|| format!("thru tune set {}", quoted(&setting.to_string()))));
    }

    /// A requested buffer, or one that the kernel sizes: the change of the program, and the limits of the host. For programs that set
    /// nothing the kernel sizes the buffer up to the last part of `sizing`, which is in the kernel's doubled size (socket(7)).
    fn buffer(&mut self, bytes: Option<u64>, option: &str, limit: &str, sizing: &str, host: &Inventory) {
        let Some(bytes) = bytes else {
            self.program.push(format!("do not set {option}, so that the kernel sizes the buffer"));
            return;
        };
        self.program.push(format!("set {option} to {bytes} before connecting or listening"));
        if host.sysctl.get(limit).and_then(|value| value.parse::<u64>().ok()).is_some_and(|limit| limit < bytes) {
            self.sysctl.push(format!("{limit} = {bytes}"));
        }
        let parts: Vec<u64> =
            host.sysctl.get(sizing).iter().flat_map(|value| value.split_whitespace()).flat_map(str::parse).collect();
        if let [min, default, max] = parts[..]
            && max < 2 * bytes
        {
            self.sysctl.push(format!("{sizing} = {min} {default} {}", 2 * bytes));
        }
    }

    fn program_changes(&mut self, start: &Spec, best: &Spec) {
        if start.engine != best.engine {
            self.program.push(format!("use the system calls of engine {}", best.engine));
        }
        if start.block != best.block {
            self.program.push(format!("send blocks of {}", ByteSize(best.block)));
        }
        if start.flows != best.flows {
            self.program.push(format!("use {} parallel connections", best.flows));
        }
        if let Some(threads) = best.threads.filter(|_| start.threads != best.threads) {
            self.program.push(format!("serve the connections with {threads} threads"));
        }
        if start.strategy != best.strategy && best.strategy == Strategy::Spin {
            self.program.push("poll the sockets without sleeping".into());
        }
    }
}

/// The command for a property of an interface; `name.property`, where the name may hold dots.
fn device(rest: &str, value: &str) -> Option<String> {
    let nested = ["ring.", "coalesce.", "offload."].iter().find_map(|kind| {
        let (name, property) = rest.rsplit_once(&format!(".{kind}"))?;
        let option = match *kind {
            "ring." => "-G",
            "coalesce." => "-C",
            _ => "-K",
        };
        Some(format!("ethtool {option} {name} {property} {value}"))
    });
    let (name, property) = rest.rsplit_once('.')?;
    nested.or_else(|| Some(format!("ip link set dev {name} {property} {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best() -> (Spec, Spec) {
        let start = Spec::new("tcp", Pattern::Stream);
        let mut best = Spec { flows: 4, ..start.clone() };
        (best.near.sndbuf, best.far.rcvbuf) = (Some(1 << 20), Some(1 << 20));
        best.near.cc = Some("bbr".into());
        let set = |key: &str, value: &str| Setting { key: key.into(), value: value.into() };
        best.settings.far = vec![set("dev.eth0.100.mtu", "9000"), set("qdisc.eth0", "fq limit 100")];
        best.settings.near = vec![set("dev.eth0.coalesce.rx-usecs", "0"), set("sysctl.net.ipv4.tcp_ecn", "1")];
        (start, best)
    }

    #[test]
    fn the_command_measures_the_best_combination() {
        let (start, best) = best();
        assert_eq!(
            command(&best, Some("beta")),
            "thru stream beta --flows 4 --sndbuf 1MiB, --rcvbuf ,1MiB --cc bbr, --set near:dev.eth0.coalesce.rx-usecs=0 \
             --set near:sysctl.net.ipv4.tcp_ecn=1 --set far:dev.eth0.100.mtu=9000 --set 'far:qdisc.eth0=fq limit 100'"
        );
        assert_eq!(command(&start, None), "thru stream");
        let spin = Spec { strategy: Strategy::Spin, block: 1, ..Spec::new("tcp", Pattern::Rr) };
        assert_eq!(command(&spin, Some("beta")), "thru rr beta --spin");
    }

    #[test]
    fn each_setting_has_its_usual_command() {
        let (start, best) = best();
        let host = |pairs: &[(&str, &str)]| {
            let sysctl = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Inventory { sysctl, ..Inventory::default() }
        };
        let far = persistent(
            &start,
            &best,
            Role::Passive,
            &host(&[("net.core.rmem_max", "212992"), ("net.ipv4.tcp_rmem", "4096 131072 1000000")]),
        );
        assert_eq!(far.sysctl, ["net.core.rmem_max = 1048576", "net.ipv4.tcp_rmem = 4096 131072 2097152"]);
        assert_eq!(far.commands, ["ip link set dev eth0.100 mtu 9000", "tc qdisc replace dev eth0 root fq limit 100"]);
        let near = persistent(&start, &best, Role::Active, &host(&[("net.core.wmem_max", "4194304")]));
        assert_eq!(near.sysctl, ["net.ipv4.tcp_ecn = 1", "net.ipv4.tcp_congestion_control = bbr"]);
        assert_eq!(near.commands, ["ethtool -C eth0 rx-usecs 0"]);
        assert!(near.program.iter().any(|line| line.contains("SO_SNDBUF to 1048576")), "{near:?}");
    }

    #[test]
    fn a_buffer_that_the_kernel_sizes_better_is_not_to_be_set() {
        let mut start = Spec::new("tcp", Pattern::Stream);
        start.far.rcvbuf = Some(32 << 10);
        let kept = persistent(&start, &Spec::new("tcp", Pattern::Stream), Role::Passive, &Inventory::default());
        assert_eq!((kept.sysctl.len(), kept.program.len()), (0, 1));
        assert!(kept.program[0].contains("do not set SO_RCVBUF"));
    }
}
