//! Limits on an agent's data connections: a coordinator can neither reach hosts and services outside the measurement through an
//! agent nor keep the agent from serving others.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::transport::FlowHello;
use model::{CaptureSpec, Pattern, Payload, PayloadKind, Spec, Stop};
use program::process::Signal;
use program::wire::{Message, Wire};
use program::{Agent, Sandbox, check, client, eventually, skip};
use serde_json::{Value, json};

/// A coordinator that has the machine.
fn holder(agent: &Agent) -> Wire {
    let wire = Wire::dial(agent.host());
    wire.greet();
    acquire(&wire, "a test");
    wire
}

fn acquire(wire: &Wire, purpose: &str) {
    wire.send(&json!({"acquire": {"purpose": purpose}}));
    assert_eq!(wire.receive().unwrap().name, "granted");
}

fn spec(transport: &str, pattern: Pattern) -> Spec {
    Spec { block: 1_000, stop: Stop::TimeNs(1_000_000_000), ..Spec::new(transport, pattern) }
}

fn leg(spec: &Spec) -> Value {
    json!({"block": spec.block, "reply": spec.reply_bytes(), "stop": spec.stop})
}

/// Requests a trial and returns the first answer.
fn prepare(wire: &Wire, role: &str, spec: &Spec, legs: &[Value], more: &Value) -> Message {
    let mut request = json!({"prepare": {"trial": 0, "role": role, "spec": spec, "legs": legs}});
    request["prepare"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    wire.send(&request);
    wire.receive().expect("an answer")
}

/// Why a request was refused.
fn reason(answer: &Message) -> &str {
    assert_eq!(answer.name, "failed", "{answer}");
    answer["reason"]["statement"].as_str().unwrap()
}

fn rendezvous(address: SocketAddr) -> Value {
    json!({"address": address.to_string(), "cookie": "0d0a666c7573685f616c6c0d0a0d0a0d"})
}

fn reach_token(wire: &Wire) -> Value {
    wire.send(&json!({"issue-reach-token": {}}));
    wire.receive().unwrap().content
}

/// Whether the agent answers an unauthenticated connection.
fn serves(agent: &Agent) -> bool {
    let mut stream = TcpStream::connect(agent.host()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut line = [0; 7];
    stream.read_exact(&mut line).is_ok() && &line == b"This is"
}

#[test]
fn surplus_data_connections_are_closed_and_block_nobody() {
    let mut agent = Agent::start();
    let wire = holder(&agent);
    let spec = Spec { flows: 2, ..spec("tcp", Pattern::Stream) };
    let listening = prepare(&wire, "passive", &spec, &[leg(&spec)], &json!({}));
    let cookie = listening["rendezvous"][0]["cookie"].as_str().unwrap();
    let cookie: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&cookie[2 * at..2 * at + 2], 16).unwrap()).collect();
    let cookie: [u8; 16] = cookie.try_into().unwrap();
    let connect = |link: u32| {
        let mut stream = TcpStream::connect(agent.host()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&FlowHello::new(cookie, 0, link).unwrap().encode()).unwrap();
        stream
    };
    let taken = |stream: &mut TcpStream| {
        let mut answer = [0; 1];
        stream.read_exact(&mut answer).is_ok() && &answer == b"K"
    };
    let mut first = connect(0);
    assert!(taken(&mut first));
    // A link has one connection; the worker does not read while it waits for the other.
    let mut surplus: Vec<TcpStream> = (0..300).map(|_| connect(0)).collect();
    assert!(serves(&agent));
    let mut second = connect(1);
    assert!(taken(&mut second));
    assert_eq!(wire.receive().unwrap().name, "armed");
    surplus.extend((0..600).map(|at| connect(at % 3)));
    assert!(serves(&agent));
    assert!(!surplus.iter_mut().any(taken), "each is closed without an answer");
    wire.send(&json!("release"));
    acquire(&wire, "the next");
    agent.signal(Signal::TERM);
    assert!(agent.wait().success());
}

#[test]
fn a_coordinator_on_another_host_reaches_no_services_through_an_agent() {
    let (agent, other) = (Agent::start(), Agent::start());
    let wire = holder(&agent);
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = service.local_addr().unwrap();
    let received: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let sink = received.clone();
    std::thread::spawn(move || {
        for mut stream in service.incoming().flatten() {
            let mut bytes = [0; 64];
            let count = stream.read(&mut bytes).unwrap();
            // An agent that checked nothing would accept this answer.
            let _ = stream.write_all(b"KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK");
            sink.lock().unwrap().push(bytes[..count].to_vec());
        }
    });
    let spec = spec("tcp", Pattern::Stream);
    let unused: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let refusal = |token: Value, address: SocketAddr| {
        let more = json!({"rendezvous": [rendezvous(address)], "reach_token": token});
        reason(&prepare(&wire, "active", &spec, &[leg(&spec)], &more)).to_owned()
    };
    let refused = refusal(json!(null), address);
    assert!(refused.contains("proved a reachability token at 127.0.0.1"), "{refused}");
    assert_eq!(refusal(json!(null), unused), refused, "the text does not depend on what is there");
    assert!(received.lock().unwrap().is_empty());
    // A token with the service's port: the coordinator chooses no byte that is sent there, and the answer is no proof.
    let chosen = "0d0a666c7573685f616c6c0d0a0d0a0d";
    assert_eq!(refusal(json!({"port": address.port(), "cookie": chosen}), address), refused);
    let bytes = received.lock().unwrap().clone();
    assert!(bytes.len() == 1 && bytes[0].len() == 32 && !bytes[0].windows(5).any(|part| part == b"flush"), "{bytes:?}");
    // With a valid token as well, unspecified and link-local addresses are refused.
    let known = reach_token(&holder(&other));
    assert!(refusal(known.clone(), "0.0.0.0:1".parse().unwrap()).contains("reachability token"));
    assert!(refusal(known, "169.254.169.254:80".parse().unwrap()).contains("reachability token"));
    assert_eq!(received.lock().unwrap().len(), 1);
    // Whoever names addresses in turn learns what listens there from a few of them only.
    for _ in 0..100 {
        assert_eq!(refusal(json!({"port": address.port(), "cookie": chosen}), address), refused);
    }
    assert!(received.lock().unwrap().len() < 100, "{} connections", received.lock().unwrap().len());

    for transport in ["unix", "unix-dgram", "shm"] {
        let spec = Spec { transport: transport.into(), ..spec.clone() };
        let refusal = |path: &str| {
            let target = json!({"rendezvous": [{"path": path, "cookie": chosen}]});
            reason(&prepare(&wire, "active", &spec, &[leg(&spec)], &target)).to_owned()
        };
        assert_eq!(refusal("/etc/shadow"), refusal("/nonexistent"), "{transport}");
        assert_eq!(refusal("/run/../etc/shadow"), refusal("/tmp/thru-x/thru-0123456789ab-1.sock"), "{transport}");
    }
}

#[test]
fn agents_measure_with_each_other_over_each_transport_with_two_ends() {
    let sandbox = Sandbox::new();
    // Over unix and shm they meet in one temporary folder.
    let agent = || {
        let mut command = std::process::Command::new(program::binary::thru());
        command.env("TMPDIR", sandbox.path(""));
        Agent::spawn(command, &["--listen", "127.0.0.1:0"])
    };
    let (near, far) = (agent(), agent());
    let short = ["--time", "50ms", "--trials", "1", "--from", near.host(), far.host()];
    let cases: [&[&str]; 8] = [
        &["stream"],
        &["stream", "--transport", "udp"],
        &["stream", "--transport", "tls"],
        &["stream", "--transport", "quic"],
        &["stream", "--transport", "unix"],
        &["rr", "--transport", "shm"],
        &["rr", "--connect"],
        // An address at which the far agent does not listen.
        &["stream", "--data", "127.0.0.2"],
    ];
    for case in cases {
        let args = [case, &short[..]].concat();
        check::document(&sandbox.measure(&args), &args.join(" "));
    }
}

#[test]
fn no_payload_goes_to_a_host_that_did_not_answer() {
    let agent = Agent::start();
    let wire = holder(&agent);
    let victim = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = victim.local_addr().unwrap();
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut spec = Spec { rate_bps: Some(4_000_000), ..spec("udp", Pattern::Stream) };
    spec.near.port = Some(port);
    let refused = prepare(&wire, "active", &spec, &[leg(&spec)], &json!({"rendezvous": [rendezvous(address)]}));
    assert!(reason(&refused).contains("reachability token"), "{refused}");
    // An agent runs at that address, so the address is allowed; the port belongs to another program.
    let request = json!({"prepare": {"trial": 0, "role": "active", "spec": spec, "legs": [leg(&spec)],
        "rendezvous": [rendezvous(address)], "reach_token": reach_token(&wire)}});
    wire.send(&request);
    let answer = std::thread::spawn(move || wire.receive().unwrap());
    let (mut received, mut buffer) = (Vec::new(), [0; 2_048]);
    victim.set_nonblocking(true).unwrap();
    while !answer.is_finished() {
        // Forged signals in the name of the victim: ready, leg open, credit, challenge.
        for kind in [2, 4, 6, 9] {
            let mut forged = [0; 72];
            forged[..15].copy_from_slice(b"THRUsignal/1\r\n\0");
            forged[15] = kind;
            let _ = victim.send_to(&forged, ("127.0.0.1", port));
        }
        while let Ok(count) = victim.recv(&mut buffer) {
            received.push(count);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let answer = answer.join().unwrap();
    assert!(reason(&answer).contains("did not answer on UDP"), "{answer}");
    assert!(!received.is_empty() && received.len() <= 110 && received.iter().all(|count| *count == 72), "{received:?}");
}

#[test]
fn legs_obey_the_limits_and_the_spec() {
    let agent = Agent::with(&["--max-time", "10s"]);
    let wire = holder(&agent);
    let spec = Spec { flows: 8, ..spec("memcpy", Pattern::Stream) };
    let second = json!({"time-ns": 1_000_000_000});
    let refusal = |spec: &Spec, legs: &[Value]| {
        let answer = prepare(&wire, "active", spec, legs, &json!({}));
        reason(&answer).to_owned()
    };
    for (legs, says) in [
        (vec![json!({"block": 1_u64 << 30, "reply": 1, "stop": second})], "`--block`"),
        (vec![json!({"block": 1, "reply": 1_u64 << 30, "stop": second})], "`--block`"),
        (vec![json!({"block": 1, "reply": 1, "stop": {"time-ns": 11_000_000_000_u64}})], "`--max-time`"),
        (vec![json!({"block": 1, "reply": 1, "stop": second}); 11], "`--max-time`"),
        (vec![json!({"block": 0, "reply": 1, "stop": second})], "0 bytes"),
        (vec![json!({"block": 1, "reply": 1, "stop": {"blocks": 1}}); 10_001], "sizes in a pass"),
    ] {
        let refused = refusal(&spec, &legs);
        assert!(refused.contains(says), "{says}: {refused}");
    }
    let udp = Spec { transport: "udp".into(), pattern: Pattern::Stream, ..spec.clone() };
    let refused = refusal(&udp, &[json!({"block": 70_000, "reply": 70_000, "stop": second})]);
    assert!(refused.contains("65507"), "{refused}");
    let quick = Spec { interval_ns: 1_000, ..spec.clone() };
    assert!(refusal(&quick, &[leg(&spec)]).contains("`--interval`"));
    let impatient = Spec { stall_ns: 0, ..spec.clone() };
    assert!(refusal(&impatient, &[leg(&spec)]).contains("`--stall`"));
}

/// A far end that accepts data connections, and connections with other content.
fn sink() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut bytes = [0; 1 << 16];
                if stream.read_exact(&mut bytes[..32]).is_ok() && bytes.starts_with(b"THRUDATA") {
                    let _ = stream.write_all(b"K");
                    let _ = stream.read_exact(&mut bytes[..32]);
                    let _ = stream.write_all(b"OPEN");
                }
                while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
            });
        }
    });
    address
}

#[test]
fn a_capture_holds_the_trials_own_sockets_only_and_headers_unless_payload_is_allowed() {
    let test = "a_capture_holds_the_trials_own_sockets_only_and_headers_unless_payload_is_allowed";
    let sandbox = Sandbox::with_token();
    let (far, service) = (sink(), sink());
    let capture = Some(CaptureSpec { snaplen: 65_535, folder: None, fetch_bytes: None });
    let folder = sandbox.path("kept").display().to_string();
    for (transport, allowed) in
        [("tcp", format!("{folder},payload")), ("mptcp", format!("{folder},payload")), ("tcp", folder)]
    {
        let whole = allowed.ends_with(",payload");
        let agent = Agent::with_token(&sandbox, &[&format!("--allow-capture={allowed}")]);
        let wire = Wire::dial(agent.host());
        wire.authenticate(client::TOKEN);
        assert_eq!(wire.receive().unwrap().name, "welcome");
        acquire(&wire, "a test");
        let known = reach_token(&wire);
        let payload = Some(Payload { kind: PayloadKind::Pattern, ..Payload::default() });
        let spec =
            Spec { rate_bps: Some(1_000_000), capture: capture.clone(), payload, ..spec(transport, Pattern::Stream) };
        let legs = [json!({"block": 1_000, "reply": 1_000, "stop": {"time-ns": 500_000_000}})];
        let both = json!({"rendezvous": [rendezvous(far), rendezvous(service)], "reach_token": known});
        assert!(reason(&prepare(&wire, "active", &spec, &legs, &both)).contains("2 rendezvous addresses exceed"));
        let one = json!({"rendezvous": [rendezvous(far)], "reach_token": known});
        let armed = prepare(&wire, "active", &spec, &legs, &one);
        if armed.name == "failed" && transport == "mptcp" {
            skip::skip(test, reason(&armed));
            continue;
        }
        assert_eq!(armed.name, "armed", "{armed}");
        wire.send(&json!("start"));
        // Connections of another program, to the same port and to another one.
        for address in [far, service] {
            let mut other = TcpStream::connect(address).unwrap();
            other.write_all(b"PASSWORD=hunter2 of somebody else, and some more").unwrap();
        }
        let done = loop {
            let message = wire.receive().unwrap();
            if message.name != "live" {
                break message;
            }
        };
        let capture = &done["host"]["capture"];
        let Some(file) = capture["file"].as_str() else {
            skip::skip(test, &capture["missing"].to_string());
            return;
        };
        let bytes = std::fs::read(file).unwrap();
        assert!(capture["packets"].as_u64().unwrap() > 10, "{capture}");
        let of_payload = bytes.windows(8).any(|part| part == b"abcdefgh");
        assert_eq!(of_payload, whole, "its own payload is captured if the agent allows it");
        assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{transport}");
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn a_purpose_stays_within_its_line_of_the_log() {
    let agent = Agent::start();
    let wire = Wire::dial(agent.host());
    wire.greet();
    acquire(&wire, "normal\u{1b}[31mRED\u{1b}]0;owned\u{7}\nthru serve: FORGED LINE\u{202e}");
    eventually("it is in the log", || agent.log().contains("FORGED"));
    let log = agent.log();
    assert!(!log.contains('\u{1b}') && !log.contains('\u{202e}'), "{log:?}");
    assert!(log.lines().any(|line| line.contains("normal") && line.contains("FORGED")), "{log}");
}
