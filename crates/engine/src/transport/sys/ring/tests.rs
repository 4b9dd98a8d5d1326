#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};

use super::*;

/// Both ends of one segment, each with a mapping of its own, as two processes have them.
fn ends(capacity: usize) -> (SharedRings, SharedRings) {
    let made = SharedRings::create(capacity).unwrap();
    let passed = made.fd().try_clone().unwrap();
    (made, SharedRings::join(passed, capacity).unwrap())
}

/// The byte at a position of a stream; no two stretches of a ring's length are alike.
fn byte(at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

fn bytes(at: u64, count: usize) -> Vec<u8> {
    (at..at + count as u64).map(byte).collect()
}

/// Sizes around the inline limit, around what shares a line with the positions, and beyond a ring of 4 KiB.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![1..8usize, 38..43usize, INLINE - 3..INLINE + 4, 1..600usize, 4000..5000usize]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With any order of pushes and pops, what comes out is what went in, and as much of it as the ring holds.
    #[test]
    fn bytes_come_out_as_they_went_in(steps in prop::collection::vec((0..4u8, size()), 1..200)) {
        const CAPACITY: usize = 4096;
        let (mut a, mut b) = ends(CAPACITY);
        let mut directions = [VecDeque::new(), VecDeque::new()];
        let mut at = [0u64; 2];
        // What was popped but not published to the end that pushed it.
        let mut unreported = [0; 2];
        for (what, size) in steps {
            let direction = usize::from(what & 1);
            let (from, to) = if direction == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
            let held = &mut directions[direction];
            if what < 2 {
                let message = bytes(at[direction], size);
                let count = from.push(&message);
                prop_assert_eq!(count, size.min(CAPACITY - held.len() - unreported[direction]));
                held.extend(&message[..count]);
                at[direction] += count as u64;
                unreported[1 - direction] = 0;
            } else {
                let mut room = vec![0; size];
                let count = to.pop(&mut room);
                let expected: Vec<u8> = held.drain(..size.min(held.len())).collect();
                prop_assert_eq!(&room[..count], &expected[..]);
                unreported[direction] = count;
            }
        }
    }
}

#[test]
fn what_was_read_is_published_with_the_reply_or_the_next_read() {
    let (mut a, mut b) = ends(4096);
    let mut room = [0; 4096];
    assert_eq!(a.push(&[1; 4096]), 4096);
    assert_eq!(a.push(&[2]), 0);
    assert_eq!(b.pop(&mut room), 4096);
    assert_eq!(a.push(&[2]), 0, "the room is not published yet");
    assert_eq!(b.push(&[3]), 1);
    assert_eq!(a.push(&[2]), 1, "the answer said it");
    assert_eq!(b.pop(&mut room), 1);
    assert_eq!(b.pop(&mut room), 0);
    assert_eq!(a.push(&[4; 4096]), 4096, "the read of the empty ring published it");
}

#[test]
fn a_message_beside_the_ring_is_read_in_parts_and_before_later_ones() {
    let (mut a, mut b) = ends(4096);
    assert_eq!(a.push(&bytes(0, 50)), 50);
    let mut room = [0; 400];
    assert_eq!(b.pop(&mut room[..20]), 20);
    assert_eq!(room[..20], bytes(0, 20));
    // The rest must be found in the ring, followed by what came later.
    assert_eq!(a.push(&bytes(50, 300)), 300);
    assert_eq!(b.pop(&mut room), 330);
    assert_eq!(room[..330], bytes(20, 330));
}

#[test]
fn an_end_that_finished_is_at_its_end_once_all_is_read() {
    let (mut a, mut b) = ends(4096);
    assert_eq!(a.push(b"last words"), 10);
    assert!(!b.at_end());
    drop(a);
    assert!(!b.at_end(), "there is something to read");
    assert_eq!(b.pop(&mut [0; 64]), 10);
    assert!(b.at_end());
}

#[test]
fn a_segment_keeps_its_size() {
    let made = SharedRings::create(4096).unwrap();
    assert!(ftruncate(made.fd(), 0).is_err() && ftruncate(made.fd(), 1 << 20).is_err());
}

#[test]
fn other_layouts_are_refused() {
    let segment = memfd_create("ring-test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&segment, 1 << 16).unwrap();
    // The other end could shrink it under the mapping.
    let error = SharedRings::join(segment.try_clone().unwrap(), 4096).err().unwrap();
    assert!(error.to_string().contains("can shrink"), "{error}");
    fcntl_add_seals(&segment, SealFlags::SHRINK).unwrap();
    // Nobody made rings in it.
    let error = SharedRings::join(segment.try_clone().unwrap(), 4096).err().unwrap();
    assert!(error.to_string().contains("same version"), "{error}");
    let error = SharedRings::join(segment, 1 << 16).err().unwrap();
    assert!(error.to_string().contains("smaller"), "{error}");
}

/// How an end of the stress test waits.
#[derive(Clone, Copy)]
enum Waits {
    Spinning,
    Asleep,
}

/// Pushes one stream and pops the other, in pieces of sizes drawn by `seed`.
fn exchange(mut rings: SharedRings, total: u64, waits: Waits, mut seed: u64) {
    // So long that only a lost wake-up makes a wait last that long.
    const LIMIT_NS: u64 = 60_000_000_000;
    let mut draw = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let sizes = [1, 8, 40, 41, INLINE, INLINE + 1, 500, 3000, 6000];
        sizes[(seed >> 33) as usize % sizes.len()]
    };
    rings.spin(matches!(waits, Waits::Spinning));
    let (mut sent, mut taken) = (0, 0);
    let mut room = vec![0; 6000];
    while sent < total || taken < total {
        let size = draw().min((total - sent) as usize);
        let pushed = rings.push(&bytes(sent, size));
        sent += pushed as u64;
        let most = draw();
        let popped = rings.pop(&mut room[..most]);
        assert_eq!(room[..popped], bytes(taken, popped), "at {taken}");
        taken += popped as u64;
        if pushed == 0 && popped == 0 {
            let begun = Instant::now();
            match waits {
                Waits::Spinning => std::hint::spin_loop(),
                // If it can neither send nor receive, the other end does one of them before it sleeps.
                Waits::Asleep if taken < total => rings.wait_data(LIMIT_NS),
                Waits::Asleep => rings.wait_space(LIMIT_NS),
            }
            assert!(begun.elapsed() < Duration::from_nanos(LIMIT_NS), "a wake-up was lost");
        }
    }
}

#[test]
fn streams_cross_in_two_threads() {
    for (first, second) in
        [(Waits::Spinning, Waits::Spinning), (Waits::Asleep, Waits::Asleep), (Waits::Spinning, Waits::Asleep)]
    {
        for seed in 0..4 {
            let (a, b) = ends(4096);
            let far = std::thread::spawn(move || exchange(b, 1 << 17, second, seed + 100));
            exchange(a, 1 << 17, first, seed);
            far.join().unwrap();
        }
    }
}
