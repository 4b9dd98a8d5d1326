//! `thru lab up`: a lab that stays. A process in the background holds it: it carries the emulated links.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use clap::Args;

use super::Build;
use super::held::Held;
use crate::failure::Failure;
use crate::signals::{Asks, Signals};

/// Flags of `thru lab up`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo thru lab up sunnyvale-geneva --name wan
  sudo thru lab exec sunnyvale -- thru stream geneva
  sudo thru lab down wan

The lab stays until `thru lab down` or the end of the process that holds it, which `thru lab list` names.")]
pub struct UpArgs {
    #[command(flatten)]
    build: Build,
}

/// What the holder says when the lab stands.
const READY: &str = "ready ";

/// Runs it.
pub fn run(args: &UpArgs) -> Result<u8, Failure> {
    // A mistake is told here, not by the one in the background.
    args.build.topology()?.check()?;
    let own = std::env::current_exe()
        .map_err(|error| Failure::other(format!("cannot find this program's own file: {error}")))?;
    let failed = |error| Failure::other(format!("cannot start the process that holds the lab: {error}"));
    let mut holder = Command::new(own);
    holder.args(["lab", "hold"]).args(std::env::args_os().skip_while(|word| word != "up").skip(1));
    holder.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut holder = holder.spawn().map_err(failed)?;
    let mut said = String::new();
    if let Some(output) = holder.stdout.take() {
        BufReader::new(output).read_line(&mut said).map_err(failed)?;
    }
    if let Some(name) = said.trim_end().strip_prefix(READY) {
        outln!("lab {name} stands");
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

/// Holds a lab until it is to go.
pub fn hold(args: &UpArgs) -> Result<u8, Failure> {
    let topology = args.build.topology()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    let mut signals = Signals::catch()?;
    let held = Held::build(&topology, args.build.name.as_deref(), !args.build.no_agents, true)?;
    let name = held.network().name().to_owned();
    runtime.block_on(held.answer_while(async {
        // Whoever waits for this may ask at once.
        outln!("{READY}{name}");
        tokio::select! {
            () = ended(&mut signals) => {}
            () = held.asked_down() => {}
        }
    }))?;
    held.close()?;
    Ok(0)
}

/// Ends at a request to end; a terminal that goes away is none.
async fn ended(signals: &mut Signals) {
    while signals.next().await == Asks::Hangup {}
}
