//! What rules for single destinations (a wad.conf) did: whether one matched, and whether the kernel granted its buffers.

use core::net::{IpAddr, SocketAddr};

use model::units::amount;
use model::{FlowTally, Outcome, SocketFacts, StackRule};
use text::{Text, say};

/// A sentence for each rule that had less effect than its file asks for.
#[must_use]
pub fn of_rules(outcome: &Outcome) -> Vec<Text> {
    let rules = &outcome.spec.near.cc_rules;
    let flows = || outcome.trials.iter().flat_map(|trial| &trial.near.flows);
    let matched: Vec<(&StackRule, &FlowTally)> =
        flows().filter_map(|flow| Some((applied(rules, &flow.socket)?, flow))).collect();
    let peer = flows().find_map(|flow| address(flow.socket.peer.as_deref()));
    if let (false, true, Some(peer)) = (rules.is_empty(), matched.is_empty(), peer) {
        let ip = peer.ip().to_canonical();
        return vec![say!("No section of the rules matches {ip}, so none applied: check their dst_addr and src_addr.")];
    }
    let mut sentences = Vec::new();
    for (rule, flow) in matched {
        let buffers = [
            ("send", rule.sndbuf_bytes, flow.socket.sndbuf, "net.core.wmem_max"),
            ("receive", rule.rcvbuf_bytes, flow.socket.rcvbuf, "net.core.rmem_max"),
        ];
        for (name, asked, has, limit) in buffers {
            // The kernel doubles what it grants (socket(7)).
            let cut = has.filter(|has| asked > 0 && *has < 2 * u64::from(asked));
            sentences.extend(cut.map(|has| {
                say!(
                    "Section [{}] asks for a {name} buffer of {}, but {limit} allows {}: `thru tune set sysctl.{limit}={asked}` raises \
                     it.",
                    rule.name,
                    amount(f64::from(asked)),
                    amount(has as f64 / 2.0),
                )
            }));
        }
    }
    sentences.sort_by_key(Text::plain);
    sentences.dedup();
    sentences
}

/// The rule for a connection: the first that matches, since the most specific ones come first.
fn applied<'a>(rules: &'a [StackRule], socket: &SocketFacts) -> Option<&'a StackRule> {
    let (local, peer) = (address(socket.local.as_deref())?, address(socket.peer.as_deref())?);
    let fits = |prefix: &str, port: u16, of: SocketAddr| contains(prefix, of.ip()) && (port == 0 || port == of.port());
    rules.iter().find(|rule| {
        fits(&rule.source, rule.source_port, local) && fits(&rule.destination, rule.destination_port, peer)
    })
}

fn address(text: Option<&str>) -> Option<SocketAddr> {
    text?.parse().ok()
}

/// Whether `prefix`, such as `10.0.0.0/8`, contains an address. `::/0` contains those of IPv4, too.
fn contains(prefix: &str, address: IpAddr) -> bool {
    let bits = |address: IpAddr| match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().to_bits(),
        IpAddr::V6(six) => six.to_bits(),
    };
    let Some((network, length)) = prefix.split_once('/') else { return false };
    let (Ok(network), Ok(length)) = (network.parse::<IpAddr>(), length.parse::<u32>()) else { return false };
    let length = if network.is_ipv4() { length + 96 } else { length };
    length == 0 || (bits(network) ^ bits(address)).checked_shr(128_u32.saturating_sub(length)).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EndTally, Pattern, Spec, Summary};

    fn outcome(destination: &str, sndbuf: u64) -> Outcome {
        let rule = StackRule {
            name: "lab".into(),
            source: "::/0".into(),
            source_port: 0,
            destination: destination.into(),
            destination_port: 0,
            sndbuf_bytes: 41_943_040,
            rcvbuf_bytes: 0,
            increase_permille: 1_000,
            decrease_permille: 500,
            max_ssthresh: 0,
            table: true,
            ignore_local_queue: false,
            divide: false,
        };
        let mut spec = Spec::new("tcp", Pattern::Stream);
        spec.near.cc_rules = vec![rule];
        let (local, peer) = (Some("192.0.2.1:4000".into()), Some("192.0.2.2:5000".into()));
        let socket = SocketFacts { local, peer, sndbuf: Some(sndbuf), ..SocketFacts::default() };
        let near = EndTally { flows: vec![FlowTally { socket, ..FlowTally::default() }], ..EndTally::default() };
        let trial = crate::outcome::testing::trial(&spec, near, EndTally::default());
        Outcome {
            cell: 0,
            spec: spec.into(),
            summary: Summary::default(),
            estimate: None,
            histogram: None,
            trials: vec![trial],
        }
    }

    #[test]
    fn rules_that_match_nothing_or_whose_buffer_is_cut_are_reported() {
        let said = |destination: &str, sndbuf| of_rules(&outcome(destination, sndbuf));
        assert_eq!(said("192.0.2.0/24", 83_886_080), []);
        let [cut] = &said("192.0.2.0/24", 8_388_608)[..] else { panic!("one sentence") };
        assert!(
            cut.plain().contains("Section [lab] asks for a send buffer of")
                && cut.plain().contains("net.core.wmem_max=41943040"),
            "{cut:?}"
        );
        let [none] = &said("198.51.100.0/24", 8_388_608)[..] else { panic!("one sentence") };
        assert!(none.plain().starts_with("No section of the rules matches 192.0.2.2"), "{none:?}");
        assert_eq!(said("::/0", 83_886_080), [], "any address");
    }
}
