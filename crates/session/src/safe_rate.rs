//! Datagrams that nobody gave a rate. Nothing but the receiver slows them down, so an unknown path is not filled without being asked to.

use control::coordinator::leads_to_loopback;
use model::{BitRate, Framing};

use crate::draft::{FieldError, SpecDraft, TestKind};
use crate::running_lab::LAB_VARIABLE;

/// The rate that a single measurement starts at, as iperf3 does.
pub const SAFE_RATE: BitRate = BitRate(1_000_000);

/// Whether a draft sends datagrams in bulk without a rate.
#[must_use]
pub fn lacks_rate(draft: &SpecDraft) -> bool {
    let given = draft.rate.is_some() || draft.unpaced || draft.find_no_loss || draft.responsiveness;
    let datagrams = engine::transport::transport(draft.transport())
        .is_ok_and(|transport| transport.overruns() && transport.facts().framing == Some(Framing::Udp));
    datagrams && !given && matches!(draft.pattern, TestKind::Stream | TestKind::Transfer)
}

/// Whether the data stays on this host, or in a lab.
#[must_use]
pub fn stays_here(from: Option<&str>, to: Option<&str>) -> bool {
    std::env::var_os(LAB_VARIABLE).is_some() || (from.is_none() && to.is_none_or(leads_to_loopback))
}

/// Asks for the rate of datagrams that would leave this host without one.
///
/// # Errors
/// They lack it.
pub fn check(draft: &SpecDraft, from: Option<&str>, to: Option<&str>) -> Result<(), FieldError> {
    if lacks_rate(draft) && !stays_here(from, to) {
        let what = "datagrams without a rate could fill the path: give `rate`, or `rate max`";
        return Err(FieldError::of_key("rate", what.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_leave_the_host_need_a_rate() {
        let udp = SpecDraft { udp: true, ..SpecDraft::new(TestKind::Stream) };
        let error = check(&udp, None, Some("192.0.2.1")).unwrap_err().to_string();
        assert!(error.contains("give `rate`, or `rate max`"), "{error}");
        assert!(check(&udp, Some("192.0.2.2"), Some("127.0.0.1")).is_err(), "another host's loopback");
        assert!(check(&udp, None, Some("127.0.0.1")).is_ok() && check(&udp, None, None).is_ok());
        for free in [
            SpecDraft::new(TestKind::Stream),
            SpecDraft { udp: true, ..SpecDraft::new(TestKind::Rr) },
            SpecDraft { rate: Some(BitRate(5_000_000)), ..udp.clone() },
            SpecDraft { unpaced: true, ..udp.clone() },
            SpecDraft { find_no_loss: true, ..udp.clone() },
        ] {
            assert!(check(&free, None, Some("192.0.2.1")).is_ok(), "{free:?}");
        }
    }
}
