//! Identifiers of runs.

use jiff::Timestamp;

/// An identifier such as `20261121-203758-4f1a`: the UTC time of the start and four hexadecimal digits of chance, so that
/// runs sort by time and two that start in the same second differ.
///
/// `unix_ns` is the wall clock in ns since the Unix epoch, `entropy` any random number. Nothing makes the id unique for
/// certain; [`Recorder`](crate::Recorder) refuses one that the store has already.
#[must_use]
pub fn new_run_id(unix_ns: u64, entropy: u16) -> String {
    // A u64 of nanoseconds ends in the year 2554, well within the calendar.
    let start = Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or(Timestamp::MAX);
    format!("{}-{entropy:04x}", start.strftime("%Y%m%d-%H%M%S"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_show_utc_whatever_the_local_time_zone() {
        // `date -u -d @1795293478` prints Sat Nov 21 20:37:58 UTC 2026.
        assert_eq!(new_run_id(1_795_293_478_999_999_999, 0x4f1a), "20261121-203758-4f1a");
        assert_eq!(new_run_id(0, 1), "19700101-000000-0001");
        assert!(new_run_id(u64::MAX, u16::MAX).starts_with("25540721-"), "{}", new_run_id(u64::MAX, u16::MAX));
    }
}
