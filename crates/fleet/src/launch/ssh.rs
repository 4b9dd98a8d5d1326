//! Agents by ssh: a copy of the program in a folder of its own on each host, which goes with it. No rights of root are needed there.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use command::Failure;
use control::ControlError;
use futures_util::StreamExt;
use futures_util::stream::iter;
use openssh::{KnownHosts, Session, SessionBuilder, Stdio};
use plan::FleetHost;
use thiserror::Error;
use tokio::io::AsyncWriteExt;

use super::program::{self, Program};
use super::request::{HostResult, UpRequest};
use super::state::{Started, State};

/// Hosts that get the program at the same time.
const AT_ONCE: usize = 16;
/// Longest time for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// Longest time for one host.
const HOST_LIMIT: Duration = Duration::from_secs(180);

/// Before what a script prints comes this line: a shell may print lines of its own, from its start-up files.
const MARK: &str = "--- thru ---";
const MARKED: &str = "echo '--- thru ---'; echo '--- thru ---' >&2; ";

/// Where a host may keep the program: the places that [`COPY`] tries in turn.
const PLACES: [&str; 3] = ["${TMPDIR:-/tmp}", "/var/tmp", "$HOME"];
/// The exit code of [`COPY`] for a program that this host cannot run, wherever it is.
const CANNOT_RUN: i32 = 3;

/// Makes the folder of this name in a place where programs may run, and takes the program from standard input. Prints the folder once the
/// program runs there.
const COPY: &str = r#"umask 077
eval "base=$2"
folder=$base/$1
mkdir -m 700 "$folder" || exit 1
fails() { rm -rf "$folder"; printf '%s: %s\n' "$base" "$1" >&2; exit 1; }
printf '#!/bin/sh\n' > "$folder/thru" && chmod 700 "$folder/thru" || fails 'cannot write there'
"$folder/thru" 2>/dev/null || fails 'programs cannot run there'
# An agent of root becomes another user, which runs this file and makes its own next to it.
mkdir -m 1777 "$folder/tmp" && chmod 1777 "$folder/tmp" && chmod 711 "$folder" || fails 'cannot make a folder there'
said=$(cat 2>&1 > "$folder/thru") && chmod 755 "$folder/thru" || fails "$said"
said=$("$folder/thru" --version 2>&1) && { echo "$folder"; exit 0; }
rm -rf "$folder"
printf 'the program does not run there (%s): give a static build: `thru fleet up --program FILE`\n' "$said" >&2
exit 3"#;

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

/// Why the agent of a host is not started, or not stopped.
#[derive(Debug, Error)]
enum SshError {
    #[error("no answer within {} s", HOST_LIMIT.as_secs())]
    Silent,
    #[error(
        "ssh cannot reach {destination}: {}; try `ssh {}{destination} true`",
        on_one_line(&causes(error)),
        config.as_ref().map_or_else(String::new, |config| format!("-F {} ", config.display()))
    )]
    Unreachable { destination: String, config: Option<PathBuf>, error: openssh::Error },
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("its agent did not start: {0}")]
    NotStarted(ScriptError),
    #[error(
        "the host is {host}, but the program is for {}: give a build for it with `thru fleet up --program FILE`",
        .machines.iter().copied().collect::<Vec<_>>().join(", ")
    )]
    Machine { host: String, machines: BTreeSet<&'static str> },
    #[error(
        "no usable folder for the program ({}): set TMPDIR there",
        .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    NoPlace(Vec<ScriptError>),
    #[error("cannot draw a random number: {0}")]
    Random(io::Error),
    #[error("{0}")]
    State(Failure),
    #[error(transparent)]
    Address(#[from] ControlError),
}

/// Why a script failed.
#[derive(Debug, Error)]
enum ScriptError {
    #[error("{}", on_one_line(&causes(.0)))]
    Lost(openssh::Error),
    #[error("the login shell there does not run commands: {}", if said.is_empty() { "it printed nothing" } else { said })]
    NoShell { said: String },
    #[error("{}", if said.is_empty() { status(*code) } else { said.clone() })]
    Failed { code: Option<i32>, said: String },
}

/// How a script ended that says nothing.
fn status(code: Option<i32>) -> String {
    code.map_or_else(|| "killed by a signal".to_owned(), |code| format!("exit status {code}"))
}

/// Starts an agent on each host; what runs is in `state`. What an earlier agent of a host has left there is removed first.
pub(super) async fn up(
    hosts: &[&FleetHost],
    request: &UpRequest,
    state: &mut State,
    tell: &impl Fn(&str),
) -> Result<Vec<HostResult>, Failure> {
    let programs = program::to_copy(&request.programs)?;
    let token = std::fs::read(state.token_file())
        .map_err(|error| Failure::output(format!("cannot read the fleet's token: {error}")))?;
    let config = state.ssh_config().map(Path::to_owned);
    let (programs, token, config) = (&programs, &token, config.as_deref());
    let state = &RefCell::new(state);
    let one = async |host: &FleetHost| {
        let work = start(host, config, programs, token, state);
        let started = tokio::time::timeout(HOST_LIMIT, work).await;
        (host.name.clone(), started.unwrap_or(Err(SshError::Silent)))
    };
    let mut works = iter(hosts.iter().copied().map(one)).buffer_unordered(AT_ONCE);
    let mut results = Vec::with_capacity(hosts.len());
    while let Some((name, started)) = works.next().await {
        let error = started.err().map(|error| error.to_string().into());
        let what = if error.is_some() { "failed" } else { "is running" };
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
) -> Result<(), SshError> {
    let destination = host.ssh.clone().unwrap_or_else(|| host.name.clone());
    let session = connect(&destination, config).await?;
    let before = state.borrow().hosts().iter().find(|started| started.name == host.name).cloned();
    if let Some(before) = before {
        run(&session, STOP, &[&before.folder], &[]).await?;
    }
    let write = |started: Started| state.borrow_mut().add(started).map_err(SshError::State);
    let folder = folder_name().map_err(SshError::Random)?;
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
            return Err(SshError::NotStarted(error));
        }
    };
    let _ = session.close().await;
    let key = Some(printed.trim().to_owned()).filter(|key| !key.is_empty());
    write(Started { key, ..started })
}

/// A name for the folder on a host. Another user there cannot guess it.
fn folder_name() -> io::Result<String> {
    let random = engine::random::<8>()?;
    Ok(format!("thru-agent-{}", hex::encode(random)))
}

/// Copies the first of the programs that runs on the host, into a new folder of that name, which it returns.
async fn copy(session: &Session, programs: &[Program], name: &str) -> Result<String, SshError> {
    let there = run(session, "uname -sm", &[], &[]).await?;
    let there = there.trim();
    let (fitting, others): (Vec<&Program>, Vec<&Program>) =
        programs.iter().partition(|program| there == format!("Linux {}", program.machine));
    if fitting.is_empty() {
        let machines = others.iter().map(|program| program.machine).collect();
        return Err(SshError::Machine { host: there.to_owned(), machines });
    }
    let (mut places, mut cannot_run) = (Vec::new(), None);
    for program in fitting {
        places.clear();
        for place in PLACES {
            match run(session, COPY, &[name, place], &program.bytes).await {
                Ok(folder) => return Ok(folder.trim().to_owned()),
                Err(error @ ScriptError::Failed { code: Some(CANNOT_RUN), .. }) => {
                    // What the first one lacks is the reason.
                    cannot_run = cannot_run.or(Some(error.into()));
                    break;
                }
                Err(error) => places.push(error),
            }
        }
    }
    Err(cannot_run.unwrap_or(SshError::NoPlace(places)))
}

/// The address that an agent listens on: any of its host, as data may come to another one, with the port of `control`.
fn listen(control: &str) -> Result<String, ControlError> {
    let identity = control::coordinator::identity(control)?;
    let port = identity.rsplit_once(':').map_or("6280", |(_, port)| port);
    let any = if identity.starts_with('[') { "[::]" } else { "0.0.0.0" };
    Ok(format!("{any}:{port}"))
}

async fn connect(destination: &str, config: Option<&Path>) -> Result<Session, SshError> {
    let mut builder = SessionBuilder::default();
    builder.known_hosts_check(host_keys(destination, config).await).connect_timeout(CONNECT_LIMIT);
    if let Some(config) = config {
        builder.config_file(config);
    }
    builder.connect(destination).await.map_err(|error| SshError::Unreachable {
        destination: destination.to_owned(),
        config: config.map(Path::to_owned),
        error,
    })
}

/// What the configuration of ssh says about unknown keys of a host, since the option that openssh passes would go before it.
async fn host_keys(destination: &str, config: Option<&Path>) -> KnownHosts {
    let mut command = tokio::process::Command::new("ssh");
    if let Some(config) = config {
        command.arg("-F").arg(config);
    }
    let told = command.arg("-G").arg("--").arg(destination).stdin(std::process::Stdio::null()).output().await;
    let told = told.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    of_unknown_keys(&told)
}

/// The same, of what `ssh -G` prints. Where it would ask, nobody is there to answer.
fn of_unknown_keys(config: &str) -> KnownHosts {
    match config.lines().find_map(|line| line.strip_prefix("stricthostkeychecking ")).map(str::trim) {
        Some("no" | "off" | "false") => KnownHosts::Accept,
        Some("accept-new") => KnownHosts::Add,
        _ => KnownHosts::Strict,
    }
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

/// Text of another program on one line, such as that of ssh, whose lines end with CR LF.
fn on_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    model::plain(&lines.join("; ")).into_owned()
}

/// Runs a script of sh with these arguments and this input, and returns its output.
async fn run(session: &Session, script: &str, args: &[&str], input: &[u8]) -> Result<String, ScriptError> {
    let mut command = session.command("sh");
    command.arg("-c").arg(format!("{MARKED}{script}")).arg("sh").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().await.map_err(ScriptError::Lost)?;
    if let Some(mut stdin) = child.stdin().take() {
        // A script that ends early says why.
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
    let output = child.wait_with_output().await.map_err(ScriptError::Lost)?;
    of_output(output.status.code(), &output.stdout, &output.stderr)
}

/// The output of a script, or why it failed: without what the shell printed before it.
fn of_output(code: Option<i32>, stdout: &[u8], stderr: &[u8]) -> Result<String, ScriptError> {
    let [stdout, stderr] = [stdout, stderr].map(String::from_utf8_lossy);
    let Some(printed) = behind_mark(&stdout) else {
        // What a shell that runs no command says is on either.
        return Err(ScriptError::NoShell { said: on_one_line(&format!("{stdout}\n{stderr}")) });
    };
    if code == Some(0) {
        return Ok(printed.to_owned());
    }
    Err(ScriptError::Failed { code, said: on_one_line(behind_mark(&stderr).unwrap_or(&stderr)) })
}

/// What follows the line that a script prints first.
fn behind_mark(text: &str) -> Option<&str> {
    let at = text.find(MARK)? + MARK.len();
    Some(text[at..].trim_start_matches(['\r', '\n']))
}

/// Stops the agents of these hosts and removes their folders.
pub(super) async fn down(state: &State, hosts: &[&Started], tell: &impl Fn(&str)) -> Vec<HostResult> {
    let config = state.ssh_config();
    let one = async |host: &Started| {
        let stopped = async {
            let session = connect(&host.ssh, config).await?;
            let stopped = run(&session, STOP, &[&host.folder], &[]).await;
            let _ = session.close().await;
            stopped.map(drop).map_err(SshError::from)
        };
        let stopped = tokio::time::timeout(HOST_LIMIT, stopped).await.unwrap_or(Err(SshError::Silent));
        HostResult { name: host.name.clone(), error: stopped.err().map(|error| error.to_string().into()) }
    };
    let mut works = iter(hosts.iter().copied().map(one)).buffer_unordered(AT_ONCE);
    let mut results = Vec::new();
    while let Some(result) = works.next().await {
        tell(&format!("{} stopped, {} of {}", result.name, results.len() + 1, hosts.len()));
        results.push(result);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ScriptError {
        fn code(&self) -> Option<i32> {
            if let Self::Failed { code, .. } = self { *code } else { None }
        }
    }

    #[test]
    fn what_a_chatty_shell_prints_first_is_no_output_of_a_script() {
        let chatty = of_output(Some(0), b"Welcome\r\n--- thru ---\nLinux x86_64\n", b"");
        assert_eq!(chatty.ok().unwrap(), "Linux x86_64\n");
        let failed = |code, stdout: &[u8], stderr: &[u8]| of_output(code, stdout, stderr).err().unwrap();
        let full = failed(Some(1), b"Hi\n--- thru ---\n", b"motd\n--- thru ---\n/tmp: cat: write error\r\n");
        assert_eq!((full.code(), full.to_string().as_str()), (Some(1), "/tmp: cat: write error"));
        let silent = failed(Some(7), b"--- thru ---\n", b"banner\n--- thru ---\n");
        assert_eq!(silent.to_string(), "exit status 7");
        let none = failed(Some(1), b"This account is currently not available.\n", b"");
        assert_eq!(
            none.to_string(),
            "the login shell there does not run commands: This account is currently not available."
        );
    }

    #[test]
    fn scripts_print_their_mark_and_try_the_next_place() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("full");
        std::fs::create_dir(&place).unwrap();
        let copied = |place: &str, program: &[u8]| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", &format!("{MARKED}{COPY}"), "sh", "thru-agent-1", place]).env("HERE", folder.path());
            let piped = std::process::Stdio::piped;
            let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap();
            let _ = std::io::Write::write_all(&mut child.stdin.take().unwrap(), program);
            let output = child.wait_with_output().unwrap();
            of_output(output.status.code(), &output.stdout, &output.stderr)
        };
        let there = copied("$HERE", b"#!/bin/sh\necho 1\n").ok().unwrap();
        assert_eq!(there.trim(), folder.path().join("thru-agent-1").display().to_string());
        let again = copied("$HERE", b"").err().unwrap();
        assert!(again.code() == Some(1) && again.to_string().contains("thru-agent-1"), "{again}");
        let wrong = copied("$HERE/full", b"#!/bin/sh\necho why; exit 9\n").err().unwrap();
        assert_eq!(wrong.code(), Some(CANNOT_RUN));
        let said = wrong.to_string();
        assert!(said.starts_with("the program does not run there (why): give a static build"), "{said}");
        assert!(std::fs::read_dir(&place).unwrap().next().is_none(), "what fails is removed");
    }

    #[test]
    fn the_configuration_says_what_becomes_of_unknown_keys() {
        let of = |value: &str| of_unknown_keys(&format!("user root\nstricthostkeychecking {value}\nport 22\n"));
        let is = |found: KnownHosts, expected: &KnownHosts| {
            std::mem::discriminant(&found) == std::mem::discriminant(expected)
        };
        assert!(is(of("false"), &KnownHosts::Accept) && is(of("no"), &KnownHosts::Accept));
        assert!(is(of("accept-new"), &KnownHosts::Add));
        assert!(is(of("ask"), &KnownHosts::Strict) && is(of("true"), &KnownHosts::Strict));
        assert!(is(of_unknown_keys(""), &KnownHosts::Strict));
    }

    #[test]
    fn an_agent_listens_on_the_port_that_the_fleet_has_for_it() {
        assert_eq!(listen("n1").unwrap(), "0.0.0.0:6280");
        assert_eq!(listen("n1:7000").unwrap(), "0.0.0.0:7000");
        assert_eq!(listen("[2001:db8::1]:7000").unwrap(), "[::]:7000");
    }
}
