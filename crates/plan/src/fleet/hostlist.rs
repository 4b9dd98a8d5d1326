//! Names of many hosts in one text, as Slurm writes them: `node[01-16,20],login`.

use super::bounds::{MOST_BRACKETS, MOST_CHARACTERS, MOST_HOSTS};
use super::error::HostListError;

/// The names in a list with commas. Brackets hold numbers and ranges of numbers; leading zeros are kept, and a name may have several
/// brackets: `rack[1-2]n[01-04]`.
///
/// # Errors
/// What is wrong with the text.
pub fn expand(text: &str) -> Result<Vec<String>, HostListError> {
    let mut names = Vec::new();
    for part in split(text)? {
        let more = one(part)?;
        if names.len() + more.len() > MOST_HOSTS {
            return Err(HostListError::ManyHosts { text: text.to_owned() });
        }
        names.extend(more);
    }
    Ok(names)
}

/// Refuses a host's name, or `[USER@]HOST`, that a program such as ssh would take for an option.
///
/// # Errors
/// It is one.
pub fn no_option(text: &str) -> Result<(), HostListError> {
    let parts = text.strip_prefix("ssh://").unwrap_or(text).split('@');
    if parts.map(str::trim_start).any(|part| part.starts_with('-')) {
        return Err(HostListError::Dash { text: text.to_owned() });
    }
    Ok(())
}

/// The parts of a list: commas within brackets separate nothing. Empty parts are left out.
///
/// # Errors
/// A bracket without its partner.
pub fn split(text: &str) -> Result<Vec<&str>, HostListError> {
    let mut parts = Vec::new();
    let (mut begin, mut inside) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' if inside => return Err(HostListError::Nested { text: text.to_owned() }),
            b']' if !inside => return Err(HostListError::NotOpened { text: text.to_owned() }),
            b'[' | b']' => inside = byte == b'[',
            b',' if !inside => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(HostListError::NotClosed { text: text.to_owned() });
    }
    parts.push(&text[begin..]);
    Ok(parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect())
}

/// The names of one part.
fn one(part: &str) -> Result<Vec<String>, HostListError> {
    if part.matches('[').count() > MOST_BRACKETS {
        return Err(HostListError::ManyBrackets { text: part.to_owned() });
    }
    let names = names(part)?;
    names.iter().try_for_each(|name| no_option(name))?;
    Ok(names)
}

/// The names of a part with few brackets.
fn names(part: &str) -> Result<Vec<String>, HostListError> {
    let too_long = || HostListError::LongName { text: part.to_owned() };
    let (before, rest) = match part.split_once('[') {
        Some(bracket) => bracket,
        None if part.chars().count() > MOST_CHARACTERS => return Err(too_long()),
        None => return Ok(vec![part.to_owned()]),
    };
    let Some((ranges, behind)) = rest.split_once(']') else {
        return Err(HostListError::NotClosed { text: part.to_owned() });
    };
    let ends = names(behind)?;
    let mut names = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
        let wrong = || HostListError::Range { text: part.to_owned(), range: range.to_owned() };
        let number = |text: &str| {
            Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<usize>().ok()
        };
        let (from, to) = number(first).zip(number(last)).filter(|(from, to)| from <= to).ok_or_else(wrong)?;
        let width = first.len();
        // Lengths and counts come before the names.
        if before.len().max(width) > MOST_CHARACTERS {
            return Err(too_long());
        }
        if (to - from).saturating_add(1).saturating_mul(ends.len()).saturating_add(names.len()) > MOST_HOSTS {
            return Err(HostListError::ManyHosts { text: part.to_owned() });
        }
        for number in from..=to {
            names.extend(ends.iter().map(|end| format!("{before}{number:0width$}{end}")));
        }
    }
    match names.iter().any(|name| name.chars().count() > MOST_CHARACTERS) {
        true => Err(too_long()),
        false => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> String {
        expand(text).unwrap().join(" ")
    }

    #[test]
    fn ranges_keep_their_zeros_and_brackets_combine() {
        assert_eq!(names("node[08-11,20],login"), "node08 node09 node10 node11 node20 login");
        assert_eq!(names("r[1-2]n[1,3].lan"), "r1n1.lan r1n3.lan r2n1.lan r2n3.lan");
        assert_eq!(names(" a , b,, "), "a b");
        assert_eq!(names("n[9-11]"), "n9 n10 n11");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("node[1-", "[ without ]"),
            ("node]", "] without ["),
            ("n[[1]]", "within a bracket"),
            ("n[4-2]", "'4-2' is not a number or a range"),
            ("n[a-c]", "'a-c' is not a number"),
            ("n[]", "'' is not a number"),
            ("n[+1-2]", "'+1-2' is not a number"),
            ("n[0-99999999]", "more than 65536 hosts"),
            ("n[0-999]m[0-999]", "more than 65536 hosts"),
            ("n[18446744073709551615-18446744073709551616]", "is not a number or a range"),
            ("n[0-18446744073709551615]", "more than 65536 hosts"),
            ("-oProxyCommand=x", "begins with '-'"),
            ("a,me@-V", "'me@-V' begins with '-'"),
            ("-n[1-2]", "begins with '-'"),
        ] {
            let error = expand(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn huge_texts_are_refused_before_their_names_are_made() {
        let zeros = "0".repeat(60_000);
        let ranges = format!("0{}", ",0-65535".repeat(10_000));
        for (text, said) in [
            (format!("n[0{zeros}-1]"), "at most 253 characters"),
            (format!("n[{zeros}1-65535]"), "at most 253 characters"),
            (format!("{zeros}[1-65535]"), "at most 253 characters"),
            (format!("n[0-65535]{zeros}"), "at most 253 characters"),
            (zeros.clone(), "at most 253 characters"),
            (format!("n[{ranges}]"), "more than 65536 hosts"),
            (format!("n{}", "[1]".repeat(100_000)), "more than 8 brackets"),
            (["n[0-65535]"; 2].join(","), "more than 65536 hosts"),
        ] {
            let error = expand(&text).unwrap_err().to_string();
            assert!(error.contains(said) && error.len() < 300, "{error}");
        }
        // Zeros in front are a width, also if the number is small.
        assert_eq!(expand(&format!("n[{}1]", "0".repeat(19))).unwrap(), [format!("n{}1", "0".repeat(19))]);
    }
}
