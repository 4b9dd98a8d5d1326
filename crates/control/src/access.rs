//! How a coordinator and agents on other hosts recognize each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bus::Buses;

use crate::AgentKey;
use crate::key_error::KeyError;
use crate::proof::auth::Token;
use crate::proof::code::Code;
use crate::proof::fingerprint::Fingerprint;

/// What a coordinator knows of the agents that it connects to.
pub struct Access {
    /// The secret that both sides prove; `None` for agents without one.
    pub token: Option<Token>,
    /// The code of the agent's invitation, in place of a token.
    pub code: Option<Code>,
    /// The key by which agents recognize this user.
    pub own_key: Option<AgentKey>,
    /// The keys of agents.
    pub keys: Box<dyn KnownKeys>,
    /// The buses by which agents are reached.
    pub buses: Buses,
    /// How fast hosts that are reached together have answered.
    pub answers: Answers,
}

/// The longest time that any of several hosts has taken to answer a connection. It limits how long the silent ones are waited for.
#[derive(Debug, Clone, Default)]
pub struct Answers(Arc<AtomicU64>);

impl Answers {
    /// A silent host may take this many times as long, and some seconds more: its path may be longer, and lose a request or two.
    const TIMES: u32 = 4;
    const MORE: Duration = Duration::from_secs(5);

    pub(crate) fn heard(&self, after: Duration) {
        let ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX).max(1);
        self.0.fetch_max(ns, Ordering::Relaxed);
    }

    /// How long a host may be silent: `most` until another one has answered.
    pub(crate) fn limit(&self, most: Duration) -> Duration {
        match self.0.load(Ordering::Relaxed) {
            0 => most,
            ns => most.min(Self::MORE + Duration::from_nanos(ns).saturating_mul(Self::TIMES)),
        }
    }
}

/// The keys by which agents are recognized.
pub trait KnownKeys {
    /// Whether the agent at `agent` (name and port) may have this key.
    ///
    /// # Errors
    /// Why it may not, and the remedy.
    fn check(&self, agent: &str, key: &Fingerprint) -> Result<Recognized, KeyError>;

    /// Keeps the new key of an agent that has greeted as it should, and proved the token if there is one. Returns a line for the user.
    fn keep(&self, agent: &str, key: &Fingerprint) -> String;
}

/// How far a key is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognized {
    /// It is the agent's.
    Known,
    /// It is that of this user's own agents, and nothing else is known of the agent.
    Own,
    /// Nothing is known of the agent.
    New,
}

/// What a coordinator proves to an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Proof<'a> {
    /// Nothing: the agent accepts anyone, or recognizes this user's key.
    None,
    /// A token that both have.
    Token(&'a Token),
    /// The code of the agent's invitation, unless the two know each other's keys already.
    Code { code: &'a Code, known: bool },
}

impl Access {
    /// What is proved to an agent that is recognized so far.
    pub(crate) fn proof(&self, recognized: Recognized) -> Proof<'_> {
        match (&self.code, &self.token) {
            (Some(code), _) => Proof::Code { code, known: recognized == Recognized::Known },
            (None, Some(token)) => Proof::Token(token),
            (None, None) => Proof::None,
        }
    }

    /// For one agent, whose key is known from a safe place.
    #[must_use]
    pub fn to(key: Fingerprint, token: Option<Token>, buses: Buses) -> Self {
        let keys = Box::new(Exactly(key));
        Self { token, code: None, own_key: None, keys, buses, answers: Answers::default() }
    }
}

/// One key for all names.
struct Exactly(Fingerprint);

impl KnownKeys for Exactly {
    fn check(&self, _: &str, key: &Fingerprint) -> Result<Recognized, KeyError> {
        if *key == self.0 { Ok(Recognized::Known) } else { Err(KeyError::Started { key: *key, started: self.0 }) }
    }

    fn keep(&self, agent: &str, key: &Fingerprint) -> String {
        format!("{agent} has the key {key}")
    }
}
