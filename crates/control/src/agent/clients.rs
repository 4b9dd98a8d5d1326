//! The places of clients, and how many of them one address may have.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use text::Said;

/// One in this many places is kept free of the address that has the most clients.
const SHARE: usize = 8;

/// The accepted coordinators that are connected, by address or network.
#[derive(Debug, Default)]
pub(super) struct Clients(Mutex<HashMap<Option<IpAddr>, usize>>);

/// One of them, until it is dropped.
#[derive(Debug)]
pub(super) struct Client {
    clients: Arc<Clients>,
    from: Option<IpAddr>,
}

/// Why there is no place for a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub(super) enum ClientsError {
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
    /// A place for a client at `from`, of `places`.
    ///
    /// # Errors
    /// All places are taken, or those that clients of one address may have.
    pub(super) fn enter(self: &Arc<Self>, from: Option<IpAddr>, places: usize) -> Result<Client, ClientsError> {
        let mut clients = self.lock();
        if clients.values().sum::<usize>() >= places {
            return Err(ClientsError::All);
        }
        let own = clients.get(&from).copied().unwrap_or_default();
        if from.is_some() && own >= places - places / SHARE {
            return Err(ClientsError::OfAddress);
        }
        clients.insert(from, own + 1);
        Ok(Client { clients: self.clone(), from })
    }

    /// How many there are.
    #[cfg(feature = "metrics")]
    pub(super) fn count(&self) -> usize {
        self.lock().values().sum()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<IpAddr>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut clients = self.clients.lock();
        if let Some(own) = clients.get_mut(&self.from) {
            *own -= 1;
            if *own == 0 {
                clients.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_places_for_others() {
        let clients = Arc::new(Clients::default());
        let [many, other] = ["192.0.2.1", "192.0.2.2"].map(|address| address.parse().ok());
        let enter = |from, most| -> Vec<Client> { (0..most).map_while(|_| clients.enter(from, 16).ok()).collect() };
        let mut held = enter(many, 100);
        assert_eq!(held.len(), 14);
        assert_eq!(clients.enter(many, 16).unwrap_err(), ClientsError::OfAddress);
        let others = enter(other, 100);
        assert_eq!(others.len(), 2);
        assert_eq!(clients.enter("192.0.2.3".parse().ok(), 16).unwrap_err(), ClientsError::All);
        held.pop();
        assert!(clients.enter(many, 16).is_ok());
        drop((held, others));
        assert!(clients.lock().is_empty());
    }

    #[test]
    fn few_places_are_for_anyone_and_this_process_has_all() {
        let clients = Arc::new(Clients::default());
        let address = "192.0.2.1".parse().ok();
        let held: Vec<Client> = (0..10).map_while(|_| clients.enter(address, 2).ok()).collect();
        assert_eq!(held.len(), 2);
        drop(held);
        assert_eq!((0..100).map_while(|_| clients.enter(None, 64).ok()).collect::<Vec<_>>().len(), 64);
    }
}
