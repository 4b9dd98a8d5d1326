#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64};
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

/// Writes wrong positions, lengths and bytes to all of the segment until it is `over`: positions at random, and such as are
/// close or equal to what the other end `popped`.
fn vandalize(rings: &SharedRings, popped: &AtomicU64, over: &AtomicBool) {
    let mut random = 1u64;
    let mut draw = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    while !over.load(Ordering::Relaxed) {
        for end in [rings.own(), rings.other()] {
            let right = popped.load(Ordering::Relaxed);
            let near = right.wrapping_add(draw() % 10_000).wrapping_sub(5_000);
            let position = [draw(), near, right, u64::MAX, 0][draw() as usize % 5];
            let word = &end.word;
            let inline = [draw(), tag(position, draw() as usize % 256), tag(position, INLINE)][draw() as usize % 3];
            word.inline.store(inline, Ordering::Relaxed);
            write_shared(&draw().to_ne_bytes(), &word.bytes[draw() as usize % (INLINE - 8)..]);
            word.popped.store(if draw() % 2 == 0 { position } else { draw() }, Ordering::Relaxed);
            word.pushed.store(position, Ordering::Release);
            let state = &end.state;
            for flag in [&state.sleeps, &state.spins, &state.finished] {
                flag.store(draw() as u32 % 2, Ordering::Relaxed);
            }
        }
        for ring in [rings.segment.outgoing(), rings.segment.incoming()] {
            write_shared(&draw().to_ne_bytes(), &ring[draw() as usize % (ring.len() - 8)..]);
        }
    }
}

/// Ends the other thread of a test also when it fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_peer_that_writes_anything_anywhere_changes_bytes_and_nothing_else() {
    const CAPACITY: usize = 4096;
    let (mut rings, hostile) = ends(CAPACITY);
    let (position, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (position, over) = (&position, &over);
        scope.spawn(move || vandalize(&hostile, position, over));
        let _ended = Over(over);
        let mut seen = [0u32; 4];
        let mut round = 0usize;
        // The other thread may get no core for a while.
        while round < 100_000 || seen.contains(&0) {
            round += 1;
            assert!(round < 20_000_000, "pushed something, nothing, popped something, nothing: {seen:?} times");
            let size = [1, 40, INLINE, INLINE + 1, 600, 5000][round % 6];
            let message = [7; 5000];
            let pushed = rings.push(&message[..size]);
            assert!(pushed <= size.min(CAPACITY));
            let mut room = [9; 5000];
            let popped = rings.pop(&mut room[..size]);
            assert!(popped <= size.min(CAPACITY));
            assert!(room[size..].iter().all(|byte| *byte == 9), "nothing beyond the buffer");
            position.store(rings.popped, Ordering::Relaxed);
            // A position that is wrong shows an end that never comes, or bytes that are not there; a wait ends by its limit.
            rings.at_end();
            if pushed == 0 && popped == 0 {
                rings.wait_data(1_000);
                rings.wait_space(1_000);
            }
            let cases = [pushed > 0, pushed == 0, popped > 0, popped == 0];
            seen.iter_mut().zip(cases).for_each(|(count, case)| *count += u32::from(case));
        }
    });
}
