//! `thru helper`: what needs privileges, for an agent without them.

use std::path::PathBuf;

use clap::Args;
use command::Failure;
use control::helper::PacketRights;
use serving::HelperServer;

/// Flags of `thru helper`.
#[derive(Debug, Args)]
#[command(
    after_help = "An agent started by root (`thru serve`) starts its own helper. This command is for an agent that a
service manager starts as another user:
  thru helper --listen /run/throughline/helper.sock --user thru --allow-tuning
  thru serve --helper /run/throughline/helper.sock --allow-tuning --token-file FILE

It restores an agent's changes when the agent ends, is killed, or hangs."
)]
pub struct HelperArgs {
    /// Socket to create for the agent of --user.
    #[arg(long, value_name = "SOCKET", required_unless_present = "with_agent")]
    listen: Option<PathBuf>,

    /// The user whose agent may connect.
    #[arg(long, value_name = "NAME", default_value = "thru")]
    user: String,

    /// Change network settings for the agent. PATTERN also allows other sysctls, such as 'vm.dirty_*'. May be repeated.
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    allow_tuning: Vec<String>,

    /// Folder of the journal of changed settings [default: /run/throughline/tune; without root: below $XDG_RUNTIME_DIR].
    #[arg(long, value_name = "DIR", env = "THRU_JOURNAL")]
    journal: Option<PathBuf>,

    /// Load congestion controls of `thru stacks`. Any user can choose one while it is loaded.
    #[arg(long)]
    allow_stacks: bool,

    /// Capture the packet headers of measurements; with =payload, whole packets.
    #[arg(long, value_name = "payload", num_args = 0..=1, default_missing_value = "headers", require_equals = true, value_parser = ["headers", "payload"])]
    allow_capture: Option<String>,

    /// Set congestion controls on the agent's sockets that ordinary users may not choose.
    #[arg(long)]
    allow_cc: bool,

    /// Set buffers of the agent's sockets beyond the host's limits.
    #[arg(long)]
    allow_buffers: bool,

    /// Serve the agent at the other end of standard input, and end with it.
    #[arg(long, hide = true, conflicts_with = "listen")]
    with_agent: bool,
}

/// Runs it.
pub fn run(args: &HelperArgs) -> Result<u8, Failure> {
    serving::help(HelperServer {
        listen: args.listen.as_deref(),
        user: &args.user,
        tuning: &args.allow_tuning,
        journal: args.journal.clone(),
        stacks: args.allow_stacks,
        packets: PacketRights::allowed(args.allow_capture.as_deref()),
        congestion: args.allow_cc,
        buffers: args.allow_buffers,
        log: |text| errln!("thru helper: {text}"),
    })?;
    Ok(0)
}
