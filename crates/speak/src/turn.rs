//! What a machine wants done.

/// What came of bytes that arrived or of something that the driver told: first send, then act, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn<A> {
    /// Bytes for the peer, on the connection that the machine stands for.
    pub send: Vec<u8>,
    /// What the driver has to do, oldest first.
    pub actions: Vec<A>,
}

impl<A> Default for Turn<A> {
    fn default() -> Self {
        Self { send: Vec::new(), actions: Vec::new() }
    }
}
