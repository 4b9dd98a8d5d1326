//! Whoever reaches an agent's port and has no token.

use std::io::Write;
use std::net::TcpStream;

use program::wire::{PLAIN_MAGIC, Wire};
use program::{Agent, Sandbox, eventually};
use serde_json::json;

/// A hello of protocol 2, in the clear, with a version as long as a line of the log may be.
fn old_hello() -> Vec<u8> {
    let hello = json!({"say": "hello", "protocol": 2, "oldest": 1, "version": "x".repeat(440), "nonce": "00"});
    let bytes = hello.to_string().into_bytes();
    [PLAIN_MAGIC.as_slice(), &u32::try_from(bytes.len()).unwrap().to_be_bytes(), &bytes].concat()
}

#[test]
fn unauthenticated_clients_cause_few_lines_of_the_log() {
    let sandbox = Sandbox::with_token();
    let agent = Agent::with_token(&sandbox, &[]);
    let before = agent.log().len();
    let hello = old_hello();
    for _ in 0..40 {
        let streams: Vec<TcpStream> = (0..50)
            .map(|_| {
                let mut stream = TcpStream::connect(agent.host()).unwrap();
                stream.write_all(&hello).unwrap();
                stream
            })
            .collect();
        // The agent has read them all when it answers a later one.
        let wire = Wire::dial_plain(agent.host());
        wire.send(&json!({"say": "hello", "protocol": 2, "oldest": 1, "version": "x", "nonce": "00"}));
        while wire.receive().is_some() {}
        drop(streams);
    }
    let logged = agent.log().len() - before;
    assert!((10_000..220 * 600).contains(&logged), "{logged} bytes of 2,040 connections");
    // Who has the token is logged all the same.
    sandbox.run(&["rr", agent.host(), "--time", "20ms", "--trials", "1", "--no-path", "--no-store"]).ok();
    eventually("the client is in the log", || agent.log().contains(": measures "));
}
