//! Labs in real namespaces. Without the privilege these tests skip with a message, except in CI as root, where
//! skipping would hide a fault.
//!
//! Other processes of a test are this same binary, running one of the ignored tests below.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "the helpers of tests may stop at the first surprise too")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab::{CrossoverSpec, Lab, LabError, LabHost, Subnets, available, reap_stale};

/// Longer than anything here takes on a busy machine; a test that reaches it has failed.
const LIMIT: Duration = Duration::from_secs(60);
/// Every lab is a network of its own, so that one port serves all.
const PORT: u16 = 5_001;

/// Whether the test can run. Prints a line if it cannot.
fn possible(test: &str) -> bool {
    match available() {
        Ok(()) => true,
        Err(error) => {
            let root = fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0\t");
            let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!(ci && root), "{test} must run in CI as root: {error}");
            // Not eprintln, which the test harness would keep to itself.
            let notice = format!("SKIPPED: {test}: {error}\n");
            std::io::stderr().write_all(notice.as_bytes()).unwrap();
            false
        }
    }
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs one of the ignored tests below through `command`, a command for this test binary.
fn role<'a>(command: &'a mut Command, name: &str) -> &'a mut Command {
    let (_, module) = module_path!().split_once("::").unwrap(); // the harness leaves out the name of the binary
    command.args(["--ignored", "--exact", &format!("{module}::{name}"), "--nocapture"])
}

fn this_binary() -> std::path::PathBuf {
    std::env::current_exe().unwrap()
}

/// Names in a directory that start with `prefix`.
fn named(directory: &str, prefix: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// What exists of labs whose name starts with `prefix`: namespaces and journal records.
fn traces(prefix: &str) -> Vec<String> {
    [named("/run/netns", prefix), named("/run/throughline/lab", prefix)].concat()
}

/// State, parent and process group of a process (proc_pid_stat(5)); `None` when there is no such process.
fn stat(pid: u32) -> Option<(String, u32, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.into(), fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Whether a process runs; one that has ended and waits for its parent does not.
fn runs(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, ..)| state != "Z" && state != "X")
}

/// Exchanges bytes between the hosts of a lab, once for each IP version.
fn exchange(lab: &Lab) {
    let [a, b] = lab.hosts() else { unreachable!() };
    for address in [IpAddr::V4(b.v4), IpAddr::V6(b.v6)] {
        let at = SocketAddr::new(address, PORT).to_string();
        let play = |host: &LabHost, name| {
            let mut command = host.command(this_binary());
            role(&mut command, name).env("LAB_ADDRESS", &at).stdout(Stdio::null()).spawn().unwrap()
        };
        let (mut server, mut client) = (play(b, "serve_once"), play(a, "connect_once"));
        let client = client.wait().unwrap();
        assert!(client.success(), "no exchange with {at}");
        assert!(server.wait().unwrap().success());
    }
}

#[test]
#[ignore = "a process of other tests"]
fn serve_once() {
    let Ok(at) = std::env::var("LAB_ADDRESS") else { return };
    let (mut flow, _) = TcpListener::bind(&at).unwrap().accept().unwrap();
    let mut request = [0; 4];
    flow.read_exact(&mut request).unwrap();
    request.reverse();
    flow.write_all(&request).unwrap();
}

#[test]
#[ignore = "a process of other tests"]
fn connect_once() {
    let Ok(at) = std::env::var("LAB_ADDRESS") else { return };
    let mut flow = None;
    eventually("the server listens", || {
        flow = TcpStream::connect(&at).ok();
        flow.is_some()
    });
    let mut flow = flow.unwrap();
    flow.write_all(b"thru").unwrap();
    let mut reply = Vec::new();
    flow.read_to_end(&mut reply).unwrap();
    assert_eq!(reply, b"urht");
}

#[test]
fn hosts_reach_each_other_over_both_ip_versions_in_two_labs_at_once() {
    if !possible("hosts_reach_each_other_over_both_ip_versions_in_two_labs_at_once") {
        return;
    }
    let (one, two) =
        (Lab::crossover(&CrossoverSpec::default()).unwrap(), Lab::crossover(&CrossoverSpec::default()).unwrap());
    assert_ne!(one.host("a").unwrap().namespace, two.host("a").unwrap().namespace);
    assert_ne!(one.host("a").unwrap().v4, two.host("a").unwrap().v4);
    assert_ne!(one.host("a").unwrap().v6, two.host("a").unwrap().v6);
    exchange(&one);
    exchange(&two);
    drop(one);
    exchange(&two);
    two.close().unwrap();
}

#[test]
#[ignore = "a process of other tests"]
fn describe_host() {
    if std::env::var_os("LAB_DESCRIBE").is_none() {
        return;
    }
    for interface in host::inventory(&host::RealSys).interfaces {
        println!(
            "HOST {} mtu {:?} state {:?} speed {:?} addresses {}",
            interface.name,
            interface.mtu.unwrap(),
            interface.state.unwrap(),
            interface.speed_mbps.is_some(),
            interface.addresses.join(" ")
        );
    }
}

/// The interfaces as a program on the host sees them, a line each.
fn interfaces(host: &LabHost) -> Vec<String> {
    let output = role(&mut host.command(this_binary()), "describe_host").env("LAB_DESCRIBE", "1").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_once("HOST ")).map(|(_, rest)| rest.to_owned()).collect()
}

#[test]
fn each_host_sees_its_own_interfaces_with_the_requested_mtu() {
    if !possible("each_host_sees_its_own_interfaces_with_the_requested_mtu") {
        return;
    }
    let lab = Lab::crossover(&CrossoverSpec { mtu: 9_000, ..CrossoverSpec::default() }).unwrap();
    for host in lab.hosts() {
        let seen = interfaces(host);
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(seen[0].starts_with("eth0 mtu 9000 state \"up\" speed true"), "{seen:?}");
        for address in [format!("{}/30", host.v4), format!("{}/64", host.v6)] {
            assert!(seen[0].split(' ').any(|word| word == address), "{address}: {seen:?}");
        }
        assert!(seen[1].starts_with("lo mtu 65536") && seen[1].contains("127.0.0.1/8 ::1/128"), "{seen:?}");
    }
    assert!(matches!(lab.host("c"), Err(LabError::NoHost { .. })));
}

#[test]
fn dropping_a_lab_removes_it_and_its_processes() {
    if !possible("dropping_a_lab_removes_it_and_its_processes") {
        return;
    }
    let lab = Lab::crossover(&CrossoverSpec::default()).unwrap();
    let name = lab.name().to_owned();
    assert_eq!(traces(&name).len(), 3, "{:?}", traces(&name));
    let mut inside = lab.host("b").unwrap().command("sleep").arg("100000").spawn().unwrap();
    // It is in the namespace, and so in danger, only once `ip` has become `sleep`.
    let exe = format!("/proc/{}/comm", inside.id());
    eventually("sleep runs", || fs::read_to_string(&exe).unwrap().trim() == "sleep");
    drop(lab);
    assert_eq!(traces(&name), [""; 0]);
    let mut ended = None;
    eventually("sleep has ended", || {
        ended = inside.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.unwrap().signal(), Some(9));
}

#[test]
fn a_lab_that_cannot_be_finished_leaves_nothing() {
    if !possible("a_lab_that_cannot_be_finished_leaves_nothing") {
        return;
    }
    let prefix = format!("thru-half-{}", std::process::id());
    // A multicast prefix passes for a network, but the kernel does not give a host an address of it.
    let subnets = Some(Subnets { v4: [198, 18, 0, 0].into(), v6: "ff05::".parse().unwrap() });
    let error =
        Lab::crossover(&CrossoverSpec { prefix: prefix.clone(), subnets, ..CrossoverSpec::default() }).unwrap_err();
    let LabError::Command { command, reason } = &error else { panic!("{error}") };
    assert!(command.contains(" address add ff05::1/64 dev eth0"), "{error}");
    assert!(!reason.is_empty());
    assert_eq!(traces(&prefix), [""; 0]);
}

#[test]
fn a_lab_whose_owner_lives_is_not_stale() {
    if !possible("a_lab_whose_owner_lives_is_not_stale") {
        return;
    }
    let lab = Lab::crossover(&CrossoverSpec::default()).unwrap();
    let reaped = reap_stale().unwrap();
    assert!(!reaped.contains(&lab.name().to_owned()), "{reaped:?}");
    exchange(&lab);
}

/// An owner of a lab in another process: its process, and the number of a process that runs on one of the lab's hosts.
struct Owner {
    process: Child,
    prefix: String,
    inside: u32,
}

#[test]
#[ignore = "a process of other tests"]
fn own_a_lab() {
    let Ok(prefix) = std::env::var("LAB_PREFIX") else { return };
    let lab = Lab::crossover(&CrossoverSpec { prefix, ..CrossoverSpec::default() }).unwrap();
    let mut inside =
        lab.host("a").unwrap().command("sh").args(["-c", "echo INSIDE $$; exec sleep 100000"]).spawn().unwrap();
    inside.wait().unwrap();
}

/// Starts `own_a_lab` in a process group of its own.
fn start_owner(prefix: &str) -> Child {
    role(&mut Command::new(this_binary()), "own_a_lab")
        .env("LAB_PREFIX", prefix)
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// An owner whose lab is complete.
fn owner(test: &str) -> Owner {
    let prefix = format!("thru-{test}-{}", std::process::id());
    let mut process = start_owner(&prefix);
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let inside = lines.map_while(Result::ok).find_map(|line| line.split_once("INSIDE ")?.1.trim().parse().ok());
    let owner = Owner { process, prefix, inside: inside.expect("the owner makes a lab") };
    assert!(runs(owner.inside));
    assert_eq!(traces(&owner.prefix).len(), 3);
    owner
}

impl Owner {
    fn kill(&mut self, signal: &str, target: &str) {
        assert!(Command::new("kill").args([signal, "--", target]).status().unwrap().success());
        self.process.wait().unwrap();
    }

    fn assert_removed(&self) {
        eventually("the lab is removed", || traces(&self.prefix).is_empty());
        eventually("the process in it has ended", || !runs(self.inside));
    }
}

#[test]
fn killing_the_owner_removes_its_lab() {
    if !possible("killing_the_owner_removes_its_lab") {
        return;
    }
    let mut owner = owner("kill");
    owner.kill("-KILL", &owner.process.id().to_string());
    owner.assert_removed();
}

#[test]
fn an_interrupt_from_the_terminal_does_not_reach_the_reaper() {
    if !possible("an_interrupt_from_the_terminal_does_not_reach_the_reaper") {
        return;
    }
    let mut owner = owner("int");
    let group = |pid| stat(pid).unwrap().2;
    assert_eq!(group(owner.process.id()), owner.process.id());
    assert_ne!(group(reaper_of(owner.process.id())), owner.process.id());
    owner.kill("-INT", &format!("-{}", owner.process.id()));
    owner.assert_removed();
}

#[test]
fn killing_the_owner_while_it_builds_leaves_nothing() {
    if !possible("killing_the_owner_while_it_builds_leaves_nothing") {
        return;
    }
    // From before the first command until after the last, as far as these moments can be hit from outside.
    for step in 0..12_u64 {
        let prefix = format!("thru-early-{}-{step}", std::process::id());
        let mut process = start_owner(&prefix);
        let record_of = || {
            let files = named("/run/throughline/lab", &prefix);
            files.into_iter().filter(|name| name.ends_with(".json")).collect::<Vec<_>>()
        };
        eventually("the record is written", || !record_of().is_empty());
        // The moment of the kill, another one at each step.
        std::thread::sleep(Duration::from_millis(step * 5));
        process.kill().unwrap();
        process.wait().unwrap();
        // The reaper removes the record last, so that no record means no namespace to come.
        eventually("the record is removed", || record_of().is_empty());
        assert_eq!(traces(&prefix), [""; 0]);
    }
}

#[test]
fn a_command_that_outlives_its_owner_leaves_nothing() {
    if !possible("a_command_that_outlives_its_owner_leaves_nothing") {
        return;
    }
    // An `ip` that takes its time to make a namespace, and reports when it has begun and ended.
    let place = tempfile::tempdir().unwrap();
    let (path, file) = (std::env::var("PATH").unwrap(), |name| place.path().join(name));
    let slow = format!(
        "#!/bin/sh\nPATH={path}:/usr/sbin:/sbin\nif [ \"$2\" != add ]; then exec ip \"$@\"; fi\n\
         echo > {0}.began; sleep 0.5; ip \"$@\"; echo > {0}.ended\n",
        file("ip").display()
    );
    fs::write(file("ip"), slow).unwrap();
    fs::set_permissions(file("ip"), fs::Permissions::from_mode(0o755)).unwrap();

    let prefix = format!("thru-slow-{}", std::process::id());
    let mut command = Command::new(this_binary());
    let owner = role(&mut command, "own_a_lab").env("LAB_PREFIX", &prefix).stdout(Stdio::null());
    let mut owner = owner.env("PATH", format!("{}:{path}", place.path().display())).spawn().unwrap();
    eventually("the command has begun", || file("ip.began").exists());
    let reaper = reaper_of(owner.id());
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the command has ended", || file("ip.ended").exists());
    eventually("the lab is removed", || traces(&prefix).is_empty());
    eventually("the reaper, which uses the slow command too, has ended", || !runs(reaper));
}

/// The process that waits for `owner` to end.
fn reaper_of(owner: u32) -> u32 {
    let is_reaper = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        stat(*pid).is_some_and(|(_, parent, _)| parent == owner)
            && String::from_utf8_lossy(&line).contains("lab-reaper")
    };
    named("/proc", "").iter().filter_map(|name| name.parse().ok()).find(is_reaper).expect("the owner has a reaper")
}

#[test]
fn the_journal_finds_a_lab_whose_owner_and_reaper_were_killed() {
    if !possible("the_journal_finds_a_lab_whose_owner_and_reaper_were_killed") {
        return;
    }
    let mut owner = owner("both");
    let reaper = reaper_of(owner.process.id());
    assert!(Command::new("kill").args(["-KILL", &reaper.to_string()]).status().unwrap().success());
    eventually("the reaper has ended", || !runs(reaper));
    assert_eq!(traces(&owner.prefix).len(), 3, "the lab of a live owner stays");
    owner.kill("-KILL", &owner.process.id().to_string());
    // Another test's lab may find it first.
    eventually("the stale lab is reaped", || {
        reap_stale().unwrap();
        traces(&owner.prefix).is_empty()
    });
    owner.assert_removed();
    assert!(Path::new("/run/throughline/lab").is_dir());
}
