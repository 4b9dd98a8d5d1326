//! TCP's own clocks of a sending connection (`tcpi_busy_time`, `tcpi_rwnd_limited`, `tcpi_sndbuf_limited` of linux/tcp.h, in the kernel
//! since 4.9). The kernel counts them in its ticks, 1 to 10 ms.

use model::TcpSample;

/// Idle, window-limited, buffer-limited and otherwise busy time of one connection, ns. The clocks have coarse ticks, so a part may
/// seem longer than the whole and is limited to what the others leave.
pub(crate) fn spans(samples: &[TcpSample]) -> Option<[f64; 4]> {
    let (first, last) = (samples.first()?, samples.last()?);
    let whole = last.at_ns.checked_sub(first.at_ns).filter(|ns| *ns > 0)? as f64;
    let grew = |clock: fn(&TcpSample) -> Option<u64>| Some(clock(last)?.saturating_sub(clock(first)?) as f64);
    let busy = grew(|one| one.busy_ns)?.min(whole);
    let rwnd = grew(|one| one.rwnd_limited_ns).unwrap_or(0.0).min(busy);
    let sndbuf = grew(|one| one.sndbuf_limited_ns).unwrap_or(0.0).min(busy - rwnd);
    Some([whole - busy, rwnd, sndbuf, busy - rwnd - sndbuf])
}
