//! Frames of the control protocol, in every direction. The first byte chooses the messages, the second how the stream is cut.
#![no_main]

use protocol::frame::{Decoder, MAX_GREETING, encode};
use protocol::message::{FromAgent, Message, ToAgent};
use protocol::worker_message::{FromWorker, ToWorker};
use throughline_fuzz::memory::bounded;

/// Before the peer is known, and after.
fn take<M: Message + PartialEq + std::fmt::Debug>(said: &[u8], cut: usize) {
    for limit in [MAX_GREETING, M::MAX_FRAME] {
        let mut decoder = Decoder::new(limit);
        for piece in said.chunks(cut.max(1)) {
            decoder.push(piece);
            loop {
                match decoder.take::<M>() {
                    Ok(Some(message)) => again(&message),
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
    }
}

/// A message that is sent on is the same at the next place.
fn again<M: Message + PartialEq + std::fmt::Debug>(message: &M) {
    let Ok(frame) = encode(message) else { return };
    let mut decoder = Decoder::new(M::MAX_FRAME);
    decoder.push(&frame);
    assert_eq!(decoder.take::<M>().ok().flatten().as_ref(), Some(message));
}

throughline_fuzz::structured!();
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([kind, cut], said)) = bytes.split_first_chunk::<2>() else { return };
    let cut = if *cut == 0 { said.len() } else { usize::from(*cut) };
    bounded(said, 256 << 10, 512, || match kind % 4 {
        0 => take::<ToAgent>(said, cut),
        1 => take::<FromAgent>(said, cut),
        2 => take::<ToWorker>(said, cut),
        _ => take::<FromWorker>(said, cut),
    });
});
