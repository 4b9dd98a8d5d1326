//! How a coordinator and agents on other hosts recognize each other.

use crate::proto::auth::Token;
use crate::proto::fingerprint::Fingerprint;

/// What a coordinator knows of the agents that it connects to.
pub struct Access {
    /// The secret that both sides prove; `None` for agents without one.
    pub token: Option<Token>,
    /// The keys of agents.
    pub keys: Box<dyn KnownKeys>,
}

/// The keys by which agents are recognized.
pub trait KnownKeys {
    /// Whether the agent at `agent` (name and port) may have this key. The line, if there is one, is for the user.
    ///
    /// # Errors
    /// Why it may not, and the remedy.
    fn check(&self, agent: &str, key: &Fingerprint) -> Result<Option<String>, String>;
}

impl Access {
    /// For one agent, whose key is known from a safe place.
    #[must_use]
    pub fn to(key: Fingerprint, token: Option<Token>) -> Self {
        Self { token, keys: Box::new(Exactly(key)) }
    }
}

/// One key for all names.
struct Exactly(Fingerprint);

impl KnownKeys for Exactly {
    fn check(&self, _: &str, key: &Fingerprint) -> Result<Option<String>, String> {
        let wrong = || {
            format!(
                "its key is {key}, and that of the agent that was started is {}: another program listens there",
                self.0
            )
        };
        if *key == self.0 { Ok(None) } else { Err(wrong()) }
    }
}
