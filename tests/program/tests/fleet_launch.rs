//! `thru fleet up` and `down`: agents that a launcher starts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::PathBuf;

use model::HostCheck;
use program::{Finished, Running, Sandbox, skip};

/// Three hosts of a lab without agents, two of which run sshd. However the test ends, the lab is taken down.
struct SshHosts {
    sandbox: Sandbox,
    name: String,
    sshd: Vec<Running>,
}

impl SshHosts {
    fn new(test: &str) -> Option<Self> {
        if let Err(error) = lab::available() {
            skip::skip(test, &error.to_string());
            return None;
        }
        if !skip::program(test, "ssh", "openssh-client") || !skip::program(test, "/usr/sbin/sshd", "openssh-server") {
            return None;
        }
        let mut hosts = Self { sandbox: Sandbox::new(), name: format!("ssh-{}", std::process::id()), sshd: Vec::new() };
        let sandbox = &hosts.sandbox;
        let topology =
            "[[host]]\nname = \"h\"\ncount = 4\n[[switch]]\nname = \"s\"\n[[link]]\nbetween = [\"h*\", \"s\"]\n";
        fs::write(sandbox.path("lab.toml"), topology).unwrap();
        fs::write(sandbox.path("fleet.toml"), "[[host]]\nname = \"h[2-3]\"\n").unwrap();
        for key in ["host", "user"] {
            let path = sandbox.path(key).display().to_string();
            sandbox.tool("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path]).ok();
        }
        // The configuration decides about unknown keys.
        let config = format!(
            "Host *\n User root\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n ConnectTimeout 5\n \
             StrictHostKeyChecking accept-new\n",
            sandbox.path("user").display(),
            sandbox.path("known").display()
        );
        fs::write(sandbox.path("config"), config).unwrap();
        let lab = ["lab", "up", "lab.toml", "--name", &hosts.name, "--no-agents"];
        sandbox.run(&lab).ok();
        fs::create_dir_all("/run/sshd").unwrap();
        for host in ["h2", "h3"] {
            let option = |name: &str, value: String| ["-o".to_owned(), format!("{name}={value}")];
            let options = [
                option("AuthorizedKeysFile", sandbox.path("user.pub").display().to_string()),
                option("StrictModes", "no".into()),
                option("UsePAM", "no".into()),
                option("PidFile", "none".into()),
                option("PermitRootLogin", "yes".into()),
                // A shell that greets.
                option("ForceCommand", r#"echo Welcome; echo Hello >&2; eval "$SSH_ORIGINAL_COMMAND""#.into()),
            ]
            .concat();
            let key = sandbox.path("host").display().to_string();
            let sshd = [
                "lab",
                "exec",
                "--lab",
                &hosts.name,
                host,
                "--",
                "/usr/sbin/sshd",
                "-D",
                "-e",
                "-f",
                "/dev/null",
                "-h",
                &key,
            ];
            let args: Vec<String> = sshd.iter().map(ToString::to_string).chain(options).collect();
            let running = sandbox.start(&args);
            hosts.sshd.push(running);
        }
        for sshd in &mut hosts.sshd {
            program::eventually("sshd listens", || sshd.stderr().contains("Server listening"));
        }
        Some(hosts)
    }

    /// Runs `thru` with these arguments on the host h1.
    fn on_h1(&self, args: &[&str]) -> Finished {
        self.start_on_h1(args).wait()
    }

    /// The same from this folder.
    fn on_h1_in(&self, folder: &std::path::Path, args: &[&str]) -> Finished {
        let mut command = self.command_on_h1(args);
        command.current_dir(folder);
        Running::of(command).wait()
    }

    fn start_on_h1(&self, args: &[&str]) -> Running {
        Running::of(self.command_on_h1(args))
    }

    fn command_on_h1(&self, args: &[&str]) -> std::process::Command {
        let exec = ["lab", "exec", "--lab", &self.name, "h1", "--", "thru"];
        let mut command = self.sandbox.command(&[&exec[..], args].concat());
        command.env("XDG_DATA_HOME", self.sandbox.path("data"));
        command
    }
}

impl Drop for SshHosts {
    fn drop(&mut self) {
        for sshd in &self.sshd {
            sshd.signal(program::process::Signal::TERM);
        }
        let _ = self.sandbox.command(&["lab", "down", &self.name]).output();
    }
}

/// The folders of agents that came by ssh.
fn folders() -> Vec<PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).unwrap().map(|entry| entry.unwrap().path());
    let is_ours =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("thru-agent-"));
    entries.filter(is_ours).collect()
}

/// The agents that run in such folders.
fn agents() -> Vec<u32> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let folders = folders();
    let serves = |process: &u32| {
        let arguments = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let program = fs::read_link(format!("/proc/{process}/exe")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains("serve")
            && folders.iter().any(|folder| program.starts_with(folder))
    };
    processes.filter(serves).collect()
}

fn left() -> usize {
    folders().len()
}

#[test]
fn agents_come_by_ssh_and_leave_nothing() {
    let Some(hosts) = SshHosts::new("agents_come_by_ssh_and_leave_nothing") else { return };
    let before = left();
    let up = hosts.on_h1(&["fleet", "up", "fleet.toml", "--ssh-config", "config"]).ok();
    assert!(up.stdout.starts_with("2 of 2 agents are running."), "{}", up.stdout);
    assert_eq!(left(), before + 2);
    // Commands with the same fleet know the token and the keys.
    let checks: Vec<HostCheck> =
        serde_json::from_str(&hosts.on_h1(&["fleet", "check", "fleet.toml", "--json"]).ok().stdout).unwrap();
    assert!(checks.len() == 2 && checks.iter().all(|check| check.error.is_none()), "{checks:?}");
    let mesh = ["mesh", "fleet.toml", "--pattern", "rr", "--time", "50ms", "--rounds", "1", "--json"];
    let doc = hosts.on_h1(&mesh).doc();
    assert_eq!(doc.run.outcomes.len(), 2);
    // Again for the one that has died, with the same token and configuration; the other one goes on.
    let agents = agents();
    program::process::send(agents[0], program::process::Signal::KILL);
    program::eventually("it is gone", || !self::agents().contains(&agents[0]));
    let again = hosts.on_h1(&["fleet", "up", "fleet.toml"]).ok();
    assert!(again.stdout.starts_with("2 of 2 agents are running."), "{}", again.stdout);
    assert!(again.stderr.contains(" is already running"), "{}", again.stderr);
    assert_eq!(left(), before + 2);
    assert!(self::agents().contains(&agents[1]), "the other one was started again");
    hosts.on_h1(&["fleet", "check", "fleet.toml"]).ok();
    // From another folder.
    let elsewhere = tempfile::tempdir().unwrap();
    let fleet = hosts.sandbox.path("fleet.toml").display().to_string();
    let down = hosts.on_h1_in(elsewhere.path(), &["fleet", "down", &fleet]).ok();
    assert!(down.stdout.starts_with("2 of 2 agents are stopped."), "{}", down.stdout);
    assert_eq!(left(), before);
    assert!(hosts.on_h1(&["fleet", "down", "fleet.toml"]).ended_with(2).message().contains("no agents of fleet.toml"));
    // A host without sshd costs itself only.
    fs::write(hosts.sandbox.path("fleet.toml"), "[[host]]\nname = \"h[3-4]\"\n").unwrap();
    let up = hosts.on_h1(&["fleet", "up", "fleet.toml", "--ssh-config", "config"]).ended_with(3);
    assert!(up.stdout.starts_with("1 of 2 agents are running.\n  h4: ssh cannot reach h4: "), "{}", up.stdout);
    hosts.on_h1(&["fleet", "down", "fleet.toml"]).ok();
    assert_eq!(left(), before);
    // A program whose loader a host lacks, as with another C library, gives way to the next one.
    let thru = program::binary::thru();
    let mut bytes = fs::read(thru).unwrap();
    let loader = bytes.windows(11).position(|window| window == b"/ld-linux-x").expect("the path of the loader");
    bytes[loader + 1..loader + 3].copy_from_slice(b"no");
    // The rest of the file is not looked at without its loader.
    bytes.truncate(64 << 10);
    fs::write(hosts.sandbox.path("broken"), bytes).unwrap();
    fs::write(hosts.sandbox.path("fleet.toml"), "[[host]]\nname = \"h2\"\n").unwrap();
    let up = ["fleet", "up", "fleet.toml", "--ssh-config", "config", "--program", "broken"];
    let refused = hosts.on_h1(&up).ended_with(3);
    for part in [
        "0 of 1 agents are running.\n  h2: the program does not run there (",
        "give a static build: `thru fleet up --program FILE`",
    ] {
        assert!(refused.stdout.contains(part), "{}", refused.stdout);
    }
    assert_eq!(left(), before);
    hosts.on_h1(&[&up[..], &["--program", &thru.display().to_string()]].concat()).ok();
    hosts.on_h1(&["fleet", "down", "fleet.toml"]).ok();
    let refused = hosts.on_h1(&["fleet", "up", "fleet.toml", "--program", "fleet.toml"]).ended_with(2).message();
    assert!(refused.contains("fleet.toml is not a Linux program"), "{refused}");
    assert_eq!(left(), before);
    interrupted(&hosts);
}

/// Signals end `up` while a program is copied, and while an agent runs and another host is waited for.
fn interrupted(hosts: &SshHosts) {
    let (before, others) = (left(), folders());
    // A host whose ssh says nothing for long.
    let config = fs::read_to_string(hosts.sandbox.path("config")).unwrap();
    fs::write(hosts.sandbox.path("config"), format!("Host h4\n ProxyCommand sleep 60\n{config}")).unwrap();
    fs::write(hosts.sandbox.path("fleet.toml"), "[[host]]\nname = \"h[3-4]\"\n").unwrap();
    for (what, folders_with) in [("a folder is there", "thru"), ("an agent runs", "agent.key")] {
        let mut up = hosts.start_on_h1(&["fleet", "up", "fleet.toml", "--ssh-config", "config"]);
        program::eventually(what, || {
            assert!(up.runs(), "it ended: {}", up.stderr());
            folders().iter().any(|folder| !others.contains(folder) && folder.join(folders_with).exists())
        });
        up.signal(program::process::Signal::INT);
        up.wait().ended_with(130);
        program::eventually("nothing is left", || left() == before);
        let down = hosts.on_h1(&["fleet", "down", "fleet.toml"]).ended_with(2).message();
        assert!(down.contains("no agents of fleet.toml"), "{down}");
    }
}

#[test]
fn agents_come_by_mpirun() {
    let test = "agents_come_by_mpirun";
    if !skip::program(test, "mpirun", "openmpi-bin") {
        return;
    }
    let sandbox = Sandbox::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let file = sandbox.path("fleet.toml");
    fs::write(&file, format!("[[host]]\nname = \"localhost\"\ncontrol = \"127.0.0.1:{port}\"\n")).unwrap();
    let file = file.display().to_string();
    let run = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command
            .env("XDG_DATA_HOME", sandbox.path("data"))
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        Running::of(command).wait()
    };
    let up = run(&["fleet", "up", &file, "--via", "mpirun"]).ok();
    assert!(up.stdout.starts_with("1 of 1 agents are running."), "{}{}", up.stdout, up.stderr);
    run(&["fleet", "check", &file]).ok();
    run(&["fleet", "down", &file]).ok();
    let gone = run(&["fleet", "check", &file, "--json"]).ended_with(3);
    assert!(gone.stdout.contains("refused"), "{}", gone.stdout);
}
