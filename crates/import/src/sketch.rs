//! What of a long text is enough to know its formats.

use std::borrow::Cow;
use std::collections::HashMap;

/// Shorter texts are looked at whole, bytes.
const LONG: usize = 1 << 20;
/// Lines of one shape that are kept.
const ALIKE: u32 = 500;

/// The text without most of the lines that look like many before them but for their numbers, as the replies of a long ping. Each format is recognized by its lines, and about thirty formats look at each of them.
pub(crate) fn sketch(text: &str) -> Cow<'_, str> {
    if text.len() < LONG {
        return Cow::Borrowed(text);
    }
    let mut seen: HashMap<u64, u32> = HashMap::new();
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        let count = seen.entry(shape(line)).or_default();
        *count += 1;
        if *count <= ALIKE {
            kept.push_str(line);
        }
    }
    Cow::Owned(kept)
}

/// A number for what a line looks like (FNV-1a): a run of digits, points and signs counts as one digit.
fn shape(line: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut last = 0;
    for byte in line.bytes() {
        let kind = match byte {
            b'0'..=b'9' | b'.' | b'-' | b'+' => b'0',
            other => other,
        };
        if !(kind == b'0' && last == b'0') {
            hash = (hash ^ u64::from(kind)).wrapping_mul(0x0100_0000_01b3);
        }
        last = kind;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_some_of_each_kind_of_line() {
        let reply =
            |n: u32| format!("64 bytes from 192.0.2.2: icmp_seq={n} ttl=64 time={}.{:03} ms\n", n % 7, n % 1000);
        let many: String = (0..100_000).map(reply).collect();
        let text = format!("PING b (192.0.2.2) 56(84) bytes of data.\n{many}net.ipv4.tcp_sack = 1\n");
        let sketch = sketch(&text);
        assert!(sketch.starts_with("PING b") && sketch.ends_with("net.ipv4.tcp_sack = 1\n"));
        assert_eq!(sketch.lines().count(), 2 + ALIKE as usize);
        for (format, whole) in crate::FORMATS.iter().map(|format| (format, (format.detect)(&text))) {
            assert_eq!((format.detect)(&sketch), whole, "{}", format.name);
        }
        assert!(matches!(super::sketch("short\n"), Cow::Borrowed("short\n")));
    }
}
