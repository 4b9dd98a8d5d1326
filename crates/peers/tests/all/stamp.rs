//! STAMP over real sockets: our sender and our reflector, and a reflector that drops and reorders.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;

use model::{Live, Pattern, Program, Spec, Stop};
use peers::{ProgramServer, ServiceLimits, Sides, TrialObserver, protocol};

use crate::common::{LIMITS, Served, everyone};

struct Recorder;

impl TrialObserver for Recorder {
    fn starting(&mut self, _: u64) {}
    fn live(&mut self, _: Live) {}
    fn stopped(&mut self) {}
}

fn start(options: &str) -> Served {
    Served::of(Program::Stamp, options, LIMITS, everyone())
}

fn measure(spec: &Spec, address: SocketAddr) -> Sides {
    protocol(Program::Stamp)
        .measure(
            spec,
            &ProgramServer { host: &address.to_string(), login: None },
            &mut Recorder,
            &AtomicBool::new(false),
        )
        .unwrap()
}

fn brief(count: u64) -> Spec {
    Spec { block: 100, stop: Stop::Transactions(count), ..Spec::new("udp", Pattern::Rr) }
}

#[test]
fn our_pair_measures_each_direction() {
    for options in ["", "stateful"] {
        let served = start(options);
        // Two senders after each other: a stateful reflector counts each from 0.
        for _ in 0..2 {
            for rate_bps in [None, Some(800_000)] {
                let sides = measure(&Spec { rate_bps, ..brief(50) }, served.address);
                let near = &sides.near;
                assert_eq!((near.transactions, near.bytes_received), (50, 5_000), "{options}: {near:?}");
                let one_way = near.one_way.as_ref().unwrap();
                assert_eq!((one_way.lost_outbound, one_way.lost_return), (Some(0), Some(0)), "{options}: {one_way:?}");
                // One clock: both directions are positive and add up to the round trip.
                assert!(one_way.outbound.min_ns >= 0 && one_way.return_trip.min_ns >= 0, "{one_way:?}");
                let rtt = near.rtt.as_ref().unwrap();
                let both = one_way.outbound.mean_ns + one_way.return_trip.mean_ns;
                // The two clocks are read one after the other.
                assert!((both - rtt.mean_ns).abs() < rtt.mean_ns * 0.05 + 20_000.0, "{both} {rtt:?}");
                assert!(one_way.offset_ns.0 <= 0 && one_way.offset_ns.1 >= 0, "the clocks do not differ: {one_way:?}");
                assert_eq!(one_way.near_clock, one_way.far_clock);
                let manner = if options.is_empty() { "a stateless reflector" } else { "a stateful reflector" };
                assert!(sides.version.starts_with(manner), "{}", sides.version);
                assert_eq!((sides.far.bytes_received, one_way.outbound.count), (5_000, 50));
            }
        }
    }
}

#[test]
fn a_reflector_answers_padded_and_unpadded_requests() {
    let long = |length: usize, number: u8| {
        let mut request = vec![7; length];
        request[..14].copy_from_slice(&[0, 0, 0, number, 0xed, 0, 0x37, 0x80, 0x80, 0, 0, 0, 0x8f, 0x84]);
        request
    };
    for (options, expected) in
        [("stateful", &[(44, 0), (44, 1), (41, 2), (43, 3), (44, 4), (500, 5)][..]), ("", &[(44, 14), (44, 40)])]
    {
        let served = start(options);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(served.address).unwrap();
        // Not a request, without room for a reply, and with it.
        socket.send(&[7; 13]).unwrap();
        for length in [14_u8, 40] {
            socket.send(&long(length.into(), length)).unwrap();
        }
        if options == "stateful" {
            for length in [41, 43, 44, 500] {
                socket.send(&long(length, 99)).unwrap();
            }
        }
        let mut room = [0; 2048];
        for (length, number) in expected {
            assert_eq!(socket.recv(&mut room).unwrap(), *length, "{options}");
            assert_eq!((room[3], &room[..3]), (*number, &[0; 3][..]), "{options}");
            assert_eq!(room[28..38], long(14, 0)[4..14], "the request's time and error");
        }
    }
}

#[test]
fn reflectors_do_not_keep_each_other_busy() {
    let served = start("");
    let port = served.address.port();
    // Another reflector on the same port of another address would take the reply for a request.
    let other = UdpSocket::bind(("127.0.0.2", port)).unwrap();
    other.set_read_timeout(Some(std::time::Duration::from_millis(200))).unwrap();
    other.send_to(&[0; 44], served.address).unwrap();
    assert!(other.recv(&mut [0; 100]).is_err());
    assert_eq!(measure(&brief(3), served.address).near.transactions, 3, "it still serves others");
}

#[test]
fn a_reply_of_another_reflector_is_not_answered_whatever_its_port() {
    for options in ["", "stateful"] {
        let served = start(options);
        // Another program's reflector on a high port. Somebody has forged a request with its address.
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.connect(served.address).unwrap();
        let mut forged = [0; 100];
        forged[3] = 1;
        other.send(&forged).unwrap();
        let mut reply = [0; 100];
        assert_eq!(other.recv(&mut reply).unwrap(), 100);
        // It takes the reply for a request, or sends it back as it is.
        let mut reflected = reply;
        reflected[16..24].copy_from_slice(&reply[4..12]);
        reflected[24..38].copy_from_slice(&reply[..14]);
        let unknown_clock = {
            let mut other = reflected;
            other[16..24].fill(9);
            other
        };
        for answer in [reflected, unknown_clock, reply] {
            other.send(&answer).unwrap();
        }
        // What comes next is the answer to this one.
        forged[3] = 2;
        other.send(&forged).unwrap();
        assert_eq!(other.recv(&mut reply).unwrap(), 100);
        assert_eq!(reply[24..28], [0, 0, 0, 2], "{options}: the number of the request");
    }
}

#[test]
fn invalid_replies_are_reported() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let reflector = std::thread::spawn(move || {
        let mut room = [0; 2048];
        let (_, peer) = socket.recv_from(&mut room).unwrap();
        // The Z bit: its times are PTP's.
        room[12] |= 0x40;
        socket.send_to(&room[..44], peer).unwrap();
    });
    let stamp = protocol(Program::Stamp);
    let error = stamp
        .measure(
            &brief(1),
            &ProgramServer { host: &address.to_string(), login: None },
            &mut Recorder,
            &AtomicBool::new(false),
        )
        .unwrap_err();
    reflector.join().unwrap();
    assert!(error.to_string().contains("PTP timestamps are not supported"), "{error}");
}

#[test]
fn a_rate_bounds_what_is_reflected() {
    let limits = ServiceLimits { rate_bps: Some(8_000), ..LIMITS };
    let served = Served::at("[::1]:0", Program::Stamp, "stateful", limits, everyone());
    let sides = measure(&Spec { rate_bps: Some(8_000_000), ..brief(200) }, served.address);
    // 1,000 bytes in a second, of which a tenth at once: 200 requests of 100 bytes in 20 ms are too many.
    assert!((1..100).contains(&sides.near.transactions), "{:?}", sides.near.datagrams);
    let one_way = sides.near.one_way.unwrap();
    assert_eq!(one_way.lost_return, Some(0), "what is not answered is not counted either: {one_way:?}");
}

#[test]
fn losses_and_overtaking_are_seen() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // A minimal stateless reflector: number, times, the request's head. Of every ten it drops one and swaps
    // two.
    let reflector = std::thread::spawn(move || {
        let mut held: Option<Vec<u8>> = None;
        let mut room = [0; 2048];
        for number in 0..20_u32 {
            let (count, peer) = socket.recv_from(&mut room).unwrap();
            let mut reply = room[..count].to_vec();
            assert_eq!(reply[..4], (number + 1).to_be_bytes());
            reply[16..24].copy_from_slice(&room[4..12]);
            reply[24..38].copy_from_slice(&room[..14]);
            match number % 10 {
                3 => continue,
                5 => held = Some(reply),
                _ => {
                    socket.send_to(&reply, peer).unwrap();
                    if let Some(late) = held.take() {
                        socket.send_to(&late, peer).unwrap();
                    }
                }
            }
        }
    });
    let sides = measure(&Spec { rate_bps: Some(800_000), ..brief(20) }, address);
    reflector.join().unwrap();
    let datagrams = sides.near.datagrams.unwrap();
    assert_eq!((datagrams.sent, datagrams.received, datagrams.replies_lost, datagrams.reordered), (20, 18, 2, 2));
    let one_way = sides.near.one_way.unwrap();
    assert_eq!((one_way.lost_outbound, one_way.lost_return), (None, None), "a stateless reflector cannot tell where");
}

#[test]
fn a_reply_that_ends_after_the_requests_error_counts() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // As some reflectors of TWAMP Light: no time to live, no padding.
    let reflector = std::thread::spawn(move || {
        let mut room = [0; 2048];
        for _ in 0..3 {
            let (_, peer) = socket.recv_from(&mut room).unwrap();
            let mut reply = room[..38].to_vec();
            reply[16..24].copy_from_slice(&room[4..12]);
            reply[24..38].copy_from_slice(&room[..14]);
            socket.send_to(&reply, peer).unwrap();
        }
    });
    let near = measure(&brief(3), address).near;
    reflector.join().unwrap();
    assert_eq!((near.transactions, near.one_way.unwrap().outbound.count), (3, 3));
}
