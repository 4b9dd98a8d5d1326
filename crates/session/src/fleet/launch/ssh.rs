//! Agents by ssh: a copy of the program in a folder of its own on each host, which goes with it. No rights of root are needed there.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::iter;
use openssh::{KnownHosts, Session, SessionBuilder, Stdio};
use tokio::io::AsyncWriteExt;

use super::program::{self, Program};
use super::request::{HostResult, UpRequest};
use super::state::{Started, State};
use crate::failure::Failure;
use crate::fleet::hosts::FleetHost;

/// Hosts that get the program at the same time.
const AT_ONCE: usize = 16;
/// Longest time for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// Longest time for one host.
const HOST_LIMIT: Duration = Duration::from_secs(180);

/// Makes the folder of this name, where programs may run, and takes the program from standard input. Prints the folder once the program
/// runs there.
const COPY: &str = r#"umask 077
for base in "${TMPDIR:-/tmp}" /var/tmp "$HOME"; do
    folder=$base/$1
    mkdir -m 700 "$folder" 2>/dev/null || { folder=; continue; }
    printf '#!/bin/sh\n' > "$folder/thru" && chmod 700 "$folder/thru" && "$folder/thru" 2>/dev/null && break
    rm -rf "$folder"
    folder=
done
[ -n "$folder" ] || { echo "no folder where programs may run: set TMPDIR there" >&2; exit 1; }
# An agent of root becomes another user, which runs this file and makes its own beside it.
mkdir -m 1777 "$folder/tmp" && chmod 1777 "$folder/tmp" && chmod 711 "$folder"
cat > "$folder/thru" && chmod 755 "$folder/thru" || { rm -rf "$folder"; exit 1; }
said=$("$folder/thru" --version 2>&1) && { echo "$folder"; exit 0; }
rm -rf "$folder"
printf 'the program does not run there (%s): give a static build: `thru fleet up --program FILE`\n' "$said" >&2
exit 1"#;

/// Takes the token from standard input and starts the agent, which outlives the connection. Prints its key once it listens.
const START: &str = r#"umask 077
cd "$1" || exit 1
cat > token
export XDG_DATA_HOME="$1/data" THRU_AGENT_KEY="$1/agent.key" TMPDIR="$1/tmp"
setsid ./thru serve --listen "$2" --token-file token </dev/null >log 2>&1 &
agent=$!
for turn in $(seq 100); do
    if grep -q 'listening on' log 2>/dev/null; then
        ./thru agent fingerprint
        exit 0
    fi
    kill -0 "$agent" 2>/dev/null || break
    sleep 0.1
done
tail -n 3 log >&2
kill "$agent" 2>/dev/null
exit 1"#;

/// Ends the agent of this folder, which is found by its program's file, and removes the folder. Of one that was interrupted before it
/// said its folder, only the name is known. An agent that was started meanwhile is found when the folder is gone.
const STOP: &str = r#"running() {
    for process in /proc/[0-9]*; do
        case "$(readlink "$process/exe" 2>/dev/null)" in
        "$1/thru" | "$1/thru (deleted)") echo "${process#/proc/}" ;;
        esac
    done
}
stop() {
    agents=$(running "$1")
    [ -z "$agents" ] || kill $agents 2>/dev/null
    for turn in $(seq 50); do
        [ -n "$(running "$1")" ] || break
        sleep 0.1
    done
    rm -rf "$1"
    agents=$(running "$1")
    [ -z "$agents" ] || kill -9 $agents 2>/dev/null
}
case $1 in
*/thru-agent-*) stop "$1" ;;
thru-agent-*) for base in "${TMPDIR:-/tmp}" /var/tmp "$HOME"; do stop "$base/$1"; done ;;
*) exit 1 ;;
esac"#;

/// Starts an agent on each host; what runs is in `state`.
pub(super) async fn up(
    hosts: &[&FleetHost],
    request: &UpRequest,
    state: &mut State,
    tell: &impl Fn(&str),
) -> Result<Vec<HostResult>, Failure> {
    let programs = program::to_copy(&request.programs)?;
    let token = std::fs::read(state.token_file())
        .map_err(|error| Failure::output(format!("cannot read the fleet's token: {error}")))?;
    let (programs, token, config) = (&programs, &token, request.ssh_config.as_deref());
    let state = &RefCell::new(state);
    let one = async |host: &FleetHost| {
        let work = start(host, config, programs, token, state);
        let started = match tokio::time::timeout(HOST_LIMIT, work).await {
            Ok(started) => started,
            Err(_) => Err(format!("no answer within {} s", HOST_LIMIT.as_secs())),
        };
        (host.name.clone(), started)
    };
    let mut works = iter(hosts.iter().copied().map(one)).buffer_unordered(AT_ONCE);
    let mut results = Vec::with_capacity(hosts.len());
    while let Some((name, started)) = works.next().await {
        let error = started.err();
        let what = if error.is_some() { "failed" } else { "runs" };
        tell(&format!("{name} {what}, {} of {}", results.len() + 1, hosts.len()));
        results.push(HostResult { name, error });
    }
    Ok(results)
}

/// Starts the agent of one host; its folder is written down before anything is there.
async fn start(
    host: &FleetHost,
    config: Option<&Path>,
    programs: &[Program],
    token: &[u8],
    state: &RefCell<&mut State>,
) -> Result<(), String> {
    let destination = host.ssh.clone().unwrap_or_else(|| host.name.clone());
    let session = connect(&destination, config).await?;
    let write = |started: Started| state.borrow_mut().add(started).map_err(|failure| failure.to_string());
    let folder = folder_name().map_err(|error| format!("cannot draw a random number: {error}"))?;
    let started = Started { name: host.name.clone(), ssh: destination, folder, key: None };
    write(started.clone())?;
    let folder = match copy(&session, programs, &started.folder).await {
        Ok(folder) => folder,
        Err(error) => {
            // What fails removes its folder.
            let _ = state.borrow_mut().remove(&host.name);
            return Err(error);
        }
    };
    let started = Started { folder: folder.clone(), ..started };
    write(started.clone())?;
    let listen = listen(&host.control)?;
    let printed = match run(&session, START, &[&folder, &listen], token).await {
        Ok(printed) => printed,
        Err(error) => {
            let _ = run(&session, STOP, &[&folder], &[]).await;
            return Err(format!("its agent did not start: {error}"));
        }
    };
    let _ = session.close().await;
    let key = Some(printed.trim().to_owned()).filter(|key| !key.is_empty());
    write(Started { key, ..started })
}

/// A name for the folder on a host. Another user there cannot guess it.
fn folder_name() -> std::io::Result<String> {
    let random = engine::random::<8>()?;
    Ok(format!("thru-agent-{}", control::proto::auth::hex(&random)))
}

/// Copies the first of the programs that runs on the host, into a new folder of that name, which it returns.
async fn copy(session: &Session, programs: &[Program], name: &str) -> Result<String, String> {
    let there = run(session, "uname -sm", &[], &[]).await?;
    let there = there.trim();
    let (fitting, others): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|program| there == format!("Linux {}", program.machine));
    let mut failed = None;
    for program in fitting {
        match run(session, COPY, &[name], &program.bytes).await {
            Ok(folder) => return Ok(folder.trim().to_owned()),
            // What the first one lacks is the reason.
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    Err(failed.unwrap_or_else(|| {
        let machines: BTreeSet<&str> = others.iter().map(|program| program.machine).collect();
        format!(
            "the host is {there}, and the program is for {}: give a build for it: `thru fleet up --program FILE`",
            machines.into_iter().collect::<Vec<_>>().join(", ")
        )
    }))
}

/// The address that an agent listens on: any of its host, as data may come to another one, with the port of `control`.
fn listen(control: &str) -> Result<String, String> {
    let identity = control::coordinator::identity(control).map_err(|error| error.to_string())?;
    let port = identity.rsplit_once(':').map_or("6280", |(_, port)| port);
    let any = if identity.starts_with('[') { "[::]" } else { "0.0.0.0" };
    Ok(format!("{any}:{port}"))
}

async fn connect(destination: &str, config: Option<&Path>) -> Result<Session, String> {
    let mut builder = SessionBuilder::default();
    builder.known_hosts_check(KnownHosts::Strict).connect_timeout(CONNECT_LIMIT);
    if let Some(config) = config {
        builder.config_file(config);
    }
    builder.connect(destination).await.map_err(|error| {
        let said = causes(&error);
        format!("ssh does not reach {destination}: {said}; try `ssh {destination} true`")
    })
}

/// An error with what caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let text = inner.to_string();
        if !said.contains(&text) {
            said = format!("{said}: {text}");
        }
        cause = inner.source();
    }
    said.trim().to_owned()
}

/// Runs a script of sh with these arguments and this input, and returns its output.
async fn run(session: &Session, script: &str, args: &[&str], input: &[u8]) -> Result<String, String> {
    let mut command = session.command("sh");
    command.arg("-c").arg(script).arg("sh").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().await.map_err(|error| causes(&error))?;
    if let Some(mut stdin) = child.stdin().take() {
        // A script that ends early says why.
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
    let output = child.wait_with_output().await.map_err(|error| causes(&error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(if said.trim().is_empty() { output.status.to_string() } else { model::plain(said.trim()).into_owned() })
}

/// Stops the agents and removes their folders.
pub(super) async fn down(state: &State, tell: &impl Fn(&str)) -> Vec<HostResult> {
    let config = state.ssh_config();
    let one = async |host: &Started| {
        let stopped = async {
            let session = connect(&host.ssh, config).await?;
            let stopped = run(&session, STOP, &[&host.folder], &[]).await;
            let _ = session.close().await;
            stopped
        };
        let stopped = match tokio::time::timeout(HOST_LIMIT, stopped).await {
            Ok(stopped) => stopped.err(),
            Err(_) => Some(format!("no answer within {} s", HOST_LIMIT.as_secs())),
        };
        HostResult { name: host.name.clone(), error: stopped }
    };
    let mut works = iter(state.hosts().iter().map(one)).buffer_unordered(AT_ONCE);
    let mut results = Vec::new();
    while let Some(result) = works.next().await {
        tell(&format!("{} stopped, {} of {}", result.name, results.len() + 1, state.hosts().len()));
        results.push(result);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_listens_on_the_port_that_the_fleet_has_for_it() {
        assert_eq!(listen("n1").unwrap(), "0.0.0.0:6280");
        assert_eq!(listen("n1:7000").unwrap(), "0.0.0.0:7000");
        assert_eq!(listen("[2001:db8::1]:7000").unwrap(), "[::]:7000");
    }
}
