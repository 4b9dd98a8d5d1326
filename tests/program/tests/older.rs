//! Agents of older versions, which lack one thing or everything that came after protocol 1: a coordinator never says to them what they
//! would not know, measures what can be measured, and says plainly what is missing.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::path::Path;

use model::Capture;
use program::older::{Older, everything};
use program::wire::Wire;
use program::{Agent, Doc, Sandbox, check, client};
use serde_json::json;

/// What is expected of an agent without a capability.
enum Then {
    /// The command is refused with exit code 4 and a message with this.
    Refused(&'static str),
    /// It measures, and this holds of its document.
    Measured(fn(&Doc)),
}

const STREAM: [&str; 5] = ["stream", "--time", "50ms", "--trials", "1"];

fn far_capture(doc: &Doc) -> &Capture {
    doc.run.passes[0].far.capture.as_ref().expect("its absence is said")
}

#[test]
fn what_an_older_agent_cannot_do_is_not_asked_of_it() {
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
    // Each with a command that would want it.
    let cases: [(&str, &[&str], Then); 15] = [
        ("tune", &["tune", "show", "cc.default"], Then::Refused("knows no settings: update it there")),
        ("tune", &["stream", "--set", "far:cc.default=reno"], Then::Refused("knows no settings: update it there")),
        ("watch", &["watch", "--count", "1"], Then::Refused("cannot be watched: update it there")),
        ("drain", &["stream", "--drain", "1Mbit"], Then::Refused("does not know --drain")),
        ("delayed-reads", &["stream", "--delayed-reads"], Then::Refused("does not know --delayed-reads")),
        ("overlap-close", &["rr", "--connect", "--overlap-close"], Then::Refused("does not know --overlap-close")),
        (
            "conditions",
            &["run", "plan.toml", "--var", "host="],
            Then::Measured(|doc| {
                let conditions = doc.run.passes[0].far.conditions.expect("it was asked for");
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
                    far.file.is_none() && far.missing.as_ref().unwrap().contains("its version is older"),
                    "{far:?}"
                );
            }),
        ),
        (
            "fetch",
            &["stream", "--time", "50ms", "--trials", "1", "--capture=here"],
            Then::Measured(|doc| {
                let far = far_capture(doc);
                // Where captures are not possible at all there is nothing to be fetched.
                if let Some(file) = &far.file {
                    assert!(
                        far.fetched_bytes.is_none() && far.not_fetched.as_ref().unwrap().contains("it stays there")
                    );
                    assert!(Path::new(file).exists(), "{far:?}");
                }
            }),
        ),
        ("vouch", &STREAM, Then::Measured(|doc| assert!(doc.run.header.path_return.is_some()))),
        ("vouch", &["stream", "--time", "50ms", "--from", other.host()], Then::Refused("cannot vouch for itself")),
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
                // What is not there is in no way of the text either.
                sandbox.run(&["show", "last"]).ok();
            }
        }
        assert_eq!(older.strange(), [""; 0], "{what}");
    }
}

#[test]
fn an_agent_that_can_do_nothing_more_than_protocol_1_is_measured_with_all_the_same() {
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
    // A plan between both: every ordered pair, in rounds.
    let plan = format!(
        "from = [\"{one}\", \"{other}\"]\nto = [\"{one}\", \"{other}\"]\n[base]\ntime = \"50ms\"\n[repeat]\nmin = 1\nmax = 1\n"
    );
    std::fs::write(sandbox.path("plan.toml"), plan).unwrap();
    let doc = sandbox.measure(&["run", "plan.toml"]);
    check::document(&doc, "a plan between older agents");
    assert_eq!(doc.run.outcomes.len(), 2, "each to the other");
    for relay in &older {
        assert_eq!(relay.strange(), [""; 0]);
    }
}

#[test]
fn a_holder_gets_no_file_but_its_own_and_no_look_at_strangers() {
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &["--allow-capture"]);
    let mut wire = Wire::dial(agent.host());
    wire.prove(client::TOKEN);
    assert_eq!(wire.hear().unwrap()["say"], "welcome");
    wire.say(&json!({"say": "acquire", "purpose": "a test"}));
    assert_eq!(wire.hear().unwrap()["say"], "granted");
    for file in ["/etc/passwd", "/proc/self/environ", "", "../../etc/passwd"] {
        wire.say(&json!({"say": "forget", "file": file}));
        wire.say(&json!({"say": "fetch", "file": file, "from": 0}));
        let piece = wire.hear().unwrap();
        assert_eq!((piece["say"].as_str(), piece["data"].as_str()), (Some("piece"), Some("")), "{piece}");
        assert!(piece["missing"].as_str().unwrap().contains("no capture of this session"), "{piece}");
    }
    // TEST-NET-1 (RFC 5737) is nobody's; a voucher that nobody knows is none.
    let nobody = json!({"port": agent.port(), "cookie": "00".repeat(16)});
    for voucher in [json!(null), nobody] {
        wire.say(&json!({"say": "look-at", "peer": "192.0.2.1", "voucher": voucher}));
        let looked = wire.hear().unwrap();
        assert_eq!(looked["say"], "looked");
        let path = &looked["path"];
        assert!(path["missing"][0].as_str().unwrap().contains("vouches"), "{looked}");
        assert!(path["hops"].is_null() && path["ping"].is_null() && path["route"].is_null(), "{looked}");
        assert!(looked["traffic"].is_object(), "its own interfaces are looked at: {looked}");
    }
    // Its coordinator's own address needs none.
    wire.say(&json!({"say": "look-at", "peer": null}));
    assert!(!wire.hear().unwrap()["path"]["hops"].is_null());
    // What the agent vouches by it says to who shows it, and to nobody else.
    wire.say(&json!({"say": "vouch"}));
    let vouched = wire.hear().unwrap();
    assert_eq!((vouched["say"].as_str(), vouched["port"].as_u64()), (Some("vouched"), Some(agent.port().into())));
    let cookie = vouched["cookie"].as_str().unwrap();
    assert!(shown(&agent, cookie) && !shown(&agent, &"00".repeat(16)));
    wire.say(&json!({"say": "release"}));
    program::eventually("it vouches no more", || !shown(&agent, cookie));
}

/// Whether an agent's port knows a cookie.
fn shown(agent: &Agent, cookie: &str) -> bool {
    use std::io::{Read, Write};
    let cookie = std::array::from_fn(|at| u8::from_str_radix(&cookie[2 * at..2 * at + 2], 16).unwrap());
    let question = engine::transport::FlowHello::new(cookie, 7, 7).unwrap();
    let mut stream = std::net::TcpStream::connect(agent.host()).unwrap();
    stream.write_all(&question.encode()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer == question.reach_proof()
}
