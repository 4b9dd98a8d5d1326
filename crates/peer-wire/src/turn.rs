//! The output of a state machine.

/// The output after received bytes or a call of the driver: send the bytes first, then carry out the actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn<A> {
    /// Bytes for the peer.
    pub send: Vec<u8>,
    /// What the driver must do, oldest first.
    pub actions: Vec<A>,
}

impl<A> Default for Turn<A> {
    fn default() -> Self {
        Self { send: Vec::new(), actions: Vec::new() }
    }
}
