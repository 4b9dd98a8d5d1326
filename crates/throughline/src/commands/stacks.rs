//! `thru stacks`: TCP congestion controls that come with the program.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use model::StackRule;
use stacks::{Request, STACKS, Stack, StackError};

use crate::failure::Failure;

/// Flags of `thru stacks`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru stream HOST --cc fast:alpha=400      loads it at both ends for the time of the measurement
  thru stacks info fast                     its parameters, and where it was published
  thru stacks load scalable --any-user      for all programs and users of this host, until
  thru stacks unload scalable
  thru stacks load ./mine.bpf.o             one that you wrote and compiled

An agent loads stacks for coordinators where it runs as `thru serve --allow-stacks`, as root.")]
pub struct StacksArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say which there are, and which are loaded.
    List,
    /// Say what one does, and its parameters.
    Info {
        /// Short name, or the name in the kernel.
        name: String,
        /// Print its source in C.
        #[arg(long, conflicts_with = "header")]
        source: bool,
        /// Print the header that all sources include.
        #[arg(long)]
        header: bool,
    },
    /// Load one that stays after this command, for all programs of this host.
    Load {
        /// NAME, NAME:PARAMETER=VALUE,... or a compiled FILE.o.
        name: String,
        /// Let users choose it who are not root.
        #[arg(long)]
        any_user: bool,
        /// Rules of HighSpeed TCP for destinations (the wad.conf of 2003 as TOML).
        #[arg(long, value_name = "FILE")]
        cc_rules: Option<PathBuf>,
    },
    /// End what `load` began.
    Unload {
        /// Name in the kernel as `list` shows it, or what `load` was given.
        name: String,
        /// The rules that `load` was given with it.
        #[arg(long, value_name = "FILE")]
        cc_rules: Option<PathBuf>,
    },
}

/// Runs it.
pub fn run(args: &StacksArgs) -> Result<u8, Failure> {
    match &args.action {
        Action::List => list()?,
        Action::Info { header: true, .. } => out!("{}", stacks::HEADER),
        Action::Info { name, source, .. } => info(known(name)?, *source)?,
        Action::Load { name, any_user, cc_rules } => {
            let request = Request::open(name)?.with_rules(&rules(cc_rules.as_deref())?)?;
            let loaded = stacks::keep(&request, *any_user)?;
            outln!("{loaded} is loaded until `thru stacks unload {loaded}`");
        }
        Action::Unload { name, cc_rules } => {
            outln!("{} is no longer kept", stacks::release(name, &rules(cc_rules.as_deref())?)?);
        }
    }
    Ok(0)
}

fn rules(file: Option<&Path>) -> Result<Vec<StackRule>, StackError> {
    file.map_or(Ok(Vec::new()), stacks::read_rules)
}

fn known(name: &str) -> Result<&'static Stack, Failure> {
    Ok(stacks::stack(name).ok_or_else(|| StackError::Unknown { name: name.into() })?)
}

fn list() -> Result<(), Failure> {
    let (available, kept) = (stacks::available(), stacks::kept());
    let has = |name: &String| available.contains(name);
    for stack in STACKS {
        outln!("{:<10} {}", stack.name, stack.title);
    }
    let ours = available.iter().filter(|name| name.starts_with("bpf_"));
    let others: Vec<&str> = available.iter().filter(|name| !name.starts_with("bpf_")).map(String::as_str).collect();
    let loaded: Vec<String> = ours
        .map(|name| if kept.contains(name) { format!("{name} (until unload)") } else { name.clone() })
        .chain(kept.iter().filter(|name| !has(name)).map(|name| format!("{name} (kept, but not in the kernel)")))
        .collect();
    out!("\n");
    outln!("{:<10} {}", "loaded", if loaded.is_empty() { "none".into() } else { loaded.join(", ") });
    outln!("{:<10} {}", "kernel's", others.join(", "));
    if !stacks::BUILT {
        out!("\n{}\n", StackError::NotBuilt);
    } else if let Some(what) = stacks::obstacle() {
        out!("\n{}\n", StackError::Kernel { what });
    } else if let Some(missing) = stacks::missing_rights() {
        out!("\n{}\n", StackError::Rights { requested: "NAME".into(), missing });
    }
    Ok(())
}

fn info(stack: &Stack, source: bool) -> Result<(), Failure> {
    if source {
        out!("{}", stack.source);
        return Ok(());
    }
    outln!("{:<12} {}", stack.name, stack.title);
    outln!("{:<12} {}", "published", stack.paper);
    outln!("{:<12} {}", "in kernel", stack.kernel_name());
    for parameter in stack.parameters()? {
        let [value, least, most] = [parameter.value, parameter.least, parameter.most].map(|v| parameter.shown(v));
        outln!("{:<12} {value} (from {least} to {most})", parameter.name);
    }
    Ok(())
}
