//! Datagrams dropped at the receiving socket.

use model::LimiterKind;
use model::source::counter;
use text::{Count, Text, say};

use super::super::observations::{Observations, ramp};
use super::{Rule, Signal};
use crate::direction::DirectionView;

pub(super) const BUFFER: Rule = Rule {
    name: "receive-buffer-errors",
    speaks_for: &[LimiterKind::SocketBuffer],
    about: "The receiving socket had no room for datagrams that had reached the host.",
    source: "udp(7); SO_MEMINFO (SK_MEMINFO_DROPS) and RcvbufErrors of /proc/net/snmp",
    evaluate: |_: &Observations<'_>, direction: &DirectionView<'_>| {
        let (Some(sent), Some(tally)) = (direction.sender.tally.datagrams, direction.receiver.tally.datagrams) else {
            return Vec::new();
        };
        let host = || direction.receiver.pass?.observed.as_ref()?.grew(counter::UDP_RCVBUF_ERRORS);
        let drops = match tally.socket_drops {
            0 => {
                host().and_then(|by| u64::try_from(by).ok()).unwrap_or(0).min(sent.sent.saturating_sub(tally.received))
            }
            own => own,
        };
        let part = drops as f64 / sent.sent.max(1) as f64;
        Signal::of(LimiterKind::SocketBuffer, 0.9 * ramp(part, 0.0, 0.02), || {
            let room = direction.receiver.flows().find_map(|flow| flow.socket.rcvbuf);
            let room = room.map_or(Text::default(), |bytes| say!(" of {} (SO_RCVBUF)", model::ByteSize(bytes)));
            say!(
                "the receiving socket's buffer{room} had no room for {} of {} datagrams ({:.2} %)",
                Count(drops),
                Count(sent.sent),
                100.0 * part
            )
        })
    },
};
