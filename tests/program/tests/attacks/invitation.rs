//! Attacks on an invitation: guesses, messages of another connection, and somebody between the two hosts.

use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use program::binary::thru;
use program::wire::{self, NONCE, PROTOCOL, Wire, fresh_key};
use program::{Agent, Sandbox};
use serde_json::{Value, json};
use sha2::Sha256;
use spake2::{Ed25519Group, Identity, Password, Spake2};

const SHORT: [&str; 6] = ["rr", "--count", "5", "--trials", "1", "--no-path"];

/// An agent that invites a client. The clients that it knows are in a folder of the sandbox.
fn inviting(sandbox: &Sandbox, flag: &str) -> Agent {
    let mut command = Command::new(thru());
    command.env("THRU_KNOWN_CLIENTS", sandbox.path("known_clients"));
    Agent::spawn(command, &["--listen", "127.0.0.1:0", flag])
}

/// A client that has a key of its own, or none yet.
fn client() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::remove_file(sandbox.path("agent.key")).unwrap();
    sandbox
}

fn measure(client: &Sandbox, agent: &str, code: Option<&str>) -> program::Finished {
    let code: Vec<&str> = code.into_iter().flat_map(|code| ["--code", code]).collect();
    client.run(&[&SHORT[..], &[agent], &code].concat())
}

/// An exchange by hand, with the identities of a connection.
struct Exchange(Spake2<Ed25519Group>, String);

impl Exchange {
    fn begin(wire: &Wire, code: &str, agents: bool) -> Self {
        let (key, client, exporter) = wire.binding();
        let print = |key: [u8; 32]| format!("SHA256:{}", STANDARD_NO_PAD.encode(key));
        let client = client.map(print).unwrap_or_default();
        let coordinator = format!("throughline/1 coordinator {client} {}", hex::encode(exporter));
        let agent = format!("throughline/1 agent {} {}", print(key), hex::encode(exporter));
        let [coordinator, agent] = [coordinator, agent].map(|name| Identity::new(name.as_bytes()));
        let password = Password::new(code);
        let (own, half) = match agents {
            true => Spake2::start_b(&password, &coordinator, &agent),
            false => Spake2::start_a(&password, &coordinator, &agent),
        };
        Self(own, hex::encode(half))
    }

    /// The proof of one side.
    fn prove(self, wire: &Wire, theirs: &Value, side: &str, agents_nonce: &str) -> String {
        let secret = self.0.finish(&hex::decode(theirs.as_str().unwrap()).unwrap()).unwrap();
        let (key, _, exporter) = wire.binding();
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).unwrap();
        let text =
            format!("throughline/1 {side} {NONCE} {agents_nonce} {} {}", hex::encode(key), hex::encode(exporter));
        mac.update(text.as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }
}

fn hello_with_code() -> Value {
    let mut hello = wire::hello(PROTOCOL);
    hello["hello"]["has_code"] = true.into();
    hello
}

/// Tries a code on a connection of its own, and returns the agent's answer. `other` takes the place of the two messages.
fn attempt(agent: &str, code: &str, other: Option<&[Value; 2]>) -> wire::Message {
    let wire = Wire::dial_as(agent, Some(&fresh_key()));
    wire.send(&hello_with_code());
    let hello = wire.receive().unwrap();
    let exchange = Exchange::begin(&wire, code, false);
    wire.send(other.map_or(&json!({"code": {"half": exchange.1}}), |other| &other[0]));
    let theirs = wire.receive().unwrap();
    if theirs.name == "refused" {
        return theirs;
    }
    let mac = exchange.prove(&wire, &theirs["half"], "coordinator", hello["nonce"].as_str().unwrap());
    wire.send(other.map_or(&json!({"proof": {"mac": mac}}), |other| &other[1]));
    wire.receive().unwrap()
}

fn reason(message: &wire::Message) -> &str {
    assert_eq!(message.name, "refused", "{message}");
    message["reason"]["statement"].as_str().unwrap()
}

#[test]
fn a_client_with_the_code_is_known_from_then_on_and_no_other_one_is() {
    let (sandbox, client, other) = (Sandbox::new(), client(), client());
    let agent = inviting(&sandbox, "--invite");
    let code = agent.code();
    let strange = measure(&client, agent.host(), None).ended_with(4).message();
    assert!(strange.contains("serves invited hosts only") && strange.contains("--invite"), "{strange}");
    measure(&client, agent.host(), Some(&code)).ok();
    measure(&client, agent.host(), None).ok();
    // The same line again, out of the shell's history.
    measure(&client, agent.host(), Some(&code)).ok();
    let late = measure(&other, agent.host(), Some(&code)).ended_with(4).message();
    assert!(late.contains("no invitation is open"), "{late}");
    assert!(agent.log().contains("accepted the invitation; its key SHA256:"), "{}", agent.log());
    drop(agent);
    // Another process, on another port: the client has met its key at another name only.
    let again = inviting(&sandbox, "--invited");
    measure(&client, again.host(), None).ok();
    measure(&other, again.host(), None).ended_with(4);
    let mut dismiss = Command::new(thru());
    let clients = std::fs::read_to_string(sandbox.path("known_clients")).unwrap();
    let key = clients.split_whitespace().next().unwrap();
    dismiss.env("THRU_KNOWN_CLIENTS", sandbox.path("known_clients")).args(["agent", "dismiss", key]);
    assert!(dismiss.status().unwrap().success());
    measure(&client, again.host(), None).ended_with(4);
}

#[test]
fn the_third_guess_ends_an_invitation() {
    let sandbox = Sandbox::new();
    let agent = inviting(&sandbox, "--invite");
    let code = agent.code();
    for words in ["2 more wrong ones end the invitation", "the next wrong one ends", "the invitation has ended"] {
        let answer = attempt(agent.host(), "abandon-ability-able", None);
        assert!(reason(&answer).contains(words), "{answer}");
    }
    let answer = attempt(agent.host(), &code, None);
    assert!(reason(&answer).contains("no invitation is open"), "{answer}");
    assert_eq!(std::fs::read_to_string(sandbox.path("known_clients")).unwrap(), "");
}

#[test]
fn guesses_at_the_same_time_are_three_as_well() {
    let sandbox = Sandbox::new();
    let agent = inviting(&sandbox, "--invite");
    let (host, code) = (agent.host().to_owned(), agent.code());
    let (sender, receiver) = channel();
    for _ in 0..12 {
        let (host, sender) = (host.clone(), sender.clone());
        thread::spawn(move || {
            let answer = attempt(&host, "abandon-ability-able", None);
            sender.send(reason(&answer).contains("the code is wrong")).unwrap();
        });
    }
    drop(sender);
    assert_eq!(receiver.iter().filter(|tried| *tried).count(), 3);
    let answer = attempt(&host, &code, None);
    assert!(reason(&answer).contains("no invitation is open"), "{answer}");
}

#[test]
fn messages_of_one_connection_are_wrong_on_another() {
    let sandbox = Sandbox::new();
    let agent = inviting(&sandbox, "--invite");
    let code = agent.code();
    // Somebody else's agent with the same code would get these from a client.
    let elsewhere = Wire::dial_as(agent.host(), Some(&fresh_key()));
    elsewhere.send(&hello_with_code());
    let nonce = elsewhere.receive().unwrap()["nonce"].as_str().unwrap().to_owned();
    let exchange = Exchange::begin(&elsewhere, &code, false);
    let half = json!({"code": {"half": exchange.1}});
    elsewhere.send(&half);
    let theirs = elsewhere.receive().unwrap();
    let proof = json!({"proof": {"mac": exchange.prove(&elsewhere, &theirs["half"], "coordinator", &nonce)}});
    let answer = attempt(agent.host(), &code, Some(&[half, proof.clone()]));
    assert!(reason(&answer).contains("the code is wrong"), "{answer}");
    // They were right where they belong, and are so once.
    elsewhere.send(&proof);
    assert_eq!(elsewhere.receive().unwrap().name, "proof");
    assert_eq!(elsewhere.receive().unwrap().name, "welcome");
    let answer = attempt(agent.host(), &code, None);
    assert!(reason(&answer).contains("no invitation is open"), "{answer}");
}

#[test]
fn a_relay_that_speaks_tls_to_both_sides_gets_neither() {
    let (sandbox, client) = (Sandbox::new(), client());
    let agent = inviting(&sandbox, "--invite");
    let (address, key) = (agent.host().to_owned(), fresh_key());
    let relay = wire::server(move |stream| {
        let Some(client) = Wire::accept_as(stream, &key) else { return };
        client.relay(Wire::dial_as(&address, Some(&key)));
    });
    let refused = measure(&client, &relay, Some(&agent.code())).ended_with(4).message();
    assert!(refused.contains("the code is wrong"), "{refused}");
    assert_eq!(client.run(&["agent", "known"]).ok().stdout, "");
    assert_eq!(std::fs::read_to_string(sandbox.path("known_clients")).unwrap(), "");
}

#[test]
fn an_agent_that_does_not_know_the_code_gets_no_client() {
    let client = client();
    let hello = || wire::hello(PROTOCOL);
    // It plays its part with another code; it says that it knows the client; it needs no code.
    let guesses = wire::agent(move |wire| {
        let coordinators = wire.receive().unwrap();
        wire.send(&hello());
        let theirs = wire.receive().unwrap();
        let exchange = Exchange::begin(&wire, "abandon-ability-able", true);
        wire.send(&json!({"code": {"half": exchange.1}}));
        wire.receive().unwrap();
        let nonce = coordinators["nonce"].as_str().unwrap();
        let mac = exchange.prove(&wire, &theirs["half"], "agent", nonce);
        wire.send(&json!({"proof": {"mac": mac}}));
        wire.receive();
    });
    let knows = wire::agent(move |wire| {
        wire.receive().unwrap();
        let mut hello = hello();
        hello["hello"]["knows_key"] = true.into();
        wire.send(&hello);
        wire.receive();
    });
    let open = wire::agent(move |wire| {
        wire.receive().unwrap();
        wire.send(&hello());
        wire.receive();
        wire.send(&json!({"welcome": {"inventory": {}, "clock_ns": 20.0}}));
        wire.receive();
    });
    for (agent, words) in [
        (guesses, "does not know the code"),
        (knows, "this host does not know the agent's"),
        (open, "it is not a thru agent"),
    ] {
        let refused = measure(&client, &agent, Some("abandon-ability-zoo"));
        let message = refused.stderr.clone();
        assert_ne!(refused.code, Some(0), "{message}");
        assert!(message.contains(words), "{words}: {message}");
        assert_eq!(client.run(&["agent", "known"]).ok().stdout, "");
    }
}

#[test]
fn a_code_that_is_none_costs_no_guess() {
    let (sandbox, client) = (Sandbox::new(), client());
    let agent = inviting(&sandbox, "--invite");
    for (code, words) in [("abandon-throughput-zoo", "'throughput' is not a word"), ("abandon", "three words")] {
        let message = measure(&client, agent.host(), Some(code)).ended_with(2).stderr;
        assert!(message.contains(words), "{message}");
    }
    assert!(!agent.log().contains("wrong"), "{}", agent.log());
}
