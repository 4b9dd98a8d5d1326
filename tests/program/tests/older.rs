//! Agents of older versions. One that lacks extensions of protocol 2 gets no message that it would not know, what can be measured
//! is measured, and the result names what is missing. One of protocol 1 is refused, and so is such a client.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::path::Path;

use model::Capture;
use program::older::{Older, everything};
use program::wire::{self, Wire, hello, plain_agent};
use program::{Agent, Doc, Sandbox, check, client};
use serde_json::json;

/// The expected result with an agent that lacks a capability.
enum Then {
    /// The command is refused with exit code 4 and a message that contains this.
    Refused(&'static str),
    /// It measures, and this is true of its document.
    Measured(fn(&Doc)),
}

const STREAM: [&str; 5] = ["stream", "--time", "50ms", "--trials", "1"];

fn far_capture(doc: &Doc) -> &Capture {
    doc.run.passes[0].far.capture.as_ref().expect("its absence is recorded")
}

#[test]
fn an_older_agent_gets_no_request_that_it_does_not_know() {
    let sandbox = Sandbox::with_token();
    let (there, journal) = (sandbox.path("there"), sandbox.path("journal"));
    let (allowed, journal) = (format!("--allow-capture={}", there.display()), journal.display().to_string());
    let agent = Agent::with_token(&sandbox, &[&allowed, "--allow-tuning", "--journal", &journal]);
    let other = Agent::with_token(&sandbox, &[]);
    std::fs::write(
        sandbox.path("plan.toml"),
        "to = [\"${host}\"]\n[base]\ntime = \"50ms\"\n[require]\nfree_memory = \"1KiB\"\n[repeat]\nmin = 1\nmax = 1\n",
    )
    .unwrap();
    // Each capability with a command that needs it.
    let cases: [(&str, &[&str], Then); 16] = [
        ("tune", &["tune", "show", "cc.default"], Then::Refused("cannot change settings: update it")),
        ("tune", &["stream", "--set", "far:cc.default=reno"], Then::Refused("cannot change settings: update it")),
        ("watch", &["watch", "--count", "1"], Then::Refused("does not support `thru watch`: update it")),
        ("drain", &["stream", "--drain", "1Mbit"], Then::Refused("does not support --drain")),
        ("delayed-reads", &["stream", "--delayed-reads"], Then::Refused("does not support --delayed-reads")),
        ("overlap-close", &["rr", "--connect", "--overlap-close"], Then::Refused("does not support --overlap-close")),
        ("anatomy", &["rr", "--anatomy"], Then::Refused("does not support --anatomy")),
        (
            "conditions",
            &["run", "plan.toml", "--var", "host="],
            Then::Measured(|doc| {
                let conditions = doc.run.passes[0].far.conditions.expect("they were requested");
                assert_eq!(conditions.free_memory_bytes, None, "{conditions:?}");
            }),
        ),
        (
            "path",
            &STREAM,
            Then::Measured(|doc| {
                let header = &doc.run.header;
                assert!(header.path_return.is_none() && header.clocks.is_none() && header.path_outbound.is_some());
            }),
        ),
        (
            "observe",
            &STREAM,
            Then::Measured(|doc| {
                let pass = &doc.run.passes[0];
                assert!(pass.far.observed.is_none() && pass.near.observed.is_some());
            }),
        ),
        ("cpu", &STREAM, Then::Measured(|doc| assert!(doc.run.passes[0].far.cpu.is_none()))),
        (
            "tcp",
            &STREAM,
            Then::Measured(|doc| {
                let trial = &doc.trials()[0];
                assert!(trial.far.flows.iter().all(|flow| flow.tcp.is_empty()));
                assert!(trial.near.flows.iter().all(|flow| !flow.tcp.is_empty()));
            }),
        ),
        (
            "capture",
            &["stream", "--time", "50ms", "--trials", "1", "--capture=here"],
            Then::Measured(|doc| {
                let far = far_capture(doc);
                assert!(
                    far.file.is_none() && far.missing.as_ref().unwrap().contains("too old to capture packets"),
                    "{far:?}"
                );
            }),
        ),
        (
            "fetch",
            &["stream", "--time", "50ms", "--trials", "1", "--capture=here"],
            Then::Measured(|doc| {
                let far = far_capture(doc);
                // On a host without captures there is nothing to fetch.
                if let Some(file) = &far.file {
                    assert!(
                        far.fetched_bytes.is_none() && far.not_fetched.as_ref().unwrap().contains("it stays there")
                    );
                    assert!(Path::new(file).exists(), "{far:?}");
                }
            }),
        ),
        ("reach-token", &STREAM, Then::Measured(|doc| assert!(doc.run.header.path_return.is_some()))),
        (
            "reach-token",
            &["stream", "--time", "50ms", "--from", other.host()],
            Then::Refused("cannot issue a reachability token"),
        ),
    ];
    for (lacking, args, then) in cases {
        let older = Older::before(agent.host(), &[lacking]);
        let mut args: Vec<String> = args.iter().map(ToString::to_string).collect();
        match args.last_mut() {
            Some(var) if var == "host=" => var.push_str(older.host()),
            _ => args.push(older.host().to_owned()),
        }
        let what = format!("without {lacking}: {}", args.join(" "));
        match then {
            Then::Refused(words) => {
                let message = sandbox.run(&args).ended_with(4).message();
                assert!(message.contains(words), "{what}: {message}");
            }
            Then::Measured(holds) => {
                let doc = sandbox.measure(&args);
                check::document(&doc, &what);
                holds(&doc);
                // The text output works without it as well.
                sandbox.run(&["show", "last"]).ok();
            }
        }
        assert_eq!(older.unknown_messages(), [""; 0], "{what}");
    }
}

#[test]
fn an_agent_without_any_extension_can_still_measure() {
    let (agents, sandbox) = ([Agent::start(), Agent::start()], Sandbox::new());
    let older = agents.each_ref().map(|agent| Older::before(agent.host(), &everything()));
    let [one, other] = older.each_ref().map(Older::host);
    let commands: [&[&str]; 4] = [
        &["stream", "--time", "50ms", "--trials", "1", "--capture=here", one],
        &["rr", "--time", "50ms", "--trials", "1", "--from", one, other],
        &["curve", "--to", "8", "--trials", "3", one],
        &["advise", "--budget", "3s", "--time", "30ms", one],
    ];
    for args in commands {
        let args = [args, &["--json", "-"]].concat();
        check::document(&sandbox.run(&args).ok().doc(), &args.join(" "));
        sandbox.run(&["why", "last"]).ok();
    }
    // A plan between both: every ordered pair.
    let plan = format!(
        "from = [\"{one}\", \"{other}\"]\nto = [\"{one}\", \"{other}\"]\n[base]\ntime = \"50ms\"\n[repeat]\nmin = 1\nmax = 1\n"
    );
    std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
    let doc = sandbox.measure(&["run", "plan.toml"]);
    check::document(&doc, "a plan between older agents");
    assert_eq!(doc.run.outcomes.len(), 2, "each to the other");
    for relay in &older {
        assert_eq!(relay.unknown_messages(), [""; 0]);
    }
}

#[test]
fn an_agent_of_protocol_2_is_refused_with_both_versions_and_the_remedy() {
    let sandbox = Sandbox::with_token();
    // It takes TLS for a data connection without a known cookie and closes it.
    let agent = plain_agent(|wire| {
        let greeting = wire.receive().unwrap();
        assert_eq!((&greeting["protocol"], &greeting["oldest"]), (&json!(4), &json!(4)));
        assert_eq!(greeting["nonce"], "", "nothing that a proof could be made of");
        wire.send(&hello(2, 2));
        assert_eq!(wire.next_message(), None, "nothing is sent to it, no proof and no request");
    });
    let own = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "{agent} runs thru 9.8.7 (protocol 2) and this host runs thru {own} (protocol 4): update thru on that host"
    );
    for command in ["stream", "host", "watch"] {
        // The version decides, with and without a token.
        for sandbox in [&sandbox, &Sandbox::new()] {
            let message = sandbox.run(&[command, &agent]).ended_with(4).message();
            assert!(message.contains(&expected), "{command}: {message}");
        }
    }
    let newer = wire::agent(|wire| wire.send(&hello(9, 8)));
    let message = sandbox.run(&["host", &newer]).ended_with(4).message();
    assert!(message.contains("(protocol 8 to 9)") && message.contains("update thru on this host"), "{message}");
}

#[test]
fn a_client_of_protocol_2_is_refused_with_both_versions_and_the_remedy() {
    let sandbox = Sandbox::with_token();
    for agent in [Agent::start(), Agent::with_token(&sandbox, &[])] {
        let wire = Wire::dial_plain(agent.host());
        wire.send(&hello(2, 2));
        // Such a client compares the hellos and reports that this host must update.
        let answer = wire.receive().unwrap();
        assert_eq!((&answer["say"], &answer["protocol"], &answer["oldest"]), (&json!("hello"), &json!(4), &json!(4)));
        assert_eq!(answer["mac"], json!(null), "no proof of the token in the clear");
        assert_eq!(wire.next_message(), None);
        let reason = "refused: the client runs thru 9.8.7 (protocol 2) and this agent runs thru ";
        program::eventually("it is in the log", || agent.log().contains(reason));
    }
}

#[test]
fn a_client_gets_no_file_but_its_own_and_no_probe_of_other_hosts() {
    let sandbox = Sandbox::with_token();
    let allowed = format!("--allow-capture={}", sandbox.path("captures").display());
    let agent = Agent::with_token(&sandbox, &[&allowed]);
    let wire = Wire::dial(agent.host());
    wire.authenticate(client::TOKEN);
    assert_eq!(wire.receive().unwrap()["say"], "welcome");
    wire.send(&json!({"say": "acquire", "purpose": "a test"}));
    assert_eq!(wire.receive().unwrap()["say"], "granted");
    for file in ["/etc/passwd", "/proc/self/environ", "", "../../etc/passwd"] {
        wire.send(&json!({"say": "forget", "file": file}));
        wire.send(&json!({"say": "fetch", "file": file, "from": 0}));
        let piece = wire.receive().unwrap();
        assert_eq!((piece["say"].as_str(), piece["data"].as_str()), (Some("piece"), Some("")), "{piece}");
        assert!(piece["missing"].as_str().unwrap().contains("no capture of this session"), "{piece}");
    }
    // TEST-NET-1 (RFC 5737) has no hosts; no agent knows the second token.
    let unknown = json!({"port": agent.port(), "cookie": "00".repeat(16)});
    for token in [json!(null), unknown] {
        wire.send(&json!({"say": "probe-path", "peer": "192.0.2.1", "reach_token": token}));
        let probed = wire.receive().unwrap();
        assert_eq!(probed["say"], "path-probed");
        let path = &probed["path"];
        assert!(path["missing"][0].as_str().unwrap().contains("reachability token"), "{probed}");
        assert!(path["hops"].is_null() && path["ping"].is_null() && path["route"].is_null(), "{probed}");
        assert!(probed["traffic"].is_object(), "its own interfaces are measured: {probed}");
    }
    // The coordinator's own address needs no token.
    wire.send(&json!({"say": "probe-path", "peer": null}));
    assert!(!wire.receive().unwrap()["path"]["hops"].is_null());
    // The agent proves a token to its holder only, and only until the machine is released.
    wire.send(&json!({"say": "issue-reach-token"}));
    let token = wire.receive().unwrap();
    assert_eq!((token["say"].as_str(), token["port"].as_u64()), (Some("reach-token"), Some(agent.port().into())));
    let cookie = token["cookie"].as_str().unwrap();
    assert!(is_proved(&agent, cookie) && !is_proved(&agent, &"00".repeat(16)));
    wire.send(&json!({"say": "release"}));
    program::eventually("the token is no longer valid", || !is_proved(&agent, cookie));
}

/// Whether an agent proves the token with this cookie at its port.
fn is_proved(agent: &Agent, cookie: &str) -> bool {
    use std::io::{Read, Write};
    let cookie = std::array::from_fn(|at| u8::from_str_radix(&cookie[2 * at..2 * at + 2], 16).unwrap());
    let challenge = engine::transport::FlowHello::new(cookie, 7, 7).unwrap();
    let mut stream = std::net::TcpStream::connect(agent.host()).unwrap();
    stream.write_all(&challenge.encode()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer == challenge.reach_proof()
}
