//! Every counter of the protocols, from /proc/net/snmp, netstat and snmp6 (RFC 1213 and linux/snmp.h), under the kernel's names.

use std::io;

use super::reading::{ObservedValues, ValueKind};
use crate::sys::Sys;

/// Entries of /proc/net/snmp that are not event counts.
const LEVELS: [&str; 7] =
    ["Ip.Forwarding", "Ip.DefaultTTL", "Tcp.RtoAlgorithm", "Tcp.RtoMin", "Tcp.RtoMax", "Tcp.MaxConn", "Tcp.CurrEstab"];
/// The values that get a line over time.
const TRACED: [&str; 2] = ["Tcp.RetransSegs", "Udp.RcvbufErrors"];

pub(super) fn snmp(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/net/snmp")?;
    pairs(&text, |protocol, key, number| {
        let is = |list: &[&str]| list.iter().any(|one| one.split_once('.') == Some((protocol, key)));
        let name = format_args!("snmp.{protocol}.{key}");
        match number {
            Some(number) if is(&TRACED) => reading.traced(ValueKind::Counter, "1/s", name, number),
            Some(number) if !is(&LEVELS) => reading.counter(name, number),
            Some(number) if key == "CurrEstab" => reading.level(name, number),
            _ => {}
        }
    });
    Ok(())
}

pub(super) fn netstat(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/net/netstat")?;
    pairs(&text, |protocol, key, number| {
        if let Some(number) = number {
            reading.counter(format_args!("netstat.{protocol}.{key}"), number);
        }
    });
    Ok(())
}

pub(super) fn snmp6(sys: &dyn Sys, reading: &mut ObservedValues) -> io::Result<()> {
    let text = reading.file(sys, "/proc/net/snmp6")?;
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        if let (Some(key), Some(Ok(number))) = (fields.next(), fields.next().map(str::parse)) {
            reading.counter(format_args!("snmp6.{key}"), number);
        }
    }
    Ok(())
}

/// Lines in pairs: `Tcp: InSegs OutSegs`, then `Tcp: 7 9`. A number below 0 (MaxConn) is none.
fn pairs(text: &str, mut each: impl FnMut(&str, &str, Option<u64>)) {
    let mut lines = text.lines();
    while let (Some(heads), Some(numbers)) = (lines.next(), lines.next()) {
        let (Some((protocol, heads)), Some((same, numbers))) = (heads.split_once(':'), numbers.split_once(':')) else {
            continue;
        };
        if protocol == same {
            for (key, number) in heads.split_ascii_whitespace().zip(numbers.split_ascii_whitespace()) {
                each(protocol, key, number.parse().ok());
            }
        }
    }
}
