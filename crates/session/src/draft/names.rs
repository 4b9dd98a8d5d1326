//! Values that are one of a few names.

use model::{Io, Observe, Strategy};

use crate::values::{Switch, Value};

/// How threads wait.
pub(super) const WAIT: [(&str, Strategy); 4] = [
    ("auto", Strategy::Auto),
    ("blocking", Strategy::Blocking),
    ("epoll", Strategy::Epoll),
    ("uring", Strategy::Uring),
];
/// System calls.
pub(super) const IO: [(&str, Io); 2] = [("send-recv", Io::SendRecv), ("read-write", Io::ReadWrite)];
/// What observers read.
pub(super) const OBSERVE: [(&str, Observe); 3] =
    [("off", Observe::Off), ("counters", Observe::Counters), ("series", Observe::Series)];

/// A parser of one of these names.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(names: &'static [(&'static str, T)]) -> impl Value<T> {
    move |text: &str| match names.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(*value),
        None => Err(not_one_of(text, names.iter().map(|(name, _)| *name))),
    }
}

/// The name of a transport.
pub(super) fn transport(text: &str) -> Result<String, String> {
    let names = || engine::transport::transports().map(engine::transport::Transport::name);
    if names().any(|name| name == text) { Ok(text.to_owned()) } else { Err(not_one_of(text, names())) }
}

/// The name of a program whose servers can be measured with.
///
/// # Errors
/// There is none; the message lists them.
pub fn program(name: &str) -> Result<String, String> {
    peers::protocol(name).map(|_| name.to_owned()).map_err(|error| error.to_string())
}

/// A field that is given or not, as TOML and JSON write it.
pub(super) fn given(text: &str) -> Result<bool, String> {
    match text {
        "true" | "on" => Ok(true),
        "false" | "off" => Ok(false),
        other => Err(format!("'{other}' is not true or false")),
    }
}

/// `on` or `off`, which TOML and JSON also write as `true` or `false`.
pub(super) fn on_off(text: &str) -> Result<Switch, String> {
    match text {
        "true" => Ok(Switch(true)),
        "false" => Ok(Switch(false)),
        other => other.parse(),
    }
}

/// What observers read; `false` is `off`.
pub(super) fn observe(text: &str) -> Result<Observe, String> {
    one_of(&OBSERVE)(if text == "false" { "off" } else { text })
}

fn not_one_of<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> String {
    format!("'{text}' is not one of {}", names.collect::<Vec<_>>().join(", "))
}
