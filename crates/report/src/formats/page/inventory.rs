//! Both hosts side by side, with what differs between them.

use std::collections::BTreeSet;

use maud::{Markup, html};
use model::{ByteSize, Interface, Inventory, units};

/// One fact of both hosts.
struct Fact {
    name: String,
    near: String,
    far: String,
    /// A difference that is no surprise, such as the host's name, is not marked.
    expected: bool,
}

impl Fact {
    fn differs(&self) -> bool {
        !self.expected && self.near != self.far
    }
}

pub(super) fn side_by_side(near: &Inventory, far: &Inventory) -> Markup {
    let facts: Vec<Fact> = facts(near, far).into_iter().filter(|f| f.near != "-" || f.far != "-").collect();
    let differences = facts.iter().filter(|fact| fact.differs()).count();
    html! {
        @if facts.is_empty() {
            p.muted { "No inventory was recorded." }
        } @else {
            p.muted {
                @match differences {
                    0 => "The two ends are alike in all that was recorded.",
                    1 => "1 difference is marked ≠.",
                    n => { (n) " differences are marked ≠." }
                }
            }
            div.wide { table.hosts {
                thead { tr { th.words { "" } th.words { "near" } th.words { "far" } } }
                tbody {
                    @for fact in &facts {
                        tr.differs[fact.differs()] {
                            th scope="row" { (fact.name) @if fact.differs() { span.unequal title="the two ends differ" { " ≠" } } }
                            td { (fact.near) }
                            td { (fact.far) }
                        }
                    }
                }
            } }
        }
    }
}

fn facts(near: &Inventory, far: &Inventory) -> Vec<Fact> {
    let mut all = Vec::new();
    let mut add = |name: &str, expected: bool, value: &dyn Fn(&Inventory) -> Option<String>| {
        let text = |host| value(host).filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
        all.push(Fact { name: name.to_owned(), near: text(near), far: text(far), expected });
    };
    let size = |bytes: u64| ByteSize(bytes).to_string();
    add("host name", true, &|h| h.hostname.clone());
    add("kernel", false, &|h| h.kernel.clone());
    add("kernel build", false, &|h| h.kernel_version.clone());
    add("architecture", false, &|h| h.arch.clone());
    add("distribution", false, &|h| h.os.clone());
    add("processor", false, &|h| h.cpu_model.clone());
    add("processors online", false, &|h| h.cores.map(|n| n.to_string()));
    add("NUMA nodes", false, &|h| h.numa_nodes.map(|n| n.to_string()));
    add("memory", false, &|h| h.memory_bytes.map(size));
    add("memory available", true, &|h| h.memory_available_bytes.map(size));
    add("load average", true, &|h| h.load_average.map(|load| load.map(|value| format!("{value:.2}")).join(", ")));
    add("frequency governor", false, &|h| h.governor.clone());
    add("clock source", false, &|h| h.clock_source.clone());
    add("virtualisation", false, &|h| h.virtualisation.clone());
    add("boot", true, &|h| h.boot_id.clone());
    add("congestion controls", false, &|h| Some(h.congestion_controls.join(", ")));
    let keys: BTreeSet<&String> = near.sysctl.keys().chain(far.sysctl.keys()).collect();
    for key in keys {
        add(key, false, &|h| h.sysctl.get(key).map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    // Interfaces of two hosts have no pairing: they are listed, and left to the reader.
    add("interfaces", true, &|h| Some(h.interfaces.iter().map(interface).collect::<Vec<_>>().join("\n")));
    add("could not be read", true, &|h| Some(h.missing.join("\n")));
    all
}

fn interface(of: &Interface) -> String {
    let parts = [
        of.state.clone(),
        of.mtu.map(|mtu| format!("MTU {mtu}")),
        of.speed_mbps.map(|mbps| units::bits_per_second(f64::from(mbps) * 1e6)),
        of.duplex.clone().map(|duplex| format!("{duplex} duplex")),
        of.driver.clone(),
        of.txqueuelen.map(|length| format!("txqueuelen {length}")),
        of.rx_queues.zip(of.tx_queues).map(|(rx, tx)| format!("{rx} rx and {tx} tx queues")),
        of.numa_node.map(|node| format!("NUMA node {node}")),
        of.pci_slot.clone(),
        Some(of.addresses.join(" ")).filter(|list| !list.is_empty()),
    ];
    format!("{}: {}", of.name, parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}
