//! Why a helper gives no packets.

use std::io;
use std::path::PathBuf;

use host::capture::CaptureError;
use text::{Said, Text};

/// Why a helper gives no packets.
#[derive(Debug, thiserror::Error, Said)]
pub(crate) enum NoPackets {
    /// It was not started with that permission.
    #[error("this helper captures no packets: start it with `--allow-capture`")]
    NotAllowed,
    /// The kernel refuses them.
    #[error("{0}")]
    Capture(#[from] CaptureError),
    /// The helper's process is not reached.
    #[error("the helper at {}: {source}", path.display())]
    Unreached { path: PathBuf, source: io::Error },
    /// The helper's process refuses, in its words.
    #[error("{}", _0.plain())]
    Refused(Text),
    /// The helper's process answers something else.
    #[error("the helper sent an unexpected answer")]
    OutOfOrder,
}
