//! `thru stacks`: the congestion controls that come with the program.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use model::StackRule;
use session::Failure;
use stacks::{Present, Request, STACKS, Stack, StackError};

use crate::console;

/// Flags of `thru stacks`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru stream HOST --cc fast:alpha=400  load it at both ends for one measurement
  thru stacks info fast                 its parameters and its publication
  thru stacks load scalable --any-user  load it for all programs and users of this host
  thru stacks unload scalable           unload it again
  thru stacks load ./mine.bpf.o         load a compiled BPF object

An agent loads stacks for its clients if it runs as root with `thru serve --allow-stacks`.")]
pub struct StacksArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the stacks and which of them are loaded.
    List,
    /// Describe a stack and its parameters.
    Info {
        /// Short name, or name in the kernel.
        name: String,
        /// Print its C source.
        #[arg(long, conflicts_with = "header")]
        source: bool,
        /// Print the header that all sources include.
        #[arg(long)]
        header: bool,
    },
    /// Load a stack for all programs of this host, until `thru stacks unload`.
    Load {
        /// NAME, NAME:PARAMETER=VALUE,... or a compiled file NAME.o.
        name: String,
        /// Allow users other than root to select it.
        #[arg(long)]
        any_user: bool,
        /// Congestion-control rules per destination: Web100's wad.conf as TOML.
        #[arg(long, value_name = "FILE")]
        cc_rules: Option<PathBuf>,
    },
    /// Unload a stack that `load` loaded.
    Unload {
        /// Name in the kernel as `list` shows it, or the argument of `load`.
        name: String,
        /// The rules that were given to `load`.
        #[arg(long, value_name = "FILE")]
        cc_rules: Option<PathBuf>,
    },
}

/// Runs it.
pub fn run(args: &StacksArgs) -> Result<u8, Failure> {
    match &args.action {
        Action::List => list(),
        Action::Info { header: true, .. } => console::document(stacks::HEADER),
        Action::Info { name, source, .. } => info(stacks::stack(name).ok_or_else(|| stacks::unknown(name))?, *source)?,
        Action::Load { name, any_user, cc_rules } => {
            let request = Request::open(name)?.with_rules(&rules(cc_rules.as_deref())?)?;
            let loaded = stacks::keep(&request, *any_user)?;
            outln!("{loaded} is loaded until `thru stacks unload {loaded}`");
        }
        Action::Unload { name, cc_rules } => {
            outln!("{} is unloaded", stacks::release(name, &rules(cc_rules.as_deref())?)?);
        }
    }
    Ok(0)
}

fn rules(file: Option<&Path>) -> Result<Vec<StackRule>, StackError> {
    file.map_or(Ok(Vec::new()), stacks::read_rules)
}

fn list() {
    for stack in STACKS {
        outln!("{:<10} {}", stack.name, stack.title);
    }
    let Present { loaded, others } = stacks::present();
    let loaded = if loaded.is_empty() { "none".into() } else { loaded.join(", ") };
    out!("\n{:<10} {loaded}\n{:<10} {}\n", "loaded", "kernel's", others.join(", "));
    if let Some(error) = stacks::prevented() {
        out!("\n{error}\n");
    }
}

fn info(stack: &Stack, source: bool) -> Result<(), Failure> {
    if source {
        console::document(stack.source);
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
