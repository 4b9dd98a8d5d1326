//! The rings under loom, which runs two ends in many orders of their accesses, and fails if one sleeps for ever or if both
//! use a byte at a time: `scripts/test-long.sh loom`.
//!
//! What loom does not try: it takes SeqCst loads and stores for acquire and release; a load never has the value of a store
//! that comes later; and switches between threads are limited (`run`). SeqCst fences it takes as they are, and these are
//! what the order of `alert` and `sleep` rests on.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use super::*;

/// A sleep in a model has no limit.
const LIMIT_NS: u64 = 0;

/// Runs both ends, each in a thread, in every order.
fn run(near: fn(SharedRings), far: fn(SharedRings)) {
    let mut model = loom::model::Builder::new();
    // Switches from a thread that could go on. With three this takes a second, with four seven, with six minutes.
    model.preemption_bound = Some(3);
    model.check(move || {
        let [first, second] = Segment::pair(4).map(SharedRings::new);
        let thread = loom::thread::spawn(move || far(second));
        near(first);
        thread.join().unwrap();
    });
}

/// Pushes all of `bytes`, asleep while there is no room.
fn push(rings: &mut SharedRings, bytes: &[u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let count = rings.push(&bytes[done..]);
        if count == 0 {
            rings.wait_space(LIMIT_NS);
        }
        done += count;
    }
}

/// Pops as much as `bytes` has, asleep while nothing is there.
fn pop(rings: &mut SharedRings, bytes: &[u8]) {
    let mut done = 0;
    while done < bytes.len() {
        let mut room = [0; 8];
        let count = rings.pop(&mut room[..bytes.len() - done]);
        assert_eq!(room[..count], bytes[done..done + count]);
        if count == 0 {
            rings.wait_data(LIMIT_NS);
        }
        done += count;
    }
}

/// Pops until the other end has finished.
fn pop_to_end(rings: &mut SharedRings, bytes: &[u8]) {
    pop(rings, bytes);
    while !rings.at_end() {
        assert_eq!(rings.pop(&mut [0; 8]), 0);
        rings.wait_data(LIMIT_NS);
    }
}

#[test]
fn messages_and_their_answers_wake_both_ends() {
    run(
        |mut near| {
            for message in [[1], [2]] {
                push(&mut near, &message);
                pop(&mut near, &message);
            }
            std::mem::forget(near);
        },
        |mut far| {
            for message in [[1], [2]] {
                pop(&mut far, &message);
                push(&mut far, &message);
            }
            std::mem::forget(far);
        },
    );
}

#[test]
fn a_message_beside_the_ring_is_followed_by_one_in_it() {
    run(
        |mut near| {
            push(&mut near, &[1, 2]);
            push(&mut near, &[3]);
            std::mem::forget(near);
        },
        |mut far| {
            pop(&mut far, &[1, 2, 3]);
            std::mem::forget(far);
        },
    );
}

#[test]
fn a_full_ring_lets_its_writer_sleep_until_there_is_room() {
    run(
        |mut near| {
            push(&mut near, &[1, 2, 3, 4, 5, 6]);
            std::mem::forget(near);
        },
        |mut far| {
            pop(&mut far, &[1, 2, 3, 4, 5, 6]);
            // What was popped last is published.
            assert_eq!(far.pop(&mut [0; 1]), 0);
            std::mem::forget(far);
        },
    );
}

#[test]
fn the_end_of_one_end_wakes_the_other() {
    run(
        |mut near| {
            push(&mut near, &[1]);
            drop(near);
        },
        |mut far| {
            pop_to_end(&mut far, &[1]);
            std::mem::forget(far);
        },
    );
}
