//! An agent that a client connects to, and that is not what it seems.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use program::Sandbox;
use program::wire::{self, PROTOCOL, Wire, hello};
use serde_json::{Value, json};

/// Plays an agent until a trial is prepared, and answers that with `listening`. It keeps the names of the client's messages.
fn agent(listening: Value) -> (String, Arc<Mutex<Vec<String>>>) {
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = names.clone();
    let play = move |wire: Wire| {
        wire.send(&hello(PROTOCOL, PROTOCOL));
        wire.send(&json!({"say": "welcome", "inventory": {}, "clock_ns": 20.0}));
        while let Some(message) = wire.receive() {
            let name = message["say"].as_str().unwrap_or_default().to_owned();
            match name.as_str() {
                "acquire" => wire.send(&json!({"say": "granted"})),
                "prepare" => wire.send(&json!({"say": "listening", "rendezvous": [listening.clone()]})),
                "reset" => wire.send(&json!({"say": "reset"})),
                _ => {}
            }
            seen.lock().unwrap().push(name);
        }
    };
    (wire::agent(play), names)
}

#[test]
fn an_agent_cannot_send_its_client_to_another_host() {
    let third = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = third.local_addr().unwrap();
    third.set_nonblocking(true).unwrap();
    let cookie = "0d0a666c7573685f616c6c0d0a0d0a0d";
    for listening in [
        json!({"address": address, "cookie": cookie}),
        // The port is free at the agent's own address.
        json!({"address": address, "port": address.port(), "cookie": cookie}),
    ] {
        let (host, names) = agent(listening);
        let ended = Sandbox::new().run(&["transfer", "--count", "1", "--no-path", &host]);
        assert!(ended.code != Some(0), "{ended:?}");
        assert!(
            names.lock().unwrap().iter().any(|name| name == "prepare"),
            "the client came that far: {}",
            ended.stderr
        );
        assert_eq!(third.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody connected there");
    }
}
