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
use crate::error::{RulesError, SectionError};

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
    let rules = std::fs::read_to_string(path).map_err(RulesError::Read).and_then(|text| parse(&text));
    rules.map_err(|what| StackError::Rules { path: path.to_owned(), what })
}

pub(crate) fn parse(text: &str) -> Result<Vec<StackRule>, RulesError> {
    let sections: BTreeMap<String, Section> = toml::from_str(&as_toml(text))?;
    let mut rules = Vec::new();
    for (name, section) in sections {
        match section.rule(&name) {
            Ok(rule) => rules.extend(rule),
            Err(what) => return Err(RulesError::Section { section: name, what }),
        }
    }
    if rules.len() > MOST {
        return Err(RulesError::TooMany { count: rules.len(), most: MOST });
    }
    rules.sort_by_key(|rule| std::cmp::Reverse(specificity(rule)));
    Ok(rules)
}

impl Section {
    /// The rule of the section with that name; `None` if the section is left out.
    fn rule(&self, name: &str) -> Result<Option<StackRule>, SectionError> {
        match self.mode {
            0 => return Ok(None),
            1 => {}
            mode => return Err(SectionError::Mode { mode }),
        }
        Ok(Some(StackRule {
            source: prefix(&self.src_addr)?,
            source_port: self.src_port,
            destination: prefix(&self.dst_addr)?,
            destination_port: self.dst_port,
            sndbuf_bytes: self.sndbuf,
            rcvbuf_bytes: self.rcvbuf,
            increase_permille: permille("wadai", self.wadai, 0.001, 1_000_000.0)?,
            decrease_permille: permille("wadmd", self.wadmd, 0.001, 0.999)?,
            max_ssthresh: self.maxssth,
            // With 2 the daemon did itself, ten times a second, what the kernel does with 1.
            table: switch("floyd", self.floyd, 2)?,
            ignore_local_queue: switch("wad_ifq", self.wad_ifq, 1)?,
            divide: switch("divide", self.divide, 1)?,
            name: name.to_owned(),
        }))
    }
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

fn switch(key: &'static str, value: u8, most: u8) -> Result<bool, SectionError> {
    if value > most { Err(SectionError::Switch { key, value }) } else { Ok(value > 0) }
}

fn permille(key: &'static str, value: f64, least: f64, most: f64) -> Result<u32, SectionError> {
    if (least..=most).contains(&value) {
        Ok((value * 1_000.0).round() as u32)
    } else {
        Err(SectionError::Number { key, value, least, most })
    }
}

/// An address with its prefix, in its shortest form. The all-zero address means any, with any prefix (the files of the
/// 2003 record say 0.0.0.0/32).
fn prefix(text: &str) -> Result<String, SectionError> {
    let wrong = || SectionError::Address { text: text.to_owned() };
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
        assert_eq!(parse(literal).unwrap(), parse(RECORD).unwrap());
        let v6 = parse("[x]\ndst_addr: 2001:db8::/32\n").unwrap();
        assert_eq!(v6[0].destination, "2001:db8::/32");
        assert!(parse("[x]\nsendbuf: 1").unwrap_err().to_string().contains("sendbuf"));
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
            let message = parse(&format!("[x]\n{line}")).unwrap_err().to_string();
            assert!(message.contains("[x]") && message.contains(word), "{message}");
        }
        assert!(parse("[x]\nsendbuf = 1").unwrap_err().to_string().contains("sendbuf"));
        assert_eq!(parse("[x]\nmode = 0").unwrap(), []);
    }
}
