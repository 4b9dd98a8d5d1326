//! `thru fleet watch`: a mesh as a service, its alerts and its history.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use model::{AlertEvent, MeshHistory, RunKind};
use program::process::{Signal, send};
use program::{Running, skip};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::fleet::{Fleet, Hosts};

/// Longest wait for an alert.
const LIMIT: Duration = Duration::from_secs(120);

/// A process on a host of a lab, and its number.
struct OnHost {
    running: Running,
    pid: u32,
}

impl OnHost {
    fn start(hosts: &Hosts, host: &str, command: &str) -> Self {
        let script = format!("echo pid $$; exec {command}");
        let mut running =
            hosts.sandbox.start(&["lab", "exec", "--lab", &hosts.name, host, "--", "sh", "-c", script.as_str()]);
        running.until_printed("pid ");
        let text = running.stdout();
        let pid = text.split_whitespace().nth(1).and_then(|pid| pid.parse().ok()).expect("a number");
        Self { running, pid }
    }
}

/// A server on a host of a lab that takes what is posted: its port, and the alerts.
fn hook(pid: u32) -> (u16, Receiver<AlertEvent>) {
    let (port, ports) = channel();
    let (event, events) = channel();
    std::thread::spawn(move || {
        let space = File::open(format!("/proc/{pid}/ns/net")).unwrap();
        move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        port.send(listener.local_addr().unwrap().port()).unwrap();
        for stream in listener.incoming() {
            let body = answered(stream.unwrap());
            if event.send(serde_json::from_str(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (ports.recv().unwrap(), events)
}

/// Answers a request, and returns its body.
fn answered(mut stream: TcpStream) -> String {
    let (mut request, mut buffer) = (String::new(), [0; 65_536]);
    loop {
        let read = stream.read(&mut buffer).unwrap();
        request.push_str(&String::from_utf8_lossy(&buffer[..read]));
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            write!(stream, "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n").unwrap();
            return body.to_owned();
        }
    }
}

#[test]
fn a_link_that_becomes_slow_raises_an_alert_and_a_watch_that_was_killed_resolves_it() {
    let test = "a_link_that_becomes_slow_raises_an_alert_and_a_watch_that_was_killed_resolves_it";
    if let Err(error) = lab::available() {
        return skip::skip(test, &error.to_string());
    }
    let hosts = Hosts::new(3);
    for host in ["h1", "h2", "h3"] {
        hosts.shape(host, "40mbit");
    }
    let sleeping = OnHost::start(&hosts, "h1", "sleep 600");
    let (port, alerts) = hook(sleeping.pid);
    // The machine may be busy: one disturbed pass raises nothing.
    let thru = program::binary::thru();
    let watch = format!(
        "{} fleet watch {} --pattern stream --rounds 1 -t 300ms --every 200ms --alert 'goodput<10Mbit' --alert-after 2 --webhook http://127.0.0.1:{port}/",
        thru.display(),
        hosts.sandbox.path("fleet.toml").display()
    );
    let mut begun = OnHost::start(&hosts, "h1", &watch);
    begun.running.until_printed("over 6 pairs");
    assert!(begun.running.stdout().contains("The series watch-fleet begins."), "{}", begun.running.stdout());
    hosts.slow("h1", "h2");
    let raised = alerts.recv_timeout(LIMIT).expect("an alert is posted");
    let pair = |event: &AlertEvent| (event.alert.from.clone(), event.alert.to.clone().unwrap_or_default());
    assert_eq!((raised.event.as_str(), pair(&raised)), ("raised", ("h1".into(), "h2".into())), "{raised:?}");
    assert_eq!((raised.series.as_str(), raised.alert.condition.as_str()), ("watch-fleet", "goodput<10Mbit"));
    assert!(raised.alert.value.is_some_and(|value| value < 1e7) && raised.run.is_some(), "{raised:?}");
    begun.running.until_printed("raised: h1 → h2: goodput ");
    send(begun.pid, Signal::KILL);
    drop(begun.running.wait());
    // A short one ends with the code of an alert that is raised, and does not raise it again.
    let short = OnHost::start(&hosts, "h1", &format!("{watch} --for 100ms"));
    let short = short.running.wait().ended_with(10);
    assert!(short.stdout.contains("; 1 alert raised.") && !short.stdout.contains("raised: "), "{}", short.stdout);
    hosts.on("h1", &["tc", "filter", "del", "dev", "eth0"]);
    let mut again = OnHost::start(&hosts, "h1", &watch);
    let resolved = alerts.recv_timeout(LIMIT).expect("its end is posted");
    assert_eq!((resolved.event.as_str(), pair(&resolved)), ("resolved", pair(&raised)), "{resolved:?}");
    assert_eq!(resolved.alert.since_unix_ns, raised.alert.since_unix_ns);
    again.running.until_printed("resolved: h1 → h2");
    // A pass that is cut off is no part of the history.
    again.running.until_printed("over 6 pairs");
    send(again.pid, Signal::INT);
    again.running.wait().ended_with(0);
    let fleet = hosts.sandbox.path("fleet.toml").display().to_string();
    let history = ["fleet", "history", &fleet, "--alert", "goodput<10Mbit", "--alert-after", "2"];
    let found: MeshHistory =
        serde_json::from_str(&hosts.sandbox.run(&[&history[..], &["--json"]].concat()).ok().stdout).unwrap();
    assert!(found.passes.len() >= 4 && found.alerts.is_empty(), "{found:?}");
    assert_eq!(found.series.len(), 6 + 6, "pairs, and hosts in each role");
    let text = hosts.sandbox.run(&history).ok().stdout;
    assert!(text.lines().next().unwrap().contains("of 6 pairs") && text.contains("h1 → h2"), "{text}");
}

#[test]
fn a_host_that_is_down_costs_its_pairs_and_raises_an_alert() {
    let mut fleet = Fleet::new(3);
    drop(fleet.agents.pop());
    let watch = ["fleet", "watch", &fleet.file, "--pattern", "rr", "--rounds", "1", "-t", "50ms", "--for", "1ms"];
    let ended = fleet.sandbox.run(&[&watch[..], &["--metrics", "127.0.0.1:0", "--name", "w"]].concat()).ended_with(10);
    assert!(
        ended.stdout.contains("over 2 pairs") && ended.stdout.contains("raised: n2 has no value"),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("The metrics are at http://127.0.0.1:"), "{}", ended.stdout);
    assert!(ended.stderr.contains("n2 does not answer and will be retried during the mesh"), "{}", ended.stderr);
    // The pass is a stored run of the series.
    let doc = fleet.sandbox.run(&["export", "w", "--format", "json"]).ok().doc();
    assert_eq!((doc.run.header.kind, doc.run.outcomes.len()), (RunKind::Mesh, 2));
    let text = fleet.sandbox.run(&["fleet", "history", &fleet.file, "--name", "w"]).ok().stdout;
    assert!(text.contains("None of 2 pairs changed") && text.contains("n2 has no value since "), "{text}");
}

#[test]
fn the_metrics_of_a_watch_have_each_pair() {
    let fleet = Fleet::new(2);
    let watch = ["fleet", "watch", &fleet.file, "--pattern", "rr", "--rounds", "1", "-t", "50ms", "--every", "1h"];
    let mut running = fleet.sandbox.start(&[&watch[..], &["--metrics", "127.0.0.1:0", "--alert", "rtt>1ns"]].concat());
    // Alerts come before the pass is over.
    running.until_printed("over 2 pairs");
    let text = running.stdout();
    assert!(text.contains("raised: n0 → n1") && text.contains("raised: n1 → n0"), "{text}");
    let address = text.split("http://").nth(1).and_then(|rest| rest.split("/metrics").next()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    for line in [
        "throughline_mesh_passes 1.0\n",
        "throughline_mesh_alerts 2.0\n",
        "throughline_mesh_alert{condition=\"rtt>1ns\",from=\"n0\",to=\"n1\"} 1.0\n",
        "throughline_mesh_rtt_seconds{from=\"n1\",to=\"n0\"} ",
        "throughline_mesh_last_pass_age_seconds ",
    ] {
        assert!(answer.contains(line), "{line}\n{answer}");
    }
    running.signal(Signal::TERM);
    running.wait().ended_with(10);
}

#[test]
fn mistakes_of_a_watch_are_named_before_it_begins() {
    let fleet = Fleet::new(2);
    let said =
        |more: &[&str]| fleet.sandbox.run(&[&["fleet", "watch", &fleet.file], more].concat()).ended_with(2).stderr;
    assert!(said(&["--alert", "speed<1"]).contains("'speed<1' is not a condition: write a figure (goodput, rtt, "));
    assert!(said(&["--alert", "goodput<1Mbit x"]).contains("has no host 'x'"));
    assert!(said(&["--webhook", "ftp://a/"]).contains("is neither http nor https"));
    assert!(said(&["--hosts", "x"]).contains("has no host 'x'"));
    fs::write(&fleet.file, "alerts = [\"goodput>1\", \"speed<1\"]\n[[host]]\nname = \"a\"\n").unwrap();
    assert!(said(&[]).contains("fleet.toml:1:24: alerts: 'speed<1' is not a condition"), "{}", said(&[]));
}
