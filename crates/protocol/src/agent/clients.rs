//! The places of clients, and how many of them one address may have.

use std::collections::BTreeMap;
use std::net::IpAddr;

use text::Said;

/// One in this many places is kept free of the address that has the most clients.
const SHARE: usize = 8;

/// The accepted coordinators that are connected, by address or network.
#[derive(Debug, Default)]
pub(super) struct Clients(BTreeMap<Option<IpAddr>, usize>);

/// Why a client is turned away.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub enum ClientsError {
    /// All places are taken.
    #[error("too many clients are connected: try again later, or raise `--max-clients` of the agent")]
    All,
    /// The free places are for clients of other addresses.
    #[error(
        "too many clients from your address are connected, and the remaining places are for other addresses: use fewer, or raise \
         `--max-clients` of the agent"
    )]
    OfAddress,
}

impl Clients {
    /// Takes one of `places` for a client at `from`.
    pub(super) fn enter(&mut self, from: Option<IpAddr>, places: usize) -> Result<(), ClientsError> {
        if self.count() >= places {
            return Err(ClientsError::All);
        }
        let own = self.0.get(&from).copied().unwrap_or_default();
        if from.is_some() && own >= places - places / SHARE {
            return Err(ClientsError::OfAddress);
        }
        self.0.insert(from, own + 1);
        Ok(())
    }

    /// A client at `from` leaves.
    pub(super) fn leave(&mut self, from: Option<IpAddr>) {
        if let Some(own) = self.0.get_mut(&from) {
            *own -= 1;
            if *own == 0 {
                self.0.remove(&from);
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_places_for_others() {
        let mut clients = Clients::default();
        let [many, other] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().ok());
        let mut enter = |from, most| (0..most).map_while(|_| clients.enter(from, 16).ok()).count();
        assert_eq!((enter(many, 100), enter(other, 100)), (14, 2));
        clients.leave(other);
        assert_eq!(clients.enter(many, 16), Err(ClientsError::OfAddress));
        assert_eq!(clients.enter(other, 16), Ok(()));
        assert_eq!(clients.enter("192.0.2.3".parse().ok(), 16), Err(ClientsError::All));
        clients.leave(many);
        assert_eq!(clients.enter(many, 16), Ok(()));
        (0..14).for_each(|_| clients.leave(many));
        (0..2).for_each(|_| clients.leave(other));
        assert!(clients.0.is_empty());
    }

    #[test]
    fn few_places_are_for_anyone_and_this_process_has_all() {
        let mut clients = Clients::default();
        let address = "192.0.2.1".parse().ok();
        assert_eq!((0..10).map_while(|_| clients.enter(address, 2).ok()).count(), 2);
        let mut clients = Clients::default();
        assert_eq!((0..100).map_while(|_| clients.enter(None, 64).ok()).count(), 64);
    }
}
