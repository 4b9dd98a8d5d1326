//! Against a real nats-server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "it says what it skips")]

use std::net::TcpListener;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bus::{Bus, BusAccess, BusError, attend, place};
use nkeys::KeyPair;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::support::{Server, contact, echo, is_echoed};

#[tokio::test]
async fn streams_carry_all_bytes_in_both_directions() {
    let Some(server) = Server::start(&[]) else { return };
    let (agents, coordinator) = (server.bus().await, server.bus().await);
    assert_eq!(coordinator.present().await.unwrap(), []);
    assert_eq!(coordinator.own_address(), Some([127, 0, 0, 1].into()));
    let _attendances = [echo(&agents, "n2", "k2").await.unwrap(), echo(&agents, "n1.example", "k1").await.unwrap()];
    let names: Vec<String> = coordinator.present().await.unwrap().into_iter().map(|agent| agent.name).collect();
    assert_eq!(names, ["n1.example", "n2"]);
    for name in ["n1.example", "n2"] {
        let (streams, bytes) = (4, 3_000_001);
        let opened = (0..streams).map(async |_| coordinator.open(name).await.unwrap());
        let opened = futures_util::future::join_all(opened).await;
        assert!(opened.iter().all(|(_, contact)| contact.port == Some(6280)));
        let echoed =
            futures_util::future::join_all(opened.into_iter().map(|(stream, _)| is_echoed(stream, bytes))).await;
        assert_eq!(echoed, [true; 4]);
    }
    let error = coordinator.open("n3").await.unwrap_err().to_string();
    assert!(error.contains("no agent on the bus") && error.contains("'n3'"), "{error}");
}

#[tokio::test]
async fn no_byte_is_lost_when_the_server_is_killed_and_started_again() {
    let Some(mut server) = Server::start(&[]) else { return };
    let (agents, coordinator) = (server.bus().await, server.bus().await);
    let _attendance = echo(&agents, "n1", "k").await.unwrap();
    for pause in [0, 700] {
        let (mut stream, _) = coordinator.open("n1").await.unwrap();
        let mut back = [0; 1000];
        for turn in 0..60_u8 {
            stream.write_all(&[turn; 1000]).await.unwrap();
            if turn == 20 {
                server.restart(Duration::from_millis(pause));
            }
            stream.read_exact(&mut back).await.unwrap();
            assert_eq!(back, [turn; 1000]);
        }
    }
}

#[tokio::test]
async fn a_name_has_one_agent() {
    let Some(server) = Server::start(&[]) else { return };
    let (first, second, coordinator) = (server.bus().await, server.bus().await, server.bus().await);
    let attendance = echo(&first, "n1", "one").await.unwrap();
    let error = echo(&second, "n1", "two").await.unwrap_err().to_string();
    assert!(error.contains("has the name 'n1' (192.0.2.1)"), "{error}");

    // The same agent, started again: the streams to the process before are over, and it does not come back while the name is held.
    let (log, mut said) = mpsc::unbounded_channel();
    drop(attendance);
    let (stale, mut arrived) =
        attend(&first, "n1", contact("one"), move |line| log.send(line.to_owned()).unwrap()).await.unwrap();
    let (mut old, _) = coordinator.open("n1").await.unwrap();
    let accepted = arrived.recv().await.unwrap();
    let current = echo(&second, "n1", "one").await.unwrap();
    let line = tokio::time::timeout(Duration::from_secs(20), said.recv()).await.unwrap().unwrap();
    assert!(line.contains("has taken the name n1") && line.contains("when it is free"), "{line}");
    let error = tokio::time::timeout(Duration::from_secs(5), old.read(&mut [0; 8])).await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the connection was closed");
    drop(accepted);
    let (stream, _) = coordinator.open("n1").await.unwrap();
    assert!(is_echoed(stream, 100).await);
    assert!(arrived.try_recv().is_err(), "nothing arrives at the one before");
    drop(stale);

    // Who leaves is gone at once.
    current.leave().await;
    assert!(matches!(coordinator.open("n1").await, Err(BusError::Absent { .. })));
    echo(&first, "n1", "two").await.unwrap();
}

#[tokio::test]
async fn a_name_is_written_again_until_its_bucket_takes_it() {
    let Some(server) = Server::start(&[]) else { return };
    let agents = server.bus().await;
    let _first = echo(&agents, "n0", "k0").await.unwrap();
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client.clone());
    // A bucket that is not there yet refuses; with a listener that says nothing, the message is lost.
    for (name, is_lost) in [("n1", false), ("n2", true)] {
        jetstream.delete_stream("KV_thru-agents").await.unwrap();
        let listener = if is_lost { Some(client.subscribe("$KV.thru-agents.>").await.unwrap()) } else { None };
        client.flush().await.unwrap();
        let make_bucket = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(listener);
            server.bus().await.present().await.unwrap();
        };
        let ((), attendance) = tokio::join!(make_bucket, echo(&agents, name, "k"));
        let _attendance = attendance.unwrap();
        assert!(agents.present().await.unwrap().iter().any(|agent| agent.name == name));
    }
}

#[tokio::test]
async fn names_are_listed_while_they_are_renewed() {
    let Some(server) = Server::start(&[]) else { return };
    let bus = server.bus().await;
    let _attendance = echo(&bus, "n0", "k0").await.unwrap();
    let jetstream = async_nats::jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let renew = async {
        let name = serde_json::json!({ "instance": "1", "epoch": 1, "key": "k", "version": "1" }).to_string();
        loop {
            for number in 1..=20 {
                let written = jetstream.publish(format!("$KV.thru-agents.n{number}"), name.clone().into());
                written.await.unwrap().await.unwrap();
            }
        }
    };
    let list = async {
        for _ in 0..30 {
            let listed = tokio::time::timeout(Duration::from_secs(60), bus.present()).await;
            assert!(listed.expect("it ends").unwrap().iter().any(|agent| agent.name == "n0"));
        }
        bus.present().await.unwrap().len()
    };
    let count = tokio::select! { count = list => count, () = renew => unreachable!() };
    assert_eq!(count, 21);
}

#[tokio::test]
async fn the_end_of_an_agents_connection_ends_its_streams() {
    let Some(server) = Server::start(&[]) else { return };
    let coordinator = server.bus().await;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let url = server.url();
    let attendance = runtime.spawn(async move {
        let bus = Bus::connect(&place(&url).unwrap(), &BusAccess::default()).await.unwrap();
        echo(&bus, "n1", "k").await.unwrap()
    });
    let attendance = attendance.await.unwrap();
    let (mut stream, _) = coordinator.open("n1").await.unwrap();
    // As if its process were killed: nothing is said.
    std::mem::forget(attendance);
    runtime.shutdown_background();
    let ends = async {
        let mut back = [0; 64];
        loop {
            // Who sends nothing is told nothing.
            stream.write_all(b"ping").await.unwrap();
            match tokio::time::timeout(Duration::from_millis(100), stream.read(&mut back)).await {
                Ok(Err(error)) => return error.to_string(),
                Ok(Ok(0)) => return "no reason is given".into(),
                _ => {}
            }
        }
    };
    let why = tokio::time::timeout(Duration::from_secs(20), ends).await.unwrap();
    assert_eq!(why, "it has left the bus");
}

#[tokio::test]
async fn records_of_a_run_come_once_and_in_order() {
    let Some(mut server) = Server::start(&[]) else { return };
    let bus = server.bus().await;
    assert_eq!(bus.records("none").await.unwrap().len(), 0);
    let long: Vec<u8> = (0..1_300_000_u32).map(|at| at as u8).collect();
    let records = [&b"first"[..], &long, b"", b"last"];
    let numbered: Vec<(u64, Vec<u8>)> = (0..).zip(records.map(<[u8]>::to_vec)).collect();
    bus.append("r1", &numbered[..3]).await.unwrap();
    for number in 0..4 {
        bus.append("r2", &[(number, b"other".to_vec())]).await.unwrap();
    }
    // What is not known to have arrived is sent again.
    bus.append("r1", &numbered[1..]).await.unwrap();
    server.restart(Duration::ZERO);
    let again = server.bus().await;
    // Another writer has numbers of its own.
    again.append("r2", &[(0, b"more".to_vec())]).await.unwrap();
    let found = again.records("r1").await.unwrap();
    assert!(found.iter().zip(records).all(|(found, record)| found[..] == *record) && found.len() == 4);
    assert_eq!(again.records("r2").await.unwrap(), ["other", "other", "other", "other", "more"]);
}

#[tokio::test]
async fn passwords_and_missing_servers_are_told() {
    let Some(server) = Server::start(&["--user", "me", "--pass", "secret"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creds");
    let connect = async |text: &str| {
        std::fs::write(&file, text).unwrap();
        let access = BusAccess::read(Some(&file), None).unwrap();
        Bus::connect(&place(&server.url()).unwrap(), &access).await
    };
    connect("me:secret\n").await.unwrap();
    let error = connect("me:wrong").await.unwrap_err().to_string();
    assert!(error.contains("THRU_BUS_CREDS"), "{error}");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = place(&format!("nats://127.0.0.1:{nobody}")).unwrap();
    let error = Bus::connect(&nowhere, &BusAccess::default()).await.unwrap_err().to_string();
    assert!(error.contains("cannot connect to the bus") && error.contains("check the address"), "{error}");
}

/// A token of NATS (a JWT, signed with `ed25519-nkey`) in which the issuer says `claims` of the subject.
fn token(issuer: &KeyPair, subject: &KeyPair, claims: &str) -> String {
    let part = |text: String| URL_SAFE_NO_PAD.encode(text);
    let head = part(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#.to_owned());
    let body = part(format!(
        r#"{{"jti":"1","iat":1,"iss":"{}","sub":"{}","name":"a test","nats":{claims}}}"#,
        issuer.public_key(),
        subject.public_key()
    ));
    let signed = issuer.sign(format!("{head}.{body}").as_bytes()).unwrap();
    format!("{head}.{body}.{}", URL_SAFE_NO_PAD.encode(signed))
}

#[tokio::test]
async fn credentials_files_are_signed_with() {
    let (operator, account, user) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user());
    let limits = r#""limits":{"subs":-1,"data":-1,"payload":-1,"imports":-1,"exports":-1,"conn":-1,"leaf":-1}"#;
    let trusted = token(&operator, &operator, r#"{"type":"operator","version":2}"#);
    // A server with JetStream wants an account of its own.
    let system = KeyPair::new_account();
    let [allowed, own] =
        [&account, &system].map(|of| token(&operator, of, &format!(r#"{{{limits},"type":"account","version":2}}"#)));
    let identity = token(&account, &user, r#"{"subs":-1,"data":-1,"payload":-1,"type":"user","version":2}"#);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config");
    let [account, system] = [account, system].map(|of| of.public_key());
    let preload = format!("resolver_preload: {{ {account}: {allowed}, {system}: {own} }}");
    let lines = format!("operator: {trusted}\nsystem_account: {system}\nresolver: MEMORY\n{preload}\n");
    std::fs::write(&config, lines).unwrap();
    let Some(server) = Server::start(&["-c", config.to_str().unwrap()]) else { return };
    let connect = async |key: &KeyPair| {
        let file = folder.path().join("creds");
        let credentials = format!(
            "-----BEGIN NATS USER JWT-----\n{identity}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            key.seed().unwrap()
        );
        std::fs::write(&file, credentials).unwrap();
        let access = BusAccess::read(Some(&file), None).unwrap();
        Bus::connect(&place(&server.url()).unwrap(), &access).await
    };
    connect(&user).await.unwrap();
    let error = connect(&KeyPair::new_user()).await.unwrap_err().to_string();
    assert!(error.contains("THRU_BUS_CREDS"), "{error}");
}
