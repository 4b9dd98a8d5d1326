//! What a spec's transport is: one of this program's own, or one whose facts the spec carries.

use super::Spec;
use crate::{NamedTransport, Pattern, TransportFacts, TransportName};

impl Spec {
    /// A spec over this transport, with its facts if another program added it.
    #[must_use]
    pub fn over(transport: &NamedTransport, pattern: Pattern) -> Self {
        let known = TransportName::from(transport.name).named().is_some();
        let facts = if known { None } else { Some(transport.facts) };
        Self { transport_facts: facts, ..Self::new(transport.name, pattern) }
    }

    /// The facts of its transport; `None` for an unknown one, such as that of an imported result.
    #[must_use]
    pub fn transport_facts(&self) -> Option<TransportFacts> {
        self.transport.named().map(|known| known.facts).or(self.transport_facts)
    }

    /// Whether its connections are the kernel's TCP sockets.
    #[must_use]
    pub fn is_over_tcp(&self) -> bool {
        self.transport_facts().is_some_and(|facts| facts.is_over_tcp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pattern;
    use crate::transport::TCP;

    #[test]
    fn facts_belong_to_the_transport_of_a_spec() {
        let over_tcp = |name: &str| Spec::new(name, Pattern::Stream).is_over_tcp();
        assert!(over_tcp("tcp") && over_tcp("mptcp") && over_tcp("tls"));
        assert!(!over_tcp("quic") && !over_tcp("unix") && !over_tcp("icmp"));
        for own in TransportName::OWN {
            let facts = own.named().unwrap().facts;
            assert!(!(facts.one_host && facts.ip.is_some()), "{own}");
            assert_eq!(TransportName::from(own.as_str()), own, "names are unique");
        }
    }

    #[test]
    fn a_spec_carries_the_facts_of_a_transport_that_its_readers_may_not_know() {
        let other = NamedTransport { name: "other", facts: TransportFacts { multipath: true, ..TCP.facts } };
        let text = serde_json::to_string(&Spec::over(&other, Pattern::Stream)).unwrap();
        let read: Spec = serde_json::from_str(&text).unwrap();
        assert_eq!((read.transport_facts(), read.is_over_tcp()), (Some(other.facts), true));
        assert_eq!(
            Spec::over(&TCP, Pattern::Stream),
            Spec::new("tcp", Pattern::Stream),
            "every reader has the facts of its own transports"
        );
        // What a document says of a known transport does not count.
        let false_facts = Spec { transport_facts: Some(TransportFacts::LOCAL), ..Spec::new("tcp", Pattern::Stream) };
        assert_eq!(false_facts.transport_facts(), Some(TCP.facts));
    }
}
