//! Parsers of the values of options.

use std::fmt::Display;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::any;
use crate::{BitRate, ByteSize, Engine, Mix, Payload, PayloadKind, Setting, ValueError};

/// A parser of a value, as clap takes it.
pub trait Value<T>: Fn(&str) -> Result<T, ValueError> + Clone + Send + Sync + 'static {}

impl<T, F: Fn(&str) -> Result<T, ValueError> + Clone + Send + Sync + 'static> Value<T> for F {}

/// The size of blocks, or a mix of datagram sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockFlag {
    /// All blocks have this size.
    One(ByteSize),
    /// Datagrams have these sizes in turn.
    Mix(Mix),
}

impl FromStr for BlockFlag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if Mix::is_named(text) { any(text).map(Self::Mix) } else { above_zero::<ByteSize>(text).map(Self::One) }
    }
}

/// One size of blocks, where a mix has no meaning.
pub fn one_block(text: &str) -> Result<ByteSize, ValueError> {
    if Mix::is_named(text) {
        return Err(ValueError::MixForOneSize { text: text.to_owned() });
    }
    above_zero(text)
}

/// A whole number in a range.
pub fn whole<T>(range: RangeInclusive<T>) -> impl Value<T>
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| match text.trim().parse::<T>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(ValueError::Whole {
            text: text.to_owned(),
            least: range.start().to_string(),
            most: range.end().to_string(),
        }),
    }
}

/// A DSCP: a number from 0 to 63, or its name in the IANA registry (RFC 2474, 2597, 3246, 5865, 8622): `ef`, `af41`, `cs1`, `va`, `le`.
pub fn dscp(text: &str) -> Result<u8, ValueError> {
    let name = text.trim().to_ascii_lowercase();
    let digit = |text: &str, most: u8| text.parse::<u8>().ok().filter(|digit| text.len() == 1 && *digit <= most);
    let class = |class: &str| {
        let (class, drop) = class.split_at_checked(1)?;
        let (class, drop) = (digit(class, 4)?, digit(drop, 3)?);
        (class > 0 && drop > 0).then_some(8 * class + 2 * drop)
    };
    let named = match name.as_str() {
        "ef" => Some(46),
        "va" => Some(44),
        "le" => Some(1),
        "df" => Some(0),
        _ => name
            .strip_prefix("af")
            .and_then(class)
            .or_else(|| name.strip_prefix("cs").and_then(|one| Some(8 * digit(one, 7)?))),
    };
    let number = || text.trim().parse().ok().filter(|number| *number <= 63);
    named.or_else(number).ok_or_else(|| ValueError::Dscp { text: text.to_owned() })
}

/// A quantity in a range.
pub fn within<T>(range: RangeInclusive<T>) -> impl Value<T>
where
    T: FromStr<Err: Into<ValueError>> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| match any::<T>(text)? {
        value if range.contains(&value) => Ok(value),
        _ => Err(ValueError::Range {
            text: text.to_owned(),
            least: range.start().to_string(),
            most: range.end().to_string(),
        }),
    }
}

/// A quantity of `least` or more.
pub fn at_least<T>(least: T) -> impl Value<T>
where
    T: FromStr<Err: Into<ValueError>> + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text: &str| match any::<T>(text)? {
        value if value >= least => Ok(value),
        _ => Err(ValueError::TooSmall { text: text.to_owned(), least: least.to_string() }),
    }
}

/// A quantity that is not 0.
pub fn above_zero<T: FromStr<Err: Into<ValueError>> + PartialOrd + Default>(text: &str) -> Result<T, ValueError> {
    match any::<T>(text)? {
        value if value > T::default() => Ok(value),
        _ => Err(ValueError::Zero { text: text.to_owned() }),
    }
}

/// A number of 0 or more, with or without a fraction.
pub fn not_negative(text: &str) -> Result<f64, ValueError> {
    match text.trim().parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        _ => Err(ValueError::Negative { text: text.to_owned() }),
    }
}

/// The name of a run or of a device: not empty.
pub fn name(text: &str) -> Result<String, ValueError> {
    match text.trim() {
        "" => Err(ValueError::Empty { text: text.to_owned(), remedy: "write a name, or omit it" }),
        _ => Ok(text.to_owned()),
    }
}

/// An IP address as a flag, which may have a port (0 for none) and the name of an interface of this host, as link-local addresses
/// need: `192.0.2.1:7000`, `2001:db8::1`, `[fe80::1%eth0]:7000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// The interface.
    pub interface: Option<String>,
    /// The port.
    pub port: u16,
}

/// An address without a port.
pub fn address(text: &str) -> Result<Address, ValueError> {
    let text = text.trim();
    let bare = !text.contains(['[', ']']);
    endpoint(text)
        .filter(|address| bare && address.port == 0)
        .ok_or_else(|| ValueError::Address { text: text.to_owned() })
}

/// An address with or without a port.
pub fn data_address(text: &str) -> Result<Address, ValueError> {
    let text = text.trim();
    endpoint(text).ok_or_else(|| ValueError::Endpoint { text: text.to_owned() })
}

fn endpoint(text: &str) -> Option<Address> {
    let (address, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, behind) = rest.split_once(']')?;
            (address, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
        }
        None if text.matches(':').count() == 1 => text.split_once(':').map(|(address, port)| (address, Some(port)))?,
        None => (text, None),
    };
    let port = match port {
        None => 0,
        Some(port) => whole(1..=u16::MAX)(port).ok()?,
    };
    let (ip, interface) = match address.split_once('%') {
        Some((ip, interface)) => (ip, Some(interface.to_owned()).filter(|name| !name.is_empty())?.into()),
        None => (address, None),
    };
    Some(Address { ip: ip.parse().ok()?, interface, port })
}

/// Splits `LOCAL,REMOTE` (netperf's convention); `None` for one value of both ends. A comma before a further parameter of a congestion control belongs to that congestion control
/// (`fast:alpha=200,gamma=0.3,cubic`).
pub(crate) fn ends(text: &str) -> Option<(&str, &str)> {
    let next_parameter = |rest: &str| {
        let word = rest.split([',', ':']).next().unwrap_or_default();
        word.contains('=')
    };
    let mut from = 0;
    while let Some(at) = text[from..].find(',').map(|at| at + from) {
        let (before, rest) = (&text[..at], &text[at + 1..]);
        if !(before.contains(':') && next_parameter(rest)) {
            return Some((before, rest));
        }
        from = at + 1;
    }
    None
}

/// Cores: `2`, `0+2+4` or `0-3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cores(pub Vec<u32>);

impl Cores {
    /// The longest list, as many as a thread's set of cores holds (CPU_SETSIZE). Each spec has it, and a curve is many specs.
    const MOST: usize = 1_024;
}

impl FromStr for Cores {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let mut cores = Vec::new();
        for part in text.split('+') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.trim().parse::<u32>(), last.trim().parse::<u32>());
            match (first, last) {
                (Ok(first), Ok(last)) if first <= last => {
                    if (last - first) as usize >= Self::MOST - cores.len() {
                        return Err(ValueError::ManyCores { text: text.to_owned(), most: Self::MOST });
                    }
                    cores.extend(first..=last);
                }
                _ => return Err(ValueError::Cores { text: text.to_owned() }),
            }
        }
        Ok(Self(cores))
    }
}

/// A rate of requests, as a flag: `1000/s`, or a bit rate of request bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RequestRate {
    /// Requests a second.
    PerSecond(f64),
    /// Bits of requests a second.
    Bits(BitRate),
}

impl RequestRate {
    /// The rate in bit/s of requests of `block` bytes.
    pub fn bits_per_second(self, block: u64) -> u64 {
        match self {
            Self::PerSecond(count) => ((count * block as f64 * 8.0).round() as u64).max(1),
            Self::Bits(rate) => rate.0,
        }
    }
}

impl FromStr for RequestRate {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.strip_suffix("/s").map(str::parse::<f64>) {
            Some(Ok(count)) if count > 0.0 && count.is_finite() => Ok(Self::PerSecond(count)),
            Some(Ok(_)) => Err(ValueError::RequestRate { text: text.to_owned() }),
            _ => text.parse().map(Self::Bits).map_err(|error| ValueError::RequestBits(Box::new(error))),
        }
    }
}

/// The rate of a stream without a limit, as a flag: the sender goes as fast as the transport and the receiver let it.
pub const NO_LIMIT: BitRate = BitRate(u64::MAX);

/// The rate of a stream: more than zero, or `max` for [`NO_LIMIT`].
pub fn sending_rate(text: &str) -> Result<BitRate, ValueError> {
    if text == "max" { Ok(NO_LIMIT) } else { above_zero(text) }
}

/// The payload that a flag asks for: `random`, `zeros`, `pattern`, or the name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayloadFlag {
    /// Made by the sender.
    Kind(PayloadKind),
    /// The content of this file.
    File(PathBuf),
}

impl FromStr for PayloadFlag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let kind = Payload::KINDS.iter().find(|(name, _)| *name == text);
        match (kind, text.is_empty()) {
            (Some((_, kind)), _) => Ok(Self::Kind(*kind)),
            (None, false) => Ok(Self::File(text.into())),
            (None, true) => {
                let remedy = "write random, zeros, pattern, or the name of a file";
                Err(ValueError::Empty { text: String::new(), remedy })
            }
        }
    }
}

/// The send and receive methods, as a flag: `auto`, or `SEND[,RECEIVE]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineFlag(pub Engine);

impl FromStr for EngineFlag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == "auto" {
            return Ok(Self(Engine { auto: true, ..Engine::default() }));
        }
        let (send, receive) = text.split_once(',').map_or((text, None), |(send, receive)| (send, Some(receive)));
        let (_, send) = Engine::SENDS
            .iter()
            .find(|(name, _)| *name == send)
            .ok_or_else(|| ValueError::SendMethod { name: send.to_owned() })?;
        let mut engine = Engine::sending(*send);
        if let Some(receive) = receive {
            let (_, method) = Engine::RECEIVES
                .iter()
                .find(|(name, _)| *name == receive)
                .ok_or_else(|| ValueError::ReceiveMethod { name: receive.to_owned() })?;
            engine.receive = *method;
        }
        Ok(Self(engine))
    }
}

/// A setting of one or both hosts, as a flag: `KEY=VALUE`, `near:KEY=VALUE`, `far:KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetFlag {
    /// Set at the near end.
    pub near: bool,
    /// Set at the far end.
    pub far: bool,
    /// The setting.
    pub setting: Setting,
}

impl FromStr for SetFlag {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let (near, far, rest) = match (text.strip_prefix("near:"), text.strip_prefix("far:")) {
            (Some(rest), _) => (true, false, rest),
            (_, Some(rest)) => (false, true, rest),
            _ => (true, true, text),
        };
        Ok(Self { near, far, setting: rest.parse()? })
    }
}

/// NAME=VALUE, the value of a variable of a plan or a topology.
pub fn variable(text: &str) -> Result<(String, String), ValueError> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(ValueError::Variable { text: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;

    #[test]
    fn an_address_may_have_an_interface_and_no_port() {
        let of = |ip: &str, interface: Option<&str>| {
            Ok(Address { ip: ip.parse().unwrap(), interface: interface.map(str::to_owned), port: 0 })
        };
        assert_eq!(address("::"), of("::", None));
        assert_eq!(address("fe80::1%lo"), of("fe80::1", Some("lo")));
        for text in ["", "b", "192.0.2.1:7000", "[::1]", "[fe80::1%lo]:7000", "fe80::1%"] {
            assert_eq!(address(text), Err(ValueError::Address { text: text.into() }));
        }
    }

    #[test]
    fn a_data_address_may_have_a_port_and_an_interface() {
        for (text, ip, interface, port) in [
            ("192.0.2.1", "192.0.2.1", None, 0),
            ("192.0.2.1:7000", "192.0.2.1", None, 7000),
            ("2001:db8::1", "2001:db8::1", None, 0),
            ("[2001:db8::1]", "2001:db8::1", None, 0),
            ("[2001:db8::1]:7000", "2001:db8::1", None, 7000),
            ("fe80::1%lo", "fe80::1", Some("lo"), 0),
            ("[fe80::1%lo]:7000", "fe80::1", Some("lo"), 7000),
        ] {
            let of = Address { ip: ip.parse().unwrap(), interface: interface.map(str::to_owned), port };
            assert_eq!(data_address(text), Ok(of), "{text}");
        }
        for text in [
            "",
            "b",
            "b:7000",
            "192.0.2.1:0",
            "192.0.2.1:70000",
            "192.0.2.1:",
            "[::1]7",
            "[::1",
            "::1]:7",
            "1.2.3.4:5:6",
        ] {
            assert!(data_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn local_and_remote_are_split_at_a_comma() {
        assert_eq!(
            [ends("5"), ends("5,6"), ends("5,"), ends(",6")],
            [None, Some(("5", "6")), Some(("5", "")), Some(("", "6"))]
        );
        assert_eq!(ends("fast:alpha=200,gamma=0.3"), None);
        assert_eq!(ends("fast:alpha=200,gamma=0.3,cubic"), Some(("fast:alpha=200,gamma=0.3", "cubic")));
        assert_eq!(ends("cubic,fast:alpha=200,mi=0"), Some(("cubic", "fast:alpha=200,mi=0")));
        assert_eq!(ends("fast:alpha=1,"), Some(("fast:alpha=1", "")));
    }

    #[test]
    fn a_dscp_is_a_number_or_a_registered_name() {
        let names = [("ef", 46), ("EF", 46), ("va", 44), ("le", 1), ("df", 0), ("cs0", 0), ("cs7", 56)];
        let classes = [("af11", 10), ("af23", 22), ("af41", 34), ("af43", 38), ("0", 0), ("63", 63)];
        for (text, number) in names.into_iter().chain(classes) {
            assert_eq!(dscp(text), Ok(number), "{text}");
        }
        for wrong in ["64", "-1", "", "af", "af51", "af14", "af40", "cs8", "cs", "cs11", "x"] {
            assert!(dscp(wrong).is_err_and(|error| error.to_string().contains("write 0 to 63")), "{wrong}");
        }
    }

    #[test]
    fn an_error_about_a_range_names_the_range() {
        assert_eq!(whole(1..=5_u8)("5"), Ok(5));
        for wrong in ["0", "6", "-1", "1.5", "", "99999999999999999999"] {
            let error = whole(1..=5_u8)(wrong).unwrap_err();
            assert_eq!(error.to_string(), format!("'{wrong}' is not a whole number from 1 to 5"));
        }
        let ms = at_least(Nanos(1_000_000));
        let said = |text: &str| ms(text).unwrap_err().to_string();
        assert_eq!(
            (ms("1ms"), said("1us")),
            (Ok(Nanos(1_000_000)), "'1us' is too small: the minimum is 1.00 ms".into())
        );
        assert!(said("-1").starts_with("'-1' is not a time: write "));
        assert_eq!(above_zero::<BitRate>("0"), Err(ValueError::Zero { text: "0".into() }));
        assert_eq!(
            (not_negative("0.5"), not_negative("-1").is_err(), not_negative("inf").is_err()),
            (Ok(0.5), true, true)
        );
        assert_eq!((name("a b"), name(" ").is_err()), (Ok("a b".into()), true));
    }

    #[test]
    fn settings_are_for_one_end_or_both() {
        let flag = |text: &str| text.parse::<SetFlag>().map(|flag| (flag.near, flag.far, flag.setting.to_string()));
        assert_eq!(flag("near:dev.a.mtu=9"), Ok((true, false, "dev.a.mtu=9".into())));
        assert_eq!(flag("far:qdisc.a=tbf rate 1"), Ok((false, true, "qdisc.a=tbf rate 1".into())));
        assert_eq!(flag("route.::1.mtu=1"), Ok((true, true, "route.::1.mtu=1".into())));
        assert!(flag("near:x").is_err());
    }

    #[test]
    fn cores_are_lists_and_ranges() {
        assert_eq!("0-2+7".parse(), Ok(Cores(vec![0, 1, 2, 7])));
        assert!("3-1".parse::<Cores>().is_err());
        assert_eq!("0-1023".parse::<Cores>().unwrap().0.len(), 1_024);
        for long in ["0-1024", "0-511+0-511+7", "0-4294967295"] {
            assert!(long.parse::<Cores>().unwrap_err().to_string().ends_with("has more than 1024 cores"), "{long}");
        }
        assert!("a".parse::<Cores>().is_err());
    }

    #[test]
    fn request_rates_are_per_second_or_bits() {
        assert_eq!("1000/s".parse(), Ok(RequestRate::PerSecond(1000.0)));
        assert_eq!("1Mbit".parse(), Ok(RequestRate::Bits(BitRate(1_000_000))));
        assert_eq!("1Mbit/s".parse(), Ok(RequestRate::Bits(BitRate(1_000_000))));
        assert_eq!(RequestRate::PerSecond(0.5).bits_per_second(1), 4);
        for wrong in ["-1/s", "0/s", "inf/s", "x"] {
            assert!(wrong.parse::<RequestRate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_send_method_implies_its_receive_method() {
        let engine = |text: &str| text.parse::<EngineFlag>().map(|flag| flag.0.to_string());
        assert_eq!(engine("gso"), Ok("gso,gro".into()));
        assert_eq!(engine("gso,copy"), Ok("gso,copy".into()));
        assert_eq!(engine("sendfile,trunc"), Ok("sendfile,trunc".into()));
        assert!(engine("fast").is_err_and(|error| error.to_string().contains("sendfile")));
        assert!(engine("copy,fast").is_err_and(|error| error.to_string().contains("trunc")));
    }
}
