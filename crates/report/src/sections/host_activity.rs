//! What the hosts' counters did during a run: sums over the passes, and the notable ones as sentences.

use std::collections::{BTreeMap, BTreeSet};

use model::source::counter;
use model::{CoreUse, EndPass, Inventory, Pass, Run, Verdict};
use text::units::grouped;
use text::{Text, say};

use crate::sections::host_facts;

/// Shares of a core's time from which soft interrupts and steal time are reported.
const SOFTIRQ: f64 = 0.1;
const STEAL: f64 = 0.01;
/// The shortest window, in accounting ticks, over which a share of CPU time is meaningful.
const MIN_TICKS: u64 = 20;
/// The host of one end, over all passes of a run.
pub(crate) struct Host<'a> {
    /// `near`, `far`, or `both ends`.
    pub(crate) name: &'static str,
    host: &'a Inventory,
    passes: Vec<&'a EndPass>,
}

/// Whether both ends read the same counters: they are on one host and, by their addresses, in one network namespace.
fn share_counters(run: &Run) -> bool {
    let addresses = |host: &Inventory| -> Vec<Vec<String>> {
        host.interfaces.iter().map(|interface| interface.addresses.clone()).collect()
    };
    !run.outcomes.is_empty()
        && run.outcomes.iter().all(|outcome| outcome.summary.verdicts.contains(&Verdict::SameHost))
        && addresses(&run.header.near) == addresses(&run.header.far)
}

/// The ends that were observed; a single entry for both if they read the same counters.
pub(crate) fn hosts(run: &Run) -> Vec<Host<'_>> {
    let of = |name, host, end: fn(&Pass) -> &EndPass| {
        let passes: Vec<&EndPass> = run.passes.iter().map(end).filter(|pass| pass.observed.is_some()).collect();
        (!passes.is_empty()).then_some(Host { name, host, passes })
    };
    let shared = share_counters(run);
    let near = of(if shared { "both ends" } else { "near" }, &run.header.near, |pass| &pass.near);
    let far = of("far", &run.header.far, |pass| &pass.far).filter(|_| !shared || near.is_none());
    near.into_iter().chain(far).collect()
}

/// One line for each end: what was notable, or that nothing was lost.
pub(crate) fn notable(run: &Run) -> Vec<Text> {
    hosts(run).iter().map(|host| say!("{}: {}", host.name, host.notes().join("; "))).collect()
}

impl Host<'_> {
    /// The increase of a counter over all passes; `None` if it is unknown in one of them.
    pub(crate) fn grew(&self, counter: &str) -> Option<i64> {
        self.passes.iter().map(|pass| pass.observed.as_ref()?.grew(counter)).sum()
    }

    /// The names of all counters that changed.
    pub(crate) fn changed(&self) -> BTreeSet<&str> {
        let observed = self.passes.iter().filter_map(|pass| pass.observed.as_ref());
        observed.flat_map(|seen| seen.counters.keys().map(String::as_str)).collect()
    }

    /// What could not be read in at least one pass, each once.
    pub(crate) fn missing(&self) -> BTreeSet<&str> {
        let observed = self.passes.iter().filter_map(|pass| pass.observed.as_ref());
        observed.flat_map(|seen| seen.missing.iter().map(String::as_str)).collect()
    }

    /// CPU time of the observers as a share of one core's time, and the length of the observation, ns.
    pub(crate) fn cost(&self) -> Option<(f64, u64)> {
        let sum = |of: fn(&model::Observed) -> u64| -> u64 {
            self.passes.iter().filter_map(|pass| pass.observed.as_ref()).map(of).sum()
        };
        let window_ns = sum(|seen| seen.window_ns);
        (window_ns > 0).then(|| (sum(|seen| seen.cost_ns) as f64 / window_ns as f64, window_ns))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.processors();
        let retransmitted = self.grew(counter::TCP_RETRANSMITTED);
        let sent = self.grew(counter::TCP_OUT_SEGMENTS);
        if let (Some(count), Some(sent)) = (retransmitted.filter(|count| *count > 0), sent) {
            let share = count as f64 / (sent + count).max(1) as f64;
            let share = if share < 1e-5 { "less than 0.001 %".to_owned() } else { model::Ratio(share).to_string() };
            notes.push(format!(
                "{} of {} TCP segments were retransmitted ({share})",
                grouped(count.unsigned_abs()),
                grouped((sent + count).unsigned_abs())
            ));
        }
        let losses = self.losses();
        if losses.is_empty() {
            let quiet = retransmitted == Some(0) && self.grew(counter::SOFTNET_DROPPED) == Some(0);
            notes.extend(quiet.then(|| "no drops, no retransmissions".to_owned()));
        } else {
            let list: Vec<String> =
                losses.iter().map(|(name, count)| format!("{name} {}", grouped(count.unsigned_abs()))).collect();
            notes.push(format!("losses and full buffers: {}", list.join(", ")));
        }
        if notes.is_empty() {
            notes.push("nothing notable in the counters that could be read".to_owned());
        }
        notes
    }

    /// The counters of losses that increased.
    fn losses(&self) -> Vec<(&str, i64)> {
        let observed = || self.passes.iter().filter_map(|pass| pass.observed.as_ref());
        let lost = |name: &&str| observed().any(|seen| seen.is_loss(name));
        let sum = |name: &&str| -> i64 { observed().filter_map(|seen| seen.counters.get(*name)).sum() };
        self.changed().into_iter().filter(lost).map(|name| (name, sum(&name))).collect()
    }

    /// The busiest core, and steal time.
    fn processors(&self) -> Vec<String> {
        let mut cores: BTreeMap<u32, (u64, CoreUse)> = BTreeMap::new();
        let mut resolution_ns = 0;
        for cpu in self.passes.iter().filter_map(|pass| pass.cpu.as_ref()) {
            resolution_ns = cpu.resolution_ns;
            for core in &cpu.cores {
                let (window, sum) = cores.entry(core.core).or_default();
                *window += cpu.window_ns;
                sum.user_ns += core.user_ns;
                sum.system_ns += core.system_ns;
                sum.irq_ns += core.irq_ns;
                sum.softirq_ns += core.softirq_ns;
                sum.steal_ns += core.steal_ns;
            }
        }
        cores.retain(|_, (window, _)| *window >= MIN_TICKS * resolution_ns && *window > 0);
        let share = |ns: u64, window: u64| (ns as f64 / window as f64).min(1.0);
        let busy = |(window, core): &(u64, CoreUse)| {
            share(core.user_ns + core.system_ns + core.irq_ns + core.softirq_ns, *window)
        };
        let mut notes = Vec::new();
        if let Some((number, top)) = cores.iter().max_by(|a, b| busy(a.1).total_cmp(&busy(b.1))) {
            let softirq = share(top.1.softirq_ns, top.0);
            let of = if softirq >= SOFTIRQ {
                format!(", {:.0} % in soft interrupts", 100.0 * softirq)
            } else {
                String::new()
            };
            let resolution = host_facts::cpu_time_resolution(resolution_ns, self.host);
            notes.push(format!("core {number} was busiest, {:.0} %{of} ({resolution})", 100.0 * busy(top)));
        }
        let (window, stolen) =
            cores.values().fold((0, 0), |sum, (window, core)| (sum.0 + window, sum.1 + core.steal_ns));
        let stolen = share(stolen, window.max(1));
        if stolen >= STEAL {
            notes.push(format!("the hypervisor took {:.0} % of the cores' time (steal)", 100.0 * stolen));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn losses_are_listed_with_their_counters() {
        let lines = notable(&sample::observed());
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0]
                .plain()
                .starts_with("near: core 1 was busiest, 95 %, 45 % in soft interrupts (resolution 10.0 ms)"),
            "{lines:?}"
        );
        // Two passes with 20 of 1,020 each.
        assert!(lines[0].plain().contains("; 40 of 2,040 TCP segments were retransmitted (1.96 %)"), "{lines:?}");
        assert!(lines[0].plain().ends_with("; losses and full buffers: qdisc.eth0.drops 12"), "{lines:?}");
        assert!(lines[1].plain().ends_with("no drops, no retransmissions"), "{lines:?}");
        assert_eq!(notable(&sample::stream()), []);
    }

    #[test]
    fn a_counter_unknown_in_one_pass_is_unknown() {
        let mut run = sample::observed();
        let far = &hosts(&run)[1];
        assert_eq!((far.grew("softnet.dropped"), far.grew("snmp.Tcp.RetransSegs")), (Some(0), Some(0)));
        run.passes[1].far.observed.as_mut().unwrap().sources.retain(|source| source != "softnet");
        let lines = notable(&run);
        assert_eq!(hosts(&run)[1].grew("softnet.dropped"), None);
        assert!(!lines[1].plain().contains("no drops"), "{lines:?}");
    }

    #[test]
    fn ends_that_share_a_host_have_one_line() {
        let mut run = sample::observed();
        run.outcomes.iter_mut().for_each(|outcome| outcome.summary.verdicts.push(Verdict::SameHost));
        run.header.near.interfaces =
            vec![model::Interface { addresses: vec!["10.0.0.1/24".into()], ..Default::default() }];
        run.header.far.interfaces =
            vec![model::Interface { addresses: vec!["10.0.0.2/24".into()], ..Default::default() }];
        assert_eq!(notable(&run).len(), 2, "two network namespaces of one host");
        run.header.far.interfaces.clone_from(&run.header.near.interfaces);
        let lines = notable(&run);
        assert!(lines.len() == 1 && lines[0].plain().starts_with("both ends: "), "{lines:?}");
    }
}
