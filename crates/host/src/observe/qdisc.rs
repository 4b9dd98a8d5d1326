//! Queueing disciplines: their backlog, drops, overlimits and requeues.
//!
//! `qdisc.eth0.drops` is the interface's root, which includes the drops of its classes; `qdisc.eth0.ingress.drops` is
//! incoming traffic; a discipline below a class has the class in its name: `qdisc.eth0.1:10.drops`.

use std::collections::BTreeMap;
use std::io;

use super::Observer;
use super::reading::{ObservedValues, ValueKind, Wrapping};
use crate::netlink::qdisc::ROOT;
use crate::sys::{Qdisc, Sys};

/// The 32-bit counters that are followed past their wrap-around.
#[derive(Debug, Default)]
pub(super) struct Qdiscs(BTreeMap<(String, String, String), [Wrapping; 4]>);

impl Observer for Qdiscs {
    fn read(&mut self, sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
        for found in sys.qdiscs()? {
            let root = found.parent == ROOT;
            let under = if root { found.interface.clone() } else { format!("{}.{}", found.interface, found.parent) };
            let Qdisc { interface, kind, parent, bytes, packets, drops, overlimits, requeues, backlog, qlen } = found;
            // Another discipline in the same position counts from 0 again.
            let followed = self.0.entry((interface, parent, kind)).or_default();
            let now = [packets, drops, overlimits, requeues].map(u64::from);
            let [packets, drops, overlimits, requeues] =
                std::array::from_fn(|at| followed[at].follow(now[at], u64::from(u32::MAX)));
            reading.counter(format_args!("qdisc.{under}.bytes"), bytes);
            reading.tally(format_args!("qdisc.{under}.packets"), packets);
            reading.tally(format_args!("qdisc.{under}.overlimits"), overlimits);
            reading.tally(format_args!("qdisc.{under}.requeues"), requeues);
            reading.level(format_args!("qdisc.{under}.qlen"), qlen.into());
            if root {
                reading.traced(ValueKind::Tally, "1/s", format_args!("qdisc.{under}.drops"), drops);
                reading.traced(ValueKind::Level, "B", format_args!("qdisc.{under}.backlog"), backlog.into());
            } else {
                reading.tally(format_args!("qdisc.{under}.drops"), drops);
                reading.level(format_args!("qdisc.{under}.backlog"), backlog.into());
            }
        }
        Ok(())
    }
}
