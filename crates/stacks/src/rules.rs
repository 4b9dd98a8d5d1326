//! Rules for destinations, in the form of wad.conf, also as TOML.
//!
//! The meaning of the keys is that of the work-around daemon of Net100 (T. Dunigan, M. Mathis, B. Tierney, "A TCP tuning
//! daemon", SC2002; <http://www.csm.ornl.gov/~dunigan/netperf/wad.html>).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use model::StackRule;
use serde::Deserialize;

use crate::StackError;

/// How many rules a stack holds (`RULES` in `bpf/highspeed.bpf.c`).
pub(crate) const MOST: usize = 16;
/// `struct rule` there: 27 words.
#[cfg_attr(not(feature = "load"), allow(dead_code, reason = "only the loader fills objects in"))]
pub(crate) const RULE_BYTES: usize = 108;

/// A section of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    #[serde(default = "anywhere")]
    src_addr: String,
    #[serde(default)]
    src_port: u16,
    #[serde(default = "anywhere")]
    dst_addr: String,
    #[serde(default)]
    dst_port: u16,
    #[serde(default = "one")]
    mode: u8,
    #[serde(default)]
    sndbuf: u32,
    #[serde(default)]
    rcvbuf: u32,
    #[serde(default = "reno_increase")]
    wadai: f64,
    #[serde(default = "reno_decrease")]
    wadmd: f64,
    #[serde(default)]
    maxssth: u32,
    #[serde(default)]
    wad_ifq: u8,
    #[serde(default)]
    divide: u8,
    #[serde(default = "one")]
    floyd: u8,
}

fn anywhere() -> String {
    "::/0".into()
}

fn one() -> u8 {
    1
}

fn reno_increase() -> f64 {
    1.0
}

fn reno_decrease() -> f64 {
    0.5
}

/// Reads the rules of a file, the most specific first. Sections with `mode = 0` are left out.
///
/// # Errors
/// [`StackError::Rules`] for a file that cannot be read or is not valid.
pub fn read_rules(path: &Path) -> Result<Vec<StackRule>, StackError> {
    let wrong = |what: String| StackError::Rules { path: path.to_owned(), what };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    parse(&text).map_err(wrong)
}

pub(crate) fn parse(text: &str) -> Result<Vec<StackRule>, String> {
    let sections: BTreeMap<String, Section> = toml::from_str(&as_toml(text)).map_err(|error| error.to_string())?;
    let mut rules = Vec::new();
    for (name, section) in sections {
        let say = |what: String| format!("[{name}]: {what}");
        match section.mode {
            0 => continue,
            1 => {}
            mode => return Err(say(format!("mode = {mode} is not valid; use 1, or 0 to leave the section out"))),
        }
        let rule = StackRule {
            source: prefix(&section.src_addr).map_err(&say)?,
            source_port: section.src_port,
            destination: prefix(&section.dst_addr).map_err(&say)?,
            destination_port: section.dst_port,
            sndbuf_bytes: section.sndbuf,
            rcvbuf_bytes: section.rcvbuf,
            increase_permille: permille("wadai", section.wadai, 0.001, 1_000_000.0).map_err(&say)?,
            decrease_permille: permille("wadmd", section.wadmd, 0.001, 0.999).map_err(&say)?,
            max_ssthresh: section.maxssth,
            // With 2 the daemon did itself, ten times a second, what the kernel does with 1.
            table: switch("floyd", section.floyd, 2).map_err(&say)?,
            ignore_local_queue: switch("wad_ifq", section.wad_ifq, 1).map_err(&say)?,
            divide: switch("divide", section.divide, 1).map_err(&say)?,
            name,
        };
        rules.push(rule);
    }
    if rules.len() > MOST {
        return Err(format!("{} sections; a stack holds at most {MOST}", rules.len()));
    }
    rules.sort_by_key(|rule| std::cmp::Reverse(specificity(rule)));
    Ok(rules)
}

/// The text with each line `key: value` of wad.conf as one of TOML; other lines stay as they are.
fn as_toml(text: &str) -> String {
    let line = |line: &str| {
        let own = line.split('#').next().unwrap_or_default();
        let pair = own.split_once(':').map(|(key, value)| (key.trim(), value.trim()));
        match pair.filter(|(key, _)| !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')) {
            // TOML has text in quotes, and a digit before the point.
            Some((key, value)) if value.starts_with('.') => format!("{key} = 0{value}\n"),
            Some((key, value)) if value.parse::<f64>().is_ok() => format!("{key} = {value}\n"),
            Some((key, value)) => format!("{key} = \"{value}\"\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}

fn switch(key: &str, value: u8, most: u8) -> Result<bool, String> {
    if value > most { Err(format!("{key} = {value} is not valid; use 0 or 1")) } else { Ok(value > 0) }
}

fn permille(key: &str, value: f64, least: f64, most: f64) -> Result<u32, String> {
    if (least..=most).contains(&value) {
        Ok((value * 1_000.0).round() as u32)
    } else {
        Err(format!("{key} = {value} is not valid; use {least} to {most}"))
    }
}

/// An address with its prefix, in its shortest form. The all-zero address means any, with any prefix (the files of the
/// 2003 record say 0.0.0.0/32).
fn prefix(text: &str) -> Result<String, String> {
    let wrong = || format!("'{text}' is not an address with a prefix; write 192.0.2.0/24 or 2001:db8::/32");
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(most), |length| length.trim().parse::<u8>().map_err(|_| wrong()))?;
    if length > most {
        return Err(wrong());
    }
    Ok(if address.is_unspecified() { anywhere() } else { format!("{address}/{length}") })
}

/// Address and mask as IPv6 has them, IPv4 mapped into it, in network byte order.
fn words(prefix: &str) -> Option<([u8; 16], [u8; 16])> {
    let (address, length) = prefix.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    let (address, length) = match address.parse().ok()? {
        IpAddr::V4(v4) => (v4.to_ipv6_mapped(), length + 96),
        IpAddr::V6(v6) => (v6, length),
    };
    let mask = u128::MAX.checked_shl(128_u32.checked_sub(length)?).unwrap_or(0);
    Some(((u128::from(address) & mask).to_be_bytes(), mask.to_be_bytes()))
}

fn specificity(rule: &StackRule) -> (u32, u32, bool, bool) {
    let bits = |prefix: &str| words(prefix).map_or(0, |(_, mask)| mask.iter().map(|byte| byte.count_ones()).sum());
    (bits(&rule.destination), bits(&rule.source), rule.destination_port > 0, rule.source_port > 0)
}

/// The rules in the layout of `bpf/highspeed.bpf.c`, for `room` bytes; `None` if they do not fit, or are not rules of
/// [`read_rules`].
#[cfg_attr(not(feature = "load"), allow(dead_code, reason = "only the loader fills objects in"))]
pub(crate) fn encode(rules: &[StackRule], room: usize) -> Option<Vec<u8>> {
    let mut table = Vec::with_capacity(room);
    for rule in rules {
        let mut put = |word: u32| table.extend(word.to_ne_bytes());
        put(1);
        for bytes in [words(&rule.source)?, words(&rule.destination)?] {
            table.extend(bytes.0);
            table.extend(bytes.1);
        }
        let mut put = |word: u32| table.extend(word.to_ne_bytes());
        put(rule.source_port.into());
        put(rule.destination_port.into());
        put(rule.sndbuf_bytes);
        put(rule.rcvbuf_bytes);
        put(rule.increase_permille);
        put(rule.decrease_permille);
        put(rule.max_ssthresh);
        put(rule.table.into());
        put(rule.ignore_local_queue.into());
        put(rule.divide.into());
        debug_assert_eq!(table.len() % RULE_BYTES, 0);
    }
    if table.len() > room {
        return None;
    }
    table.resize(room, 0);
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file of the 2003 record, as TOML.
    const RECORD: &str = r#"
        [GVA]
        src_addr = "0.0.0.0/32"
        src_port = 0
        dst_addr = "192.91.239.0/24"
        dst_port = 0
        mode = 1
        sndbuf = 41943040
        rcvbuf = 41943040
        wadai = 6
        wadmd = 0.3
        maxssth = 100
        wad_ifq = 1
        divide = 1
        floyd = 1
    "#;

    #[test]
    fn the_record_s_file_is_read() {
        let rules = parse(RECORD).unwrap();
        let expected = StackRule {
            name: "GVA".into(),
            source: "::/0".into(),
            source_port: 0,
            destination: "192.91.239.0/24".into(),
            destination_port: 0,
            sndbuf_bytes: 41_943_040,
            rcvbuf_bytes: 41_943_040,
            increase_permille: 6_000,
            decrease_permille: 300,
            max_ssthresh: 100,
            table: true,
            ignore_local_queue: true,
            divide: true,
        };
        assert_eq!(rules, [expected]);
        let table = encode(&rules, MOST * RULE_BYTES).unwrap();
        assert_eq!(table.len(), MOST * RULE_BYTES);
        // Destination and its mask, as on the wire.
        assert_eq!(table[36..52], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 91, 239, 0]);
        assert_eq!(table[52..68], [[255; 15].as_slice(), &[0]].concat());
        assert!(table[RULE_BYTES..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn the_record_s_file_is_read_as_it_was() {
        // Its own form: keys before colons, a fraction without a digit before the point.
        let literal = "# wad.conf\n[GVA]\nsrc_addr: 0.0.0.0/32\nsrc_port: 0\ndst_addr: 192.91.239.0/24\ndst_port: 0\nmode: 1\n\
                       sndbuf: 41943040\nrcvbuf: 41943040\nwadai: 6\nwadmd: .3\nmaxssth: 100\nwad_ifq: 1  # queue\ndivide: 1\n\
                       floyd: 1\n";
        assert_eq!(parse(literal), parse(RECORD));
        let v6 = parse("[x]\ndst_addr: 2001:db8::/32\n").unwrap();
        assert_eq!(v6[0].destination, "2001:db8::/32");
        assert!(parse("[x]\nsendbuf: 1").unwrap_err().contains("sendbuf"));
    }

    #[test]
    fn the_most_specific_rule_comes_first() {
        let text =
            "[a]\n[b]\ndst_addr='10.0.0.0/8'\n[c]\ndst_addr='10.1.0.0/16'\n[d]\ndst_addr='10.1.0.0/16'\ndst_port=80";
        let rules = parse(text).unwrap();
        assert_eq!(rules.iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>(), ["d", "c", "b", "a"]);
    }

    #[test]
    fn invalid_values_are_named_with_their_section() {
        for (line, word) in [
            ("dst_addr = '10.0.0.0/33'", "10.0.0.0/33"),
            ("wadmd = 1.0", "0.999"),
            ("mode = 2", "use 1"),
            ("floyd = 3", "floyd"),
        ] {
            let message = parse(&format!("[x]\n{line}")).unwrap_err();
            assert!(message.contains("[x]") && message.contains(word), "{message}");
        }
        assert!(parse("[x]\nsendbuf = 1").unwrap_err().contains("sendbuf"));
        assert_eq!(parse("[x]\nmode = 0"), Ok(vec![]));
    }
}
