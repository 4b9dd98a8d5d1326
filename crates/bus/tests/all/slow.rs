//! A real nats-server behind a slow link.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "it says what it skips")]

use bus::{Attendance, attend};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Server, SlowLink, contact};

/// 10 Mbit/s.
const RATE: f64 = 1_250_000.0;

#[tokio::test]
async fn many_agents_answer_over_a_slow_link_without_sending_anything_twice() {
    const AGENTS: usize = 6;
    const BYTES: usize = 1_000_000;
    let Some(server) = Server::start(&[]) else { return };
    let link = SlowLink::to(&server, RATE).await;
    let mut attendances: Vec<Attendance> = Vec::new();
    for number in 0..AGENTS {
        let bus = server.bus().await;
        let (attendance, mut arrived) = attend(&bus, &format!("n{number}"), contact("k"), |_| {}).await.unwrap();
        attendances.push(attendance);
        tokio::spawn(async move {
            let mut stream = arrived.recv().await.unwrap().stream;
            stream.read_u8().await.unwrap();
            stream.write_all(&vec![number as u8; BYTES]).await.unwrap();
            stream.shutdown().await.unwrap();
            let _ = stream.read_u8().await;
        });
    }
    let coordinator = link.bus().await;
    let ask = async |number: usize| {
        let (mut stream, _) = coordinator.open(&format!("n{number}")).await.unwrap();
        stream.write_u8(1).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.len() == BYTES && answer.iter().all(|byte| *byte == number as u8));
    };
    let before = link.passed();
    futures_util::future::join_all((0..AGENTS).map(ask)).await;
    let passed = link.passed()[1] - before[1];
    assert!(passed < (AGENTS * BYTES) as u64 * 11 / 10, "{passed} bytes for {}", AGENTS * BYTES);
}

#[tokio::test]
async fn records_pass_a_slow_link_once() {
    const BYTES: usize = 100_000;
    let Some(server) = Server::start(&[]) else { return };
    let link = SlowLink::to(&server, RATE / 2.0).await;
    let bus = link.bus().await;
    // More than the link carries in the time for an acknowledgement.
    let records: Vec<(u64, Vec<u8>)> = (0..64).map(|number| (number, vec![number as u8; BYTES])).collect();
    bus.append("r1", &records).await.unwrap();
    let passed = link.passed()[0];
    assert!(passed < (records.len() * BYTES) as u64 * 11 / 10, "{passed} bytes");
    let found = server.bus().await.records("r1").await.unwrap();
    assert!(found.len() == 64 && found.iter().zip(records).all(|(found, (_, record))| *found == record));
}
