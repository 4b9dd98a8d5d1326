#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
//! Datagrams over a path with a round trip of a second, and one with a forger beside it.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use engine::transport::{FlowHello, ListenOptions, Rendezvous, transport};
use engine::{Signals, TrialPlan, now_ns, run};
use model::{Leg, Pattern, Role, Spec, Stop};

const COOKIE: [u8; 16] = [9; 16];
const ONE_WAY: Duration = Duration::from_millis(500);

/// Forwards datagrams between the first sender and `to`, each after [`ONE_WAY`]; returns the address where it listens.
fn path(to: SocketAddr, over: Arc<AtomicBool>) -> SocketAddr {
    let front = UdpSocket::bind("127.0.0.1:0").unwrap();
    let back = UdpSocket::bind("127.0.0.1:0").unwrap();
    back.connect(to).unwrap();
    let here = front.local_addr().unwrap();
    front.set_nonblocking(true).unwrap();
    back.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let mut near = None;
        let mut direction: VecDeque<(Instant, bool, Vec<u8>)> = VecDeque::new();
        let mut buffer = [0; 2_048];
        while !over.load(Ordering::SeqCst) {
            let due = Instant::now() + ONE_WAY;
            match front.recv_from(&mut buffer) {
                Ok((count, from)) => {
                    near = Some(from);
                    direction.push_back((due, true, buffer[..count].to_vec()));
                }
                Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused)),
            }
            if let Ok(count) = back.recv(&mut buffer) {
                direction.push_back((due, false, buffer[..count].to_vec()));
            }
            while direction.front().is_some_and(|(due, ..)| *due <= Instant::now()) {
                let Some((_, forth, bytes)) = direction.pop_front() else { break };
                let _ = if forth { back.send(&bytes) } else { front.send_to(&bytes, near.unwrap()) };
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    here
}

fn plan(spec: &Spec, role: Role) -> TrialPlan {
    let leg = Leg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
    TrialPlan {
        spec: spec.clone(),
        role,
        trial: 1,
        flows: 0..spec.flows,
        legs: vec![leg],
        path: model::PathTimes::default(),
    }
}

#[test]
fn datagrams_shake_hands_and_open_a_leg_over_a_second_of_round_trip() {
    let direction = transport("udp").unwrap();
    for pattern in [Pattern::Stream, Pattern::Rr] {
        let spec = Spec { block: 200, stop: Stop::Transactions(3), ..Spec::new("udp", pattern) };
        let spec = if pattern == Pattern::Stream { Spec { stop: Stop::Blocks(20), ..spec } } else { spec };
        let options = ListenOptions::new([127, 0, 0, 1].into(), std::env::temp_dir(), COOKIE);
        let mut listener = direction.listen(&spec, &options).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let address = Some(path(listener.rendezvous().address.unwrap(), over.clone()));
        let far_plan = plan(&spec, Role::Passive);
        let far = std::thread::spawn(move || {
            let (_, link) = listener.accept(now_ns() + 10_000_000_000).expect("accepts");
            run(&far_plan, transport("udp").unwrap(), vec![link], &Signals::new(), &mut |_| {}).expect("runs")
        });
        let to = Rendezvous { address, cookie: COOKIE, ..Rendezvous::default() };
        let link = direction.connect(&spec, &to, &FlowHello::new(COOKIE, 1, 0).unwrap()).expect("connects");
        let near = run(&plan(&spec, Role::Active), direction, vec![link], &Signals::new(), &mut |_| {}).expect("runs");
        let far = far.join().unwrap();
        over.store(true, Ordering::SeqCst);
        assert!(near.failure.is_none() && far.failure.is_none(), "{:?} {:?}", near.failure, far.failure);
        let (near, far) = (&near.legs[0], &far.legs[0]);
        assert_eq!(near.bytes_sent, far.bytes_received, "{pattern}");
        assert_eq!(near.bytes_sent, if pattern == Pattern::Stream { 4_000 } else { 600 }, "{pattern}");
    }
}

#[test]
fn a_forger_without_the_nonce_makes_a_sender_send_nothing() {
    let victim = UdpSocket::bind("127.0.0.1:0").unwrap();
    victim.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let address = victim.local_addr().unwrap();
    let near_port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut spec = Spec { block: 1_000, ..Spec::new("udp", Pattern::Stream) };
    spec.near.port = Some(near_port);
    let to = Rendezvous { address: Some(address), cookie: COOKIE, ..Rendezvous::default() };
    let near = std::thread::spawn(move || {
        transport("udp").unwrap().connect(&spec, &to, &FlowHello::new(COOKIE, 1, 0).unwrap()).err()
    });
    // Everything that can be sent without having received anything: every kind of signal with constants, and short
    // datagrams.
    let signal = |kind: u8| {
        let mut bytes = [0; 72];
        bytes[..15].copy_from_slice(b"THRUsignal/1\r\n\0");
        bytes[15] = kind;
        bytes
    };
    let (mut received, mut buffer) = (Vec::new(), [0; 2_048]);
    victim.set_nonblocking(true).unwrap();
    while !near.is_finished() {
        for kind in 0..12 {
            let _ = victim.send_to(&signal(kind), ("127.0.0.1", near_port));
        }
        let _ = victim.send_to(b"x", ("127.0.0.1", near_port));
        while let Ok(count) = victim.recv(&mut buffer) {
            received.push(count);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let refused = near.join().unwrap().expect("nothing proved itself");
    assert!(refused.to_string().contains("did not answer on UDP"), "{refused}");
    // A hello each 50 ms for 5 s.
    assert!(received.iter().all(|count| *count == 72) && received.len() <= 110, "{} of {received:?}", received.len());
}
