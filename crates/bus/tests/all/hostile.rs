//! What others who may publish on a bus can do to an agent, against a real nats-server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "it says what it skips")]

use std::time::Duration;

use async_nats::jetstream::{self, stream};
use async_nats::{Client, Subscriber};
use bus::attend;
use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::support::{Server, contact, echo, is_echoed};

/// Somebody who may publish.
struct Attacker {
    client: Client,
    bucket: stream::Stream,
    /// The epoch of the agent `n1`.
    epoch: u64,
}

impl Attacker {
    async fn on(server: &Server) -> Self {
        let client = async_nats::connect(server.url()).await.unwrap();
        let bucket = jetstream::new(client.clone()).get_stream("KV_thru-agents").await.unwrap();
        let mut attacker = Self { client, bucket, epoch: 0 };
        attacker.epoch = attacker.entry().await["epoch"].as_u64().unwrap();
        attacker
    }

    async fn entry(&self) -> serde_json::Value {
        let found = self.bucket.get_last_raw_message_by_subject("$KV.thru-agents.n1").await.unwrap();
        serde_json::from_slice(&found.payload).unwrap()
    }

    async fn send(&self, stream: &str, reply: &str, letter: u8, number: u64, data: &[u8]) {
        let mut bytes = vec![letter];
        bytes.extend(number.to_be_bytes());
        bytes.extend(data);
        let to = format!("thru.v1.to.{}.{stream}.n1", self.epoch);
        self.client.publish_with_reply(to, reply.to_owned(), Bytes::from(bytes)).await.unwrap();
    }

    async fn write_name(&self, name: &str) {
        self.client.publish("$KV.thru-agents.n1", Bytes::from(name.to_owned())).await.unwrap();
        self.client.flush().await.unwrap();
    }
}

/// The next message of one of these letters.
async fn heard(messages: &mut Subscriber, letters: &[u8]) -> Option<Bytes> {
    let next = async {
        loop {
            let message = messages.next().await?;
            if message.payload.first().is_some_and(|letter| letters.contains(letter)) {
                return Some(message.payload);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), next).await.ok().flatten()
}

#[tokio::test]
async fn an_agent_publishes_to_the_other_ends_of_its_streams_only() {
    let Some(server) = Server::start(&[]) else { return };
    let agents = server.bus().await;
    let _attendance = echo(&agents, "n1", "k").await.unwrap();
    let attacker = Attacker::on(&server).await;
    let mut all = attacker.client.subscribe(">").await.unwrap();
    attacker.client.flush().await.unwrap();
    let elsewhere =
        ["any.subject", "$KV.thru-agents.other", "thru.v1.runs.r1", "thru.v1.from.ab.cd", "thru.v1.to.1.deadbeef.n2"];
    for reply in elsewhere {
        for letter in [b'D', b'C', b'Q', b'O'] {
            attacker.send("deadbeef", reply, letter, 1, if letter == b'D' { b"x" } else { b"" }).await;
        }
    }
    // Only then is there an answer.
    attacker.send("deadbeef", "thru.v1.from.ab.deadbeef", b'C', 1, b"").await;
    loop {
        let message = all.next().await.unwrap();
        if message.payload.first() == Some(&b'R') {
            assert_eq!(message.subject.as_str(), "thru.v1.from.ab.deadbeef");
            break;
        }
        assert!(!elsewhere.contains(&message.subject.as_str()), "{}", message.subject);
    }
}

#[tokio::test]
async fn who_ignores_the_window_is_cut_off_by_an_agent_whose_reader_waits() {
    let Some(server) = Server::start(&[]) else { return };
    let agents = server.bus().await;
    // Its streams are never read.
    let (_attendance, mut arrived) = attend(&agents, "n1", contact("k"), |_| {}).await.unwrap();
    let attacker = Attacker::on(&server).await;
    let mut answers = attacker.client.subscribe("thru.v1.from.ab.*").await.unwrap();
    for (stream, bytes) in [("11", 32 << 10), ("22", 1)] {
        let reply = format!("thru.v1.from.ab.{stream}");
        attacker.send(stream, &reply, b'O', 0, b"").await;
        assert!(heard(&mut answers, b"A").await.is_some());
        let _unread = arrived.recv().await.unwrap();
        for number in 1..=500 {
            attacker.send(stream, &reply, b'D', number, &vec![0; bytes]).await;
        }
        assert!(heard(&mut answers, b"R").await.is_some(), "{bytes}");
    }
}

#[tokio::test]
async fn a_flood_of_streams_leaves_room_for_an_honest_one() {
    let Some(server) = Server::start(&[]) else { return };
    let (agents, coordinator) = (server.bus().await, server.bus().await);
    let _attendance = echo(&agents, "n1", "k").await.unwrap();
    let (held, _) = coordinator.open("n1").await.unwrap();
    let attacker = Attacker::on(&server).await;
    for number in 0..5000 {
        attacker.send(&number.to_string(), &format!("thru.v1.from.ab.{number}"), b'O', 0, b"").await;
    }
    attacker.client.flush().await.unwrap();
    let (stream, _) = coordinator.open("n1").await.unwrap();
    assert!(is_echoed(stream, 100_000).await);
    drop(held);
}

#[tokio::test]
async fn an_agent_takes_its_name_again_after_one_message_of_another() {
    let Some(server) = Server::start(&[]) else { return };
    let (agents, coordinator) = (server.bus().await, server.bus().await);
    let (log, mut said) = mpsc::unbounded_channel();
    let (_attendance, mut arrived) =
        attend(&agents, "n1", contact("k"), move |line| log.send(line.to_owned()).unwrap()).await.unwrap();
    let attacker = Attacker::on(&server).await;

    // What is no agent's name is written over, and the agent keeps it.
    for garbage in ["", "R\0\0\0\0\0\0\0\0"] {
        attacker.write_name(garbage).await;
        tokio::time::timeout(Duration::from_secs(10), async {
            while !attacker.bucket.get_last_raw_message_by_subject("$KV.thru-agents.n1").await.is_ok_and(|message| {
                serde_json::from_slice::<serde_json::Value>(&message.payload).is_ok_and(|entry| entry["key"] == "k")
            }) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        })
        .await
        .expect("the name is written again");
    }
    let (_stream, _) = coordinator.open("n1").await.unwrap();
    assert!(arrived.recv().await.is_some() && said.try_recv().is_err(), "nothing was lost");

    // Another agent's is left to it until its lease is over.
    attacker.write_name(r#"{"instance":"evil","epoch":999999,"port":9,"version":"x","key":"evil"}"#).await;
    let mut line = async || tokio::time::timeout(Duration::from_secs(30), said.recv()).await.unwrap().unwrap();
    assert!(line().await.contains("the agent at evil has taken the name n1"));
    assert!(line().await.contains("again as n1"));
    let (_stream, _) = coordinator.open("n1").await.unwrap();
    assert!(arrived.recv().await.is_some());
}
