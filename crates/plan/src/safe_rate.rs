//! Datagrams that nobody gave a rate. Nothing but the receiver slows them down, so an unknown path is not filled without being asked to.

use model::BitRate;
use options::{OptionError, TestKind, TestOptions};
use text::say;

use crate::resolver::Resolver;

/// The rate that a single measurement starts at, as iperf3 does.
pub const SAFE_RATE: BitRate = BitRate(1_000_000);

/// Whether a test sends datagrams in bulk without a rate.
#[must_use]
pub fn lacks_rate(options: &TestOptions) -> bool {
    let given = options.rate.is_some() || options.unpaced || options.find_no_loss || options.responsiveness;
    let datagrams = engine::transport::transport(options.transport())
        .is_ok_and(|transport| transport.overruns() && transport.facts().has_datagrams());
    datagrams && !given && matches!(options.test, TestKind::Stream | TestKind::Transfer)
}

/// Asks for the rate of datagrams that would leave this host without one.
///
/// # Errors
/// They lack it.
pub fn check(
    options: &TestOptions,
    from: Option<&str>,
    to: Option<&str>,
    resolver: &dyn Resolver,
) -> Result<(), OptionError> {
    if lacks_rate(options) && !resolver.stays_here(from, to) {
        let what = say!("datagrams without a rate could fill the path: give `--rate`, or `--rate max`");
        return Err(OptionError::of_key("rate", what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestHost;

    #[test]
    fn datagrams_that_leave_the_host_need_a_rate() {
        let udp = TestOptions { udp: true, ..TestOptions::new(TestKind::Stream) };
        let error = check(&udp, None, Some("192.0.2.1"), &TestHost).unwrap_err().to_string();
        assert!(error.contains("give `--rate`, or `--rate max`"), "{error}");
        assert!(check(&udp, Some("192.0.2.2"), Some("127.0.0.1"), &TestHost).is_err(), "another host's loopback");
        assert!(check(&udp, None, Some("127.0.0.1"), &TestHost).is_ok() && check(&udp, None, None, &TestHost).is_ok());
        for free in [
            TestOptions::new(TestKind::Stream),
            TestOptions { udp: true, ..TestOptions::new(TestKind::Rr) },
            TestOptions { rate: Some(BitRate(5_000_000)), ..udp.clone() },
            TestOptions { unpaced: true, ..udp.clone() },
            TestOptions { find_no_loss: true, ..udp.clone() },
        ] {
            assert!(check(&free, None, Some("192.0.2.1"), &TestHost).is_ok(), "{free:?}");
        }
    }
}
