//! Who has the machine now, for those who ask.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use model::MachineUser;

use super::budget;
use super::session::Session;
use crate::proto::message::FromAgent;

/// The measurements that have a position, by the number of that position.
#[derive(Default)]
pub(super) struct Users(Mutex<Known>);

#[derive(Default)]
struct Known {
    next: u64,
    users: BTreeMap<u64, User>,
}

struct User {
    purpose: String,
    source: Option<IpAddr>,
    since: Instant,
}

/// A user of the machine until it is dropped.
pub(super) struct Using<'a> {
    users: &'a Users,
    number: u64,
}

impl Users {
    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one who begins now.
    pub(super) fn begin(&self, purpose: String, source: Option<IpAddr>) -> Using<'_> {
        let mut known = self.lock();
        let number = known.next;
        known.next += 1;
        known.users.insert(number, User { purpose, source, since: Instant::now() });
        Using { users: self, number }
    }

    /// All of them, the longest first; their addresses only if `with_sources`.
    pub(super) fn list(&self, with_sources: bool) -> Vec<MachineUser> {
        let known = self.lock();
        let user = |user: &User| MachineUser {
            purpose: user.purpose.clone(),
            source: user.source.filter(|_| with_sources).map(|source| source.to_string()),
            for_ns: u64::try_from(user.since.elapsed().as_nanos()).unwrap_or(u64::MAX),
        };
        known.users.values().map(user).collect()
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.users.lock().users.remove(&self.number);
    }
}

impl Session {
    /// The clients that measure here. Only a client that has proved its right to measure sees their addresses.
    pub(super) fn users(&self) -> FromAgent {
        let mut users = self.shared.users.list(self.proved);
        // Clients of other programs' servers share the queue.
        let others = self.shared.queue.running().saturating_sub(users.len());
        users.extend((0..others).map(|_| MachineUser { purpose: "another program".into(), ..MachineUser::default() }));
        FromAgent::Users { users, waiting: u32::try_from(self.shared.queue.waiting()).unwrap_or(u32::MAX) }
    }

    /// The address, or network, that has a share of this agent; `None` for a client on no network.
    pub(super) fn source(&self) -> Option<IpAddr> {
        self.addresses.peer.map(budget::network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_listed_until_it_ends() {
        let users = Users::default();
        let first = users.begin("a stream".into(), "192.0.2.1".parse().ok());
        let second = users.begin("a curve".into(), None);
        let shown = |all: &[MachineUser]| -> Vec<(String, Option<String>)> {
            all.iter().map(|user| (user.purpose.clone(), user.source.clone())).collect()
        };
        assert_eq!(
            shown(&users.list(true)),
            [("a stream".to_owned(), Some("192.0.2.1".to_owned())), ("a curve".to_owned(), None)]
        );
        assert_eq!(shown(&users.list(false))[0].1, None, "without addresses");
        drop(first);
        assert_eq!(users.list(true).len(), 1);
        drop(second);
        assert!(users.list(true).is_empty());
    }
}
