//! `thru stacks`: the congestion controls that come with the program.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use command::Failure;
use model::StackRule;
use stacks::{Stack, StackError, StackRequest};

use crate::console;

/// Flags of `thru stacks`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/stacks.txt").trim_end())]
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
        /// Short name, or the kernel's name.
        name: String,
        /// Print its C source.
        #[arg(long, conflicts_with = "header")]
        source: bool,
        /// Print the header that all sources include.
        #[arg(long)]
        header: bool,
    },
    /// Load a stack for all programs on this host, until `thru stacks unload`.
    Load {
        /// NAME, NAME:PARAMETER=VALUE,... or a compiled file NAME.o.
        name: String,
        /// Allow users other than root to select it.
        #[arg(long)]
        any_user: bool,
        /// Congestion-control rules per destination: a wad.conf of Net100, in its own syntax or as TOML.
        #[arg(long, value_name = "FILE")]
        cc_rules: Option<PathBuf>,
    },
    /// Unload a stack that `load` loaded.
    Unload {
        /// The kernel's name, as `list` shows it, or the argument of `load`.
        name: String,
        /// The rules that were given to `load`.
        #[arg(long, value_name = "FILE")]
        cc_rules: Option<PathBuf>,
    },
}

/// Runs it.
pub fn run(args: &StacksArgs) -> Result<u8, Failure> {
    match &args.action {
        Action::List => out!("{}", stacks::present().listing()),
        Action::Info { header: true, .. } => console::document(stacks::HEADER),
        Action::Info { name, source, .. } => info(stacks::stack(name).ok_or_else(|| stacks::unknown(name))?, *source)?,
        Action::Load { name, any_user, cc_rules } => {
            let request = StackRequest::open(name)?.with_rules(&rules(cc_rules.as_deref())?)?;
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

fn info(stack: &Stack, source: bool) -> Result<(), Failure> {
    if source {
        console::document(stack.source);
        return Ok(());
    }
    out!("{}", stack.about()?);
    Ok(())
}
