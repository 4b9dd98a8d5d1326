//! The counts of a trial at one moment, and what happened between two of them.

use model::{DatagramReading, Direction, EndTally, FlowReading, FlowTally, Reading, Spec, TcpReading, Trial};

/// One end's counts at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct EndCounts {
    at_ns: u64,
    first_arrival_ns: Option<u64>,
    flows: Vec<FlowReading>,
}

/// Both ends' counts at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    near: EndCounts,
    far: EndCounts,
}

/// What happened between two moments, of all connections of a direction or of one of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Change {
    /// The time over which the bytes arrived, s.
    pub(super) seconds: f64,
    /// Payload bits; of trials without readings as their values have them.
    pub(super) bits: f64,
    pub(super) transactions: f64,
    pub(super) retransmits: Option<u64>,
    /// Smoothed RTT at the end; of several connections the mean.
    pub(super) rtt_ns: Option<f64>,
    /// Congestion windows at the end, added up.
    pub(super) cwnd_bytes: Option<u64>,
    /// Numbered datagrams, and those of them that arrived.
    pub(super) datagrams: Option<[u64; 2]>,
    pub(super) jitter_ns: Option<f64>,
}

impl EndCounts {
    /// Adds a reading; with several processes there is one of each.
    pub(super) fn add(&mut self, reading: &Reading) {
        self.at_ns = self.at_ns.max(reading.at_ns);
        self.first_arrival_ns = [self.first_arrival_ns, reading.first_arrival_ns].into_iter().flatten().min();
        self.flows.extend(&reading.flows);
    }

    fn connections(&self) -> u32 {
        self.flows.iter().map(|flow| flow.connections).sum()
    }

    /// The totals of an end; `since_ns` is when its first byte arrived, by its own readings.
    fn of_tally(tally: &EndTally, other: &EndTally, since_ns: Option<u64>) -> Self {
        let at_ns = since_ns.unwrap_or(0) + tally.receiving_ns.max(tally.sending_ns);
        let flows = tally.flows.iter().map(|flow| total(flow, other)).collect();
        Self { at_ns, first_arrival_ns: since_ns, flows }
    }
}

/// The datagrams of a connection that arrived at one end, at the end of the trial: what the `other` end sent on it and did not
/// arrive is lost.
fn arrived(flow: &FlowTally, other: &EndTally) -> Option<DatagramReading> {
    let own = flow.datagrams?;
    let sender = other.flows.iter().find(|sender| (sender.flow, sender.direction) == (flow.flow, flow.direction));
    let sent = sender.and_then(|sender| sender.datagrams).map_or(0, |datagrams| datagrams.sent);
    let numbers = sent.max(own.received);
    (numbers > 0).then_some(DatagramReading { numbers, received: own.received, jitter_ns: own.jitter_ns })
}

/// A connection at the end of its trial.
fn total(flow: &FlowTally, other: &EndTally) -> FlowReading {
    let socket = &flow.socket;
    let tcp = socket.retransmits.map(|retransmits| TcpReading {
        retransmits,
        rtt_ns: socket.srtt_ns.unwrap_or(0),
        cwnd_bytes: u64::from(socket.cwnd.unwrap_or(0)) * u64::from(socket.mss.unwrap_or(0)),
    });
    FlowReading {
        flow: flow.flow,
        connections: 1,
        direction: flow.direction,
        bytes_sent: flow.bytes_sent,
        bytes_received: flow.bytes_received,
        transactions: flow.transactions,
        tcp,
        datagrams: arrived(flow, other),
    }
}

impl Counts {
    /// The end that a reading is of.
    pub(super) fn end(&mut self, name: &str) -> &mut EndCounts {
        if name == "near" { &mut self.near } else { &mut self.far }
    }

    /// Whether all connections of both ends were read. Another program reports nothing while it runs.
    pub(super) fn is_complete(&self, spec: &Spec) -> bool {
        let both = spec.direction == Direction::Both && spec.is_stream();
        let all = spec.flows * if both { 2 } else { 1 };
        self.near.connections() >= all && (spec.speak.is_some() || self.far.connections() >= all)
    }

    /// The totals of a trial whose readings were like `before`.
    pub(super) fn at_end(trial: &Trial, before: Option<&Self>) -> Self {
        let since = |end: fn(&Self) -> &EndCounts| before.and_then(|counts| end(counts).first_arrival_ns);
        Self {
            near: EndCounts::of_tally(&trial.near, &trial.far, since(|counts| &counts.near)),
            far: EndCounts::of_tally(&trial.far, &trial.near, since(|counts| &counts.far)),
        }
    }

    /// What happened since `before` in one direction, of `flow` or of all. Without a receiver's counts those of the sender are all
    /// there is.
    pub(super) fn since(&self, before: Option<&Self>, direction: Direction, flow: Option<u32>, stream: bool) -> Change {
        // An entry that sums up several connections is none of them.
        let is_flow = |one: &FlowReading| flow.is_none_or(|flow| one.connections == 1 && one.flow == flow);
        let wanted = |one: &FlowReading| !stream || (one.direction == direction && is_flow(one));
        let nothing = Self::default();
        let (sender, receiver) = self.ends(direction);
        let (sender_before, receiver_before) = before.unwrap_or(&nothing).ends(direction);
        let [sent, sent_before, received, received_before] = [sender, sender_before, receiver, receiver_before]
            .map(|end| Sums::of(end.flows.iter().filter(|one| wanted(one))));
        let is_reported = !receiver.flows.is_empty();
        // Round trips are timed where they begin.
        let is_timed = is_reported && stream;
        let (end, end_before) = if is_timed { (receiver, receiver_before) } else { (sender, sender_before) };
        let bytes = if is_reported {
            received.received.saturating_sub(received_before.received)
        } else {
            sent.sent.saturating_sub(sent_before.sent)
        };
        let began_ns = if before.is_some() { end_before.at_ns } else { end.first_arrival_ns.unwrap_or(0) };
        Change {
            seconds: end.at_ns.saturating_sub(began_ns) as f64 / 1e9,
            bits: bytes as f64 * 8.0,
            transactions: sent.transactions.saturating_sub(sent_before.transactions) as f64,
            retransmits: (sent.states > 0).then(|| sent.retransmits.saturating_sub(sent_before.retransmits)),
            rtt_ns: (sent.states > 0 && sent.rtt_ns > 0).then(|| sent.rtt_ns as f64 / f64::from(sent.states)),
            cwnd_bytes: Some(sent.cwnd_bytes).filter(|bytes| *bytes > 0),
            datagrams: received.datagrams.map(|now| {
                let before = received_before.datagrams.unwrap_or_default();
                [0, 1].map(|count| now[count].saturating_sub(before[count]))
            }),
            jitter_ns: (received.jitters > 0).then(|| received.jitter_ns as f64 / f64::from(received.jitters)),
        }
    }

    /// The sender and the receiver of a direction.
    fn ends(&self, direction: Direction) -> (&EndCounts, &EndCounts) {
        if direction == Direction::Reverse { (&self.far, &self.near) } else { (&self.near, &self.far) }
    }

    /// The numbers of the flows that were counted one by one since `before`; none if they were too many for that.
    pub(super) fn flows(&self, before: Option<&Self>) -> Vec<u32> {
        let counted = before.unwrap_or(self).near.flows.iter().filter(|flow| flow.connections == 1);
        let mut flows: Vec<u32> = counted.map(|flow| flow.flow).collect();
        flows.sort_unstable();
        flows.dedup();
        flows
    }

    /// The time of the moment, since the ends started.
    pub(super) fn at_ns(&self) -> u64 {
        self.near.at_ns.max(self.far.at_ns)
    }
}

/// The counts of several connections of an end.
#[derive(Default)]
struct Sums {
    sent: u64,
    received: u64,
    transactions: u64,
    /// Connections whose TCP state is known, and the sums of it.
    states: u32,
    retransmits: u64,
    rtt_ns: u64,
    cwnd_bytes: u64,
    datagrams: Option<[u64; 2]>,
    /// Connections whose jitter is known, and its sum.
    jitters: u32,
    jitter_ns: u64,
}

impl Sums {
    fn of<'a>(flows: impl Iterator<Item = &'a FlowReading>) -> Self {
        let mut sums = Self::default();
        for flow in flows {
            sums.sent += flow.bytes_sent;
            sums.received += flow.bytes_received;
            sums.transactions += flow.transactions;
            if let Some(tcp) = flow.tcp {
                sums.states += 1;
                sums.retransmits += tcp.retransmits;
                sums.rtt_ns += tcp.rtt_ns;
                sums.cwnd_bytes += tcp.cwnd_bytes;
            }
            if let Some(one) = flow.datagrams {
                let [numbers, received] = sums.datagrams.unwrap_or_default();
                sums.datagrams = Some([numbers + one.numbers, received + one.received]);
                if let Some(jitter_ns) = one.jitter_ns {
                    sums.jitters += flow.connections;
                    sums.jitter_ns =
                        sums.jitter_ns.saturating_add(jitter_ns.saturating_mul(u64::from(flow.connections)));
                }
            }
        }
        sums
    }
}

impl Change {
    /// This one and a later one of another trial.
    pub(super) fn and(self, later: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        Self {
            seconds: self.seconds + later.seconds,
            bits: self.bits + later.bits,
            transactions: self.transactions + later.transactions,
            retransmits: sum(self.retransmits, later.retransmits),
            datagrams: [self.datagrams, later.datagrams]
                .into_iter()
                .flatten()
                .reduce(|a, b| [a[0] + b[0], a[1] + b[1]]),
            ..later.clone()
        }
    }

    /// Payload bytes.
    pub(super) fn bytes(&self) -> u64 {
        (self.bits / 8.0).round() as u64
    }

    /// The goodput, bit/s; `None` if no time has passed.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bits / self.seconds)
    }
}
