//! What can go wrong on a bus.

/// Why something on a bus failed. The text names the bus, the name on it, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The text is no address of a bus, or of a host on one.
    #[error("'{text}' is not a valid bus: {what}")]
    Address {
        /// As the user wrote it.
        text: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A file of credentials or certificates cannot be used.
    #[error("cannot use {path}: {what}")]
    Credentials {
        /// Its path.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// The server is not reached, or refuses.
    #[error("cannot connect to the bus {bus}: {what}")]
    Unreachable {
        /// The server's address, without passwords.
        bus: String,
        /// What happened, and the remedy.
        what: String,
    },
    /// The server answers, but not as a bus must.
    #[error("the bus {bus} failed to {operation}: {what}")]
    Failed {
        /// The server's address, without passwords.
        bus: String,
        /// What was attempted.
        operation: &'static str,
        /// What happened, and the remedy.
        what: String,
    },
    /// No host has this name there.
    #[error("no agent on the bus {bus} has the name '{name}': start `thru serve` there with `bus {bus}`")]
    Absent {
        /// The server's address, without passwords.
        bus: String,
        /// The name.
        name: String,
    },
    /// Another agent has this name.
    #[error(
        "another agent on the bus {bus} has the name '{name}' ({holder}): stop it, or name this host otherwise: `bus {bus}/NAME`"
    )]
    Taken {
        /// The server's address, without passwords.
        bus: String,
        /// The name.
        name: String,
        /// Where that agent is.
        holder: String,
    },
    /// This program cannot use a bus.
    #[error("this thru was built without the feature `fleet`, which a bus needs")]
    Unsupported,
}
