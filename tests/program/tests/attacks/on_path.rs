//! An attacker on the path between a client and its agent: it reads, relays and pretends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread;

use program::wire::{self, Wire, fresh_key};
use program::{Agent, Sandbox};

const SHORT: [&str; 6] = ["rr", "--count", "5", "--trials", "1", "--no-path"];

/// A relay of bytes to `agent` that keeps all that it carries. It returns its address.
fn reader(agent: &str) -> (String, Arc<Mutex<Vec<u8>>>) {
    let (agent, seen) = (agent.to_owned(), Arc::new(Mutex::new(Vec::new())));
    let kept = seen.clone();
    let address = wire::server(move |client| {
        let Ok(agent) = TcpStream::connect(&agent) else { return };
        for (mut from, mut to) in [(&client, &agent), (&agent, &client)]
            .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
        {
            let kept = kept.clone();
            thread::spawn(move || {
                let mut bytes = [0; 16 << 10];
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    kept.lock().unwrap().extend_from_slice(&bytes[..count]);
                    if to.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Write);
            });
        }
    });
    (address, seen)
}

#[test]
fn nothing_of_the_control_connection_can_be_read() {
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &[]);
    let (relay, seen) = reader(agent.host());
    // The first connection is control; those of data carry no secret, and the measurement itself is in the clear.
    sandbox.run(&["host", &relay]).ok();
    let bytes = seen.lock().unwrap().clone();
    assert!(bytes.len() > 1_000, "the inventory has passed: {} bytes", bytes.len());
    for word in ["say", "hello", "welcome", "inventory", "nonce", "kernel"] {
        assert!(!bytes.windows(word.len()).any(|part| part == word.as_bytes()), "{word} can be read");
    }
}

/// A relay that speaks TLS to both sides and passes all messages on, with the key that is in `key` when a client comes.
fn man_in_the_middle(agent: &str, key: &Arc<Mutex<String>>) -> String {
    let (agent, key) = (agent.to_owned(), key.clone());
    wire::server(move |stream| {
        let shown = key.lock().unwrap().clone();
        let Some(client) = Wire::accept_as(stream, &shown) else { return };
        client.relay(Wire::dial(&agent));
    })
}

#[test]
fn a_relay_with_a_key_of_its_own_gets_no_client_with_a_token() {
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &[]);
    let relay = man_in_the_middle(agent.host(), &Arc::new(Mutex::new(fresh_key())));
    // The client has not met this name before, so only the proofs can tell: they cover the key and the connection.
    let refused = sandbox.run(&[&SHORT[..], &[&relay]].concat()).ended_with(4);
    assert!(refused.stderr.contains("did not prove your token"), "{}", refused.stderr);
    assert!(!agent.log().contains("measures"), "{}", agent.log());
    // The next key of this name is not refused for the attacker's.
    assert_eq!(sandbox.run(&["agent", "known"]).ok().stdout, "");
}

#[test]
fn a_changed_key_is_refused_until_the_user_forgets_the_old_one() {
    let sandbox = Sandbox::new();
    let (key, agent) = (Arc::new(Mutex::new(fresh_key())), Agent::start());
    // The name stays, and the key behind it changes.
    let address = man_in_the_middle(agent.host(), &key);
    let first = sandbox.run(&["host", &address]).ok();
    assert!(first.stderr.contains(&format!("{address} has the key SHA256:")), "{}", first.stderr);
    let second = sandbox.run(&["host", &address]).ok();
    assert!(second.stderr.is_empty(), "the same key: {}", second.stderr);
    *key.lock().unwrap() = fresh_key();
    for command in ["host", "stream", "watch"] {
        let message = sandbox.run(&[command, &address]).ended_with(4).message();
        let remedy = format!("thru agent forget {address}");
        assert!(message.contains("its key has changed") && message.contains(&remedy), "{command}: {message}");
    }
    sandbox.run(&["agent", "forget", &address]).ok();
    sandbox.run(&["host", &address]).ok();
    let known = sandbox.run(&["agent", "known"]).ok().stdout;
    assert!(known.starts_with(&format!("{address} SHA256:")) && known.lines().count() == 1, "{known}");
}

#[test]
fn a_key_that_was_set_by_hand_is_the_only_one() {
    let sandbox = Sandbox::new();
    let agent = Agent::start();
    let print = |sandbox: &Sandbox| sandbox.run(&["agent", "fingerprint"]).ok().stdout.trim().to_owned();
    // The agents of a test have one key. Without it, this client is another user.
    let [ours, other] = [print(&sandbox), {
        let stranger = Sandbox::new();
        stranger.secret("agent.key", &fresh_key());
        print(&stranger)
    }];
    sandbox.secret("agent.key", &fresh_key());
    sandbox.run(&["agent", "trust", agent.host(), &other]).ok();
    let message = sandbox.run(&["host", agent.host()]).ended_with(4).message();
    assert!(message.contains(&other) && message.contains(&ours), "{message}");
    sandbox.run(&["agent", "trust", agent.host(), &ours]).ok();
    assert_eq!(sandbox.run(&["host", agent.host()]).ok().stderr, "");
    let wrong = sandbox.run(&["agent", "trust", agent.host(), "SHA256:abc"]).ended_with(2);
    assert!(wrong.stderr.contains("thru agent fingerprint"), "{}", wrong.stderr);
}

#[test]
fn a_recorded_session_is_worthless() {
    // What a client sent, sent again: the agent's half of the handshake differs, so nothing of it can be decrypted.
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &[]);
    let (relay, seen) = reader(agent.host());
    sandbox.run(&["host", &relay]).ok();
    let recorded = seen.lock().unwrap().clone();
    let mut again = TcpStream::connect(agent.host()).unwrap();
    let _ = again.write_all(&recorded);
    let mut answer = Vec::new();
    let _ = again.read_to_end(&mut answer);
    assert!(!answer.windows(7).any(|part| part == b"welcome"));
}
