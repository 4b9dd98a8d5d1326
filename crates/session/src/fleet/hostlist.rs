//! Names of many hosts in one text, as Slurm writes them: `node[01-16,20],login`.

/// Most hosts that a text may name.
pub(super) const MOST_HOSTS: usize = 65_536;

/// The names in a list with commas. Brackets hold numbers and ranges of numbers; leading zeros are kept, and a name may have several
/// brackets: `rack[1-2]n[01-04]`.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for part in split(text)? {
        let more = one(part)?;
        if names.len() + more.len() > MOST_HOSTS {
            return Err(format!("'{text}' names more than {MOST_HOSTS} hosts"));
        }
        names.extend(more);
    }
    Ok(names)
}

/// The parts of a list: commas within brackets separate nothing. Empty parts are left out.
///
/// # Errors
/// A bracket without its partner.
pub(super) fn split(text: &str) -> Result<Vec<&str>, String> {
    let mut parts = Vec::new();
    let (mut begin, mut inside) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' if inside => return Err(format!("'{text}': a bracket within a bracket")),
            b']' if !inside => return Err(format!("'{text}': ] without [")),
            b'[' | b']' => inside = byte == b'[',
            b',' if !inside => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if inside {
        return Err(format!("'{text}': [ without ]"));
    }
    parts.push(&text[begin..]);
    Ok(parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect())
}

/// The names of one part.
fn one(part: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = part.split_once('[') else { return Ok(vec![part.to_owned()]) };
    let Some((ranges, behind)) = rest.split_once(']') else { return Err(format!("'{part}': [ without ]")) };
    let ends = one(behind)?;
    let mut names = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.trim().split_once('-').unwrap_or((range.trim(), range.trim()));
        let wrong = || format!("'{part}': '{range}' is not a number or a range of numbers, such as 01-16");
        let number = |text: &str| {
            Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse::<usize>().ok()
        };
        let (from, to) = number(first).zip(number(last)).filter(|(from, to)| from <= to).ok_or_else(wrong)?;
        if (to - from + 1).saturating_mul(ends.len()) > MOST_HOSTS {
            return Err(format!("'{part}' names more than {MOST_HOSTS} hosts"));
        }
        let width = first.len();
        for number in from..=to {
            names.extend(ends.iter().map(|end| format!("{before}{number:0width$}{end}")));
        }
    }
    Ok(names)
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
        ] {
            let error = expand(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
