//! How long to wait for what comes over a control connection. Its TCP socket shows how long the path is, how much it loses, and whether
//! its queues are full; deadlines are that much later.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::transport::{TcpPath, tcp_path};
use tokio::net::TcpStream;

use crate::connection_end::ConnectionEnd;

/// Round trips that an answer may take, each with its deviation: queues fill during a measurement.
const TRIPS: u32 = 4;
/// The share of exchanges that may take longer than the repetitions that are waited for.
const UNLUCKY: f64 = 1e-4;
/// The kernel's first repetition comes after this time or a round trip with its deviations, and each further one after twice the time.
const FIRST_REPEAT: Duration = Duration::from_millis(200);
/// Segments that a share of losses is made of at least.
const FEW: f64 = 4.0;
/// Longest time for repetitions: the kernel gives up after some minutes, too.
const MOST_REPEATS: Duration = Duration::from_secs(300);
/// Longest time without a message on a short path: a ping is sent then. With the kernel's user timeout an unreachable peer is detected
/// after this time plus that timeout.
pub(crate) const PING_EVERY: Duration = Duration::from_millis(400);
/// The same on any path: a ping takes a good part of a second on the slowest links.
const MOST_PING_EVERY: Duration = Duration::from_secs(5);
/// How long a peer may be unreachable before it is authenticated.
const UNAUTHENTICATED_VANISHED_AFTER: Duration = Duration::from_secs(30);

/// The path of a control connection; the default is one within this host, or over a bus.
#[derive(Debug, Clone, Default)]
pub(crate) struct ControlPath(Option<Arc<Socket>>);

#[derive(Debug)]
struct Socket {
    socket: OwnedFd,
    /// How long the peer may be unreachable on a short path without loss, ns.
    vanished_after_ns: AtomicU64,
}

impl ControlPath {
    /// The patience with a new connection. The kernel detects an unreachable peer from now on: unacknowledged bytes end the connection.
    pub(crate) fn of(stream: &TcpStream) -> Self {
        let _ = stream.set_nodelay(true);
        let Ok(socket) = stream.as_fd().try_clone_to_owned() else { return Self::default() };
        let vanished_after_ns = AtomicU64::new(nanos(UNAUTHENTICATED_VANISHED_AFTER));
        let path = Self(Some(Arc::new(Socket { socket, vanished_after_ns })));
        path.refresh();
        path
    }

    /// The peer may be unreachable for so long.
    pub(crate) fn give_up_after(&self, vanished_after: Duration) {
        if let Some(socket) = &self.0 {
            let after = vanished_after.saturating_sub(PING_EVERY).max(PING_EVERY);
            socket.vanished_after_ns.store(nanos(after), Ordering::Relaxed);
            self.refresh();
        }
    }

    fn seen(&self) -> Option<TcpPath> {
        self.0.as_ref().and_then(|socket| tcp_path(socket.socket.as_fd()))
    }

    /// Renews the kernel's limit by what the path shows now; while something is repeated, nobody knows whether the peer is there.
    pub(crate) fn refresh(&self) {
        if let (Some(socket), Some(seen)) = (&self.0, self.seen())
            && !seen.repeating
        {
            let after = Duration::from_nanos(socket.vanished_after_ns.load(Ordering::Relaxed));
            let _ = socket2::SockRef::from(&socket.socket).set_tcp_user_timeout(Some(after + patience(&seen)));
        }
    }

    /// A round trip; zero where it is not known.
    pub(crate) fn round_trip(&self) -> Duration {
        self.seen().map_or(Duration::ZERO, |seen| seen.round_trip)
    }

    /// How much longer than on a short path without loss an answer may take.
    pub(crate) fn patience(&self) -> Duration {
        self.seen().map_or(Duration::ZERO, |seen| patience(&seen))
    }

    /// Longest time without a message to the peer.
    pub(crate) fn ping_every(&self) -> Duration {
        ping_every(self.round_trip())
    }

    /// Why a connection with this error ended, in words that the path justifies.
    pub(crate) fn end_by(&self, error: std::io::Error) -> ConnectionEnd {
        ConnectionEnd::by(error, self.seen().is_some_and(|seen| loss(&seen) > 0.1))
    }

    /// Waits for `answer` as long as the path may need for what takes at most `limit` on a short path.
    ///
    /// # Errors
    /// How long it has waited in vain.
    pub(crate) async fn within<T>(&self, limit: Duration, answer: impl Future<Output = T>) -> Result<T, Duration> {
        tokio::pin!(answer);
        let begun = Instant::now();
        loop {
            // The path may show itself to be slower meanwhile.
            let limit = limit + self.patience();
            let left = limit.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(limit);
            }
            if let Ok(answer) = tokio::time::timeout(left, &mut answer).await {
                return Ok(answer);
            }
        }
    }
}

/// How much longer than on a short path without loss an answer may take on this connection.
pub(crate) fn patience_on(socket: BorrowedFd<'_>) -> Duration {
    tcp_path(socket).map_or(Duration::ZERO, |seen| patience(&seen))
}

/// The same, of what the socket shows.
fn patience(seen: &TcpPath) -> Duration {
    (seen.round_trip + seen.variation) * TRIPS + repeats(seen)
}

/// The share of segments that were sent again. One of a few may be chance: it counts as if some more had been sent.
fn loss(seen: &TcpPath) -> f64 {
    f64::from(seen.repeated) / (f64::from(seen.sent.max(seen.repeated)) + FEW)
}

/// The time of the repetitions after which all but [`UNLUCKY`] exchanges have succeeded.
fn repeats(seen: &TcpPath) -> Duration {
    let loss = loss(seen);
    if loss <= 0.0 {
        return Duration::ZERO;
    }
    let count = UNLUCKY.ln() / loss.min(0.999).ln();
    let first = FIRST_REPEAT.max(seen.round_trip + 4 * seen.variation);
    let time = first.as_secs_f64() * (count.min(60.0).exp2() - 1.0);
    Duration::try_from_secs_f64(time).unwrap_or(MOST_REPEATS).min(MOST_REPEATS)
}

fn ping_every(round_trip: Duration) -> Duration {
    (round_trip * TRIPS).clamp(PING_EVERY, MOST_PING_EVERY)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Completes at `deadline`; never without one.
pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(round_trip_ms: u64, variation_ms: u64, sent: u32, repeated: u32) -> TcpPath {
        TcpPath {
            round_trip: Duration::from_millis(round_trip_ms),
            variation: Duration::from_millis(variation_ms),
            sent,
            repeated,
            repeating: false,
        }
    }

    #[test]
    fn patience_follows_the_round_trip() {
        assert_eq!(patience(&seen(0, 0, 5, 0)), Duration::ZERO);
        assert_eq!(patience(&seen(300, 50, 5, 0)), Duration::from_millis(1_400));
        // The first value after the handshake of a path of 20 s.
        assert_eq!(patience(&seen(20_000, 10_000, 1, 0)), Duration::from_secs(120));
    }

    #[test]
    fn patience_follows_the_loss() {
        let at = |sent, repeated| patience(&seen(0, 0, sent, repeated)).as_secs_f64();
        // A loss in a thousand costs a repetition or two, a loss among few is soon forgotten.
        assert!(at(1_000, 1) < 0.7 && at(1_000, 50) < 2.0, "{} {}", at(1_000, 1), at(1_000, 50));
        assert!(at(5, 1) > 3.0 && at(100, 1) < 1.0, "{} {}", at(5, 1), at(100, 1));
        // 35 % in each direction: 58 % of the exchanges fail. Six attempts are not enough, which is what 10 s allow.
        assert_eq!(at(100, 58), 300.0);
        // The exchanges that fail by then are few.
        for loss in [0.01_f64, 0.05, 0.1, 0.2, 0.3] {
            let limit = at(100_000, (loss * 1e5) as u32);
            let attempts = ((limit / 0.2) + 1.0).log2() + 1.0;
            assert!(loss.powf(attempts.floor()) < 1e-3, "{loss}: {limit} s");
        }
    }

    #[test]
    fn pings_leave_a_slow_path_free() {
        let every = |ms| ping_every(Duration::from_millis(ms));
        assert_eq!(every(1), PING_EVERY);
        assert_eq!(every(250), Duration::from_secs(1));
        assert_eq!(every(20_000), MOST_PING_EVERY);
    }

    #[tokio::test]
    async fn an_answer_in_time_is_returned_and_a_late_one_is_not_waited_for() {
        let path = ControlPath::default();
        assert_eq!(path.within(Duration::from_secs(3), async { 7 }).await, Ok(7));
        assert_eq!(path.within(Duration::ZERO, std::future::pending::<()>()).await, Err(Duration::ZERO));
    }
}
