//! An agent of this process that listens on loopback, for measurements within this host.

use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use command::{Failure, agent_keys, setup};
use control::agent::{Agent, AgentOptions, Limits, Tuning};
use tokio::sync::oneshot;

/// A running agent. It ends when this is dropped.
#[derive(Debug)]
pub struct LoopbackAgent {
    /// Address and port that it listens on.
    pub target: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LoopbackAgent {
    /// Starts it on a free port of 127.0.0.1, without a token. Its clients may change nothing on this host.
    ///
    /// # Errors
    /// It cannot listen.
    pub fn start() -> Result<Self, Failure> {
        let (ready, listening) = channel();
        let (stop, stopped) = oneshot::channel();
        let work = move || {
            let failed = ready.clone();
            if let Err(failure) = serve(ready, stopped) {
                // Nobody waits for an error after it has listened.
                let _ = failed.send(Err(failure));
            }
        };
        let thread = std::thread::Builder::new().name("agent".into()).spawn(work).map_err(Failure::other)?;
        let first = listening.recv().unwrap_or_else(|_| Err(Failure::other("the agent ended before it listened")));
        Ok(Self { target: first?.to_string(), stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for LoopbackAgent {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended, too.
            let _ = thread.join();
        }
    }
}

/// Serves until the other end of `stopped` is dropped, and reports the address.
fn serve(ready: Sender<Result<SocketAddr, Failure>>, stopped: oneshot::Receiver<()>) -> Result<(), Failure> {
    let folder = setup::socket_directory()?;
    let own = setup::local_options(folder.path())?;
    let options = AgentOptions {
        allow_stacks: false,
        tuning: Tuning { allowed: false, ..own.tuning },
        helper: control::helper::Helper::Here(std::sync::Arc::new(control::helper::Powers::none())),
        limits: Limits::default(),
        listening: Box::new(move |addresses| {
            let _ = addresses.iter().try_for_each(|address| ready.send(Ok(*address)));
        }),
        ..own
    };
    // With the user's own key the clients of this process know it.
    let key = agent_keys::of_agent(None, |_| {})?;
    let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
    setup::runtime()?.block_on(async {
        tokio::select! {
            served = Agent::serve(options, key, &addresses, pending()) => served.map_err(Failure::host),
            _ = stopped => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn it_listens_until_it_is_dropped() {
        let agent = LoopbackAgent::start().unwrap_or_else(|failure| panic!("{failure}"));
        let target = agent.target.clone();
        assert!(target.starts_with("127.0.0.1:") && TcpStream::connect(&target).is_ok(), "{target}");
        drop(agent);
        assert!(TcpStream::connect(&target).is_err(), "{target}");
    }
}
