//! Where data connections go: through forwarded ports, and over link-local addresses.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use lab::{CrossoverSpec, LabHost};
use program::process::eventually;
use program::{Agent, Running, Sandbox, binary, skip};

const SHORT: [&str; 5] = ["--time", "50ms", "--trials", "1", "--no-store"];

/// A port that is forwarded to `to`, as by `docker run -p` or `ssh -L`.
fn forward(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(to).unwrap());
            for (mut from, mut into) in [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)] {
                std::thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut into);
                    let _ = into.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    at
}

#[test]
fn an_agent_is_measured_through_a_forwarded_port() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let own: SocketAddr = agent.host().parse().unwrap();
    let (control, data) = (forward(own).to_string(), forward(own).to_string());
    sandbox.run(&[&["stream"], &SHORT[..], &[&control]].concat()).ok();
    sandbox.run(&[&["stream", "--reverse", "--data", &data], &SHORT[..], &[&control]].concat()).ok();
    // A port of its own is chosen and forwarded.
    let chosen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let data_port = format!(",{}", chosen.port());
    let (data, transport) = (forward(chosen).to_string(), ["--transport", "tls", "--data-port", &data_port]);
    sandbox.run(&[&["stream", "--data", &data], &transport[..], &SHORT[..], &[&control]].concat()).ok();
    for wanted in [&["--transport", "tls"][..], &["--mss", "1000"], &["--transport", "quic"]] {
        let refused = sandbox.run(&[&["stream", "--data", &data], wanted, &SHORT[..], &[&control]].concat());
        let message = refused.ended_with(2).message();
        assert!(message.contains("--data-port ,PORT"), "{message}");
    }
}

/// A host's link-local address, once no other one on the link has it.
fn link_local(host: &LabHost) -> String {
    let mut address = None;
    eventually("the link-local address is usable", || {
        let words = ["-6", "-o", "addr", "show", "dev", &host.interface, "scope", "link", "-tentative"];
        let text = String::from_utf8(host.command("ip").args(words).output().unwrap().stdout).unwrap();
        address = text.split_ascii_whitespace().find_map(|word| Some(word.strip_suffix("/64")?.to_owned()));
        address.is_some()
    });
    address.unwrap()
}

#[test]
fn everything_is_measured_over_link_local_addresses() {
    let Some(lab) = skip::lab("everything_is_measured_over_link_local_addresses", &CrossoverSpec::default()) else {
        return;
    };
    let (a, b, sandbox) = (lab.host("a").unwrap(), lab.host("b").unwrap(), Sandbox::new());
    let there = link_local(b);
    let place = format!("[{there}%{}]:7100", b.interface);
    let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &place]);
    let host = format!("[{there}%{}]:{}", a.interface, agent.port());
    let run = |args: &[&str]| Running::of(sandbox.prepare(a.command(binary::thru()), args)).wait();
    let data = format!("{there}%{}", a.interface);
    for flags in [
        &[][..],
        &["--udp", "--rate", "1Mbit"],
        &["--transport", "tls"],
        &["--transport", "quic"],
        &["--sndbuf", "256KiB"],
        &["--mss", "1200", "--reverse"],
        &["--data-port", ",26999"],
        &["--data", &data],
        &["--data-from", &link_local(a)],
    ] {
        run(&[&["stream"], flags, &SHORT[..], &[&host]].concat()).ok();
    }
    run(&[&["rr", "--connect"], &SHORT[..], &[&host]].concat()).ok();
    let doc = run(&["rr", "--count", "10", "--trials", "1", "--json", "-", &host]).ok().doc();
    for path in [&doc.run.header.path_outbound, &doc.run.header.path_return] {
        let path = path.as_ref().unwrap();
        assert!(path.route.is_some() && path.mtu.is_some(), "{:?}", path.missing);
    }
    let bare = format!("[{there}]:{}", agent.port());
    let message = run(&[&["stream"], &SHORT[..], &[&bare]].concat()).ended_with(2).message();
    assert!(message.contains(&format!("{there}%{}", a.interface)), "{message}");
    let message = run(&[&["stream", "--speak", "iperf3"], &SHORT[..], &[&bare]].concat()).ended_with(3).message();
    assert!(message.contains(&format!("{there}%{}", a.interface)), "{message}");
}
