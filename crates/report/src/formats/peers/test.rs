//! An outcome as a single test, for programs that measure once.

use std::collections::BTreeMap;

use model::{DatagramTally, Direction, EndTally, FlowTally, Outcome, Pass, Run, SocketFacts, Spec, Trial, Verdict};

use crate::NoForm;

/// Bytes and the time that they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) ns: u64,
}

/// The datagrams of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Datagrams {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) reordered: u64,
    /// The sum of the jitter that receivers measured, ns, and the number of trials with jitter.
    jitters: (u64, u64),
}

impl Datagrams {
    /// Adds the counts of a sender and its receiver in one trial.
    fn add(&mut self, own: DatagramTally, other: DatagramTally) {
        self.sent += own.sent;
        // Another program's receiver derives losses from sequence numbers.
        self.lost += other.missed.unwrap_or_else(|| own.sent.saturating_sub(other.received));
        self.reordered += other.reordered;
        if let Some(jitter) = other.jitter_ns {
            self.jitters = (self.jitters.0.saturating_add(jitter), self.jitters.1 + 1);
        }
    }

    /// Mean jitter of the trials that have one, ms; `None` if none was measured.
    pub(super) fn jitter_ms(self) -> Option<f64> {
        let (sum, count) = self.jitters;
        (count > 0).then(|| sum as f64 / count as f64 / 1e6)
    }

    /// Datagrams lost in percent of those sent.
    pub(super) fn lost_percent(self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost as f64 * 100.0 / self.sent as f64 }
    }
}

/// One connection's share of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Share {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Segments retransmitted; `None` if the kernel does not report them.
    pub(super) retransmits: Option<u64>,
    /// Its datagrams; `None` if its ends count only those of all connections.
    pub(super) datagrams: Option<Datagrams>,
    /// TCP at the sender over the test.
    pub(super) tcp: TcpRange,
}

/// The range of TCP's readings at a sender; empty where there is no series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct TcpRange {
    /// Largest congestion window, bytes.
    pub(super) cwnd_bytes: u64,
    /// Largest window of the other end, bytes; `None` if the kernel does not report it.
    pub(super) window_bytes: Option<u32>,
    /// Times at which TCP saw reordering, of the trial with most; `None` if the kernel does not report it.
    pub(super) reordering_seen: Option<u64>,
    /// Shortest and longest smoothed RTT, ns.
    pub(super) rtt_ns: (u64, u64),
    /// The sum of the smoothed RTTs, ns, and the number of readings.
    sums: (u64, u64),
}

impl TcpRange {
    /// Adds a connection's readings after the warm-up. At its start there is none of the test yet.
    fn add(&mut self, spec: &Spec, flow: &FlowTally) {
        for sample in flow.tcp.iter().filter(|sample| sample.at_ns > spec.warmup_ns && sample.rtt_ns > 0) {
            self.join(Self {
                cwnd_bytes: u64::from(sample.cwnd) * u64::from(sample.mss),
                window_bytes: sample.peer_window_bytes,
                reordering_seen: sample.reordering_seen,
                rtt_ns: (sample.rtt_ns, sample.rtt_ns),
                sums: (sample.rtt_ns, 1),
            });
        }
    }

    /// The range of both.
    pub(super) fn join(&mut self, other: Self) {
        self.cwnd_bytes = self.cwnd_bytes.max(other.cwnd_bytes);
        self.window_bytes = self.window_bytes.max(other.window_bytes);
        self.reordering_seen = self.reordering_seen.max(other.reordering_seen);
        self.rtt_ns = match (self.sums.1, other.sums.1) {
            (_, 0) => self.rtt_ns,
            (0, _) => other.rtt_ns,
            _ => (self.rtt_ns.0.min(other.rtt_ns.0), self.rtt_ns.1.max(other.rtt_ns.1)),
        };
        self.sums = (self.sums.0.saturating_add(other.sums.0), self.sums.1 + other.sums.1);
    }

    /// Mean of the smoothed RTTs, ns; `None` without readings.
    pub(super) fn mean_rtt_ns(self) -> Option<u64> {
        self.sums.0.checked_div(self.sums.1)
    }
}

/// One direction, with all trials joined end to end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct DirectionResult {
    /// Whether payload goes from the near end to the far one.
    pub(super) outbound: bool,
    /// What the sender sent, without the warm-up.
    pub(super) sent: Amount,
    /// What arrived, without the warm-up.
    pub(super) received: Amount,
    /// Of the whole trials; `None` for transports without datagrams.
    pub(super) datagrams: Option<Datagrams>,
    /// Segments retransmitted in the whole trials; `None` if a connection does not report them.
    pub(super) retransmits: Option<u64>,
    /// The connections by number, of the whole trials; empty if their counts were not kept.
    pub(super) shares: Vec<Share>,
}

/// An outcome and the trials of its value.
pub(super) struct Test<'a> {
    pub(super) run: &'a Run,
    pub(super) outcome: &'a Outcome,
    pub(super) trials: Vec<&'a Trial>,
}

impl<'a> Test<'a> {
    /// The trials of the outcome's value: complete ones, or those cut short if there are no others. `None` without trials.
    pub(super) fn of(run: &'a Run, outcome: &'a Outcome) -> Option<Self> {
        let complete = |trial: &&Trial| !trial.verdicts.contains(&Verdict::CutShort);
        let mut trials: Vec<&Trial> = outcome.trials.iter().filter(complete).collect();
        if trials.is_empty() {
            trials = outcome.trials.iter().collect();
        }
        (!trials.is_empty()).then_some(Self { run, outcome, trials })
    }

    pub(super) fn spec(&self) -> &'a Spec {
        &self.outcome.spec
    }

    /// The directions that carry payload: true for outbound.
    pub(super) fn outbound_flags(&self) -> &'static [bool] {
        match self.spec().direction {
            Direction::Send => &[true],
            Direction::Reverse => &[false],
            Direction::Both => &[true, false],
        }
    }

    /// The directions with their counts.
    ///
    /// # Errors
    /// If there is a rate but no count of bytes, as in results imported from a table of rates.
    pub(super) fn directions(&self) -> Result<Vec<DirectionResult>, NoForm> {
        let directions: Vec<DirectionResult> =
            self.outbound_flags().iter().map(|outbound| self.direction(*outbound)).collect();
        let counted = directions.iter().any(|direction| direction.received.bytes > 0);
        if !counted && self.outcome.estimate.as_ref().is_some_and(|estimate| estimate.value > 0.0) {
            return Err(NoForm::Uncounted);
        }
        Ok(directions)
    }

    fn direction(&self, outbound: bool) -> DirectionResult {
        let mut direction = DirectionResult { outbound, retransmits: Some(0), ..DirectionResult::default() };
        let mut shares: BTreeMap<u32, Share> = BTreeMap::new();
        let start = Share { retransmits: Some(0), ..Share::default() };
        for trial in &self.trials {
            let (sender, receiver) = ends(trial, outbound);
            direction.sent.add(sent(self.spec(), sender));
            direction.received.add(arrived(receiver));
            if let Some((own, other)) = sender.datagrams.zip(receiver.datagrams) {
                direction.datagrams.get_or_insert_default().add(own, other);
            }
            for flow in sender.flows.iter().filter(|flow| flow.bytes_sent > 0) {
                let share = shares.entry(flow.flow).or_insert(start);
                share.sent += flow.bytes_sent;
                share.retransmits = share.retransmits.zip(flow.socket.retransmits).map(|(sum, own)| sum + own);
                share.tcp.add(self.spec(), flow);
                let to = receiver.flows.iter().find(|to| (to.flow, to.direction) == (flow.flow, flow.direction));
                if let Some((own, other)) = flow.datagrams.zip(to.and_then(|to| to.datagrams)) {
                    share.datagrams.get_or_insert_default().add(own, other);
                }
            }
            for flow in receiver.flows.iter().filter(|flow| flow.bytes_received > 0) {
                shares.entry(flow.flow).or_insert(start).received += flow.bytes_received;
            }
        }
        // The points of a curve share connections, whose totals are not those of one point.
        let known = !shares.is_empty() && !self.spec().is_point();
        let retransmits = shares.values().map(|share| share.retransmits);
        direction.retransmits = retransmits.fold(direction.retransmits.filter(|_| known), |sum, own| Some(sum? + own?));
        direction.shares = shares.into_values().collect();
        direction
    }

    /// The first connection's facts at the near end, from the first trial that has them.
    pub(super) fn near_socket(&self) -> Option<&'a SocketFacts> {
        self.trials.iter().find_map(|trial| trial.near.flows.first()).map(|flow| &flow.socket)
    }

    /// The same at the far end.
    pub(super) fn far_socket(&self) -> Option<&'a SocketFacts> {
        self.trials.iter().find_map(|trial| trial.far.flows.first()).map(|flow| &flow.socket)
    }

    /// The far end's name without control characters, blanks and port.
    pub(super) fn host(&self) -> String {
        let target = self.run.header.target.as_deref().unwrap_or("localhost");
        let clean: String = target.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
        match clean.rsplit_once(':') {
            Some((host, port))
                if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) && !host.contains(':') =>
            {
                host.to_owned()
            }
            _ => clean,
        }
    }

    /// The start of a trial's payload, ns since the Unix epoch: the start of its pass plus the set-up.
    pub(super) fn started_unix_ns(&self, trial: &Trial) -> u64 {
        let header = &self.run.header;
        let pass = self.run.passes.iter().find(|pass| pass.index == trial.pass);
        let start = |pass: &Pass| {
            pass.started_unix_ns.unwrap_or_else(|| header.started_unix_ns.saturating_add(pass.started_ns))
                + pass.near.setup_ns.max(pass.far.setup_ns)
        };
        pass.map_or(header.started_unix_ns, start)
    }
}

impl Amount {
    pub(super) fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

/// Sender and receiver of a direction.
pub(super) fn ends(trial: &Trial, outbound: bool) -> (&EndTally, &EndTally) {
    if outbound { (&trial.near, &trial.far) } else { (&trial.far, &trial.near) }
}

/// What arrived at an end, after the warm-up where there is one.
pub(super) fn arrived(end: &EndTally) -> Amount {
    end.measured.map_or(Amount { bytes: end.bytes_received, ns: end.receiving_ns }, |window| Amount {
        bytes: window.bytes,
        ns: window.ns,
    })
}

/// What an end sent; with a warm-up and a series, the entries after the warm-up.
fn sent(spec: &Spec, end: &EndTally) -> Amount {
    let mut after = end.intervals.iter().filter(|entry| entry.start_ns >= spec.warmup_ns).peekable();
    match after.peek() {
        Some(first) if spec.warmup_ns > 0 => {
            let start = first.start_ns;
            let (bytes, last) = after.fold((0, start), |(sum, _), entry| (sum + entry.bytes_sent, entry.end_ns));
            Amount { bytes, ns: last.saturating_sub(start) }
        }
        _ => Amount { bytes: end.bytes_sent, ns: end.sending_ns },
    }
}
