//! The flags that all measuring subcommands share.

mod axes;
pub mod bulk;
mod fleet_hosts;
mod login;
#[cfg(test)]
mod manual;
#[cfg(test)]
mod named;
mod options;
mod output;
mod precision;

use ::options::values::above_zero;
use ::options::{ByteSize, ValueError};
use std::path::PathBuf;

use ::options::{TestOptions, Topic};
use clap::Args;
use command::values;
use control::proof::code::Code;

pub use self::axes::AxisFlags;
pub use self::bulk::Bulk;
pub use self::fleet_hosts::{FleetHosts, FleetName, OverBus};
pub use self::login::{LOGIN, LoginFlags, UsersFlags};
pub use self::options::{Given, OfBothSides, OfCurve, OfPath, OfRr, OfSearch, OfStream, OfTransfer};
pub use self::output::{Output, at_once, form};
pub use self::precision::Precision;
use crate::registries;

/// Heading of the flags that name hosts and addresses.
pub const HOSTS: Option<&str> = Topic::Hosts.heading();
/// Heading of the flags that change host settings.
pub const SETTINGS: Option<&str> = Topic::Settings.heading();
/// Heading of the flags for the stop rule.
pub const PRECISION: Option<&str> = Topic::Precision.heading();

/// The hosts of a measurement.
#[derive(Debug, Clone, Args)]
pub struct HostFlags {
    #[arg(help = registries::host_help(), value_parser = values::host)]
    host: Option<String>,

    /// Another way to write HOST, for users of netperf and NetPIPE (-H) and iperf3 (-c).
    #[arg(short = 'H', short_alias = 'c', id = "far_host", value_name = "HOST", value_parser = values::host,
          conflicts_with = "host", help_heading = HOSTS)]
    spelled: Option<String>,

    /// Make the agent on this other host the near end, in place of this machine, to measure between two agents.
    #[arg(long, value_name = "HOST", value_parser = values::host, help_heading = HOSTS)]
    pub from: Option<String>,

    /// File with the agent's token.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE", help_heading = HOSTS)]
    pub token_file: Option<PathBuf>,

    /// Code that `thru serve --invite` prints on the far host. It works once; afterwards the two hosts know each other's keys.
    #[arg(long, value_name = "WORD-WORD-WORD", conflicts_with = "from", help_heading = HOSTS)]
    pub code: Option<Code>,

    /// Skip the path probe before the run: no route, path MTU, ping, hops, foreign traffic or clock offset.
    #[arg(long, help_heading = HOSTS)]
    pub no_path: bool,
}

/// Flags that are short for others.
#[derive(Debug, Clone, Args)]
pub struct ShortFor {
    /// Short for --sndbuf and --rcvbuf with the same value.
    #[arg(short = 'w', long, value_name = "SIZE", value_parser = buffer, conflicts_with_all = ["sndbuf", "rcvbuf"],
          help_heading = Topic::Sockets.heading())]
    window: Option<String>,
}

/// Checks the value of a buffer.
fn buffer(text: &str) -> Result<String, ValueError> {
    above_zero::<ByteSize>(text).map(|_| text.to_owned())
}

impl HostFlags {
    /// The hosts of a run with these options.
    pub fn of_run(&self, options: &TestOptions) -> session::Hosts {
        session::Hosts {
            host: self.host().cloned(),
            from: self.from.clone(),
            family: options.family(),
            token_file: self.token_file.clone(),
            code: self.code.clone(),
            no_path: self.no_path,
        }
    }

    pub(crate) fn host(&self) -> Option<&String> {
        self.host.as_ref().or(self.spelled.as_ref())
    }

    /// Whether HOST leads to an IPv6 address.
    pub fn is_ipv6(&self, options: &TestOptions) -> bool {
        self.host().is_some_and(|host| control::coordinator::leads_to_ipv6(host, options.family()))
    }
}

impl ShortFor {
    /// Adds what they are short for.
    pub fn add_to(&self, options: &mut TestOptions) {
        let Some(window) = &self.window else { return };
        for key in ["sndbuf", "rcvbuf"] {
            // It has been checked.
            let _ = options.set(key, window);
        }
    }
}

#[cfg(test)]
mod tests;
