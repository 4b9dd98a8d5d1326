//! The flags that `thru stream` and `thru transfer` share beside the options.

use clap::Args;
use command::Failure;
use model::{BitRate, Spec};
use options::TestOptions;
use options::values::{BlockFlag, sending_rate};
use plan::safe_rate::{SAFE_RATE, lacks_rate};
use plan::{Resolver, specs};
use session::ThisHost;

use super::HostFlags;
use crate::shape::{Lines, Shape};

/// How bytes are sent in bulk, and what is printed.
#[derive(Debug, Clone, Args)]
pub struct Bulk {
    /// Limit the sending rate of each flow, as iperf3 does.
    #[arg(short = 'b', value_name = "RATE", value_parser = sending_rate, conflicts_with = "rate")]
    rate_of_flow: Option<BitRate>,

    /// Also print a line for each flow.
    #[arg(long)]
    each: bool,
}

impl Bulk {
    /// Adds the rate of all flows of a direction.
    pub fn add_to(&self, options: &mut TestOptions) {
        if let Some(rate) = self.rate_of_flow {
            options.rate = Some(BitRate(rate.0.saturating_mul(options.flows.unwrap_or(1).into())));
        }
    }

    /// How the run is shown.
    pub fn shape(&self) -> Shape<'static> {
        Shape { lines: if self.each { Lines::Each } else { Lines::Sum }, ..Shape::default() }
    }
}

/// The spec of bulk data. Datagrams without a rate get a safe one, and the user is told.
///
/// # Errors
/// As [`specs::one`].
pub fn started_safely(mut options: TestOptions, peer: &HostFlags) -> Result<Spec, Failure> {
    let asks = lacks_rate(&options) && !ThisHost.stays_here(peer.from.as_deref(), peer.host().map(String::as_str));
    let safe = asks.then_some(SAFE_RATE);
    options.rate = safe.or(options.rate);
    let spec = specs::one(&options, &ThisHost)?;
    if let Some(rate) = safe {
        errln!(
            "thru: datagrams without --rate start at {rate}, because they could fill the path: give --rate RATE, or --rate max"
        );
    }
    Ok(spec)
}

/// Whether the size of datagrams depends on the IP version.
pub fn sizes_by_family(options: &TestOptions) -> bool {
    !matches!(options.block, Some(BlockFlag::One(_)))
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
