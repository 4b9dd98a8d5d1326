//! Recorded control messages (x86-64, Linux 6.18), and stamps over loopback.

use std::io::Write;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use super::*;

/// A message of an arrival with a software stamp: 1 s and 2 ns.
#[cfg(target_pointer_width = "64")]
const ARRIVAL: [u8; 64] = {
    let mut bytes = [0; 64];
    // Length 64, level SOL_SOCKET (1), type SO_TIMESTAMPING (37), then seconds and nanoseconds three times.
    (bytes[0], bytes[8], bytes[12]) = (64, 1, 37);
    (bytes[16], bytes[24]) = (1, 2);
    bytes
};

/// A report of the error queue: length 48, level SOL_IP (0), type IP_RECVERR (11), then a sock_extended_err (ENOMSG 42, origin 4)
/// and the address of no one.
#[cfg(target_pointer_width = "64")]
fn report(info: u8, key: [u8; 4]) -> [u8; 48] {
    let mut bytes = [0; 48];
    (bytes[0], bytes[12]) = (48, 11);
    (bytes[16], bytes[20], bytes[24]) = (42, 4, info);
    bytes[28..32].copy_from_slice(&key);
    bytes
}

#[test]
#[cfg(all(target_pointer_width = "64", target_endian = "little"))]
fn the_first_and_the_third_of_the_three_times_are_read() {
    let software = Stamp { software_ns: Some(1_000_000_002), hardware_ns: None };
    assert_eq!(arrival(&ARRIVAL), software);
    let mut both = ARRIVAL;
    // The second time is not used any more, whatever is in it.
    (both[32], both[40], both[48], both[56]) = (9, 9, 3, 4);
    assert_eq!(arrival(&both), Stamp { hardware_ns: Some(3_000_000_004), ..software });
    assert_eq!(arrival(&[]), Stamp::default());
    assert_eq!(arrival(&ARRIVAL[..40]), Stamp::default(), "a cut message");
    let mut other = ARRIVAL;
    other[12] = 35;
    assert_eq!(arrival(&[other, ARRIVAL].concat()), software, "another message comes first");
}

#[test]
#[cfg(all(target_pointer_width = "64", target_endian = "little"))]
fn a_report_has_its_key_and_its_stamp() {
    let control = [&ARRIVAL[..], &report(0, [0x0d, 1, 0, 0])].concat();
    let stamp = Stamp { software_ns: Some(1_000_000_002), hardware_ns: None };
    assert_eq!(departed(&control), Some(Departure { key: 269, stamp }));
    let mut v6 = control.clone();
    (v6[72], v6[76]) = (41, 25);
    assert_eq!(departed(&v6), departed(&control));
    let scheduled = [&ARRIVAL[..], &report(1, [0; 4])].concat();
    assert_eq!(departed(&scheduled), None, "not the departure from the host");
    assert_eq!(departed(&ARRIVAL), None);
    let mut icmp = control;
    icmp[64 + 20] = 2;
    assert_eq!(departed(&icmp), None, "an error of another origin");
}

#[test]
fn a_wrong_length_ends_the_messages() {
    for length in [0usize, 3, 15, 17, 1 << 40] {
        let mut bytes = vec![0; 32];
        bytes[..size_of::<usize>()].copy_from_slice(&length.to_ne_bytes());
        assert!(messages(&bytes).count() <= 1, "{length}");
    }
}

fn wait_for(socket: BorrowedFd<'_>) -> Option<Departure> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        if let Some(found) = departure(socket) {
            return Some(found);
        }
        std::thread::yield_now();
    }
    None
}

#[test]
fn streams_and_datagrams_over_loopback_are_stamped() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    let counts_from_here = match enable(near.as_fd(), true) {
        Ok(counts) => counts,
        Err(error) => {
            println!("SKIPPED: streams_and_datagrams_over_loopback_are_stamped: no time stamps: {error}");
            return;
        }
    };
    enable(far.as_fd(), true).unwrap();
    let mut room = [0; 8];
    // The kernel begins to stamp arrivals some time after the first socket asks for it.
    let stamped = (0u32..1_000).find_map(|round| {
        near.write_all(b"plain").unwrap();
        assert_eq!(send(near.as_fd(), b"abc").unwrap(), 3);
        let departed = wait_for(near.as_fd()).expect("a departure");
        if counts_from_here {
            assert_eq!(departed.key, 8 * round + 7, "the offset of the last byte");
        }
        let mut taken = 0;
        let mut stamp = Stamp::default();
        while taken < room.len() {
            let (count, of) = receive(far.as_fd(), &mut room[taken..]).unwrap();
            (taken, stamp) = (taken + count, of);
        }
        std::thread::sleep(Duration::from_millis(1));
        stamp.software_ns.map(|arrived| (arrived, departed))
    });
    let (arrived, departed) = stamped.expect("a stamp of an arrival");
    assert!(
        Some(arrived) >= departed.stamp.software_ns && departed.stamp.software_ns.is_some(),
        "{arrived} {departed:?}"
    );

    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    near.connect(far.local_addr().unwrap()).unwrap();
    enable(near.as_fd(), false).unwrap();
    enable(far.as_fd(), false).unwrap();
    near.send(b"plain").unwrap();
    for key in 0..3 {
        send(near.as_fd(), b"abc").unwrap();
        assert_eq!(wait_for(near.as_fd()).map(|departed| departed.key), Some(key), "only stamped sends count");
    }
    assert_eq!(departure(near.as_fd()), None);
    assert_eq!(receive(far.as_fd(), &mut room).unwrap().0, 5);
}
