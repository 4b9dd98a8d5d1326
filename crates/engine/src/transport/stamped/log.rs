//! The stamps of one end, exchange by exchange.

use std::os::fd::BorrowedFd;

use model::{StampedExchange, Stamps};

use super::sampling::{KEPT, every, is_kept};
use crate::core::{WallOffset, unix_ns};
use crate::transport::sys::stamps::{Departure, Stamp, departure};

/// Exchanges whose departures may not be reported yet: those of two blocks, and room for more.
const OPEN: usize = 64;

/// An exchange at this end. Times are ns of the wall clock, 0 for not yet.
#[derive(Debug, Clone, Copy, Default)]
struct Exchange {
    number: u64,
    /// When the program called send.
    called_ns: u64,
    /// What the report of its departure is found by.
    key: Option<u32>,
    departed: Stamp,
    arrived: Stamp,
    /// When the program had what arrived.
    taken_ns: u64,
    stepped: bool,
}

/// The keys of departures.
#[derive(Debug, Clone, Copy)]
enum Keys {
    /// Of a stream, the offset of the last byte. `base` is what the kernel adds; not every version tells.
    Offsets { sent: u32, base: Option<u32> },
    /// Of datagrams, the number of the stamped send.
    Numbers { sent: u32 },
}

/// The log.
#[derive(Debug)]
pub(super) struct Log {
    requests: bool,
    keys: Keys,
    current: Exchange,
    /// The clocks before the current exchange.
    clocks: WallOffset,
    /// Exchanges that are over and wait for the reports of their departures.
    open: Vec<Exchange>,
    /// How many of these have waited since the last time that reports were read.
    waited: usize,
    stamps: Stamps,
}

impl Log {
    /// An empty log; all of its memory is allocated and touched. `counts_from_here` is false if a stream's keys count from
    /// somewhere before.
    pub(super) fn new(requests: bool, stream: bool, counts_from_here: bool) -> Self {
        let keys = match stream {
            true => Keys::Offsets { sent: 0, base: counts_from_here.then_some(0) },
            false => Keys::Numbers { sent: 0 },
        };
        let mut stamps = Stamps {
            every: every(0),
            exchanges: vec![StampedExchange { number: 1, ..StampedExchange::default() }; KEPT + OPEN],
            missing: vec![1; KEPT + OPEN],
            stepped: vec![1; KEPT + OPEN],
            refused: None,
        };
        stamps.exchanges.clear();
        stamps.missing.clear();
        stamps.stepped.clear();
        let open = Vec::with_capacity(OPEN);
        let (current, clocks) = (Exchange::default(), WallOffset::read());
        Self { requests, keys, current, clocks, open, waited: 0, stamps }
    }

    /// A send without a stamp.
    #[inline]
    pub(super) fn sent(&mut self, bytes: usize) {
        if let Keys::Offsets { sent, .. } = &mut self.keys {
            *sent = sent.wrapping_add(bytes as u32);
        }
    }

    /// Exchange `number` begins; it is stamped.
    pub(super) fn begin(&mut self, number: u64) {
        self.current = Exchange { number, ..Exchange::default() };
        self.clocks = WallOffset::read();
    }

    /// The program calls send.
    #[inline]
    pub(super) fn calls_send(&mut self) {
        if self.current.called_ns == 0 {
            self.current.called_ns = unix_ns();
        }
    }

    /// The stamped send took some bytes.
    #[inline]
    pub(super) fn sent_stamped(&mut self, bytes: usize) {
        self.sent(bytes);
        self.current.key = Some(match &mut self.keys {
            Keys::Offsets { sent, .. } => sent.wrapping_sub(1),
            Keys::Numbers { sent } => {
                *sent = sent.wrapping_add(1);
                sent.wrapping_sub(1)
            }
        });
    }

    /// The program has received something that arrived at `stamp`; the last arrival of a message counts.
    #[inline]
    pub(super) fn took(&mut self, stamp: Stamp) {
        self.current.taken_ns = unix_ns();
        self.current.arrived = stamp;
        if !self.requests {
            (self.current.called_ns, self.current.key) = (0, None);
        }
    }

    /// The current exchange is over.
    pub(super) fn end(&mut self) {
        let clocks = WallOffset::read();
        let whole = self.current.called_ns > 0 && self.current.taken_ns > 0;
        // At the answering end a request that never came is no exchange; the requesting end knows of it.
        if (self.requests || whole) && self.open.len() < OPEN {
            self.open.push(Exchange { stepped: self.clocks.differs(clocks), ..self.current });
        }
        self.current = Exchange::default();
    }

    /// Reads the reports that are there, before exchange `number`. An exchange is closed the next time, so that a departure may
    /// be reported late.
    pub(super) fn settle(&mut self, socket: BorrowedFd<'_>, number: u64) {
        while let Some(departure) = departure(socket) {
            self.note(departure);
        }
        for at in 0..self.waited {
            let exchange = self.open[at];
            self.close(&exchange);
        }
        self.open.drain(..self.waited);
        self.waited = self.open.len();
        self.thin(every(number));
    }

    /// All stamps; nothing is expected any more.
    pub(super) fn finish(mut self, socket: BorrowedFd<'_>) -> Stamps {
        let last = self.open.last().map_or(0, |exchange| exchange.number);
        self.settle(socket, last);
        self.settle(socket, last);
        self.stamps
    }

    /// Adds a departure to its exchange.
    fn note(&mut self, departure: Departure) {
        let base = match &mut self.keys {
            Keys::Numbers { .. } => 0,
            Keys::Offsets { base: Some(base), .. } => *base,
            // The first report is of the first stamped send.
            Keys::Offsets { base, .. } => {
                let Some(key) = self.open.first().and_then(|exchange| exchange.key) else { return };
                *base.insert(departure.key.wrapping_sub(key))
            }
        };
        let key = departure.key.wrapping_sub(base);
        if let Some(exchange) = self.open.iter_mut().find(|exchange| exchange.key == Some(key)) {
            exchange.departed.add(departure.stamp);
        }
    }

    /// Keeps what is known of an exchange.
    fn close(&mut self, exchange: &Exchange) {
        let number = exchange.number;
        if exchange.stepped {
            self.stamps.stepped.push(number);
        } else if let Some(parts_ns) = parts(exchange, self.requests) {
            let hardware = |from: Stamp, to: Stamp| to.hardware_ns?.checked_sub(from.hardware_ns?);
            let hardware_ns = match self.requests {
                true => hardware(exchange.departed, exchange.arrived),
                false => hardware(exchange.arrived, exchange.departed),
            };
            self.stamps.exchanges.push(StampedExchange { number, parts_ns, hardware_ns });
        } else {
            self.stamps.missing.push(number);
        }
    }

    /// Leaves out the blocks that are no longer wanted.
    fn thin(&mut self, every: u64) {
        if every <= self.stamps.every {
            return;
        }
        self.stamps.every = every;
        self.stamps.exchanges.retain(|exchange| is_kept(exchange.number, every));
        self.stamps.missing.retain(|number| is_kept(*number, every));
        self.stamps.stepped.retain(|number| is_kept(*number, every));
    }
}

/// The times of an exchange in their order, by software stamps; `None` if one is missing or they are not in this order.
fn parts(exchange: &Exchange, requests: bool) -> Option<[u64; 3]> {
    let called = Some(exchange.called_ns).filter(|ns| *ns > 0)?;
    let taken = Some(exchange.taken_ns).filter(|ns| *ns > 0)?;
    let (departed, arrived) = (exchange.departed.software_ns?, exchange.arrived.software_ns?);
    let times = if requests { [called, departed, arrived, taken] } else { [arrived, taken, called, departed] };
    let between = |at: usize| times[at + 1].checked_sub(times[at]);
    Some([between(0)?, between(1)?, between(2)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Stamp {
        Stamp { software_ns: Some(ns), hardware_ns: None }
    }

    fn log(requests: bool, counts_from_here: bool) -> Log {
        let mut log = Log::new(requests, true, counts_from_here);
        for number in [8, 9] {
            log.sent(10);
            log.begin(number);
            log.current.called_ns = 100;
            log.sent_stamped(1);
            (log.current.arrived, log.current.taken_ns) =
                (at(if requests { 180 } else { 40 }), if requests { 190 } else { 70 });
            log.end();
        }
        log
    }

    #[test]
    fn the_times_of_each_end_are_in_their_order() {
        for (requests, parts_ns) in [(true, [5, 75, 10]), (false, [30, 30, 5])] {
            let mut log = log(requests, true);
            log.note(Departure { key: 21, stamp: at(105) });
            log.waited = 2;
            let exchanges = log.open.clone();
            exchanges.iter().for_each(|exchange| log.close(exchange));
            assert_eq!(log.stamps.exchanges, [StampedExchange { number: 9, parts_ns, hardware_ns: None }]);
            assert_eq!(log.stamps.missing, [8], "no report of its departure");
        }
    }

    #[test]
    fn keys_that_count_from_elsewhere_are_learnt_from_the_first_report() {
        let mut log = log(true, false);
        log.note(Departure { key: 1_010, stamp: at(101) });
        log.note(Departure { key: 1_021, stamp: at(102) });
        let departed: Vec<_> = log.open.iter().map(|exchange| exchange.departed.software_ns).collect();
        assert_eq!(departed, [Some(101), Some(102)]);
    }

    #[test]
    fn the_nic_s_clock_counts_with_both_stamps_only() {
        let mut log = log(true, true);
        let both = |software_ns, hardware_ns| Stamp { software_ns: Some(software_ns), hardware_ns: Some(hardware_ns) };
        let mut exchange = log.open[0];
        (exchange.departed, exchange.arrived) = (both(105, 7_000), both(180, 7_060));
        log.close(&exchange);
        exchange.arrived = at(180);
        log.close(&exchange);
        let hardware: Vec<_> = log.stamps.exchanges.iter().map(|exchange| exchange.hardware_ns).collect();
        assert_eq!(hardware, [Some(60), None]);
    }

    #[test]
    fn times_out_of_order_and_set_clocks_are_no_stamps() {
        let mut log = log(true, true);
        let mut exchange = log.open[0];
        exchange.departed = at(99);
        log.close(&exchange);
        exchange.stepped = true;
        log.close(&exchange);
        assert_eq!((log.stamps.missing.as_slice(), log.stamps.stepped.as_slice()), (&[8][..], &[8][..]));
        assert_eq!(log.stamps.exchanges, []);
    }

    #[test]
    fn later_blocks_replace_earlier_ones() {
        let mut log = log(true, true);
        log.stamps.missing = vec![8, 24, 40, 56];
        log.thin(32);
        assert_eq!((log.stamps.missing.as_slice(), log.stamps.every), (&[8, 40][..], 32));
    }
}
