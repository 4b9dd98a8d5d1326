//! The flags that `thru stream` and `thru transfer` share.

use clap::Args;
use model::{BitRate, ByteSize, Nanos, Spec};
use session::Failure;
use session::draft::SpecDraft;
use session::safe_rate::{SAFE_RATE, lacks_rate, stays_here};
use session::values::{BlockFlag, EngineFlag, above_zero, any, at_least, sending_rate, whole};

use super::{CALLS, Load, Peer};
use crate::registries;
use crate::shape::{Lines, Shape};

/// How bytes are sent in bulk.
#[derive(Debug, Clone, Args)]
pub struct Bulk {
    #[arg(short = 'l', long, value_name = "SIZE", help = registries::block_help(), value_parser = any::<BlockFlag>)]
    pub block: Option<BlockFlag>,

    /// End a trial after this many payload bytes instead of --time.
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    bytes: Option<ByteSize>,

    /// End a trial after this many blocks instead of --time.
    #[arg(long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    count: Option<u64>,

    /// Limit the sending rate, over all flows of a direction; max sets no limit [default: max; for udp 1Mbit, but max to this
    /// host and in a lab].
    #[arg(long, value_name = "RATE", value_parser = sending_rate)]
    rate: Option<BitRate>,

    /// Limit the sending rate of each flow, as iperf3 does.
    #[arg(short = 'b', value_name = "RATE", value_parser = sending_rate, conflicts_with = "rate")]
    rate_of_flow: Option<BitRate>,

    /// On udp without --rate: send as fast as this host can. Without this flag, the sender limits itself to the free space of
    /// the receiver's socket, so that losses are those of the path.
    #[arg(long)]
    unpaced: bool,

    /// Length of one entry of the series, and from 200ms on time between two lines [lines by default: 1s].
    #[arg(short, long, value_name = "TIME", default_value = "100ms", value_parser = at_least(Nanos(Spec::MIN_INTERVAL_NS)))]
    interval: Nanos,

    /// Also print a line for each flow.
    #[arg(long)]
    each: bool,

    /// With --rate: the largest burst that makes up for a delay, sent at once [default: the bytes of 100 ms, not at once but
    /// faster by a tenth for each ms of the delay].
    #[arg(long, value_name = "SIZE", value_parser = above_zero::<ByteSize>)]
    burst: Option<ByteSize>,

    /// Send method and, after a comma, receive method. To send: copy; sendfile, splice, zerocopy (tcp); mmsg, gso (udp); ktls
    /// (tls). To receive: copy; trunc, map (tcp); mmsg, gro (udp). auto measures each in a pilot trial and uses the fastest.
    #[arg(long, value_name = "SEND[,RECEIVE]", default_value = "copy", help_heading = CALLS)]
    engine: EngineFlag,

    /// Let a blocking receiver sleep 50 µs between its reads where that raises the goodput, to save sender wake-ups: on fast TCP
    /// streams, and on datagrams received several per call. Applications do not read this way; the result says that it was used.
    #[arg(long, help_heading = CALLS)]
    delayed_reads: bool,
}

impl Bulk {
    /// Adds them to a draft with this load.
    pub fn fill(&self, load: &Load, draft: &mut SpecDraft) {
        // Of all flows of a direction.
        let of_flows = |rate: BitRate| BitRate(rate.0.saturating_mul(load.flows.unwrap_or(1).into()));
        if let Some(block) = self.block.clone() {
            draft.set_block(block);
        }
        draft.bytes = self.bytes;
        draft.count = self.count;
        draft.rate = self.rate.or(self.rate_of_flow.map(of_flows));
        draft.unpaced = self.unpaced;
        draft.interval = Some(self.interval);
        draft.burst = self.burst;
        draft.engine = Some(self.engine);
        draft.delayed_reads = self.delayed_reads;
    }

    /// The spec of a draft of bulk data. Datagrams without a rate get a safe one, and the user is told.
    ///
    /// # Errors
    /// As [`SpecDraft::one`].
    pub fn started_safely(mut draft: SpecDraft, peer: &Peer) -> Result<Spec, Failure> {
        let asks = lacks_rate(&draft) && !stays_here(peer.from.as_deref(), peer.host().map(String::as_str));
        let safe = asks.then_some(SAFE_RATE);
        draft.rate = safe.or(draft.rate);
        let spec = draft.one()?;
        if let Some(rate) = safe {
            errln!(
                "thru: datagrams without --rate start at {rate}, because they could fill the path: give --rate RATE, or --rate max"
            );
        }
        Ok(spec)
    }

    /// Whether the size of datagrams depends on the IP version.
    pub fn sizes_by_family(&self) -> bool {
        !matches!(self.block, Some(BlockFlag::One(_)))
    }

    /// How the run is shown.
    pub fn shape(&self) -> Shape<'static> {
        Shape { lines: if self.each { Lines::Each } else { Lines::Sum }, ..Shape::default() }
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use crate::args::{Args as CommandLine, Command};

    /// The rate of a command line's stream without a lab.
    fn rate(line: &str) -> Option<u64> {
        let matches = crate::args::command().try_get_matches_from(line.split_whitespace()).unwrap();
        let Command::Stream(args) = CommandLine::from_arg_matches(&matches).unwrap().command else { panic!("{line}") };
        args.safe_spec().unwrap().rate_bps
    }

    #[test]
    fn datagrams_to_another_host_start_slowly_unless_a_rate_is_given() {
        assert_eq!(rate("thru stream 192.0.2.1 -u"), Some(1_000_000));
        assert_eq!(rate("thru stream 127.0.0.1 --from 192.0.2.1 -u"), Some(1_000_000), "the host's own loopback");
        for free in ["192.0.2.1", "192.0.2.1 -u --rate max", "192.0.2.1 -u --unpaced", "127.0.0.1 -u", "[::1]:7000 -u"]
        {
            assert_eq!(rate(&format!("thru stream {free}")), None, "{free}");
        }
        assert_eq!(rate("thru stream 192.0.2.1 -u -b 5M"), Some(5_000_000));
        assert_eq!(rate("thru stream 192.0.2.1 -u --find-no-loss"), None);
    }
}
