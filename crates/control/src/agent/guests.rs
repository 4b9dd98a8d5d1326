//! The clients that an agent recognizes by their keys, and how a client becomes one: with the code of an invitation.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use text::Said;

use crate::proof::code::Code;
use crate::proof::fingerprint::Fingerprint;

/// How long an invitation is open.
pub const OPEN_FOR: Duration = Duration::from_secs(600);
/// Wrong codes that end it.
const GUESSES: u32 = 3;

/// The keys of clients that have been invited.
pub trait KnownClients: Send + Sync {
    /// Whether a client with this key may measure.
    fn knows(&self, key: &Fingerprint) -> bool;

    /// Keeps the key of a client that proved the code.
    ///
    /// # Errors
    /// It cannot be stored.
    fn keep(&self, key: &Fingerprint, from: Option<IpAddr>) -> std::io::Result<()>;
}

/// The clients that may measure because they were invited.
pub struct Guests {
    known: Box<dyn KnownClients>,
    invitation: Mutex<Option<Invitation>>,
}

/// An invitation that nobody has accepted yet.
struct Invitation {
    code: Code,
    until: Instant,
    wrong: u32,
}

/// Why a client is not let in by its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Said)]
pub(super) enum NotInvited {
    /// The code is wrong, or somebody between the hosts passes messages on.
    #[error("the code is wrong{}", after_a_wrong_code(*left))]
    Wrong { left: u32 },
    /// No invitation is open.
    #[error(
        "no invitation is open here: a code works once, for {} minutes, and ends after {GUESSES} wrong guesses; start \
         `thru serve --invite` again for a new one",
        OPEN_FOR.as_secs() / 60
    )]
    Over,
    /// The client showed no key, by which it could be recognized later.
    #[error("a client with a code must show a key")]
    NoKey,
    /// The client has no code, and this agent does not know its key.
    #[error("this agent serves invited hosts only: run `thru serve --invite` there, and the line that it prints here")]
    Stranger,
}

/// What a wrong code leaves of an invitation.
fn after_a_wrong_code(left: u32) -> String {
    match left {
        0 => ", and the invitation has ended".to_owned(),
        1 => "; the next wrong one ends the invitation".to_owned(),
        _ => format!("; {left} more wrong ones end the invitation"),
    }
}

impl Guests {
    /// Clients with these keys, and with `code` one more within [`OPEN_FOR`].
    #[must_use]
    pub fn new(known: Box<dyn KnownClients>, code: Option<Code>) -> Self {
        let open = |code| Invitation { code, until: Instant::now() + OPEN_FOR, wrong: 0 };
        Self { known, invitation: Mutex::new(code.map(open)) }
    }

    /// Whether a client that showed this key has been invited.
    pub(super) fn knows(&self, key: Option<&Fingerprint>) -> bool {
        key.is_some_and(|key| self.known.knows(key))
    }

    /// The code of the open invitation.
    pub(super) fn code(&self, now: Instant) -> Result<Code, NotInvited> {
        let invitation = self.lock();
        let open = invitation.as_ref().filter(|open| now < open.until);
        open.map(|open| open.code.clone()).ok_or(NotInvited::Over)
    }

    /// Accepts the invitation if the proof is right. However many clients try at once, only [`GUESSES`] of them learn that their code is
    /// wrong.
    pub(super) fn accept(&self, is_right: bool, now: Instant) -> Result<(), NotInvited> {
        let mut invitation = self.lock();
        let open = invitation.as_mut().filter(|open| now < open.until).ok_or(NotInvited::Over)?;
        if is_right {
            *invitation = None;
            return Ok(());
        }
        open.wrong += 1;
        let left = GUESSES - open.wrong;
        if left == 0 {
            *invitation = None;
        }
        Err(NotInvited::Wrong { left })
    }

    /// Recognizes this client from now on.
    pub(super) fn keep(&self, key: &Fingerprint, from: Option<IpAddr>) -> std::io::Result<()> {
        self.known.keep(key, from)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Invitation>> {
        // Nothing panics while it is held.
        self.invitation.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl KnownClients for Nobody {
        fn knows(&self, _: &Fingerprint) -> bool {
            false
        }

        fn keep(&self, _: &Fingerprint, _: Option<IpAddr>) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn invited() -> (Guests, Instant) {
        (Guests::new(Box::new(Nobody), Some(Code::fresh().unwrap())), Instant::now())
    }

    #[test]
    fn a_code_works_once() {
        let (guests, now) = invited();
        assert!(guests.code(now).is_ok());
        assert_eq!(guests.accept(true, now), Ok(()));
        assert_eq!(guests.accept(true, now), Err(NotInvited::Over));
        assert_eq!(guests.code(now), Err(NotInvited::Over));
    }

    #[test]
    fn the_third_wrong_code_ends_the_invitation_for_the_right_one_too() {
        let (guests, now) = invited();
        for left in [2, 1, 0] {
            assert_eq!(guests.accept(false, now), Err(NotInvited::Wrong { left }));
        }
        assert_eq!(guests.accept(true, now), Err(NotInvited::Over));
        assert_eq!(guests.accept(false, now), Err(NotInvited::Over));
    }

    #[test]
    fn an_invitation_expires() {
        let (guests, now) = invited();
        let late = now + OPEN_FOR + Duration::from_secs(1);
        assert_eq!(guests.code(late), Err(NotInvited::Over));
        assert_eq!(guests.accept(true, late), Err(NotInvited::Over));
        assert!(Guests::new(Box::new(Nobody), None).code(now).is_err());
    }
}
