//! A host's activity in each interval as lines of text, like vmstat and netstat together.

use model::units::{count, seconds};
use model::{CoreUse, CpuUse, Watched, WatchedInterface};
use text::Spelling;

use crate::labels;

/// A column: its head, its width, its text.
type Column = (&'static str, usize, fn(&Watched) -> Option<String>);

#[rustfmt::skip]
const COLUMNS: &[Column] = &[
    ("r", 3, |seen| seen.running.map(|n| n.to_string())),
    ("b", 3, |seen| seen.blocked.map(|n| n.to_string())),
    ("free MiB", 9, |seen| seen.memory_available_bytes.map(|bytes| (bytes >> 20).to_string())),
    ("us", 4, |seen| share(seen, |core| core.user_ns)),
    ("sy", 4, |seen| share(seen, |core| core.system_ns)),
    ("hi", 4, |seen| share(seen, |core| core.irq_ns)),
    ("si", 4, |seen| share(seen, |core| core.softirq_ns)),
    ("st", 4, |seen| share(seen, |core| core.steal_ns)),
    ("id", 4, |seen| share(seen, |core| core.idle_ns)),
    ("top", 4, |seen| busiest(seen.cpu.as_ref()?)),
    ("in/s", 8, |seen| seen.interrupts_per_s.map(rate)),
    ("cs/s", 8, |seen| seen.context_switches_per_s.map(rate)),
    ("sdrop/s", 8, |seen| seen.softnet_dropped_per_s.map(rate)),
    ("squz/s", 7, |seen| seen.softnet_squeezed_per_s.map(rate)),
    ("estab", 6, |seen| seen.tcp_established.map(|n| n.to_string())),
    ("segin/s", 8, |seen| seen.tcp_in_per_s.map(rate)),
    ("segout/s", 9, |seen| seen.tcp_out_per_s.map(rate)),
    ("rexmt/s", 8, |seen| seen.tcp_retransmits_per_s.map(rate)),
    ("udperr/s", 9, |seen| seen.udp_errors_per_s.map(rate)),
];

/// The text above the first line: the resolution of CPU shares, what could not be read, and the column heads.
#[must_use]
pub fn watch_head(first: &Watched) -> String {
    let mut text = match &first.cpu {
        Some(cpu) => format!(
            "CPU in % of all cores; top: the busiest core. CPU time has a resolution of {}: shares of {} are accurate to {:.1} %.\n",
            seconds(cpu.resolution_ns as f64),
            seconds(first.window_ns as f64),
            100.0 * cpu.resolution_ns as f64 / first.window_ns.max(1) as f64
        ),
        None => "CPU time cannot be read on that host.\n".to_owned(),
    };
    first.missing.iter().for_each(|gap| text.push_str(&format!("not read: {}\n", labels::plain(gap))));
    text + &watch_columns()
}

/// The column heads.
#[must_use]
pub fn watch_columns() -> String {
    line(|(head, ..)| (*head).to_owned())
}

/// One interval: a line for the host, and one for each interface that carried or dropped packets.
#[must_use]
pub fn watch_lines(seen: &Watched, spelling: Spelling) -> String {
    let mut text = line(|(.., value)| value(seen).unwrap_or_else(|| "-".to_owned()));
    for one in &seen.interfaces {
        if one.rx_packets_per_s + one.tx_packets_per_s + one.drops_per_s > 0.0 {
            text.push_str(&interface(one, spelling));
        }
    }
    text
}

fn line(cell: impl Fn(&Column) -> String) -> String {
    let cells: String = COLUMNS.iter().map(|column| format!("{:>width$}", cell(column), width = column.1)).collect();
    format!("{cells}\n")
}

fn interface(of: &WatchedInterface, spelling: Spelling) -> String {
    format!(
        "{:>15}: in {} {}/s, out {} {}/s, drops {}/s\n",
        labels::plain(&of.name),
        spelling.rates.rate(of.rx_bps),
        count(of.rx_packets_per_s),
        spelling.rates.rate(of.tx_bps),
        count(of.tx_packets_per_s),
        rate(of.drops_per_s)
    )
}

/// A rate without its unit, as an integer from 10 on.
fn rate(value: f64) -> String {
    if value == 0.0 || value >= 10.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn total_ns(core: &CoreUse) -> u64 {
    core.user_ns + core.system_ns + core.irq_ns + core.softirq_ns + core.steal_ns + core.idle_ns
}

/// Percentage of the cores' time; `None` if no tick has passed.
fn share(seen: &Watched, part: fn(&CoreUse) -> u64) -> Option<String> {
    let cores = &seen.cpu.as_ref()?.cores;
    let all: u64 = cores.iter().map(total_ns).sum();
    (all > 0).then(|| format!("{:.0}", 100.0 * cores.iter().map(part).sum::<u64>() as f64 / all as f64))
}

fn busiest(cpu: &CpuUse) -> Option<String> {
    let cores = cpu.cores.iter().filter(|core| total_ns(core) > 0);
    let busy = cores.map(|core| 1.0 - core.idle_ns as f64 / total_ns(core) as f64);
    busy.reduce(f64::max).map(|share| format!("{:.0}", 100.0 * share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> Watched {
        let core =
            |core, user_ns, softirq_ns, idle_ns| CoreUse { core, user_ns, softirq_ns, idle_ns, ..CoreUse::default() };
        Watched {
            window_ns: 1_000_000_000,
            cpu: Some(CpuUse {
                window_ns: 1_000_000_000,
                resolution_ns: 10_000_000,
                cores: vec![core(0, 300_000_000, 700_000_000, 0), core(1, 0, 0, 1_000_000_000)],
            }),
            running: Some(3),
            context_switches_per_s: Some(12_345.6),
            tcp_retransmits_per_s: Some(0.5),
            interfaces: vec![
                WatchedInterface { name: "idle0".into(), ..WatchedInterface::default() },
                WatchedInterface {
                    name: "eth0".into(),
                    rx_bps: 941e6,
                    rx_packets_per_s: 81e3,
                    ..WatchedInterface::default()
                },
            ],
            missing: vec!["snmp6: no such file".into()],
            ..Watched::default()
        }
    }

    #[test]
    fn values_are_below_their_heads_and_unknown_ones_are_dashes() {
        let (heads, text) = (watch_columns(), watch_lines(&seen(), Spelling::default()));
        let row = text.lines().next().unwrap();
        let cell = |head: &str| {
            let end = heads.find(&format!(" {head}")).unwrap() + head.len() + 1;
            row[..end].rsplit(' ').next().unwrap().to_owned()
        };
        assert_eq!(
            (cell("r"), cell("b"), cell("us"), cell("si"), cell("id")),
            ("3".into(), "-".into(), "15".into(), "35".into(), "50".into())
        );
        assert_eq!(
            (cell("top"), cell("cs/s"), cell("rexmt/s"), cell("udperr/s")),
            ("100".into(), "12346".into(), "0.5".into(), "-".into())
        );
        assert!(text.contains("eth0: in 941 Mbit/s 81.0 k/s") && !text.contains("idle0"), "{text}");
    }

    #[test]
    fn the_head_has_the_resolution_of_cpu_time_and_what_is_missing() {
        let head = watch_head(&seen());
        assert!(
            head.contains("resolution of 10.0 ms") && head.contains("accurate to 1.0 %") && head.contains("snmp6"),
            "{head}"
        );
        assert!(watch_head(&Watched::default()).starts_with("CPU time cannot be read"));
    }
}
