//! Which words of a command are keys, settings or entries of the journal, and which one is a host.

use command::Failure;
use host::tune::{self, Allowance, RealBackend};
use model::Setting;

/// The keys to show, and the host. A last word that does not look like a key is a host.
///
/// # Errors
/// A word is a mistyped key.
pub fn of_show(words: &[String]) -> Result<(&[String], Option<&str>), Failure> {
    let Some((last, keys)) = words.split_last() else { return Ok((words, None)) };
    let (keys, host) = if tune::is_key(last) { (words, None) } else { (keys, Some(last.as_str())) };
    // A mistyped key gets an error about the key, not about a host that cannot be reached.
    let wrong = keys.iter().find(|word| !tune::is_key(word)).or(words.last().filter(|last| tune::resembles_key(last)));
    match wrong.map(|word| tune::show(&RealBackend, std::slice::from_ref(word), &Allowance::All)) {
        Some(Err(error)) => Err(error.into()),
        _ => Ok((keys, host)),
    }
}

/// The settings to change, and the host.
///
/// # Errors
/// A word is not a setting, or there is none.
pub fn of_set(words: &[String]) -> Result<(Vec<Setting>, Option<&str>), Failure> {
    let (pairs, host) = match words.split_last() {
        Some((last, pairs)) if !last.contains('=') => (pairs, Some(last.as_str())),
        _ => (words, None),
    };
    let settings =
        pairs.iter().map(|word| word.parse::<Setting>().map_err(Failure::usage)).collect::<Result<Vec<_>, _>>()?;
    if settings.is_empty() {
        return Err(Failure::usage("nothing to set: write KEY=VALUE, such as dev.eth0.mtu=9000"));
    }
    Ok((settings, host))
}

/// The entry of the journal to restore (`all` for those of all network namespaces), and the host.
///
/// # Errors
/// There are other words.
pub fn of_revert(words: &[String]) -> Result<(Option<&str>, Option<&str>), Failure> {
    let is_which = |word: &str| word == "all" || tune::is_entry(word);
    match words {
        [] => Ok((None, None)),
        [one] if is_which(one) => Ok((Some(one), None)),
        [one] => Ok((None, Some(one))),
        [which, host] if is_which(which) => Ok((Some(which), Some(host))),
        _ => Err(Failure::usage("usage: `thru tune revert [ID|all] [HOST]`; `thru tune journal` lists the IDs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_last_word_is_a_host_unless_it_is_a_setting() {
        for (line, count, host) in
            [("dev.eth0.mtu=9000 b", 1, Some("b")), ("dev.eth0.mtu=9000 cc.default=bbr", 2, None)]
        {
            let words = words(line);
            let (settings, found) = of_set(&words).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!((settings.len(), found), (count, host), "{line}");
        }
        assert!(of_set(&words("b")).unwrap_err().to_string().starts_with("nothing to set"));
    }

    #[test]
    fn an_entry_to_restore_comes_before_the_host() {
        for (line, which, host) in
            [("", None, None), ("all", Some("all"), None), ("b", None, Some("b")), ("all b", Some("all"), Some("b"))]
        {
            assert_eq!(of_revert(&words(line)).ok(), Some((which, host)), "{line}");
        }
        assert!(of_revert(&words("b all")).is_err());
    }
}
