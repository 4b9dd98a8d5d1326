//! `thru agent`: the keys by which agents are recognized.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use command::Failure;
use command::agent_keys::{self, KnownAgent, KnownAgents};
use command::known_clients::InvitedClients;
use command::values::host;
use control::proof::fingerprint::Fingerprint;

/// Flags of `thru agent`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/agent.txt").trim_end())]
pub struct AgentArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the fingerprint of this user's agent key on this host, and make the key if there is none.
    Fingerprint {
        /// File with the key [default: throughline/agent.key in $XDG_DATA_HOME or ~/.local/share].
        #[arg(long, value_name = "FILE", env = "THRU_AGENT_KEY")]
        key_file: Option<PathBuf>,
    },
    /// Print the agents that this user has reached, with their keys.
    Known,
    /// Accept only this key from an agent. `thru agent fingerprint` prints it on the agent's host.
    Trust {
        /// The agent: a name or address, with :PORT if not 6280.
        #[arg(value_parser = host)]
        host: String,
        /// Its fingerprint.
        #[arg(value_name = "SHA256:...")]
        fingerprint: Fingerprint,
    },
    /// Forget the key of an agent, and accept the next one it presents.
    Forget {
        /// The agent: a name or address, with :PORT if not 6280.
        #[arg(value_parser = host)]
        host: String,
    },
    /// Print the keys of clients that agents of this user have invited (`thru serve --invite`), with their addresses.
    Clients,
    /// No longer accept an invited client.
    Dismiss {
        /// The fingerprint of its key.
        #[arg(value_name = "SHA256:...")]
        fingerprint: Fingerprint,
    },
}

/// Runs it.
pub fn run(args: &AgentArgs) -> Result<u8, Failure> {
    let known = KnownAgents::of_user();
    match &args.action {
        Action::Fingerprint { key_file } => {
            let file = agent_keys::key_file(key_file.as_deref()).ok_or_else(agent_keys::no_home)?;
            outln!("{}", agent_keys::load_or_make(&file)?.fingerprint());
        }
        Action::Known => known.list()?.iter().for_each(|agent| outln!("{} {}", agent.name, agent.key)),
        Action::Trust { host, fingerprint } => {
            known.trust(&KnownAgent { name: agent_keys::name(host)?, key: *fingerprint })?;
        }
        Action::Forget { host } => known.forget(&agent_keys::name(host)?)?,
        Action::Clients => {
            let clients = InvitedClients::of_user()?.list().map_err(Failure::host)?;
            clients.iter().for_each(|client| outln!("{} {}", client.key, client.from));
        }
        Action::Dismiss { fingerprint } => {
            if !InvitedClients::of_user()?.dismiss(fingerprint).map_err(Failure::output)? {
                return Err(Failure::usage("no invited client has this key: see `thru agent clients`"));
            }
        }
    }
    Ok(0)
}
