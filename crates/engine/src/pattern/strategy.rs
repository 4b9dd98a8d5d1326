//! How the threads of a trial wait for their flows.

use std::ops::RangeInclusive;

use model::{Pattern, Spec, Strategy};
use text::say;

use crate::core::EngineError;
use crate::transport::{Transport, uring};

/// Threads at an end if the spec names none: one per flow up to here, then several flows per thread.
pub(crate) const MAX_THREADS: usize = 64;

/// How threads wait, if the spec leaves it open or requests what the flows cannot do.
pub(crate) fn strategy(spec: &Spec, transport: &dyn Transport, links: usize) -> Result<Strategy, EngineError> {
    let pollable = transport.capabilities().pollable;
    let crossing = spec.pattern == Pattern::Pingpong && spec.direction == model::Direction::Both;
    let threads = spec.threads.map_or(MAX_THREADS, |threads| threads as usize);
    let shared = links > threads || crossing;
    match spec.strategy {
        // The prober sends while it waits for replies.
        _ if spec.outstanding.is_some() && pollable => Ok(Strategy::Epoll),
        Strategy::Spin => Ok(Strategy::Spin),
        // So does an open loop of datagrams; time stamps are for one exchange at a time.
        Strategy::Auto if is_open_loop(spec, transport) && pollable => Ok(Strategy::Epoll),
        Strategy::Epoll if !pollable => Err(EngineError::unsupported(
            say!("epoll on {}", spec.transport),
            say!("it has no file descriptor to wait on; use `--spin`"),
        )),
        Strategy::Epoll => Ok(Strategy::Epoll),
        Strategy::Uring if !transport.completes() => Err(EngineError::unsupported(
            say!("`--wait uring` on {}", spec.transport),
            say!("it works only for {}; use `--wait epoll`", crate::transport::names(|other| other.completes())),
        )),
        Strategy::Uring if crossing => Err(EngineError::unsupported(
            say!("`--wait uring` with `--both` round trips"),
            say!("use `--wait epoll`, or leave `--wait` out"),
        )),
        Strategy::Uring if !spec.engine.is_plain() || spec.io != model::Io::SendRecv => Err(EngineError::unsupported(
            say!("`--wait uring` with `--engine` or `--io`"),
            say!("io_uring makes the calls itself; leave `--engine` and `--io` out"),
        )),
        Strategy::Uring => Ok(Strategy::Uring),
        Strategy::Blocking if shared => Err(EngineError::unsupported(
            "blocking calls with several flows per thread",
            say!("set `--threads` to the number of `--flows`"),
        )),
        Strategy::Auto if shared && pollable && rings(spec, transport, links) => Ok(Strategy::Uring),
        Strategy::Auto if shared && pollable => Ok(Strategy::Epoll),
        Strategy::Auto if shared => Ok(Strategy::Spin),
        Strategy::Blocking | Strategy::Auto => Ok(Strategy::Blocking),
    }
}

/// Whether requests are sent over datagrams when they are due, whether or not others are answered.
fn is_open_loop(spec: &Spec, transport: &dyn Transport) -> bool {
    let paced = spec.pattern == Pattern::Rr && spec.rate_bps.is_some() && transport.capabilities().datagram;
    paced && spec.speak.is_none() && !spec.anatomy
}

/// From this number of flows completions carry more round trips than readiness, as measured at 1,000
/// (docs/notes/engine.md).
const RING_FLOWS: RangeInclusive<usize> = 300..=3_000;

/// Whether a thread's flows are better served by completion, if this host supports it.
fn rings(spec: &Spec, transport: &dyn Transport, links: usize) -> bool {
    // A stream's large blocks cost more by completion: each is a round of its own, while a ready socket takes several.
    let fits = spec.pattern == Pattern::Rr && spec.io == model::Io::SendRecv && transport.completes();
    fits && RING_FLOWS.contains(&links) && uring::check().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::transport;

    #[test]
    fn many_flows_per_thread_are_served_by_the_faster_strategy() {
        let tcp = transport("tcp").unwrap();
        let auto = |pattern, flows, change: fn(&mut Spec)| {
            let mut spec = Spec { flows, threads: Some(2), ..Spec::new("tcp", pattern) };
            change(&mut spec);
            strategy(&spec, tcp, flows as usize).unwrap()
        };
        let completions = if uring::check().is_ok() { Strategy::Uring } else { Strategy::Epoll };
        assert_eq!(auto(Pattern::Rr, 2, |_| {}), Strategy::Blocking);
        assert_eq!(auto(Pattern::Rr, 100, |_| {}), Strategy::Epoll);
        assert_eq!(auto(Pattern::Rr, 1_000, |_| {}), completions);
        assert_eq!(auto(Pattern::Stream, 1_000, |_| {}), Strategy::Epoll);
        assert_eq!(auto(Pattern::Rr, 10_000, |_| {}), Strategy::Epoll);
        assert_eq!(auto(Pattern::Rr, 1_000, |spec| spec.io = model::Io::ReadWrite), Strategy::Epoll);
        assert_eq!(auto(Pattern::Rr, 1_000, |spec| spec.strategy = Strategy::Epoll), Strategy::Epoll);
        let udp = transport("udp").unwrap();
        let spec = Spec { flows: 1_000, threads: Some(2), ..Spec::new("udp", Pattern::Rr) };
        assert_eq!(strategy(&spec, udp, 1_000).unwrap(), Strategy::Epoll);
        let paced = |anatomy| Spec { rate_bps: Some(400), anatomy, ..Spec::new("udp", Pattern::Rr) };
        let of = |spec: Spec| strategy(&spec, udp, 1).unwrap();
        assert_eq!(
            (of(paced(false)), of(paced(true))),
            (Strategy::Epoll, Strategy::Blocking),
            "requests go out while others wait"
        );
    }
}
