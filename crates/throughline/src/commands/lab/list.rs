//! `thru lab list`: the labs that are up.

use clap::Args;
use command::Failure;
use lab::labs;
use plan::topology::READY;
use session::labs::topology::find;

/// Flags of `thru lab list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// List the built-in topologies instead.
    #[arg(long)]
    ready: bool,
}

/// Runs it.
pub fn run(args: &ListArgs) -> Result<u8, Failure> {
    if args.ready {
        for ready in &READY {
            let about = find(ready.name, &std::collections::BTreeMap::new())?.about;
            outln!("{:<18} {}", ready.name, about.unwrap_or_default());
        }
        return Ok(0);
    }
    for lab in labs()? {
        let topology = lab.topology.as_deref().unwrap_or("-");
        let state = match (lab.lives, lab.stays) {
            (true, true) => format!("up, held by process {}", lab.owner_pid),
            (true, false) => format!("up until process {} ends", lab.owner_pid),
            (false, _) => "left by a crash; `thru lab down` removes it".into(),
        };
        outln!("{:<30} {topology:<18} {:<24} {state}", lab.name, lab.hosts.join(" "));
    }
    Ok(0)
}
