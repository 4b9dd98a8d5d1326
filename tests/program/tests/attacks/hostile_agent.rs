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
        wire.send(&hello(PROTOCOL));
        wire.send(&json!({"welcome": {"inventory": {}, "clock_ns": 20.0}}));
        while let Some(message) = wire.receive() {
            let name = message.name.clone();
            match name.as_str() {
                "acquire" => wire.send(&json!({"granted": {}})),
                "prepare" => wire.send(&json!({"listening": {"rendezvous": [listening.clone()]}})),
                "reset" => wire.send(&json!("reset")),
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

/// An agent that measures nothing, and answers each trial with this result.
fn answering(done: Value) -> String {
    wire::agent(move |wire: Wire| {
        wire.send(&hello(PROTOCOL));
        wire.send(&json!({"welcome": {"inventory": {}, "clock_ns": 20.0}}));
        while let Some(message) = wire.receive() {
            let answer = match message.name.as_str() {
                "acquire" => json!({"granted": {}}),
                "prepare" => json!("armed"),
                "reset" => json!("reset"),
                "start" => done.clone(),
                _ => continue,
            };
            // Its client may have left.
            if wire.try_send(&answer).is_err() {
                return;
            }
        }
    })
}

#[test]
fn a_result_with_more_than_its_trial_can_have_is_refused_and_not_stored() {
    let tally = serde_json::to_value(model::EndTally { bytes_sent: 1_000, ..model::EndTally::default() }).unwrap();
    let done = |change: &dyn Fn(&mut Value)| {
        let mut done = json!({"done": {"tallies": [tally], "failure": null, "elapsed_ns": 60_000_000, "host": {"cpu": null, "setup_ns": 1},
        }});
        change(&mut done["done"]);
        done
    };
    let interval = json!({"start_ns": 0, "end_ns": 1, "bytes_sent": 1, "bytes_received": 0, "transactions": 0});
    let flow = json!({"flow": 0, "bytes_sent": 1, "bytes_received": 0, "transactions": 0, "socket": {}});
    for (change, said) in [
        (
            &(|done: &mut Value| done["tallies"][0]["intervals"] = json!(vec![interval.clone(); 5_000]))
                as &dyn Fn(&mut Value),
            "5000 intervals",
        ),
        (&|done| done["tallies"][0]["flows"] = json!(vec![flow.clone(); 5_000]), "5000 flows"),
        (&|done| done["tallies"] = json!(vec![tally.clone(); 50]), "50 tallies"),
        // More than is read of any agent during such a trial.
        (&|done| done["later"] = json!("x".repeat(40 << 20)), "over the limit"),
    ] {
        let (host, sandbox) = (answering(done(change)), Sandbox::new());
        let ended = sandbox.run(&[
            "stream",
            "--transport",
            "memcpy",
            "--from",
            &host,
            "--time",
            "60ms",
            "--interval",
            "20ms",
            "--trials",
            "2",
            "--no-path",
        ]);
        assert!(ended.code != Some(0) && ended.stderr.contains(said), "{said}: {ended:?}");
        assert!(ended.stderr.len() < 4_000, "no text of the agent is printed whole");
        let stored = std::fs::metadata(sandbox.store()).map_or(0, |file| file.len());
        assert!(stored < 2 << 20, "{stored} bytes are stored");
    }
}
