//! The agent of a far end that a launcher started: for one measurement, on any free port, for the process that has its offer.

use std::future::pending;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use command::{Failure, setup};
use control::AgentKey;
use control::agent::{Agent, AgentOptions, Workers};
use control::proof::auth::Token;

use super::Offer;

/// Interval at which it checks whether its parent still runs.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Serves one measurement, on all addresses if `anywhere`, else on loopback. `publish` is called with the offer. The agent ends when
/// `deserted` returns true.
pub fn serve(
    workers: Workers,
    anywhere: bool,
    publish: impl Fn(&Offer) + Send + Sync + 'static,
    deserted: impl Fn() -> bool,
) -> Result<u8, Failure> {
    let directory = setup::socket_directory()?;
    let secret = Token::fresh().map_err(|error| Failure::other(format!("cannot make a token: {error}")))?;
    let key = AgentKey::fresh().map_err(|error| Failure::other(format!("cannot make a key: {error}")))?;
    let fingerprint = key.fingerprint();
    let offer = move |port| Offer { token: secret.clone(), key: fingerprint, addresses: addresses(anywhere, port) };
    let ip = if anywhere { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
    let options = AgentOptions {
        workers,
        token: offer(0).token(),
        once: true,
        listening: Box::new(move |listening| {
            if let Some(address) = listening.first() {
                publish(&offer(address.port()));
            }
        }),
        ..setup::local_options(directory.path())?
    };
    let runtime = setup::runtime()?;
    let address = [SocketAddr::new(ip.into(), 0)];
    runtime.block_on(async {
        tokio::select! {
            served = Agent::serve(options, key, &address, pending()) => {
                served.map(|()| 0).map_err(Failure::host)
            }
            () = when(deserted) => Ok(0),
        }
    })
}

/// Ends when `deserted` returns true, or the parent process has ended.
async fn when(deserted: impl Fn() -> bool) {
    let parent = std::os::unix::process::parent_id();
    while std::os::unix::process::parent_id() == parent && !deserted() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The addresses of an agent that listens on `port`: those of this host, or loopback unless `anywhere`.
fn addresses(anywhere: bool, port: u16) -> Vec<String> {
    if !anywhere {
        return vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port).to_string()];
    }
    let inventory = host::inventory(&host::RealSys);
    let addresses = inventory.interfaces.iter().flat_map(|interface| &interface.addresses);
    addresses
        .filter_map(|address| address.split('/').next()?.parse::<IpAddr>().ok())
        .filter(|address| address.is_ipv4() && !address.is_loopback())
        .map(|address| SocketAddr::new(address, port).to_string())
        .collect()
}
