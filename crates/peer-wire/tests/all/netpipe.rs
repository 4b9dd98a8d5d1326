//! NetPIPE's codec with recordings of NPtcp and with invalid input.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use peer_wire::netpipe::{Action, EndRole, Exchange, Mode, Netpipe, SizePlan};
use peer_wire::{Turn, WireError};
use proptest::prelude::*;

use crate::common::recording;

/// A driver for one end: moves messages and takes the peer's bytes from a recording.
struct Driver {
    role: EndRole,
    machine: Netpipe,
    turn: Turn<Action>,
    acted: usize,
    /// All bytes of this end.
    said: Vec<u8>,
    /// Seconds that each exchange seems to take.
    exchange_s: f64,
    done: bool,
}

impl Driver {
    fn new(role: EndRole, plan: SizePlan) -> Self {
        let mut turn = Turn::default();
        let machine = Netpipe::open(role, plan, &mut turn);
        let said = std::mem::take(&mut turn.send);
        Self { role, machine, turn, acted: 0, said, exchange_s: 1e-5, done: false }
    }

    /// Processes the peer's bytes in pieces of up to `piece` bytes.
    fn receive(&mut self, peer: &[u8], piece: usize) -> Result<(), WireError> {
        let mut rest = peer;
        while !rest.is_empty() && !self.done {
            let (mut now, _) = rest.split_at(piece.min(rest.len()));
            let length = now.len();
            self.machine.receive(&mut now, &mut self.turn)?;
            rest = &rest[length - now.len()..];
            self.act(&mut rest)?;
        }
        if self.done { Ok(()) } else { self.machine.ended() }
    }

    fn act(&mut self, rest: &mut &[u8]) -> Result<(), WireError> {
        self.said.append(&mut self.turn.send);
        while let Some(action) = self.turn.actions.get(self.acted).cloned() {
            self.acted += 1;
            match action {
                Action::Exchange(exchange) => {
                    self.exchange(exchange, rest);
                    let elapsed = self.exchange_s * f64::from(exchange.count);
                    self.machine.exchanged(elapsed, &mut self.turn)?;
                }
                Action::Pass(mut passage) => {
                    passage.fill(&mut self.said, usize::MAX);
                    let (heard, after) = rest.split_at((passage.due() as usize).min(rest.len()));
                    passage.take(heard)?;
                    *rest = after;
                    self.machine.passed(self.exchange_s, &mut self.turn)?;
                }
                Action::Reset => self.machine.reconnected(&mut self.turn)?,
                Action::Point { .. } => {}
                Action::Done => self.done = true,
            }
            self.said.append(&mut self.turn.send);
        }
        Ok(())
    }

    fn exchange(&mut self, exchange: Exchange, rest: &mut &[u8]) {
        let bytes = exchange.bytes as usize * exchange.count as usize;
        if exchange.mode != Mode::Stream || self.role == EndRole::Receiver {
            let (heard, after) = rest.split_at(bytes.min(rest.len()));
            for message in heard.chunks_exact(exchange.bytes as usize) {
                assert_eq!(exchange.first_wrong(message), None);
            }
            *rest = after;
        }
        if exchange.mode != Mode::Stream || self.role == EndRole::Transmitter {
            let mut message = vec![b'a'; exchange.bytes as usize];
            exchange.fill(&mut message);
            for _ in 0..exchange.count {
                self.said.extend(&message);
            }
        }
    }

    fn points(&self) -> Vec<(u64, u32)> {
        let point = |action: &Action| match action {
            Action::Point { bytes, count, .. } => Some((*bytes, *count)),
            _ => None,
        };
        self.turn.actions.iter().filter_map(point).collect()
    }
}

fn plan(name: &str) -> SizePlan {
    let (mode, integrity) = match name {
        "netpipe372_both" => (Mode::Both, false),
        "netpipe372_integrity" => (Mode::PingPong, true),
        _ => (Mode::PingPong, false),
    };
    let sizes = if integrity {
        vec![5, 7, 9, 13, 17, 25, 33, 49]
    } else {
        vec![1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35, 45, 48, 51, 61, 64, 67]
    };
    SizePlan { first: sizes[0], sizes, mode, reset: false, integrity, count: Some(3), only: Vec::new() }
}

/// Message contents depend on NPtcp's buffers; neither end checks them.
fn without_letters(said: &[u8]) -> Vec<u8> {
    said.iter().map(|byte| if *byte == b'b' { b'a' } else { *byte }).collect()
}

#[test]
fn both_ends_send_what_the_real_ones_sent() {
    for name in ["netpipe372_pingpong", "netpipe372_both", "netpipe372_integrity"] {
        let recording = recording(name, 5002);
        let session = &recording.connections[0];
        for piece in [1, 7, usize::MAX] {
            for (role, peer, own) in [
                (EndRole::Transmitter, &session.from_server, &session.from_client),
                (EndRole::Receiver, &session.from_client, &session.from_server),
            ] {
                let mut driver = Driver::new(role, plan(name));
                driver.receive(peer, piece).unwrap();
                assert!(driver.done, "{name} {role:?}");
                let counts: Vec<_> = plan(name).sizes.into_iter().map(|size| (size, 3)).collect();
                assert_eq!(driver.points(), counts, "{name} {role:?}");
                assert_eq!(driver.said.len(), own.len(), "{name} {role:?}");
                assert!(without_letters(&driver.said) == without_letters(own), "{name} {role:?}");
            }
        }
    }
}

#[test]
fn a_stream_resets_and_takes_its_time_from_the_receiver() {
    let plan = SizePlan {
        first: 8,
        sizes: vec![8, 16],
        mode: Mode::Stream,
        reset: false,
        integrity: false,
        count: Some(2),
        only: Vec::new(),
    };
    let mut receiver = Driver::new(EndRole::Receiver, plan.clone());
    receiver.exchange_s = 3e-6;
    let mut peer = b"SyncMe".to_vec();
    peer.extend([b'a'; 800]);
    peer.extend(b"SyncMeQUIT\0");
    for size in [8, 16] {
        peer.extend(b"SyncMe\0\0\0\x02");
        for _ in 0..3 {
            peer.extend(b"SyncMe");
            peer.extend(vec![b'a'; size * 2]);
            peer.extend(b"QUIT\0");
        }
    }
    peer.extend(b"QUIT\0");
    receiver.receive(&peer, usize::MAX).unwrap();
    assert!(receiver.done);
    let resets = receiver.turn.actions.iter().filter(|action| **action == Action::Reset).count();
    assert_eq!(resets, 1 + 2 * 3);
    let answers = receiver.said.clone();
    assert_eq!(answers[answers.len() - 9..], *b"\0\0\x01\x2cQUIT\0", "3 us are 300 units of 10 ns");

    let mut transmitter = Driver::new(EndRole::Transmitter, plan);
    transmitter.exchange_s = 1.0;
    transmitter.receive(&answers, 1).unwrap();
    assert!(transmitter.done);
    assert_eq!(transmitter.said, peer);
    let seconds = transmitter.turn.actions.iter().rev().find_map(|action| match action {
        Action::Point { seconds, .. } => Some(*seconds),
        _ => None,
    });
    assert_eq!(seconds, Some(3e-6), "the receiver's, not its own");
}

/// The recording is of a run that hung in NPtcp's own reset: the transmitter's new connection reached the port that was about to close.
#[test]
fn both_ends_begin_a_stream_as_the_real_ones_did() {
    let recording = recording("netpipe372_stream", 5002);
    let [first, second] = &recording.connections[..] else { panic!("two connections") };
    let sizes = vec![1, 2, 3, 4, 6, 8, 12];
    let plan = SizePlan {
        first: 1,
        sizes,
        mode: Mode::Stream,
        reset: false,
        integrity: false,
        count: Some(3),
        only: Vec::new(),
    };
    for piece in [1, 7, usize::MAX] {
        let mut driver = Driver::new(EndRole::Transmitter, plan.clone());
        let error = driver.receive(&first.from_server, piece).unwrap_err();
        assert_eq!(error.step, "while waiting for SyncMe", "nobody answers on the new connection");
        assert_eq!(driver.turn.actions.last(), Some(&Action::Reset));
        assert_eq!(
            without_letters(&driver.said),
            without_letters(&[&first.from_client[..], &second.from_client].concat())
        );

        let mut driver = Driver::new(EndRole::Receiver, plan.clone());
        let error = driver.receive(&[&first.from_client[..], &second.from_client].concat(), piece).unwrap_err();
        assert_eq!(error.step, "while reading the repeat count");
        // The recording lacks its SyncMe on the new connection.
        assert!(second.from_server.is_empty());
        assert_eq!(without_letters(&driver.said), without_letters(&[&first.from_server[..], b"SyncMe"].concat()));
    }
}

#[test]
fn a_receivers_limit_in_both_mode_is_not_an_error() {
    let plan = |mode| SizePlan {
        first: 1,
        sizes: vec![1, 2],
        mode,
        reset: false,
        integrity: false,
        count: Some(1),
        only: Vec::new(),
    };
    let measured = [&b"SyncMe"[..], &[b'a'; 100], b"SyncMe", b"SyncMe", b"SyncMeaSyncMeaSyncMea"].concat();
    let at_limit = |mode, said: &[u8]| {
        let mut driver = Driver::new(EndRole::Transmitter, plan(mode));
        assert!(driver.receive(said, usize::MAX).is_err(), "the connection ends within the run");
        driver.machine.is_at_limit()
    };
    let echoed = [&measured[..], b"SyncM"].concat();
    assert!(at_limit(Mode::Both, &echoed));
    assert!(!at_limit(Mode::PingPong, &echoed));
    assert!(!at_limit(Mode::Both, &measured));
    // Before the first size it is no limit.
    assert!(!at_limit(Mode::Both, &[&echoed[..112], b"SyncM"].concat()));
}

#[test]
fn counts_fill_a_tenth_of_a_second_and_slowness_ends_the_run() {
    let session = |exchange_s: f64| {
        let plan = SizePlan {
            first: 1,
            sizes: vec![1, 2, 4],
            mode: Mode::PingPong,
            reset: false,
            integrity: false,
            count: None,
            only: Vec::new(),
        };
        let mut driver = Driver::new(EndRole::Transmitter, plan);
        driver.exchange_s = exchange_s;
        // A receiver that always sends what is expected.
        let mut rest: &[u8] = &[];
        for _ in 0..100 {
            let mut mark: &[u8] = b"SyncMe";
            if driver.said.ends_with(b"QUIT\0") {
                mark = b"QUIT\0";
            }
            driver.machine.receive(&mut mark, &mut driver.turn).unwrap();
            driver.act(&mut rest).unwrap();
            if driver.done {
                break;
            }
        }
        assert!(driver.done);
        driver.points()
    };
    // An exchange is two half round trips of 50 us; the estimate doubles with the size.
    assert_eq!(session(1e-4), [(1, 2000), (2, 1000), (4, 1000)]);
    assert_eq!(session(1.0), [(1, 3), (2, 3), (4, 3)], "half a second is not too slow");
    assert_eq!(session(2.0), [], "already the first round trips took a second");
}

/// Sizes 1 and 4 of 1, 2, 3, 4, 6, once each.
fn part() -> SizePlan {
    let sizes = vec![1, 2, 3, 4, 6];
    SizePlan { first: 1, sizes, mode: Mode::PingPong, reset: false, integrity: false, count: Some(1), only: vec![1, 4] }
}

#[test]
fn untimed_sizes_are_passed_and_those_after_the_last_are_left_out() {
    // As a receiver answers: what it is sent, without the counts.
    let message = |size: usize| [&b"SyncMe"[..], &vec![b'a'; size]].concat();
    let size = |size: usize| [&b"SyncMe"[..], &message(size).repeat(3)].concat();
    let answers = [b"SyncMe", &[b'a'; 100][..], b"SyncMe", &size(1), &size(2), &size(3), &size(4), b"QUIT\0"].concat();
    let mut driver = Driver::new(EndRole::Transmitter, part());
    driver.receive(&answers, usize::MAX).unwrap();
    assert_eq!(driver.points(), [(1, 1), (4, 1)]);
    let counts = 4 * 4;
    assert_eq!(driver.said.len(), answers.len() + counts, "the same bytes as without passages");
    assert!(driver.said.ends_with(b"QUIT\0"));
    let passes = driver.turn.actions.iter().filter(|action| matches!(action, Action::Pass(_))).count();
    assert_eq!(passes, 2, "the first round trips, and 2 and 3 at once");
}

#[test]
fn a_receiver_that_passes_other_sizes_is_found_at_the_next_mark() {
    let mut driver = Driver::new(EndRole::Transmitter, part());
    let warm_up = [b"SyncMe", &[b'a'; 100][..], b"SyncMe"].concat();
    driver.receive(&warm_up, usize::MAX).unwrap_err();
    driver.receive(b"SyncMeSyncMeaSyncMeaSyncMea", 1).unwrap_err();
    let Some(Action::Pass(passage)) = driver.turn.actions.last() else { panic!("{:?}", driver.turn.actions) };
    let mut passage = passage.clone();
    assert_eq!((passage.bytes(), passage.due(), passage.is_over()), (15, 15 + 8 * 6, false));
    passage.take(b"SyncMeSyn").unwrap();
    let error = passage.take(b"aMe").unwrap_err().to_string();
    assert!(error.contains("expected \"SyncMe\""), "{error}");
}

#[test]
fn numbers_that_are_not_as_sent_are_found() {
    let exchange = Exchange { mode: Mode::PingPong, bytes: 11, count: 1, integrity: true };
    let mut message = [b'x'; 11];
    exchange.fill(&mut message);
    assert_eq!(exchange.first_wrong(&message), None, "the three bytes left over are not looked at");
    message[5] ^= 1;
    assert_eq!(exchange.first_wrong(&message), Some(4));
    assert_eq!(Exchange { integrity: false, ..exchange }.first_wrong(&message), None);
}

#[test]
fn every_cut_of_a_session_is_an_error_that_names_its_step() {
    let recording = recording("netpipe372_integrity", 5002);
    let session = &recording.connections[0];
    for (role, peer) in [(EndRole::Transmitter, &session.from_server), (EndRole::Receiver, &session.from_client)] {
        for cut in 0..peer.len() {
            let error = Driver::new(role, plan("netpipe372_integrity")).receive(&peer[..cut], usize::MAX).unwrap_err();
            assert_eq!(error.peer, "netpipe");
            assert!(error.step.starts_with("while "), "{role:?} {cut}: {error}");
        }
    }
}

#[test]
fn a_receiver_takes_the_end_where_a_size_was_due() {
    let mut driver = Driver::new(EndRole::Receiver, plan("netpipe372_pingpong"));
    let peer = [&b"SyncMe"[..], &[b'a'; 100], b"SyncMe", b"QUIT\0"].concat();
    driver.receive(&peer, 1).unwrap();
    assert!(driver.done);
    assert!(driver.said.ends_with(b"QUIT\0"));
    assert!(driver.points().is_empty());
    // A transmitter does not: nothing but its own QUIT ends a run.
    let mut driver = Driver::new(EndRole::Transmitter, plan("netpipe372_pingpong"));
    let error = driver.receive(&[&b"SyncMe"[..], &[b'a'; 100], b"SyncMe", b"QUIT\0Q"].concat(), 1).unwrap_err();
    assert_eq!(error.to_string(), "netpipe, while waiting for SyncMe: expected \"SyncMe\", received \"QUIT\\x00Q\"");
}

proptest! {
    #[test]
    fn any_bytes_end_or_name_their_step(
        transmits in any::<bool>(), marks in 0_usize..4, said in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let role = if transmits { EndRole::Transmitter } else { EndRole::Receiver };
        let before: [&[u8]; 4] = [b"SyncMe", &[b'a'; 100], b"SyncMe", b"SyncMe"];
        let mut peer = before[..marks].concat();
        peer.extend(said);
        // A count from arbitrary bytes would have the driver make up that many messages.
        let mut turn = Turn::default();
        let mut machine = Netpipe::open(role, plan("netpipe372_pingpong"), &mut turn);
        let mut rest = &peer[..];
        while !rest.is_empty() {
            let seen = turn.actions.len();
            if let Err(error) = machine.receive(&mut rest, &mut turn) {
                prop_assert_eq!(error.peer, "netpipe");
                prop_assert!(!error.what.to_string().is_empty());
                prop_assert!(machine.receive(&mut &b"S"[..], &mut turn).is_err());
                return Ok(());
            }
            if let Some(Action::Exchange(exchange)) = turn.actions[seen..].last().cloned() {
                let bytes = exchange.bytes as usize * exchange.count as usize;
                rest = &rest[bytes.min(rest.len())..];
                machine.exchanged(1e-3, &mut turn).unwrap();
            }
        }
        if let Err(error) = machine.ended() {
            prop_assert_eq!(error.peer, "netpipe");
        }
    }
}
