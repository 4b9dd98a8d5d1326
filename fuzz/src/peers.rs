//! The codecs of other programs, driven as their tests drive them.

#[path = "../../crates/peer-wire/tests/all/common/fuzz.rs"]
#[allow(dead_code, unreachable_pub, reason = "not all of it is used here")]
mod codecs;
#[path = "../../crates/peer-wire/tests/all/common/mod.rs"]
#[allow(dead_code, unreachable_pub, missing_docs, reason = "not all of it is used here")]
mod common;

use std::sync::LazyLock;

use codecs::Target;
use common::recording;

use crate::memory::bounded;

static TARGETS: LazyLock<Vec<Target>> = LazyLock::new(|| {
    let targets = codecs::targets();
    // What a driver reads once does not count as memory of a session.
    for target in &targets {
        target.withstand(&[]);
    }
    targets
});

/// A session of a codec of `peer`: the first byte chooses its role, the second the length of the pieces in which the rest
/// comes, 0 for the whole.
///
/// # Panics
/// If the codec does, or if its error does not name the peer and the step.
pub fn session(peer: &str, bytes: &[u8]) {
    let Some(([role, piece], said)) = bytes.split_first_chunk::<2>() else { return };
    let roles: Vec<&Target> = TARGETS.iter().filter(|target| target.peer == peer).collect();
    let target = roles[usize::from(*role) % roles.len()];
    let pieces: Vec<&[u8]> = match usize::from(*piece) {
        0 => vec![said],
        length => said.chunks(length).collect(),
    };
    bounded(said, 256 << 10, 64, || target.withstand(&pieces));
}

/// The recorded sessions of `peer`, as inputs of [`session`].
#[must_use]
pub fn recorded(peer: &str) -> Vec<Vec<u8>> {
    let roles = TARGETS.iter().filter(|target| target.peer == peer).zip(0_u8..);
    roles.flat_map(|(target, role)| target.golden.iter().map(move |said| [&[role, 0], &said[..]].concat())).collect()
}
