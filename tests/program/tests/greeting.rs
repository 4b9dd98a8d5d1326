//! Authentication: tokens and their proofs over a path of any length, unauthenticated connections, and many clients.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

use program::binary::thru;
use program::wire::{self, MAGIC, Message, PROTOCOL, Wire, hello};
use program::{Agent, Running, Sandbox, eventually, skip};
use serde_json::{Value, json};

const SHORT: [&str; 5] = ["stream", "--time", "20ms", "--trials", "1"];

/// A fresh token: its file, and its text.
fn token(sandbox: &Sandbox) -> (String, String) {
    let path = sandbox.path("token").display().to_string();
    sandbox.run(&["token", "new", "-o", &path]).ok();
    let text = fs::read_to_string(&path).unwrap().trim().to_owned();
    (path, text)
}

/// An agent with a limit on open files that the test's connections could use up.
fn agent_with_files(files: u32, flags: &[&str]) -> Agent {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -n {files} && exec {} \"$@\"", thru().display()), "thru"]);
    Agent::spawn(command, &[&["--listen", "127.0.0.1:0"], flags].concat())
}

#[test]
fn all_addresses_of_both_families_are_served_together() {
    let sandbox = Sandbox::with_token();
    for every in ["0.0.0.0:0", "[::]:0"] {
        let agent = Agent::spawn(Command::new(thru()), &[&["--listen", every][..], &sandbox.token_flags()].concat());
        let port = agent.host().rsplit(':').next().unwrap();
        for (address, transport) in [("127.0.0.1", "tcp"), ("[::1]", "tcp"), ("127.0.0.1", "udp"), ("[::1]", "udp")] {
            let host = format!("{address}:{port}");
            sandbox.run(&[&SHORT[..], &["--transport", transport, &host], &sandbox.token_flags()].concat()).ok();
        }
    }
}

#[test]
fn an_agent_behind_a_forwarded_port_is_measured() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let forwarded = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = forwarded.local_addr().unwrap().to_string();
    let to = agent.host().to_owned();
    // As `docker -p` and `ssh -L` do.
    std::thread::spawn(move || {
        for client in forwarded.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect(&to) else { return };
            for (mut from, mut to) in
                [(&client, &server), (&server, &client)].map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap()))
            {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(std::net::Shutdown::Write);
                });
            }
        }
    });
    for flags in [&["stream"][..], &["stream", "--reverse", "--flows", "2"], &["rr", "--connect"]] {
        let brief = ["--time", "100ms", "--trials", "1", "--no-path", &host];
        let doc = sandbox.measure(&[flags, &brief].concat());
        let trial = &doc.trials()[0];
        assert!(trial.value.is_some_and(|value| value > 0.0), "{flags:?}: {}", doc.remarks());
    }
}

#[test]
fn fresh_tokens_are_strong_and_in_a_file_of_their_owner() {
    let sandbox = Sandbox::new();
    let [one, other] = [(); 2].map(|()| sandbox.run(&["token", "new"]).ok().stdout);
    for text in [&one, &other] {
        assert!(text.len() == 65 && text.trim().bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
    }
    assert_ne!(one, other);
    let (path, text) = token(&sandbox);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let refused = sandbox.run(&["token", "new", "-o", &path]).ended_with(6).message();
    assert!(refused.contains(&path) && refused.contains("exists"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap().trim(), text, "it is as it was");
}

#[test]
fn weak_tokens_are_refused_on_both_sides_with_the_remedy() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for weak in ["secret", "correct horse battery staple", "0123456789abcdef", "00000000000000000000000000000000"] {
        sandbox.secret("weak", weak);
        for args in [
            &["serve", "--listen", "127.0.0.1:0", "--token-file", "weak"][..],
            &["host", agent.host(), "--token-file", "weak"],
        ] {
            let refused = sandbox.run(args).ended_with(2).message();
            assert!(refused.contains("the token file weak") && refused.contains("thru token new"), "{weak}: {refused}");
        }
    }
    assert_eq!(agent.log().matches("127.0.0.1").count(), 1, "nobody connected: {}", agent.log());
}

#[test]
fn a_token_of_the_environment_does_not_reach_the_programs_own_agents() {
    let sandbox = Sandbox::new();
    let (path, _) = token(&sandbox);
    let curves = ["--to", "8", "--trials", "3", "--no-ceiling", "--budget", "2s"];
    let mut demo = sandbox.command(&[&["demo", "--report", "demo", "--"], &curves[..]].concat());
    demo.env("THRU_TOKEN_FILE", path);
    Running::of(demo).wait().ok();
}

/// The error of a client with a token for an agent with this hello, and the client's next message after its own hello.
fn client_with(agents_hello: Value) -> (String, Option<Message>) {
    let sandbox = Sandbox::new();
    let (path, _) = token(&sandbox);
    let (sender, received) = mpsc::channel();
    let address = wire::agent(move |wire| {
        assert_eq!(wire.receive().unwrap().name, "hello");
        wire.send(&agents_hello);
        wire.send(&json!({"welcome": {"inventory": {}, "clock_ns": 20.0}}));
        sender.send(wire.next_message()).unwrap();
    });
    let refused = sandbox.run(&[&SHORT[..], &["--token-file", &path, &address]].concat()).ended_with(4).message();
    (refused, received.recv_timeout(Duration::from_secs(60)).unwrap())
}

#[test]
fn a_client_with_a_token_sends_nothing_to_an_agent_that_does_not_prove_it() {
    let (refused, sent) = client_with(hello(PROTOCOL));
    assert!(refused.contains("requires no token") && refused.contains("THRU_TOKEN_FILE"), "{refused}");
    assert_eq!(sent, None);
    let mut pretender = hello(PROTOCOL);
    pretender["hello"]["wants_token"] = true.into();
    for mac in [Value::Null, "00".into(), "11".repeat(32).into()] {
        pretender["hello"]["mac"] = mac;
        let (refused, sent) = client_with(pretender.clone());
        assert!(refused.contains("did not prove") && refused.contains("--token-file"), "{refused}");
        assert_eq!(sent, None, "it does not get the client's proof either");
    }
}

#[test]
fn a_token_is_proved_over_a_path_of_any_length() {
    let test = "a_token_is_proved_over_a_path_of_any_length";
    if let Err(error) = lab::available() {
        return skip::skip(test, &error.to_string());
    }
    let sandbox = Sandbox::new();
    // A round trip of a second; pings are due every 400 ms.
    let text = "[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n[[link]]\nbetween = [\"a\", \"b\"]\ndelay = \"500ms\"\nrate = \"10Mbit\"\n";
    fs::write(sandbox.path("long.toml"), text).unwrap();
    let name = format!("greeting-{}", std::process::id());
    // Code 8 is accepted: a late emulator on a busy machine is a verdict, which does not matter here.
    let script = "for how in 'stream b --time 3s' 'rr b --udp --count 2' 'stream b --udp --rate 1Mbit --reverse --time 2s'; do \
        \"$0\" $how --trials 1 --no-path --no-store --quiet --json \"$(echo $how | tr -d ' -').json\" || [ $? = 8 ] || exit 1; done";
    let thru = thru().display().to_string();
    let args = ["lab", "run", "long.toml", "--quiet", "--name", &name, "--", "sh", "-c", script, &thru];
    let ended = sandbox.run(&args).ok();
    for file in ["streambtime3s", "rrbudpcount2", "streambudprate1Mbitreversetime2s"] {
        let text = fs::read_to_string(sandbox.path(&format!("{file}.json"))).unwrap_or_default();
        let doc = program::Doc::try_parse(&text).unwrap_or_else(|error| panic!("{file}: {error}\n{}", ended.stderr));
        let flow = &doc.trials()[0].near.flows[0];
        assert!(flow.bytes_sent + flow.bytes_received > 0, "{file}");
        assert!(
            !file.starts_with("rr") || flow.transactions == 2,
            "{file}: no reply may be given up before it can arrive"
        );
    }
}

#[test]
fn unauthenticated_connections_block_nobody_and_receive_nothing() {
    let sandbox = Sandbox::new();
    let (path, text) = token(&sandbox);
    let agent = agent_with_files(200, &["--token-file", &path, "--max-clients", "2"]);
    let before = agent.descriptors();
    let unauthenticated: Vec<TcpStream> = (0..300)
        .map(|number| {
            let mut stream = TcpStream::connect(agent.host()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let bytes: &[u8] = match number % 4 {
                0 => b"",
                1 => b"T",
                2 => MAGIC,
                _ => b"THRUCTLS\x16\x03\x01\x02\0\x01",
            };
            let _ = stream.write_all(bytes);
            stream
        })
        .collect();
    // Some send a hello and then nothing: they receive the answer, but no pings.
    let mut silent: Vec<Wire> = (0..20).map(|_| Wire::dial(agent.host())).collect();
    for wire in &mut silent {
        wire.send(&hello(PROTOCOL));
    }
    sandbox.measure(&[&SHORT[..], &["--token-file", &path, agent.host()]].concat());
    for wire in &mut silent {
        assert_eq!(wire.next_message().map(|message| message.name.clone()), Some("hello".into()));
        assert_eq!(wire.next_message(), None, "closed without a ping");
    }
    for mut stream in unauthenticated {
        let mut received = Vec::new();
        // A closed connection is reset if it had sent bytes that were not read.
        let kind = stream.read_to_end(&mut received).err().map(|error| error.kind());
        assert!(
            received.is_empty() && matches!(kind, None | Some(ErrorKind::ConnectionReset)),
            "{received:?} {kind:?}"
        );
    }
    eventually("their descriptors are closed", || agent.descriptors() <= before);
    // Only authenticated clients count.
    let mut clients: Vec<Wire> = (0..3).map(|_| Wire::dial(agent.host())).collect();
    let answers: Vec<String> = clients
        .iter_mut()
        .map(|wire| {
            wire.authenticate(&text);
            wire.receive().unwrap().name.clone()
        })
        .collect();
    assert_eq!(answers, ["welcome", "welcome", "refused"]);
}
