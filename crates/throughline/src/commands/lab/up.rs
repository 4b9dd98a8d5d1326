//! `thru lab up`: a lab that stays up. A background process holds it and carries the emulated links.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use clap::Args;
use session::Failure;
use session::running_lab::RunningLab;
use session::signals::{Signals, StopRequest};

use super::Build;
use super::close;

/// Flags of `thru lab up`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo thru lab up sunnyvale-geneva --name wan
  sudo thru lab exec sunnyvale -- thru stream geneva
  sudo thru lab down wan

The lab stays up until `thru lab down`, or until the process that holds it ends. `thru lab list`
shows the process.")]
pub struct UpArgs {
    #[command(flatten)]
    build: Build,
}

/// The line that the holder prints when the lab is up begins with this.
const READY: &str = "ready ";

/// Runs it.
pub fn run(args: &UpArgs) -> Result<u8, Failure> {
    // Errors in the topology are reported here, not by the background process.
    args.build.topology()?.check()?;
    let own = std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own file: {error}")))?;
    let failed = |error| Failure::other(format!("cannot start the process that holds the lab: {error}"));
    let mut holder = Command::new(own);
    holder.args(["lab", "hold"]).args(std::env::args_os().skip_while(|word| word != "up").skip(1));
    holder.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut holder = holder.spawn().map_err(failed)?;
    let mut line = String::new();
    if let Some(output) = holder.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(failed)?;
    }
    if let Some(name) = line.trim_end().strip_prefix(READY) {
        outln!("lab {name} is up");
        return Ok(0);
    }
    let mut errors = String::new();
    if let Some(mut output) = holder.stderr.take() {
        output.read_to_string(&mut errors).map_err(failed)?;
    }
    err!("{errors}");
    let code = holder.wait().map_err(failed)?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.filter(|code| *code != 0).unwrap_or(1))
}

/// Holds a lab until its removal is requested.
pub fn hold(args: &UpArgs) -> Result<u8, Failure> {
    let topology = args.build.topology()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    let mut signals = Signals::catch()?;
    let lab = RunningLab::build(&topology, args.build.name.as_deref(), !args.build.no_agents, true)?;
    let name = lab.network().name().to_owned();
    runtime.block_on(lab.serve_while(async {
        // The process that waits for this line may connect at once.
        outln!("{READY}{name}");
        tokio::select! {
            () = ended(&mut signals) => {}
            () = lab.removal_requested() => {}
        }
    }))?;
    close(lab)?;
    Ok(0)
}

/// Ends at the first signal other than SIGHUP: the lab outlives its terminal.
async fn ended(signals: &mut Signals) {
    while signals.next().await == StopRequest::Hangup {}
}
